//! What is the same for all connections of a run, worked out once.

use std::net::SocketAddr;

use plan::{Expect, ExpectedLength, Plan, Random, Reconnect, Scheme, Template, Think};
use units::Nanos;
use wire::http1;

/// What is spoken.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// HTTP/1.1: a request, an answer, a pause, again.
    Http(HttpRequest),
    /// Raw TCP: open and hold, nothing sent.
    Tcp,
}

/// The request, with what differs between two of them.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    target: Template,
    /// For each destination, what stands before and behind the target.
    around: Vec<(Vec<u8>, Vec<u8>)>,
    /// For each destination, the whole request where it is always the same.
    fixed: Vec<Option<&'static [u8]>>,
}

/// The compiled plan.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) protocol: Protocol,
    pub(crate) destinations: Vec<SocketAddr>,
    pub(crate) think: Think,
    pub(crate) timeout: Nanos,
    pub(crate) expect: Expect,
    pub(crate) reconnect: Reconnect,
    /// Length of a tick.
    pub(crate) period: Nanos,
}

impl Job {
    /// Length of a tick. Short, so that the ramp gives enough points for a slope.
    pub const PERIOD: Nanos = Nanos::from_millis(200);

    /// Compiles a plan. A request that never changes is written once and kept for the life of the process.
    pub fn new(plan: &Plan) -> Job {
        let destinations = plan.target.destinations.clone();
        let protocol = match plan.target.scheme {
            Scheme::Tcp => Protocol::Tcp,
            Scheme::Http => {
                let hosts = (0..destinations.len()).map(|i| plan.target.host_header(i));
                Protocol::Http(HttpRequest::new(plan.target.path.clone(), hosts))
            }
        };
        Job {
            protocol,
            destinations,
            think: plan.think,
            timeout: plan.timeout,
            expect: plan.expect,
            reconnect: plan.reconnect,
            period: Job::PERIOD,
        }
    }

    /// Requests follow answers at once.
    pub(crate) fn is_closed_loop(&self) -> bool {
        matches!(self.protocol, Protocol::Http(_)) && self.think.max == Nanos::ZERO
    }
}

impl HttpRequest {
    fn new(target: Template, hosts: impl Iterator<Item = String>) -> HttpRequest {
        let around: Vec<(Vec<u8>, Vec<u8>)> = hosts.map(|host| around(&host)).collect();
        let mut request = HttpRequest { target, fixed: vec![None; around.len()], around };
        if request.target.is_fixed() {
            for destination in 0..request.around.len() {
                let mut bytes = vec![0; request.max_len(destination)];
                request.write(destination, &mut Random::new(0), &mut bytes, Expect::default());
                request.fixed[destination] = Some(bytes.leak());
            }
        }
        request
    }

    /// The request to a destination, where it never changes.
    pub(crate) fn fixed(&self, destination: usize) -> Option<&'static [u8]> {
        self.fixed[destination]
    }

    /// Bytes that a request may take.
    pub(crate) fn max_len(&self, destination: usize) -> usize {
        let (before, behind) = &self.around[destination];
        before.len() + self.target.max_len() + behind.len()
    }

    /// Writes a request; returns its length, and the length that its answer is expected to have.
    pub(crate) fn write(
        &self,
        destination: usize,
        random: &mut Random,
        out: &mut [u8],
        expect: Expect,
    ) -> (usize, Option<u64>) {
        let (before, behind) = &self.around[destination];
        let mut expected = expect.length.and_then(|l| match l {
            ExpectedLength::Fixed(length) => Some(length),
            ExpectedLength::Drawn(_) => None,
        });
        out[..before.len()].copy_from_slice(before);
        let mut len = before.len();
        len += self.target.write(random, &mut out[len..], |i, number| {
            if expect.length == Some(ExpectedLength::Drawn(i)) {
                expected = Some(number);
            }
        });
        out[len..len + behind.len()].copy_from_slice(behind);
        (len + behind.len(), expected)
    }
}

/// What `wire` writes around a request's target.
fn around(host: &str) -> (Vec<u8>, Vec<u8>) {
    const PLACEHOLDER: &str = "/";
    let mut head = vec![0; host.len() + 64];
    let len =
        http1::write_request(&mut head, "GET", PLACEHOLDER, host).expect("64 bytes hold all but the host");
    let at = head.iter().position(|&b| b == b' ').expect("a blank stands before the target") + 1;
    (head[..at].to_vec(), head[at + PLACEHOLDER.len()..len].to_vec())
}

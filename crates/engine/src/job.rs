//! The compiled plan of a population: everything that is the same for all of its connections.

use std::{collections::HashMap, net::SocketAddr};

use plan::{Act, Load, Plan, Population, Reconnect, Role, Text, Think};
use samples::{MAX_DESTINATIONS, row_of};
use units::{Nanos, Random};

use crate::{
    captures::{Captures, Keeps},
    exchange::Exchange,
    memory::acts,
    op::{self, Op},
    protocol::{Awaited, Protocol, Session},
    pushes::Watch,
    request::{Call, Message, Request, ValueSource},
    secured::secured,
    watch::Wanted,
};

/// A compiled population, of the plan or its probe.
#[derive(Clone, Debug)]
pub struct Job {
    ops: Vec<Op>,
    /// The step of the plan that each operation belongs to.
    step_of: Vec<u16>,
    /// The names of the plan's steps, as far as this population's.
    pub(crate) step_names: Vec<String>,
    /// What each connection keeps between steps.
    keeps: Keeps,
    /// WebSocket: whether each operation comes before the upgrade; empty if there are none before it.
    before_upgrade: Vec<bool>,
    /// Number of steps in the plan, if this population's steps are counted separately; otherwise 0.
    pub(crate) steps: usize,
    pub(crate) protocol: Protocol,
    /// TLS configuration; `None` without TLS.
    pub(crate) tls: Option<tls::Client>,
    pub(crate) destinations: Vec<SocketAddr>,
    /// The row in which each destination is counted; empty if the plan has only one destination.
    rows: Vec<u8>,
    /// Number of destination rows in the plan.
    pub(crate) rows_of_plan: usize,
    pub(crate) timeout: Nanos,
    pub(crate) reconnect: Reconnect,
    pub(crate) load: Load,
    /// Requests per connection before it is closed.
    pub(crate) calls: Option<u32>,
    /// Whether a connection may have to wait between a response and the next request.
    pub(crate) waits: bool,
    /// The longest think time.
    pub(crate) longest_wait: Think,
    /// Whether a wrong response counts as a failed request.
    pub(crate) only_right: bool,
    /// Length of a tick.
    pub(crate) period: Nanos,
    /// What to look for in unsolicited messages.
    pub(crate) watch: Watch,
    /// The message that each WebSocket sends at an interval.
    pub(crate) heartbeat: Option<(Message, Nanos)>,
    /// HTTP/2: send a PING when nothing has arrived for this time.
    pub(crate) keep_alive: Option<Nanos>,
    /// Wanted number of WebSockets per connection; for HTTP/2, of concurrent requests.
    pub(crate) tunnels: u32,
    /// Values of request headers that may be secrets, and of environment variables.
    secrets: Vec<Text>,
    /// The date at time zero of the clock, as time since 1970.
    pub(crate) date: Nanos,
}

impl Job {
    /// Default length of a tick: short, so that a ramp has enough points for a slope.
    pub const PERIOD: Nanos = Nanos::from_millis(200);

    /// The job of the shards for this role. The constant part of each request is written once and kept for the life of the
    /// process.
    ///
    /// # Panics
    /// The plan has no such population, or no probe.
    pub fn new(plan: &Plan, role: Role) -> Job {
        match role {
            Role::Population(nth) => {
                let population = &plan.populations[usize::from(nth)];
                let is_told_apart = population.step_names().len() > 1;
                let steps = if is_told_apart { plan.steps().count() } else { 0 };
                let first_step = plan.steps().take_while(|(of, _)| *of < nth).count();
                let (rows, rows_of_plan) = rows(plan, population);
                Job { steps, rows, rows_of_plan, ..Job::of(population, first_step as u16) }
            }
            Role::Probe(_) => Job { only_right: true, ..Job::of(plan.population(role), 0) },
        }
    }

    /// Sets the date at which the clock started, to compare it with times in messages.
    #[must_use]
    pub fn starting(self, date: Nanos) -> Job {
        Job { date, ..self }
    }

    fn of(population: &Population, first_step: u16) -> Job {
        let (ops, step_of) = op::compile(population, first_step);
        let own = population.step_names().into_iter().map(str::to_owned);
        let names = std::iter::repeat_n(String::new(), first_step.into()).chain(own).collect();
        let target = &population.target;
        let at_once = |op: &Op| match op {
            // After a fire-and-forget message, the timer is that of the next operation.
            Op::Wait(_) | Op::Stay | Op::Send(_) => false,
            Op::Ping(_, every) => *every == Nanos::ZERO,
            _ => true,
        };
        let heartbeat = population.pushes.heartbeat.as_ref();
        let heartbeat = heartbeat.map(|beat| (Message::alone(&beat.text), beat.every));
        Job {
            protocol: Protocol::new(population),
            tls: secured(population),
            destinations: target.destinations.clone(),
            rows: Vec::new(),
            rows_of_plan: 0,
            timeout: population.timeout,
            reconnect: population.reconnect,
            load: population.load,
            calls: population.calls.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)),
            waits: !ops.iter().all(at_once),
            longest_wait: longest_wait(&ops),
            only_right: false,
            period: Job::PERIOD,
            keeps: Keeps::of(population),
            before_upgrade: before_upgrade(population, &ops, &step_of, first_step),
            ops,
            step_of,
            step_names: names,
            steps: 0,
            watch: Watch::new(&population.pushes),
            heartbeat,
            keep_alive: population.keep_alive,
            tunnels: population.streams.unwrap_or(1).into(),
            secrets: secrets(population),
            date: Nanos::ZERO,
        }
    }

    /// Whether an operation comes before the upgrade to WebSocket, and is thus an HTTP operation.
    pub(crate) fn is_before_upgrade(&self, at: u16) -> bool {
        self.before_upgrade.get(usize::from(at)) == Some(&true)
    }

    /// The session of a connection that is dialled and continues with the operation `at`.
    pub(crate) fn session_of_dial(&self, at: u16, random: &mut Random) -> Session {
        match self.is_before_upgrade(at) {
            true => self.protocol.session_of_requests(),
            false => self.protocol.session_of_dial(random),
        }
    }

    /// The session of an open connection with nothing under way that continues with the operation `at`.
    pub(crate) fn session(&self, at: u16) -> Session {
        match self.is_before_upgrade(at) {
            true => self.protocol.session_of_requests(),
            false => self.protocol.session(),
        }
    }

    /// Whether the dial alone shows how fast the target accepts connections; `has_request`: a request follows the dial.
    pub(crate) fn is_known_by_dial(&self, has_request: bool) -> bool {
        match self.is_before_upgrade(0) && !self.is_http2() {
            true => !has_request,
            false => self.protocol.properties().is_known_by_dial[usize::from(has_request)],
        }
    }

    /// The table of captured values; `None` if nothing is captured or watched.
    pub(crate) fn captures(&self, places: u32) -> Option<Box<Captures>> {
        let watches = self.ops.iter().any(|op| op.wanted().is_some());
        Captures::new(self.keeps, watches, places)
    }

    /// Whether an operation captures a value that later ones need.
    pub(crate) fn captures_at(&self, at: u16) -> bool {
        self.op(at).wanted().is_some_and(Wanted::captures)
    }

    /// The interval between messages of a connection that has several WebSockets, if messages are sent on them in turn and do not
    /// wait for earlier replies.
    pub(crate) fn overlapping(&self) -> Option<Nanos> {
        match self.op(0) {
            Op::Ping(_, every)
                if *every > Nanos::ZERO && self.protocol.has_tunnels() && self.load.rate().is_none() =>
            {
                Some(*every)
            }
            _ => None,
        }
    }

    /// Whether the protocol is HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.protocol.properties().is_http2
    }

    /// Maximum number of idle connections, if they are dialled on demand.
    pub(crate) fn most_idle(&self) -> Option<u64> {
        match self.reconnect {
            Reconnect::OnDemand { idle } => Some(idle.into()),
            _ => None,
        }
    }

    /// Whether connections are dialled on demand.
    pub(crate) fn dials_on_demand(&self) -> bool {
        self.most_idle().is_some()
    }

    /// The operation at an index.
    pub(crate) fn op(&self, at: u16) -> &Op {
        &self.ops[usize::from(at)]
    }

    /// The plan's step of an operation, if steps are counted separately.
    pub(crate) fn step(&self, at: u16) -> Option<usize> {
        (self.steps > 0).then(|| usize::from(self.step_of[usize::from(at)]))
    }

    /// The plan's step of an operation.
    pub(crate) fn step_of_plan(&self, at: u16) -> usize {
        usize::from(self.step_of[usize::from(at)])
    }

    /// The row in which a destination is counted, if any.
    pub(crate) fn row(&self, destination: u16) -> Option<usize> {
        self.rows.get(usize::from(destination)).map(|row| usize::from(*row))
    }

    /// What must not be shown: secret header values that the connection at `index` sends and their words, and its captured values and
    /// cookies in each form in which they may occur.
    pub(crate) fn secrets(&self, source: &ValueSource, index: u32) -> Vec<Box<[u8]>> {
        let values = self.secrets.iter().map(|text| source.known(text, index));
        values
            .flat_map(|value| samples::secret_words(&value))
            .chain(source.captured(index).flat_map(plan::forms))
            .collect()
    }

    /// Whether the population waits for unsolicited messages repeatedly.
    pub(crate) fn listens(&self) -> bool {
        (0..self.ops.len() as u16).any(|at| self.listens_at(at))
    }

    /// Whether this operation waits for unsolicited messages repeatedly. A message awaited once, such as a greeting, must come
    /// like a response.
    pub(crate) fn listens_at(&self, at: u16) -> bool {
        let from = usize::from(at);
        let is_back = |op: &Op| matches!(op, Op::Goto(to) if *to <= at);
        matches!(self.op(at), Op::Expect(_)) && self.ops[from..].iter().any(is_back)
    }

    /// Whether a response may have any number of messages (a streaming gRPC call).
    pub(crate) fn is_streaming(&self, at: u16) -> bool {
        matches!(self.op(at), Op::Request(Request { call: Some(Call::Streaming), .. }))
    }

    /// Whether any operation is a streaming call.
    pub(crate) fn streams(&self) -> bool {
        (0..self.ops.len() as u16).any(|at| self.is_streaming(at))
    }

    /// Whether the population does nothing but send requests and await their responses.
    pub(crate) fn only_requests(&self) -> bool {
        let is_one = |op: &Op| {
            matches!(op, Op::Request(_) | Op::Exchange(_) | Op::Goto(_) | Op::Jump { .. } | Op::Choose(_))
        };
        self.ops.iter().all(is_one) && !self.streams()
    }

    /// Whether a connection starts with a request.
    pub(crate) fn starts_with_request(&self) -> bool {
        matches!(self.op(0), Op::Request(_) | Op::Exchange(_) | Op::Expect(_))
    }

    /// The operation that `at` leads to, through any gotos.
    pub(crate) fn led_to(&self, mut at: u16) -> u16 {
        while let Op::Goto(to) = self.op(at) {
            at = *to;
        }
        at
    }

    /// Whether an operation follows redirects of its response.
    pub(crate) fn follows_redirects(&self, at: u16) -> bool {
        self.op(at).wanted().is_some_and(|wanted| wanted.redirects > 0)
    }

    /// What an exchange awaits on the connection at `index`.
    pub(crate) fn awaited<'a>(
        &'a self,
        &Exchange { at, nth, started, .. }: &Exchange,
        index: u32,
        source: &'a mut ValueSource,
    ) -> Awaited<'a> {
        match self.op(at) {
            Op::Request(request) => Awaited::Response(&request.check),
            Op::Expect(check) => Awaited::Message(check, b""),
            Op::Ping(message, _) if message.is_ping() => Awaited::Pong,
            Op::Exchange(message) | Op::Ping(message, _) if message.check.expected.echo => {
                Awaited::Message(&message.check, source.again(message, (nth, started), index))
            }
            Op::Exchange(message) => Awaited::Message(&message.check, b""),
            Op::Upgrade => Awaited::Upgrade,
            _ => unreachable!("it awaits nothing"),
        }
    }
}

/// For each operation, whether it comes before the upgrade.
fn before_upgrade(population: &Population, ops: &[Op], step_of: &[u16], first_step: u16) -> Vec<bool> {
    let steps = population.http_steps();
    if steps.is_empty() {
        return Vec::new();
    }
    // The think time or end after an upgrade belongs to the same step.
    let is_upgraded = |at: usize| {
        let own = ops[..at].iter().zip(step_of).filter(|(_, step)| **step == step_of[at]);
        own.into_iter().any(|(op, _)| matches!(op, Op::Upgrade))
    };
    let of_step = |at: usize| steps[usize::from(step_of[at] - first_step)] && !is_upgraded(at);
    let is_one = |(at, op): (usize, &Op)| match op {
        // A goto belongs to what it leads to: connections are dialled for that.
        Op::Goto(to) => of_step(usize::from(*to).min(ops.len() - 1)),
        _ => of_step(at),
    };
    (0..).zip(ops).map(is_one).collect()
}

/// The row of each destination of a population, and the number of rows in the plan; no rows if the plan has one destination.
fn rows(plan: &Plan, population: &Population) -> (Vec<u8>, usize) {
    let all = plan.destinations();
    if all.len() < 2 {
        return (Vec::new(), 0);
    }
    let places: HashMap<SocketAddr, usize> = all.iter().copied().zip(0..).collect();
    let row = |destination: &SocketAddr| row_of(places[destination], all.len()) as u8;
    (population.target.destinations.iter().map(row).collect(), all.len().min(MAX_DESTINATIONS))
}

/// The longest think time of the operations; zero if there is none.
fn longest_wait(ops: &[Op]) -> Think {
    let waits = ops.iter().filter_map(|op| match op {
        Op::Wait(think) => Some(*think),
        Op::Ping(_, every) => Some(Think::even(*every, *every)),
        _ => None,
    });
    waits.max_by_key(|think| think.max).unwrap_or_default()
}

/// Values of headers that are not public ([`plan::is_public`]), in requests, calls and upgrades.
fn secrets(population: &Population) -> Vec<Text> {
    let of_step = |act: &Act| match act {
        Act::Request { request, .. } => request.headers.clone(),
        Act::Upgrade { headers, .. } => headers.clone(),
        _ => Vec::new(),
    };
    let headers = acts(population).flat_map(of_step).chain(population.headers.clone());
    let headers = headers.filter(|(name, _)| !plan::is_public(name)).map(|(_, value)| value);
    headers.chain(population.clone().of_environment()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Environment, Flags, scenario};

    const LOGIN: &str = r#"
target = "ws://127.0.0.1:1/"
duration = "1s"
[[population]]
name = "members"
connections = 1
[[population.step]]
request = "POST /login"
headers = { X-Tenant = "tenant-4711", Content-Type = "text/plain" }
capture = { token = { json = "/t" } }
[[population.step]]
upgrade = "/chat"
headers = { Authorization = "Bearer k3y; x", Origin = "https://shop.example" }
"#;

    #[test]
    fn no_sample_shows_a_header_that_is_shown_nowhere_or_what_was_captured() {
        let resolve = |_: &str| Err("no names here".to_owned());
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        let open = |_: &str| Err("no files here".to_owned());
        let plan = scenario::read("load.toml", LOGIN, &Flags::default(), &around, &open).unwrap();
        let job = Job::new(&plan, Role::Population(0));
        let mut source = ValueSource::new(&plan.parts(|_| 1)[0], Nanos::ZERO, job.captures(1));
        let secrets = |source: &ValueSource| {
            let all = job.secrets(source, 0);
            let all = all.iter().map(|value| String::from_utf8_lossy(value).into_owned());
            all.filter(|value| !value.is_empty()).collect::<Vec<_>>()
        };
        let of_headers = ["tenant-4711", "tenant-4711", "Bearer", "k3y", "x", "Bearer k3y; x"];
        assert_eq!(secrets(&source), of_headers);
        let wanted = job.ops.iter().find_map(Op::wanted).unwrap();
        let captures = source.captures.as_mut().unwrap();
        captures.begin(0, wanted, b"/login");
        let mut watch = captures.take(0).unwrap();
        watch.content(wanted, br#"{"t":"t0ken-1"}"#.iter().copied());
        captures.put(0, watch);
        assert_eq!(captures.end(0, wanted, (true, None, false), Nanos::ZERO), None);
        assert_eq!(secrets(&source), [&of_headers[..], &["t0ken-1"]].concat());
    }
}

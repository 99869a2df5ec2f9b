//! The side of the target's host: serves samples.

mod peer;

use std::{
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use samples::Sample;
use units::{Clock, Nanos};

use super::Token;
use peer::Peer;

/// Maximum number of header fields in a request.
const MAX_FIELDS: usize = 64;
/// Maximum number of ports in a request.
pub const MAX_PORTS: usize = 64;
/// Maximum number of peers, in total and per address. Another one replaces a peer that has sent no request yet.
const MAX_PEERS: usize = 64;
const MAX_OF_ONE: usize = 16;
/// Delay before the next accept after a failed one.
const PAUSE: Duration = Duration::from_millis(20);
/// Interval of checks whether to stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Serves all peers on one thread; none blocks another.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    token: Option<Token>,
    only: Option<u16>,
}

/// A response: status, and content (or a text for a status without secrets).
type Reply = (u16, String);

impl Server {
    /// Listens. Requests need the token; without one, any peer that reaches the address is served. `only`: the single port that may be
    /// sampled, and the default.
    ///
    /// # Errors
    /// The error of bind.
    pub fn bind(address: SocketAddr, token: Option<Token>, only: Option<u16>) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener, token, only })
    }

    /// The address and port that it listens on.
    ///
    /// # Errors
    /// The error of getsockname.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves the samples that `sample` returns for ports, or its errors, until stopped.
    ///
    /// # Errors
    /// The listener fails. Errors of peers are handled.
    pub fn serve(
        &self,
        stop: &AtomicBool,
        mut sample: impl FnMut(&[u16]) -> Result<Sample, String>,
    ) -> io::Result<()> {
        let clock = Clock::start();
        let mut peers: Vec<Peer> = Vec::new();
        while !stop.load(Relaxed) {
            let ready = self.wait(&peers)?;
            let now = clock.now();
            for (peer, _) in peers.iter_mut().zip(&ready[1..]).filter(|(_, ready)| **ready) {
                peer.go_on(now, &mut |head: &[u8]| self.reply(head, &mut sample));
            }
            peers.iter_mut().for_each(|peer| peer.pass(now));
            peers.retain(|peer| !peer.is_gone);
            if ready[0] {
                self.accept(&mut peers, now);
            }
        }
        Ok(())
    }

    /// Waits for events. Returns whether there are any: for the listener, then for each peer.
    fn wait(&self, peers: &[Peer]) -> io::Result<Vec<bool>> {
        let of_peers = peers.iter().map(|peer| PollFd::new(&peer.stream, peer.waits_for()));
        let mut all: Vec<PollFd> =
            [PollFd::new(&self.listener, PollFlags::IN)].into_iter().chain(of_peers).collect();
        match poll(&mut all, Some(&LOOK)) {
            Ok(_) => Ok(all.iter().map(|fd| !fd.revents().is_empty()).collect()),
            Err(Errno::INTR) => Ok(vec![false; all.len()]),
            Err(e) => Err(e.into()),
        }
    }

    /// Accepts waiting peers.
    fn accept(&self, peers: &mut Vec<Peer>, now: Nanos) {
        for _ in 0..MAX_PEERS {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    let Ok(peer) = Peer::new(stream, from.ip(), now) else { continue };
                    make_room(peers, &peer);
                    peers.push(peer);
                }
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // No descriptors left: leaving peers free some. Waiting peers would keep poll busy meanwhile.
                Err(_) => return thread::sleep(PAUSE),
            }
        }
    }

    /// Without the token nothing is disclosed, not even whether the path exists.
    fn reply(&self, head: &[u8], sample: &mut dyn FnMut(&[u16]) -> Result<Sample, String>) -> Reply {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        if !matches!(request.parse(head), Ok(httparse::Status::Complete(_))) {
            return (400, String::new());
        }
        if let Some(token) = &self.token {
            let mut shown =
                request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("authorization"));
            match (shown.next(), shown.next()) {
                (None, _) => return (401, String::new()),
                (Some(field), None) if token.opens(field.value) => {}
                _ => return (403, String::new()),
            }
        }
        let path = request.path.unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if path != "/observe" {
            return (404, "not found; use /observe?port=8000\n".to_owned());
        }
        if request.method != Some("GET") {
            return (405, "read only; use GET\n".to_owned());
        }
        match (ports(query), self.only) {
            (Err(why), _) => (400, why),
            (Ok(ports), Some(only)) if ports.iter().any(|port| *port != only) => {
                (404, format!("only port {only} is observed here\n"))
            }
            (Ok(ports), None) if ports.is_empty() => {
                (400, "missing port; use /observe?port=8000\n".to_owned())
            }
            (Ok(ports), only) => match sample(&if ports.is_empty() { Vec::from_iter(only) } else { ports }) {
                Ok(sample) => (200, sample.to_json()),
                Err(why) => (502, why + "\n"),
            },
        }
    }
}

/// `port=8000` or `port=9000,9001`.
fn ports(query: &str) -> Result<Vec<u16>, String> {
    let lists = query.split('&').filter_map(|pair| pair.strip_prefix("port="));
    let ports: Result<Vec<u16>, _> = lists.flat_map(|list| list.split(',')).map(str::parse).collect();
    match ports {
        Ok(ports) if ports.len() > MAX_PORTS => Err(format!("at most {MAX_PORTS} ports\n")),
        Ok(ports) => Ok(ports),
        Err(_) => Err("not a port; use /observe?port=8000\n".to_owned()),
    }
}

/// Closes a peer if there is no room for another, of its address or in total: the oldest that has sent no request yet,
/// otherwise the one idle for longest.
fn make_room(peers: &mut Vec<Peer>, new: &Peer) {
    let of = |peer: &Peer| peers.iter().filter(|other| other.from == peer.from).count();
    let is_candidate: Vec<bool> = if of(new) >= MAX_OF_ONE {
        peers.iter().map(|peer| peer.from == new.from).collect()
    } else if peers.len() >= MAX_PEERS {
        let most = peers.iter().map(of).max().unwrap_or_default();
        peers.iter().map(|peer| of(peer) == most).collect()
    } else {
        return;
    };
    let candidates = (0..peers.len()).filter(|nth| is_candidate[*nth]);
    if let Some(nth) = candidates.min_by_key(|nth| (peers[*nth].has_asked, peers[*nth].since)) {
        peers.remove(nth);
    }
}

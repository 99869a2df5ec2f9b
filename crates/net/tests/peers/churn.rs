//! One slot that is reused many times: completions of an earlier connection must neither reach nor harm a later one.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use net::{
    Close, Cx, Gone, Io, Key, Program, Shard,
    io::sim::{self, Faults, Net},
};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use units::Nanos;

use crate::{
    kernel::Kernel,
    ours::Ours,
    script::{Conduct, Reader, Say, SharedLog, Take, stream},
    stage::{Over, turn_until},
    threads::{PATIENCE, accept, listener, local},
};

const ROUNDS: usize = 3_000;
/// Number of bytes whose echo is awaited.
const SPEECH: usize = 30_000;

/// When a round gives up its connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Until {
    /// In the call that dialled it.
    Dialled,
    /// In the following turn.
    NextTurn,
    Opened,
    /// In the call that opened it, together with a send.
    Said,
    /// When most of the echo has been sent.
    FirstByte,
    /// When the complete echo has arrived.
    Echoed,
    /// A dial without a response, given up by a timer.
    Unanswered,
}

const UNTIL: [Until; 9] = [
    Until::Dialled,
    Until::Echoed,
    Until::NextTurn,
    Until::Opened,
    Until::Said,
    Until::Echoed,
    Until::FirstByte,
    Until::Unanswered,
    Until::Echoed,
];

struct Churn {
    echo: SocketAddr,
    deaf: SocketAddr,
    round: usize,
    now: Option<Key>,
    fresh: bool,
    reader: Reader,
    echoed: usize,
}

impl Churn {
    fn new(echo: SocketAddr, deaf: SocketAddr) -> Churn {
        Churn { echo, deaf, round: 0, now: None, fresh: false, reader: Reader::default(), echoed: 0 }
    }

    fn until(&self) -> Until {
        UNTIL[self.round % UNTIL.len()]
    }

    fn end<I: Io>(&mut self, cx: &mut Cx<I>) {
        let k = self.now.take().expect("a round has a connection");
        let how = if (self.round / UNTIL.len()).is_multiple_of(2) { Close::Graceful } else { Close::Reset };
        cx.close(k, how);
        self.round += 1;
    }

    /// Dials until a round has to wait for something.
    fn dial<I: Io>(&mut self, cx: &mut Cx<I>) {
        while self.now.is_none() && self.round < ROUNDS {
            let k = cx.take().expect("the place is free at once");
            assert_eq!(k.index, 0, "one place");
            (self.now, self.fresh, self.reader) = (Some(k), true, Reader::default());
            let to = if self.until() == Until::Unanswered { self.deaf } else { self.echo };
            cx.dial(k, SocketAddr::from(([127, 0, 0, 2], 0)), to);
            match self.until() {
                Until::Dialled => self.end(cx),
                Until::Unanswered => cx.wake_at(k, cx.now() + Nanos::from_millis(1)),
                _ => {}
            }
        }
    }
}

impl Program for Churn {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        assert_eq!(self.now, Some(k), "round {}: somebody else's connection", self.round);
        if matches!(self.until(), Until::Said | Until::FirstByte | Until::Echoed) {
            let bytes = stream(self.round as u8, 0, SPEECH);
            cx.send(k, SPEECH, |out| {
                out.copy_from_slice(&bytes);
                SPEECH
            });
        }
        if matches!(self.until(), Until::Opened | Until::Said) {
            self.end(cx);
            self.dial(cx);
        }
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, _: Key) {
        self.end(cx);
        self.dial(cx);
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let (round, until) = (self.round, self.until());
        assert_eq!(self.now, Some(k), "round {round}: somebody else's connection");
        assert!(
            matches!(until, Until::FirstByte | Until::Echoed),
            "round {round}, {until:?}: {} bytes",
            input.len()
        );
        if self.reader.heard == 0 {
            assert_eq!(input[0], round as u8, "round {round}: somebody else's bytes");
        }
        self.reader.read(input).unwrap_or_else(|at| panic!("round {round}: garbled at {at}"));
        if until == Until::FirstByte || self.reader.heard == SPEECH {
            self.echoed += usize::from(until == Until::Echoed);
            self.end(cx);
            self.dial(cx);
        }
        input.len()
    }

    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, why: Gone) {
        panic!("round {}, {:?}: {why:?}", self.round, self.until());
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        if self.now.is_some() && self.until() == Until::NextTurn && !std::mem::take(&mut self.fresh) {
            self.end(cx);
        }
        self.dial(cx);
        // The turn after the dial follows immediately.
        if self.until() == Until::NextTurn { Nanos::ZERO } else { Nanos::NEVER }
    }
}

/// Echoes one connection after the other.
fn echo(listener: &TcpListener, over: &AtomicBool) {
    let mut input = [0; 4096];
    while !over.load(Ordering::Relaxed) {
        let mut stream = accept(listener);
        stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        loop {
            match stream.read(&mut input) {
                Ok(0) => break,
                Ok(len) if stream.write_all(&input[..len]).is_ok() => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    panic!("a connection that was closed stays open: {:?}", stream.peer_addr());
                }
                _ => break,
            }
        }
    }
}

/// A listener whose queue is already full, so that further dials get no response.
fn deaf() -> (OwnedFd, Vec<TcpStream>, SocketAddr) {
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let socket = socket.expect("a descriptor is free");
    rustix::net::bind(&socket, &local()).expect("the loopback has a free port");
    rustix::net::listen(&socket, 0).expect("a bound socket may listen");
    let at = rustix::net::getsockname(&socket).expect("a bound socket has an address");
    let at = SocketAddr::try_from(at).expect("an inet socket");
    // With a backlog of zero the queue holds one connection.
    let within = std::time::Duration::from_millis(200);
    let fill = std::iter::from_fn(|| TcpStream::connect_timeout(&at, within).ok()).take(10).collect();
    (socket, fill, at)
}

fn check(over: Over) {
    let (listener, echo_at) = listener();
    let (_deaf, _fill, deaf_at) = deaf();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let peer = thread::spawn(move || echo(&listener, &stopped));
    let mut shard = Shard::new(over.io(1), 1, Churn::new(echo_at, deaf_at));
    let begun = std::time::Instant::now();
    while shard.program().round < ROUNDS {
        let round = shard.program().round;
        let until = shard.program().until();
        assert!(begun.elapsed() < 3 * PATIENCE, "over {over:?}: stuck in round {round}, {until:?}");
        shard.turn(shard.io().now() + Nanos::from_millis(20));
    }
    assert_eq!(shard.program().echoed, ROUNDS / 3);
    assert_eq!((shard.parts().1.taken(), shard.parts().1.blocked()), (0, 0));
    stop.store(true, Ordering::Relaxed);
    // Wakes the echo thread, unless it has already seen the flag after its last connection and ended.
    let _ = TcpStream::connect(echo_at);
    turn_until(&mut shard, Some(peer), "the echo's end", || true, String::new);
}

/// Makes dials without a response, and gives all of them up in one call.
struct GivesUp {
    deaf: SocketAddr,
    dialled: Vec<Key>,
    times: u32,
}

/// Number of dials that are given up at once.
const GIVEN_UP: u32 = 2_000;

impl Program for GivesUp {
    fn opened<I: Io>(&mut self, _: &mut Cx<I>, k: Key) {
        panic!("{k:?}: nobody answers");
    }
    fn due<I: Io>(&mut self, cx: &mut Cx<I>, _: Key) {
        self.times += 1;
        self.dialled.drain(..).for_each(|k| cx.close(k, Close::Reset));
    }
    fn bytes<I: Io>(&mut self, _: &mut Cx<I>, k: Key, _: &mut [u8]) -> usize {
        panic!("{k:?}: nobody answers");
    }
    fn gone<I: Io>(&mut self, _: &mut Cx<I>, k: Key, why: Gone) {
        panic!("{k:?}: {why:?}");
    }
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while self.times < 2
            && let Some(k) = cx.take()
        {
            cx.dial(k, local(), self.deaf);
            self.dialled.push(k);
            if self.dialled.len() == GIVEN_UP as usize {
                cx.wake_at(k, cx.now() + Nanos::from_millis(1));
            }
        }
        Nanos::NEVER
    }
}

#[test]
fn unanswered_dials_are_given_up_together() {
    Over::dialling(|over| {
        let (_deaf, _fill, deaf) = deaf();
        let io = over.io(GIVEN_UP);
        let mut shard = Shard::new(io, GIVEN_UP, GivesUp { deaf, dialled: Vec::new(), times: 0 });
        turn_until_given_up(&mut shard, 1);
        let before = shard.io().entered();
        // The same slots dial again, and give up again.
        turn_until_given_up(&mut shard, 2);
        (0..3).for_each(|_| _ = shard.turn(shard.io().now() + Nanos::from_millis(1)));
        assert_eq!(shard.parts().1.taken(), 0);
        let entered = shard.io().entered() - before;
        // Each dial takes seven entries, and three more to end it; a queue holds 512.
        let most = match over {
            Over::OneRing | Over::SeveralRings | Over::OldKernel => 200,
            Over::ShortQueues => 100 * u64::from(GIVEN_UP),
            _ => 0,
        };
        assert!(entered <= most, "{entered} system calls for {GIVEN_UP} dials over {over:?}");
        assert_eq!(entered > 0, most > 0, "over {over:?}");
    });
}

fn turn_until_given_up(shard: &mut Shard<Kernel, GivesUp>, times: u32) {
    let begun = std::time::Instant::now();
    while shard.program().times < times {
        assert!(begun.elapsed() < PATIENCE, "not given up within {PATIENCE:?}");
        shard.turn(shard.io().now() + Nanos::from_millis(20));
    }
}

#[test]
fn a_place_used_again_over_one_ring() {
    check(Over::OneRing);
}

#[test]
fn a_place_used_again_over_several_rings() {
    check(Over::SeveralRings);
}

#[test]
fn a_place_used_again_over_an_old_kernel() {
    check(Over::OldKernel);
}

#[test]
fn a_place_used_again_over_short_queues() {
    check(Over::ShortQueues);
}

#[test]
fn a_place_used_again_over_epoll() {
    check(Over::Epoll);
}

#[test]
fn a_place_used_again_over_a_device() {
    Over::over_tun(check);
}

#[test]
fn a_place_used_again_in_the_simulator() {
    let net = Net::new(3, Faults { backlog: 1, window: 8 * 1024, ..Faults::default() });
    let (near, mut far, mut deaf) = (net.host(), net.host(), net.host());
    let echo_at = far.listen(local()).expect("the simulator has free ports");
    let deaf_at = deaf.listen(local()).expect("the simulator has free ports");
    let echo = Ours::new(Conduct::new(Say::Nothing, Take::Echo), SharedLog::default()).accepting();
    let mut far = Shard::new(far, 64, echo);
    let mut near = Shard::new(near, 1, Churn::new(echo_at, deaf_at));
    sim::run(&net, &mut [&mut near, &mut far], Nanos::from_secs(60), || false);
    let churn = near.program();
    assert_eq!((churn.round, churn.echoed), (ROUNDS, ROUNDS / 3), "stuck in {:?}", churn.until());
    assert_eq!(near.parts().1.taken(), 0);
}

//! Two small writes do not wait for each other, because TCP_NODELAY is set on dialled and on accepted connections.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
};

use net::{Cx, Gone, Io, Key, Program, Shard};
use units::Nanos;

use crate::{
    stage::{Over, turn_until},
    threads::{PATIENCE, accept, listener, local},
};

/// A receiver acknowledges its first segments at once (quick ACKs), and delays only later ones.
const ROUNDS: usize = 30;
/// Half of Linux' delayed acknowledgement, which takes 40 ms.
const AT_ONCE: Nanos = Nanos::from_millis(20);

/// Sends a request in two halves, the second in a later call, and times the response.
struct Halves {
    to: Option<std::net::SocketAddr>,
    accepts: bool,
    begun: Nanos,
    took: Vec<Nanos>,
}

impl Halves {
    fn begin<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.begun = cx.now();
        cx.send_static(k, b"a");
        cx.wake_at(k, cx.now());
    }
}

impl Program for Halves {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.begin(cx, k);
    }
    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        cx.send_static(k, b"b");
    }
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        assert_eq!(input, b"k");
        self.took.push(cx.now().since(self.begun));
        if self.took.len() < ROUNDS {
            self.begin(cx, k);
        }
        1
    }
    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, why: Gone) {
        assert_eq!((self.took.len(), why), (ROUNDS, Gone::Ended));
    }
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        if let Some(to) = self.to.take() {
            let k = cx.take().expect("the first connection fits");
            cx.dial(k, local(), to);
        }
        while self.accepts && cx.accept() {}
        Nanos::NEVER
    }
}

/// Responds to each byte `b`.
fn answer(mut peer: TcpStream) {
    peer.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let mut answered = 0;
    while answered < ROUNDS {
        let mut input = [0; 2];
        let len = peer.read(&mut input).expect("our program sends both halves");
        assert!(len > 0, "an end after {answered} rounds");
        if input[..len].ends_with(b"b") {
            peer.write_all(b"k").expect("our program reads");
            answered += 1;
        }
    }
}

fn check(over: Over, dials: bool) {
    let mut io = over.io(8);
    let (to, peer) = if dials {
        let (listener, at) = listener();
        (Some(at), thread::spawn(move || answer(accept(&listener))))
    } else {
        let at = io.listen(local()).expect("the loopback has a free port");
        (None, thread::spawn(move || answer(TcpStream::connect(at).expect("our shard listens"))))
    };
    let mut shard = Shard::new(io, 8, Halves { to, accepts: !dials, begun: Nanos::ZERO, took: Vec::new() });
    turn_until(&mut shard, Some(peer), &format!("two halves over {over:?}"), || true, String::new);
    shard.turn(Nanos::ZERO);
    let took = &shard.program().took;
    assert_eq!(took.len(), ROUNDS, "over {over:?}");
    let least = took[ROUNDS / 2..].iter().min().expect("half of the rounds");
    assert!(*least < AT_ONCE, "over {over:?}, dialled: {dials}: {took:?}");
}

#[test]
fn two_small_writes_do_not_wait_for_each_other() {
    Over::dialling(|over| check(over, true));
    for over in Over::KERNEL {
        check(over, false);
    }
}

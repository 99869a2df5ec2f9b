//! The simulator's peers: a program that plays the same steps on another host of the network.

use std::{cell::Cell, collections::HashMap, net::SocketAddr, rc::Rc};

use net::{Close, Cx, Gone, Io, Key, Program};
use units::Nanos;

use crate::script::{Case, Reader, Step, Way, salt, stream};

/// How often a blocked send is checked.
const LOOK: Nanos = Nanos::from_millis(1);

pub(crate) struct Player {
    case: Case,
    to: SocketAddr,
    dialled: usize,
    peers: HashMap<Key, Peer>,
    opened: usize,
    finished: Rc<Cell<usize>>,
}

struct Peer {
    number: usize,
    at: usize,
    /// Number of pieces of a trickle that were sent.
    pieces: usize,
    sent: usize,
    /// Number of bytes of the current `Expect` that have arrived.
    got: usize,
    /// Number of bytes that arrived before they were expected.
    ahead: usize,
    reader: Reader,
    pausing: bool,
}

impl Player {
    /// `to`: the address to dial, if the peers dial. `finished` counts the peers that have played all steps.
    pub(crate) fn new(case: Case, to: SocketAddr, finished: Rc<Cell<usize>>) -> Player {
        Player { case, to, dialled: 0, peers: HashMap::new(), opened: 0, finished }
    }

    fn peer(&mut self, k: Key) -> &mut Peer {
        self.peers.get_mut(&k).expect("every open connection is a peer")
    }

    fn step(&mut self, k: Key) -> Step {
        let at = self.peer(k).at;
        self.case.peer[at]
    }

    fn finish(&mut self, k: Key) {
        let peer = self.peers.remove(&k).expect("every open connection is a peer");
        assert_eq!(peer.at + 1, self.case.peer.len(), "peer {}: steps left after the end", peer.number);
        self.finished.set(self.finished.get() + 1);
    }

    /// Plays until a step has to wait.
    fn play<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        loop {
            let step = self.step(k);
            let peer = self.peer(k);
            match step {
                Step::Send(_) | Step::Trickle(..) | Step::Post(_) if cx.is_write_blocked(k) => {
                    return cx.wake_at(k, cx.now() + LOOK);
                }
                Step::Send(len) | Step::Post(len) => peer.send(cx, k, len),
                Step::Trickle(pieces, len) => {
                    peer.send(cx, k, len);
                    peer.pieces += 1;
                    if peer.pieces < pieces {
                        // Everything that one call sends is one segment, so the next piece is sent in another call.
                        return cx.wake_at(k, cx.now());
                    }
                }
                // Requests that unconsumed input is offered again.
                Step::Expect(len) if !peer.expect(len) => return cx.call_again(k),
                Step::Expect(_) => {}
                Step::Pause(ms) => {
                    peer.pausing = true;
                    return cx.wake_at(k, cx.now() + Nanos::from_millis(ms));
                }
                Step::End | Step::Cut => return cx.call_again(k),
                Step::Close => {
                    cx.finish(k);
                    return self.finish(k);
                }
                Step::Reset => {
                    cx.close(k, Close::Reset);
                    return self.finish(k);
                }
            }
            self.peer(k).at += 1;
        }
    }
}

impl Peer {
    /// Whether all that this step expects has arrived.
    fn expect(&mut self, len: usize) -> bool {
        let used = self.ahead.min(len - self.got);
        self.ahead -= used;
        self.got += used;
        let all = self.got == len;
        if all {
            self.got = 0;
        }
        all
    }

    fn hear(&mut self, input: &[u8]) {
        let number = self.number;
        self.reader.read(input).unwrap_or_else(|at| panic!("peer {number}: garbled at {at}"));
        self.ahead += input.len();
    }

    fn send<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, len: usize) {
        let bytes = stream(salt(self.number), self.sent, len);
        self.sent += len;
        cx.send(k, len, |out| {
            out.copy_from_slice(&bytes);
            len
        });
    }
}

impl Program for Player {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let reader = Reader::default();
        let number = self.opened;
        let peer = Peer { number, at: 0, pieces: 0, sent: 0, got: 0, ahead: 0, reader, pausing: false };
        self.peers.insert(k, peer);
        self.opened += 1;
        self.play(cx, k);
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let peer = self.peer(k);
        if std::mem::take(&mut peer.pausing) {
            peer.at += 1;
        }
        self.play(cx, k);
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        // After `Close`, until the output has been sent.
        if !self.peers.contains_key(&k) {
            return 0;
        }
        let step = self.step(k);
        let peer = self.peer(k);
        match step {
            Step::Expect(len) => {
                let used = input.len().min(len - peer.got);
                peer.hear(&input[..used]);
                if peer.expect(len) {
                    peer.at += 1;
                    self.play(cx, k);
                }
                used
            }
            // Consumes the input now, because while a post is blocked, unconsumed input would not be offered again.
            _ if cx.is_write_blocked(k) => {
                peer.hear(input);
                input.len()
            }
            Step::End | Step::Cut => panic!("peer {}, {step:?}: {} bytes", peer.number, input.len()),
            _ => 0,
        }
    }

    fn gone<I: Io>(&mut self, _: &mut Cx<I>, k: Key, why: Gone) {
        if !self.peers.contains_key(&k) {
            return;
        }
        let step = self.step(k);
        let right = matches!((step, why), (Step::End, Gone::Ended) | (Step::Cut, Gone::Reset));
        assert!(right, "peer {}, {step:?}: {why:?}", self.peer(k).number);
        self.finish(k);
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        if self.case.way == Way::WeDial {
            while cx.accept() {}
            return Nanos::NEVER;
        }
        while self.dialled < self.case.count
            && let Some(k) = cx.take()
        {
            let from = SocketAddr::from(([127, 0, 0, 1], 0));
            cx.dial(k, from, self.to);
            self.dialled += 1;
        }
        Nanos::NEVER
    }
}

//! The one loop. A shard owns its connections' keys, timers and buffers and shares nothing.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
};

use units::Nanos;

use crate::{
    io::{Close, Gone, Io, Scratch, What},
    slab::{Key, Slab},
    wheel::Wheel,
};

/// Input that a program left unconsumed is kept up to this size; then the connection is not read until the
/// program takes some. Four times the largest head that `wire` accepts.
const REST_LIMIT: usize = 64 * 1024;
/// Timers handled between two looks at the network, so that a burst of them does not starve it.
const TIMERS_A_TURN: usize = 256;

/// What a shard does with its connections. The loop calls; the program answers through [`Cx`].
pub trait Program {
    /// A turn begins `now`; what the turn before sent was handed to the kernel at `left`.
    fn woke(&mut self, now: Nanos, left: Nanos) {
        let _ = (now, left);
    }
    /// A dial succeeded, or a peer was accepted.
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key);
    /// The timer of this connection has come.
    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key);
    /// Input. Returns how much of it was used; the rest comes again, longer, with the next input or once the
    /// connection can be written to again.
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize;
    /// The connection ended, or the attempt at it. Its key is still live here, and stale afterwards.
    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone);
    /// Once a turn: do what the program's own schedule asks for. Returns when it wants to be called again at
    /// the latest.
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos;
}

/// What a program may do. One for each shard, lent to each call.
pub struct Cx<I> {
    now: Nanos,
    io: I,
    slab: Slab,
    wheel: Wheel,
    rests: HashMap<u32, Rest>,
    /// To be closed once what was sent has left.
    finishing: Vec<Key>,
    /// To be offered their rest again, for more of it could be used.
    again: VecDeque<Key>,
    /// Ended by the peer while some of its input is not used yet.
    ending: Vec<Key>,
}

/// Unconsumed input of one connection: a partial head, or a request that must wait for a slow reader.
struct Rest {
    bytes: Vec<u8>,
    /// The connection is not read for now.
    choked: bool,
}

impl<I: Io> Cx<I> {
    /// When this turn began.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Connections opening or open.
    pub fn taken(&self) -> u32 {
        self.slab.taken()
    }

    /// Whether no further connection fits.
    pub fn is_full(&self) -> bool {
        self.slab.is_full()
    }

    /// The key of what stands at `index`, if anything does.
    pub fn at(&self, index: u32) -> Option<Key> {
        self.slab.at(index)
    }

    /// Whether the connection stands.
    pub fn is_open(&self, k: Key) -> bool {
        self.slab.is_open(k)
    }

    /// A free place for [`Cx::dial`].
    pub fn take(&mut self) -> Option<Key> {
        self.slab.take()
    }

    /// Dials; see [`Io::dial`].
    pub fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        self.io.dial(k, from, to);
    }

    /// Waits for one more peer. False where the shard is full.
    pub fn accept(&mut self) -> bool {
        let Some(k) = self.slab.take() else { return false };
        self.io.accept(k);
        true
    }

    /// Stops listening.
    pub fn unlisten(&mut self) {
        self.io.unlisten();
    }

    /// Sets the one timer of this connection.
    pub fn wake_at(&mut self, k: Key, at: Nanos) {
        self.wheel.set(k.index, at);
    }

    /// When the timer of this connection comes, or came: for a connection whose timer was set.
    pub fn timer(&self, k: Key) -> Nanos {
        self.wheel.at(k.index)
    }

    /// How long the earliest timer that was not handled yet has been due: how far the shard is behind.
    pub fn behind(&self) -> Nanos {
        self.now.since(self.wheel.next())
    }

    /// Unsets it.
    pub fn let_sleep(&mut self, k: Key) {
        self.wheel.clear(k.index);
    }

    /// Sends what `fill` writes into a buffer of `room` bytes; `fill` returns how many, and nothing is sent for none.
    pub fn send(&mut self, k: Key, room: usize, fill: impl FnOnce(&mut [u8]) -> usize) {
        let len = fill(self.io.out(room));
        if len > 0 {
            self.io.send_out(k, len);
        }
    }

    /// Sends bytes without a copy.
    pub fn send_static(&mut self, k: Key, bytes: &'static [u8]) {
        self.io.send_static(k, bytes);
    }

    /// Whether an earlier send has not gone out yet: leave the input alone until it has.
    pub fn is_clogged(&self, k: Key) -> bool {
        self.io.is_clogged(k)
    }

    /// In closed loop: see [`Io::coalesce`].
    pub fn coalesce(&mut self, by: Nanos) {
        self.io.coalesce(by);
    }

    /// Ends the connection; the key is stale from here on.
    pub fn close(&mut self, k: Key, how: Close) {
        self.io.close(k, how);
        self.forget(k);
    }

    /// Ends the connection once everything sent on it has left; then, or when the peer ends it first, the program sees
    /// it `gone`.
    pub fn finish(&mut self, k: Key) {
        self.finishing.push(k);
    }

    /// Offer what this call leaves unconsumed again in the next turn, when what was sent has left. A program sends
    /// at most once a call for each connection: what goes short is then never overtaken.
    pub fn call_again(&mut self, k: Key) {
        self.again.push_back(k);
    }

    /// Connections whose last send has not gone out yet.
    pub fn clogged(&self) -> usize {
        self.io.clogged()
    }

    /// Bytes of input that wait to be used, those of a partial head; none for a stale key.
    pub fn rest_len(&self, k: Key) -> usize {
        let rest = if self.slab.is_live(k) && self.slab.rest(k) { self.rests.get(&k.index) } else { None };
        rest.map_or(0, |rest| rest.bytes.len())
    }

    fn forget(&mut self, k: Key) {
        self.wheel.clear(k.index);
        if self.slab.rest(k) {
            self.rests.remove(&k.index);
        }
        self.slab.give_back(k);
    }
}

/// One loop over one [`Io`], with one program.
pub struct Shard<I, P> {
    cx: Cx<I>,
    program: P,
    scratch: Scratch,
    /// When the program wants [`Program::pace`] at the latest.
    pace_at: Nanos,
    /// When the turn before was through, and what it sent was handed to the kernel.
    left_at: Nanos,
}

impl<I: Io, P: Program> Shard<I, P> {
    /// A shard for at most `limit` connections.
    pub fn new(io: I, limit: u32, program: P) -> Self {
        let now = io.now();
        let cx = Cx {
            now,
            io,
            slab: Slab::new(limit),
            wheel: Wheel::new(limit),
            rests: HashMap::new(),
            finishing: Vec::new(),
            again: VecDeque::new(),
            ending: Vec::new(),
        };
        Shard { cx, program, scratch: Scratch::new(), pace_at: Nanos::ZERO, left_at: now }
    }

    /// The program, to look at between turns.
    pub fn program(&mut self) -> &mut P {
        &mut self.program
    }

    /// What carries the bytes.
    pub fn io(&self) -> &I {
        &self.cx.io
    }

    /// Both, for what is done between turns.
    pub fn parts(&mut self) -> (&mut P, &mut Cx<I>) {
        (&mut self.program, &mut self.cx)
    }

    /// When the shard has something to do even if nothing arrives.
    pub fn wakes_at(&self) -> Nanos {
        let lists = self.cx.finishing.iter().chain(&self.cx.again).chain(&self.cx.ending);
        if lists.copied().any(|k| !self.cx.io.is_clogged(k)) {
            return Nanos::ZERO;
        }
        self.cx.wheel.next().min(self.pace_at)
    }

    /// One turn: sleeps until something happens, at most until `limit`, and does it. Returns the time.
    pub fn turn(&mut self, limit: Nanos) -> Nanos {
        let until = self.wakes_at().min(limit);
        self.cx.now = self.cx.io.wait(until, &mut self.scratch);
        self.program.woke(self.cx.now, self.left_at);
        self.close_finished();
        self.offer_again();
        self.end_the_used_up();
        for _ in 0..TIMERS_A_TURN {
            let Some(index) = self.cx.wheel.pop(self.cx.now) else { break };
            let k = self.cx.slab.at(index).expect("a freed connection has no timer");
            self.program.due(&mut self.cx, k);
        }
        while let Some(done) = self.cx.io.next() {
            if self.cx.slab.is_live(done.key) {
                self.handle(done.key, done.what);
            }
        }
        self.pace_at = self.program.pace(&mut self.cx);
        self.left_at = self.cx.io.now();
        self.cx.now
    }

    fn offer_again(&mut self) {
        for _ in 0..self.cx.again.len() {
            // First come, first served: who asks again goes to the end.
            let k = self.cx.again.pop_front().expect("as many as were counted");
            // A clogged one is offered its rest when it has drained.
            if self.cx.slab.is_live(k) && !self.cx.io.is_clogged(k) {
                self.feed_rest(k);
            }
        }
    }

    fn handle(&mut self, k: Key, what: What) {
        match what {
            What::Dialled | What::Accepted => {
                self.cx.slab.set_open(k);
                self.cx.io.park(k);
                self.program.opened(&mut self.cx, k);
            }
            What::Bytes { region, len } => self.feed(k, region, len),
            What::Drained => self.feed_rest(k),
            // A peer may close its side and still wait for answers to what it has sent (RFC 9293, section 3.6).
            What::Gone(Gone::Ended) if self.cx.slab.rest(k) => self.cx.ending.push(k),
            What::Gone(why) => self.end(k, why),
        }
    }

    fn end(&mut self, k: Key, why: Gone) {
        self.program.gone(&mut self.cx, k, why);
        if self.cx.slab.is_live(k) {
            self.cx.close(k, Close::Graceful);
        }
    }

    /// Closes what is finishing and has nothing left to send.
    fn close_finished(&mut self) {
        for at in (0..self.cx.finishing.len()).rev() {
            let k = self.cx.finishing[at];
            if !self.cx.slab.is_live(k) || !self.cx.io.is_clogged(k) {
                self.cx.finishing.swap_remove(at);
                if self.cx.slab.is_live(k) {
                    self.end(k, Gone::Ended);
                }
            }
        }
    }

    /// Ends what has ended once no more of its input can be used.
    fn end_the_used_up(&mut self) {
        for at in (0..self.cx.ending.len()).rev() {
            let k = self.cx.ending[at];
            if self.cx.slab.is_live(k) && self.cx.io.is_clogged(k) {
                continue;
            }
            let left = self.cx.rest_len(k);
            self.feed_rest(k);
            if left == 0 || self.cx.rest_len(k) == left {
                self.cx.ending.swap_remove(at);
                if self.cx.slab.is_live(k) {
                    self.end(k, Gone::Ended);
                }
            }
        }
    }

    fn feed(&mut self, k: Key, region: u16, len: u32) {
        let input = self.scratch.bytes(region, len);
        if self.cx.slab.rest(k) {
            let rest = self.cx.rests.get_mut(&k.index).expect("the slab says that there is a rest");
            rest.bytes.extend_from_slice(input);
            return self.feed_rest(k);
        }
        let used = self.program.bytes(&mut self.cx, k, input);
        if used < input.len() && self.cx.slab.is_live(k) {
            self.cx.slab.set_rest(k, true);
            self.cx.rests.insert(k.index, Rest { bytes: input[used..].to_vec(), choked: false });
        }
    }

    /// Offers the rest again: it has grown, or the connection can be written to again.
    fn feed_rest(&mut self, k: Key) {
        if !self.cx.slab.is_live(k) || !self.cx.slab.rest(k) {
            return;
        }
        let Rest { mut bytes, choked } =
            self.cx.rests.remove(&k.index).expect("the slab says that there is a rest");
        let used = self.program.bytes(&mut self.cx, k, &bytes);
        if !self.cx.slab.is_live(k) {
            return;
        }
        bytes.drain(..used);
        let full = bytes.len() >= REST_LIMIT;
        match (choked, full) {
            (true, false) => self.cx.io.resume(k),
            (false, true) => self.cx.io.hold(k),
            _ => {}
        }
        self.cx.slab.set_rest(k, !bytes.is_empty());
        if !bytes.is_empty() {
            self.cx.rests.insert(k.index, Rest { bytes, choked: full });
        }
    }
}

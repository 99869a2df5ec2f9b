//! The one loop. A shard owns its connections' keys, timers and buffers and shares nothing.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
};

use units::Nanos;

use crate::{
    io::{
        Close, Gone, Io, OUT_BYTES, Scratch, What,
        sim::{SimIo, Turn},
    },
    slab::{self, Key, Slab},
    wheel::Wheel,
};

/// Input that a program left unconsumed is buffered up to this size; then the connection is not read until the program
/// consumes some. Four times the largest head that `wire` accepts.
const REST_LIMIT: usize = 64 * 1024;
/// Timers handled between two polls of the network, so that a burst of them does not starve it.
const TIMERS_A_TURN: usize = 256;

/// What a shard does with its connections. The loop calls it; it acts through [`Cx`].
pub trait Program {
    /// A turn begins `now`; what the turn before sent was handed to the kernel at `left`.
    fn woke(&mut self, now: Nanos, left: Nanos) {
        let _ = (now, left);
    }
    /// A dial succeeded, or a peer was accepted.
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key);
    /// The timer of this connection has come.
    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key);
    /// Input, which may be changed in place as far as it is used. Returns how much of it was; the rest comes again, longer, with
    /// the next input or once the connection can be written to again.
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize;
    /// The connection ended, or the attempt at it. Its key is still live here, and stale afterwards.
    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone);
    /// Called once per turn, for the program's own schedule. Returns when to call it again at the latest.
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos;
}

/// What a program may do. One for each shard, lent to each call.
pub struct Cx<I> {
    now: Nanos,
    io: I,
    slab: Slab,
    wheel: Wheel,
    rests: HashMap<u32, Rest>,
    /// What the program has sent in this call on the last connection that it has sent on.
    unsent: Option<Unsent>,
    /// To be closed in the next turn, once the output has been sent. One that is blocked then is handled when it has
    /// drained: the cost of a turn depends on events, not on how many wait.
    finishing: Vec<Key>,
    /// To be offered their rest again, for more of it could be used.
    again: VecDeque<Key>,
    /// Ended by the peer while some of its input is not used yet; looked at as those above.
    ending: Vec<Key>,
}

/// Bytes that a call has sent, and may add to.
enum Unsent {
    /// This many bytes of the output buffer.
    Out(Key, usize),
    Static(Key, &'static [u8]),
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

    /// The key of the connection at `index`, if there is one.
    pub fn at(&self, index: u32) -> Option<Key> {
        self.slab.at(index)
    }

    /// Whether the connection is open.
    pub fn is_open(&self, k: Key) -> bool {
        self.slab.is_open(k)
    }

    /// A free place for [`Cx::dial`].
    pub fn take(&mut self) -> Option<Key> {
        self.slab.take()
    }

    /// Dials; see [`Io::dial`].
    pub fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        self.flush();
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

    /// How long the earliest unhandled timer has been due: the delay of the shard.
    pub fn behind(&self) -> Nanos {
        self.now.since(self.wheel.next())
    }

    /// Unsets it.
    pub fn let_sleep(&mut self, k: Key) {
        self.wheel.clear(k.index);
    }

    /// Sends what `fill` writes into a buffer of `room` bytes; `fill` returns how many, and nothing is sent for none. What
    /// a call sends on a connection in several pieces leaves as one.
    pub fn send(&mut self, k: Key, room: usize, fill: impl FnOnce(&mut [u8]) -> usize) {
        let begun = self.begun(k, room);
        let len = begun + fill(&mut self.io.out(begun, room)[begun..]);
        self.unsent = (len > 0).then_some(Unsent::Out(k, len));
    }

    /// Sends bytes, without a copy where they are the first of the call.
    pub fn send_static(&mut self, k: Key, bytes: &'static [u8]) {
        match self.unsent {
            Some(Unsent::Out(key, _) | Unsent::Static(key, _)) if key == k => {
                self.send(k, bytes.len(), |out| {
                    out.copy_from_slice(bytes);
                    bytes.len()
                });
            }
            _ => {
                self.flush();
                self.unsent = Some(Unsent::Static(k, bytes));
            }
        }
    }

    /// How much the output buffer holds of what this call has sent on `k`, to which `room` bytes may be added.
    fn begun(&mut self, k: Key, room: usize) -> usize {
        match self.unsent {
            Some(Unsent::Out(key, len)) if key == k && len + room <= OUT_BYTES => len,
            Some(Unsent::Static(key, bytes)) if key == k && bytes.len() + room <= OUT_BYTES => {
                self.io.out(0, bytes.len()).copy_from_slice(bytes);
                bytes.len()
            }
            _ => {
                self.flush();
                0
            }
        }
    }

    /// Hands over what the call has sent.
    fn flush(&mut self) {
        match self.unsent.take() {
            Some(Unsent::Out(k, len)) => self.io.send_out(k, len),
            Some(Unsent::Static(k, bytes)) => self.io.send_static(k, bytes),
            None => {}
        }
    }

    /// Whether what an earlier call has sent has not gone out yet: leave the input alone until it has.
    pub fn is_write_blocked(&self, k: Key) -> bool {
        self.io.is_write_blocked(k)
    }

    /// In closed loop: see [`Io::coalesce`].
    pub fn coalesce(&mut self, by: Nanos) {
        self.io.coalesce(by);
    }

    /// Ends the connection; the key is stale from here on.
    pub fn close(&mut self, k: Key, how: Close) {
        self.flush();
        self.io.close(k, how);
        self.forget(k);
    }

    /// Ends the connection once everything sent on it has left; then, or when the peer ends it first, the program sees
    /// it `gone`.
    pub fn finish(&mut self, k: Key) {
        self.finishing.push(k);
    }

    /// Offer what this call leaves unconsumed again in the next turn, when what was sent has left.
    pub fn call_again(&mut self, k: Key) {
        self.again.push_back(k);
    }

    /// Connections whose last send has not gone out yet.
    pub fn blocked(&self) -> usize {
        self.io.blocked()
    }

    /// Bytes of input that wait to be used, those of a partial head; none for a stale key.
    pub fn rest_len(&self, k: Key) -> usize {
        let rest =
            if self.slab.is_live(k) && self.slab.is(k, slab::REST) { self.rests.get(&k.index) } else { None };
        rest.map_or(0, |rest| rest.bytes.len())
    }

    fn forget(&mut self, k: Key) {
        self.wheel.clear(k.index);
        if self.slab.is(k, slab::REST) {
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
    /// When [`Program::pace`] is due at the latest.
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
            unsent: None,
            finishing: Vec::new(),
            again: VecDeque::new(),
            ending: Vec::new(),
        };
        Shard { cx, program, scratch: Scratch::new(), pace_at: Nanos::ZERO, left_at: now }
    }

    /// The program, for inspection between turns.
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
        let Cx { finishing, again, ending, .. } = &self.cx;
        if !(finishing.is_empty() && again.is_empty() && ending.is_empty()) {
            return Nanos::ZERO;
        }
        self.cx.wheel.next().min(self.pace_at)
    }

    /// One turn: sleeps until something happens, at most until `limit`, and does it. Returns the time.
    pub fn turn(&mut self, limit: Nanos) -> Nanos {
        let until = self.wakes_at().min(limit);
        // What was sent between turns.
        self.cx.flush();
        self.cx.now = self.cx.io.wait(until, &mut self.scratch);
        self.program.woke(self.cx.now, self.left_at);
        self.close_finished();
        self.offer_again();
        self.end_the_used_up();
        for _ in 0..TIMERS_A_TURN {
            let Some(index) = self.cx.wheel.pop(self.cx.now) else { break };
            let k = self.cx.slab.at(index).expect("a freed connection has no timer");
            self.call(|program, cx| program.due(cx, k));
        }
        while let Some(done) = self.cx.io.next() {
            if self.cx.slab.is_live(done.key) {
                self.handle(done.key, done.what);
            }
        }
        self.pace_at = self.call(P::pace);
        self.left_at = self.cx.io.now();
        self.cx.now
    }

    /// The end: what was sent in the last turn goes to the kernel. No program is called any more.
    pub fn hand_over(mut self) {
        self.cx.flush();
        self.cx.io.wait(Nanos::ZERO, &mut self.scratch);
    }

    /// Calls the program; what it has sent is handed over when it returns.
    fn call<R>(&mut self, call: impl FnOnce(&mut P, &mut Cx<I>) -> R) -> R {
        self.cx.io.begin_call();
        let returned = call(&mut self.program, &mut self.cx);
        self.cx.flush();
        returned
    }

    fn offer_again(&mut self) {
        for _ in 0..self.cx.again.len() {
            // First come, first served: repeated requests go to the end.
            let k = self.cx.again.pop_front().expect("as many as were counted");
            // A blocked one gets its remaining input when it has drained.
            if self.cx.slab.is_live(k) && !self.cx.io.is_write_blocked(k) {
                self.feed_rest(k);
            }
        }
    }

    fn handle(&mut self, k: Key, what: What) {
        match what {
            What::Dialled | What::Accepted => {
                self.cx.slab.set_open(k);
                self.cx.io.park(k);
                self.call(|program, cx| program.opened(cx, k));
            }
            What::Bytes { region, len } => self.feed(k, region, len),
            What::Drained if self.cx.slab.is(k, slab::FINISHING) => self.finish(k),
            What::Drained if self.cx.slab.is(k, slab::ENDING) => self.end_if_used_up(k),
            What::Drained => self.feed_rest(k),
            // A peer may close its side and still wait for responses to what it has sent (RFC 9293, section 3.6).
            What::Gone(Gone::Ended) if self.cx.slab.is(k, slab::REST) => self.cx.ending.push(k),
            What::Gone(why) => self.end(k, why),
        }
    }

    fn end(&mut self, k: Key, why: Gone) {
        self.call(|program, cx| program.gone(cx, k, why));
        if self.cx.slab.is_live(k) {
            self.cx.close(k, Close::Graceful);
        }
    }

    /// Closes what is finishing and has nothing left to send.
    fn close_finished(&mut self) {
        let asked = self.cx.finishing.len();
        for at in 0..asked {
            self.finish(self.cx.finishing[at]);
        }
        self.cx.finishing.drain(..asked);
    }

    /// Ends `k`, now or when it has drained.
    fn finish(&mut self, k: Key) {
        if !self.cx.slab.is_live(k) {
            return;
        }
        self.cx.slab.set(k, slab::FINISHING);
        if !self.cx.io.is_write_blocked(k) {
            self.end(k, Gone::Ended);
        }
    }

    /// Ends what has ended once no more of its input can be used.
    fn end_the_used_up(&mut self) {
        let ended = self.cx.ending.len();
        for at in 0..ended {
            self.end_if_used_up(self.cx.ending[at]);
        }
        self.cx.ending.drain(..ended);
    }

    /// The same for `k`: now, in a later turn, or when it has drained.
    fn end_if_used_up(&mut self, k: Key) {
        if !self.cx.slab.is_live(k) {
            return;
        }
        self.cx.slab.set(k, slab::ENDING);
        if self.cx.io.is_write_blocked(k) {
            return;
        }
        let left = self.cx.rest_len(k);
        self.feed_rest(k);
        if !self.cx.slab.is_live(k) {
            return;
        }
        match self.cx.rest_len(k) {
            now if left == 0 || now == left => self.end(k, Gone::Ended),
            _ => self.cx.ending.push(k),
        }
    }

    fn feed(&mut self, k: Key, region: u16, len: u32) {
        let input = self.scratch.bytes(region, len);
        if self.cx.slab.is(k, slab::REST) {
            let rest = self.cx.rests.get_mut(&k.index).expect("the slab says that there is a rest");
            rest.bytes.extend_from_slice(input);
            return self.feed_rest(k);
        }
        self.cx.io.begin_call();
        let used = self.program.bytes(&mut self.cx, k, input);
        self.cx.flush();
        if used < input.len() && self.cx.slab.is_live(k) {
            self.cx.slab.set(k, slab::REST);
            self.cx.rests.insert(k.index, Rest { bytes: input[used..].to_vec(), choked: false });
        }
    }

    /// Offers the rest again: it has grown, or the connection can be written to again.
    fn feed_rest(&mut self, k: Key) {
        if !self.cx.slab.is_live(k) || !self.cx.slab.is(k, slab::REST) {
            return;
        }
        let Rest { mut bytes, choked } =
            self.cx.rests.remove(&k.index).expect("the slab says that there is a rest");
        let used = self.call(|program, cx| program.bytes(cx, k, &mut bytes));
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
        self.cx.slab.unset(k, slab::REST);
        if !bytes.is_empty() {
            self.cx.slab.set(k, slab::REST);
            self.cx.rests.insert(k.index, Rest { bytes, choked: full });
        }
    }
}

impl<P: Program> Turn for Shard<SimIo, P> {
    fn wakes_at(&self) -> Nanos {
        Shard::wakes_at(self)
    }
    fn turn(&mut self) {
        Shard::turn(self, Nanos::ZERO);
    }
    fn host(&self) -> u16 {
        self.io().host()
    }
}

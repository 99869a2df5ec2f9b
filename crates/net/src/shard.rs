//! The one loop. A [`Shard`] owns the keys, timers and buffers of its connections and shares nothing with other shards.
//!
//! A turn waits for the transport, finishes pending closes and sends, fires due timers, passes completions to the [`Program`], and
//! runs the program's schedule. Work that must wait until output has left is queued for the next turn, so the cost of a turn depends
//! on the number of events, not on the number of waiting connections.

use units::Nanos;

use self::cx::Leftover;
pub use self::{backlog::PIECE, cx::Cx};
use crate::{
    io::{
        Close, Gone, Io, Scratch, What,
        sim::{SimIo, Turn},
    },
    slab::{self, Key},
};

mod backlog;
mod cx;

/// Maximum bytes of unconsumed input that are buffered per connection; beyond it the connection is not read until the program
/// consumes some. Four times the largest head that `wire` accepts.
const LEFTOVER_LIMIT: usize = 64 * 1024;
/// Bytes of new input that are appended to a leftover: enough to complete a TLS record (2^14 + 2,048 + 5), the longest unit that a
/// program reads at once.
const JOINED: usize = 19 * 1024;
/// Maximum timers handled per turn, so that a burst of timers does not starve the network.
const TIMERS_A_TURN: usize = 256;
/// Turns spent in [`Shard::close_every_other`]: enough to cancel pending operations and to close the sockets.
const CLOSING_TURNS: usize = 10;
const CLOSING_TURN: Nanos = Nanos::from_millis(5);

/// What a shard does with its connections: the loop calls these methods, and the program acts through [`Cx`].
pub trait Program {
    /// Whether a connection whose peer has closed its sending side stays open until all output has been sent. A server needs this for
    /// its responses.
    const ANSWERS: bool = false;

    /// A turn begins at `now`. `left` is when the output of the previous turn was handed to the kernel.
    fn woke(&mut self, now: Nanos, left: Nanos) {
        let _ = (now, left);
    }
    /// A dial succeeded, or a peer was accepted.
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key);
    /// The timer of this connection has expired.
    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key);
    /// Input has arrived. Returns how many bytes were consumed; only these may be modified. The rest is offered again, with more bytes
    /// after it, when more input arrives or when the connection is writable again.
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize;
    /// All output has left, and the program asked for this call with [`Cx::call_when_writable`]. A program with a layer calls
    /// [`send_deferred`](crate::send_deferred) here.
    fn writable<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        cx.send_deferred(k, |cx, part| cx.send_part(k, part));
    }
    /// The connection ended, or the attempt to open it failed. The key is live during this call and stale afterwards.
    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone);
    /// Runs the program's schedule; called once per turn. Returns when it must be called again at the latest.
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos;
}

/// One loop over one [`Io`], running one program.
pub struct Shard<I, P> {
    cx: Cx<I>,
    program: P,
    scratch: Scratch,
    /// When [`Program::pace`] is due at the latest.
    pace_at: Nanos,
    /// When the previous turn ended and its output was handed to the kernel.
    left_at: Nanos,
}

impl<I: Io, P: Program> Shard<I, P> {
    /// Creates a shard for at most `limit` connections.
    pub fn new(io: I, limit: u32, program: P) -> Self {
        let cx = Cx::new(io, limit);
        let left_at = cx.now;
        Shard { cx, program, scratch: Scratch::new(P::ANSWERS), pace_at: Nanos::ZERO, left_at }
    }

    /// The program, for inspection between turns.
    pub fn program(&mut self) -> &mut P {
        &mut self.program
    }

    /// The transport.
    pub fn io(&self) -> &I {
        &self.cx.io
    }

    /// The program and its context, for work between turns.
    pub fn parts(&mut self) -> (&mut P, &mut Cx<I>) {
        (&mut self.program, &mut self.cx)
    }

    /// The time at which the shard has work to do even if nothing arrives.
    pub fn wakes_at(&self) -> Nanos {
        let Cx { finishing, again, ending, sending, .. } = &self.cx;
        if !(finishing.is_empty() && again.is_empty() && ending.is_empty() && sending.is_empty()) {
            return Nanos::ZERO;
        }
        self.cx.wheel.next().min(self.pace_at)
    }

    /// Runs one turn: sleeps until something happens, at most until `limit`, and handles it. Returns the time at which the sleep ended.
    pub fn turn(&mut self, limit: Nanos) -> Nanos {
        let until = self.wakes_at().min(limit);
        // Output that was queued between turns.
        self.cx.flush();
        self.cx.now = self.cx.io.wait(until, &mut self.scratch);
        self.program.woke(self.cx.now, self.left_at);
        self.close_finished();
        self.offer_again();
        self.end_the_used_up();
        self.send_more();
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

    /// Ends the shard: hands the last output to the kernel. The program is not called any more.
    pub fn hand_over(mut self) {
        self.cx.flush();
        self.cx.io.wait(Nanos::ZERO, &mut self.scratch);
    }

    /// Closes every second open connection among the first `limit` indices, after the program has ended. The program is not called.
    pub fn close_every_other(&mut self, limit: u32) {
        let open = (0..limit).filter_map(|index| self.cx.at(index)).filter(|k| self.cx.is_open(*k));
        for k in Vec::from_iter(open.step_by(2)) {
            self.cx.close(k, Close::Graceful);
        }
        // Input on the remaining connections stays unread.
        for _ in 0..CLOSING_TURNS {
            self.cx.io.wait(self.cx.io.now() + CLOSING_TURN, &mut self.scratch);
            while self.cx.io.next().is_some() {}
        }
    }

    /// Calls the program and flushes its output when it returns.
    fn call<R>(&mut self, call: impl FnOnce(&mut P, &mut Cx<I>) -> R) -> R {
        self.cx.io.begin_call();
        let returned = call(&mut self.program, &mut self.cx);
        self.cx.flush();
        returned
    }

    /// Lets connections that have more output send it, unless they are write-blocked; those continue when they have drained.
    fn send_more(&mut self) {
        let asked = self.cx.sending.len();
        for at in 0..asked {
            self.writable(self.cx.sending[at]);
        }
        self.cx.sending.drain(..asked);
    }

    /// Calls [`Program::writable`] for `k`, if it has more to send and is not write-blocked.
    fn writable(&mut self, k: Key) {
        let sends = |shard: &Self| shard.cx.slab.is_live(k) && shard.cx.slab.is(k, slab::SENDING);
        if !sends(self) || self.cx.io.is_write_blocked(k) {
            return;
        }
        self.cx.slab.unset(k, slab::SENDING);
        self.call(|program, cx| program.writable(cx, k));
        if !self.cx.slab.is_live(k) || sends(self) {
            return;
        }
        // What waited for the last send comes next: in a later turn, when it is known whether the send has left.
        if self.cx.slab.is(k, slab::FINISHING) {
            self.cx.finishing.push(k);
        } else if self.cx.slab.is(k, slab::ENDING) {
            self.cx.ending.push(k);
        } else if self.cx.slab.is(k, slab::LEFTOVER) {
            self.cx.again.push_back(k);
        }
    }

    fn offer_again(&mut self) {
        for _ in 0..self.cx.again.len() {
            // First come, first served: repeated requests go to the end.
            let k = self.cx.again.pop_front().expect("as many as were counted");
            // A write-blocked connection gets its remaining input when it has drained. One that has ended waits until it is known whether
            // its output has left.
            let waits = |shard: &Self| shard.cx.is_write_blocked(k) || shard.cx.slab.is(k, slab::ENDING);
            if self.cx.slab.is_live(k) && !waits(self) {
                self.feed_leftover(k);
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
            What::Bytes { at, len } => self.feed(k, at, len),
            What::Drained => self.drained(k),
            // A peer may close its side and still wait for responses to what it has sent (RFC 9293, section 3.6). Whether the output of
            // this turn has left is known in the next turn.
            What::Gone(Gone::Ended) if P::ANSWERS || self.cx.slab.is(k, slab::LEFTOVER) => {
                self.cx.slab.set(k, slab::ENDING);
                self.cx.ending.push(k);
            }
            What::Gone(why) => self.end(k, why),
        }
    }

    /// All output of `k` has left: continues what waited for it.
    fn drained(&mut self, k: Key) {
        if self.cx.slab.is(k, slab::SENDING) {
            self.writable(k);
        } else if self.cx.slab.is(k, slab::FINISHING) {
            self.finish(k);
        } else if self.cx.slab.is(k, slab::ENDING) {
            self.end_if_used_up(k);
        } else {
            self.feed_leftover(k);
        }
    }

    fn end(&mut self, k: Key, why: Gone) {
        self.call(|program, cx| program.gone(cx, k, why));
        if self.cx.slab.is_live(k) {
            self.cx.close(k, Close::Graceful);
        }
    }

    /// Closes the finishing connections that have nothing left to send.
    fn close_finished(&mut self) {
        let asked = self.cx.finishing.len();
        for at in 0..asked {
            self.finish(self.cx.finishing[at]);
        }
        self.cx.finishing.drain(..asked);
    }

    /// Ends `k` now, or when its output has drained.
    fn finish(&mut self, k: Key) {
        if !self.cx.slab.is_live(k) {
            return;
        }
        self.cx.slab.set(k, slab::FINISHING);
        if !self.cx.is_write_blocked(k) {
            self.end(k, Gone::Ended);
        }
    }

    /// Ends the connections that their peers have closed, once no more of their input can be used.
    fn end_the_used_up(&mut self) {
        let ended = self.cx.ending.len();
        for at in 0..ended {
            self.end_if_used_up(self.cx.ending[at]);
        }
        self.cx.ending.drain(..ended);
    }

    /// Ends `k` once its program makes no further progress on the leftover input; otherwise tries again in a later turn or when drained.
    fn end_if_used_up(&mut self, k: Key) {
        if !self.cx.slab.is_live(k) {
            return;
        }
        self.cx.slab.set(k, slab::ENDING);
        if P::ANSWERS && self.cx.is_write_blocked(k) {
            return;
        }
        let left = self.cx.leftover_len(k);
        self.feed_leftover(k);
        if !self.cx.slab.is_live(k) {
            return;
        }
        match self.cx.leftover_len(k) {
            now if left == 0 || now == left => self.end(k, Gone::Ended),
            _ => self.cx.ending.push(k),
        }
    }

    fn feed(&mut self, k: Key, at: u32, len: u32) {
        let begin = if self.cx.slab.is(k, slab::LEFTOVER) { self.join(k, at, len) } else { Some(0) };
        let Some(begin) = begin else { return };
        let input = &mut self.scratch.bytes(at, len)[begin..];
        self.cx.io.begin_call();
        let used = self.program.bytes(&mut self.cx, k, input);
        self.cx.flush();
        if used < input.len() && self.cx.slab.is_live(k) {
            self.cx.slab.set(k, slab::LEFTOVER);
            let own = self.cx.leftovers.get(&k.index).map_or(0, |leftover| leftover.own);
            let bytes = input[used..].to_vec();
            let held = bytes.len() >= LEFTOVER_LIMIT;
            if held {
                self.cx.io.hold(k);
            }
            self.cx.leftovers.insert(k.index, Leftover { bytes, held, own });
        }
    }

    /// Offers leftover input together with the `len` new bytes at `at`. Returns the offset in the new input at which to continue, or `None`
    /// if all of it was handled here. Of a large input only the bytes that complete the leftover are copied.
    fn join(&mut self, k: Key, at: u32, len: u32) -> Option<usize> {
        let input = self.scratch.bytes(at, len);
        let leftover = self.cx.leftovers.get_mut(&k.index).expect("the slab says that there is a leftover");
        if leftover.own > 0 || leftover.held || input.len() <= JOINED {
            leftover.bytes.extend_from_slice(input);
            self.feed_leftover(k);
            return None;
        }
        let left = leftover.bytes.len();
        let mut bytes = std::mem::take(&mut leftover.bytes);
        self.cx.leftovers.remove(&k.index);
        bytes.extend_from_slice(&input[..JOINED]);
        let used = self.call(|program, cx| program.bytes(cx, k, &mut bytes));
        if !self.cx.slab.is_live(k) {
            return None;
        }
        let asked = self.cx.leftovers.remove(&k.index);
        if used >= left && asked.is_none() {
            self.cx.slab.unset(k, slab::LEFTOVER);
            return Some(used - left);
        }
        bytes.drain(..used);
        bytes.extend_from_slice(&self.scratch.bytes(at, len)[JOINED..]);
        let own = asked.map_or(0, |leftover| leftover.own);
        self.cx.leftovers.insert(k.index, Leftover { bytes, held: false, own });
        self.feed_leftover(k);
        None
    }

    /// Offers the leftover input again, after more has arrived or when the connection is writable again.
    fn feed_leftover(&mut self, k: Key) {
        if !self.cx.slab.is_live(k) || !self.cx.slab.is(k, slab::LEFTOVER) {
            return;
        }
        let Leftover { mut bytes, held, .. } =
            self.cx.leftovers.remove(&k.index).expect("the slab says that there is a leftover");
        let used = self.call(|program, cx| program.bytes(cx, k, &mut bytes));
        if !self.cx.slab.is_live(k) {
            return;
        }
        bytes.drain(..used);
        let full = bytes.len() >= LEFTOVER_LIMIT;
        match (held, full) {
            (true, false) => self.cx.io.resume(k),
            (false, true) => self.cx.io.hold(k),
            _ => {}
        }
        let asked = self.cx.leftovers.remove(&k.index);
        self.cx.slab.unset(k, slab::LEFTOVER);
        if !bytes.is_empty() || asked.is_some() {
            self.cx.slab.set(k, slab::LEFTOVER);
            let own = asked.map_or(0, |leftover| leftover.own);
            self.cx.leftovers.insert(k.index, Leftover { bytes, held: full, own });
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

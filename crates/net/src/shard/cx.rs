//! [`Cx`]: the operations that a program may perform on its shard's connections, such as dial, send, close and set a timer.
//!
//! What a call sends on one connection is gathered in the output buffer and leaves as one send. Requests to be called again are kept
//! in queues that the loop serves in the next turn.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    net::SocketAddr,
};

use units::Nanos;

use super::backlog::{Backlog, PIECE};
use crate::{
    io::{Close, Io, OUT_BYTES},
    slab::{self, Key, Slab},
    wheel::Wheel,
};

/// The context of a shard, lent to each call of its program.
pub struct Cx<I> {
    pub(super) now: Nanos,
    pub(super) io: I,
    pub(super) slab: Slab,
    pub(super) wheel: Wheel,
    pub(super) leftovers: HashMap<u32, Leftover>,
    /// Output of the current call that has not been handed to the transport: only for the connection that was sent on last.
    unsent: Option<Unsent>,
    /// Connections to close in the next turn, once their output has been sent. A connection that is write-blocked then is handled when
    /// it has drained: the cost of a turn depends on events, not on how many connections wait.
    pub(super) finishing: Vec<Key>,
    /// Connections to be offered their leftover input again, at the program's request.
    pub(super) again: VecDeque<Key>,
    /// Connections that the peer has ended while some of their input is unused; handled like `finishing`.
    pub(super) ending: Vec<Key>,
    /// Connections that have more to send; handled like `finishing`.
    pub(super) sending: Vec<Key>,
    backlog: Backlog,
}

/// Output of the current call, to which more may be added.
enum Unsent {
    /// The first bytes of the output buffer: connection and length.
    Out(Key, usize),
    Static(Key, &'static [u8]),
}

/// Unconsumed input of one connection, such as a partial head, or a request that must wait for a slow reader.
pub(super) struct Leftover {
    pub(super) bytes: Vec<u8>,
    /// Whether reading from the connection is suspended.
    pub(super) held: bool,
    /// Unused input, in bytes, that the program keeps in its own memory.
    pub(super) own: usize,
}

impl<I: Io> Cx<I> {
    pub(super) fn new(io: I, limit: u32) -> Cx<I> {
        Cx {
            now: io.now(),
            io,
            slab: Slab::new(limit),
            wheel: Wheel::new(limit),
            leftovers: HashMap::new(),
            unsent: None,
            finishing: Vec::new(),
            again: VecDeque::new(),
            ending: Vec::new(),
            sending: Vec::new(),
            backlog: Backlog::default(),
        }
    }

    /// When this turn began.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Number of connections that are opening or open.
    pub fn taken(&self) -> u32 {
        self.slab.taken()
    }

    /// Whether the shard has no room for another connection.
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

    /// Takes a free key for [`Cx::dial`]; `None` if the shard is full.
    pub fn take(&mut self) -> Option<Key> {
        self.slab.take()
    }

    /// Dials `to` from `from`; see [`Io::dial`].
    pub fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        self.flush();
        self.io.dial(k, from, to);
    }

    /// Waits for one more peer. Returns false if the shard is full.
    pub fn accept(&mut self) -> bool {
        let Some(k) = self.slab.take() else { return false };
        self.io.accept(k);
        true
    }

    /// Stops listening.
    pub fn unlisten(&mut self) {
        self.io.unlisten();
    }

    /// Sets the connection's timer; a connection has only one.
    pub fn wake_at(&mut self, k: Key, at: Nanos) {
        self.wheel.set(k.index, at);
    }

    /// When the connection's timer expires or has expired. Only for a connection whose timer was set.
    pub fn timer(&self, k: Key) -> Nanos {
        self.wheel.at(k.index)
    }

    /// How long the earliest unhandled timer has been due: the delay of the shard.
    pub fn behind(&self) -> Nanos {
        self.now.since(self.wheel.next())
    }

    /// Clears the connection's timer.
    pub fn let_sleep(&mut self, k: Key) {
        self.wheel.clear(k.index);
    }

    /// Sends what `fill` writes into a buffer of `room` bytes. `fill` returns the number of bytes written; with 0, nothing is sent.
    /// Several sends on a connection during one call leave as one.
    pub fn send(&mut self, k: Key, room: usize, fill: impl FnOnce(&mut [u8]) -> usize) {
        let begun = self.begun(k, room);
        let len = begun + fill(&mut self.io.out(begun, room)[begun..]);
        self.unsent = (len > 0).then_some(Unsent::Out(k, len));
    }

    /// Sends static bytes; without a copy if they are the first that this call sends on the connection.
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

    /// Bytes that the output buffer already holds for `k` from this call, if `room` more fit after them; otherwise 0, after a flush.
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

    /// Hands the output of this call to the transport.
    pub(super) fn flush(&mut self) {
        match self.unsent.take() {
            Some(Unsent::Out(k, len)) => self.io.send_out(k, len),
            Some(Unsent::Static(k, bytes)) => self.io.send_static(k, bytes),
            None => {}
        }
    }

    /// Hands all output to the kernel now, not at the end of the turn. For long calls, so that peers have work in the meantime.
    pub fn hand_over(&mut self) {
        self.flush();
        self.io.hand_over();
    }

    /// Whether output of an earlier call has not left yet. If so, input should be left unconsumed.
    pub fn is_write_blocked(&self, k: Key) -> bool {
        self.slab.is_live(k) && self.slab.is(k, slab::SENDING) || self.io.is_write_blocked(k)
    }

    /// Bytes of a body that may be sent now, so that at most one [`PIECE`] waits for a peer that reads slowly. To send more, continue in
    /// [`Program::writable`](super::Program::writable) after [`Cx::call_when_writable`].
    pub fn writable_len(&self, k: Key) -> usize {
        let begun = match self.unsent {
            Some(Unsent::Out(key, len)) if key == k => len,
            Some(Unsent::Static(key, bytes)) if key == k => bytes.len(),
            _ => 0,
        };
        if self.is_write_blocked(k) { 0 } else { PIECE.saturating_sub(begun) }
    }

    /// Requests a call of [`Program::writable`](super::Program::writable) once all output has left, in the next turn at the earliest.
    pub fn call_when_writable(&mut self, k: Key) {
        if !self.slab.is(k, slab::SENDING) {
            self.slab.set(k, slab::SENDING);
            self.sending.push(k);
        }
    }

    /// Whether the connection has a backlog. If so, further output must be added to it, to stay in order.
    pub(crate) fn has_backlog(&self, k: Key) -> bool {
        self.backlog.has(k.index)
    }

    /// Appends bytes to the backlog of a connection.
    pub(crate) fn defer(&mut self, k: Key, bytes: Cow<'static, [u8]>) {
        self.backlog.push(k.index, bytes);
        self.call_when_writable(k);
    }

    /// Sends the next piece of the connection's backlog, passing each part to `send`. The rest follows in the next call of
    /// [`Program::writable`](super::Program::writable).
    pub(crate) fn send_deferred(&mut self, k: Key, mut send: impl FnMut(&mut Self, Cow<'static, [u8]>)) {
        let mut sent = 0;
        while sent < PIECE
            && let Some(part) = self.backlog.pop(k.index)
        {
            sent += part.len();
            send(self, part);
        }
        if self.has_backlog(k) {
            self.call_when_writable(k);
        }
    }

    /// Sends bytes unchanged.
    pub(crate) fn send_part(&mut self, k: Key, part: Cow<'static, [u8]>) {
        match part {
            Cow::Borrowed(bytes) => self.send_static(k, bytes),
            Cow::Owned(bytes) => self.send(k, bytes.len(), |out| {
                out.copy_from_slice(&bytes);
                bytes.len()
            }),
        }
    }

    /// Sets how long a wake-up may be delayed to gather a larger batch; see [`Io::coalesce`].
    pub fn coalesce(&mut self, by: Nanos) {
        self.io.coalesce(by);
    }

    /// Closes the connection; its key is stale afterwards.
    pub fn close(&mut self, k: Key, how: Close) {
        self.flush();
        self.io.close(k, how);
        self.forget(k);
    }

    /// Ends the connection once all its output has left. [`Program::gone`](super::Program::gone) is called then, or earlier if the peer
    /// ends it first.
    pub fn finish(&mut self, k: Key) {
        self.finishing.push(k);
    }

    /// Requests that the input that this call leaves unconsumed is offered again in the next turn, once the output has left.
    pub fn call_again(&mut self, k: Key) {
        self.again.push_back(k);
    }

    /// Requests a call with further input, even if it is empty, once the output has left or after [`Cx::call_again`]. For a program that
    /// keeps `own` bytes of unused input itself: after the peer has ended the connection, it stays open while this number decreases.
    pub fn call_when_drained(&mut self, k: Key, own: usize) {
        self.slab.set(k, slab::LEFTOVER);
        self.leftovers.entry(k.index).or_insert(Leftover { bytes: Vec::new(), held: false, own: 0 }).own =
            own;
    }

    /// Number of connections whose last send has not left yet.
    pub fn blocked(&self) -> usize {
        self.io.blocked()
    }

    /// Bytes of input that are not used yet, such as a partial head, including those that the program keeps; 0 for a stale key.
    pub fn leftover_len(&self, k: Key) -> usize {
        self.find_leftover(k).map_or(0, |leftover| leftover.bytes.len() + leftover.own)
    }

    /// The unused input of a connection, without the bytes that the program keeps itself.
    pub fn leftover(&self, k: Key) -> &[u8] {
        self.find_leftover(k).map_or(&[], |leftover| &leftover.bytes)
    }

    fn find_leftover(&self, k: Key) -> Option<&Leftover> {
        let is_there = self.slab.is_live(k) && self.slab.is(k, slab::LEFTOVER);
        is_there.then(|| self.leftovers.get(&k.index)).flatten()
    }

    fn forget(&mut self, k: Key) {
        self.wheel.clear(k.index);
        if self.slab.is(k, slab::LEFTOVER) {
            self.leftovers.remove(&k.index);
        }
        self.backlog.remove(k.index);
        self.slab.give_back(k);
    }
}

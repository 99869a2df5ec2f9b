//! What a program may do with its shard's connections: dial, send, close, set timers.

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

/// What a program may do. One for each shard, lent to each call.
pub struct Cx<I> {
    pub(super) now: Nanos,
    pub(super) io: I,
    pub(super) slab: Slab,
    pub(super) wheel: Wheel,
    pub(super) leftovers: HashMap<u32, Leftover>,
    /// What the program has sent in this call on the last connection that it has sent on.
    unsent: Option<Unsent>,
    /// To be closed in the next turn, once the output has been sent. One that is blocked then is handled when it has
    /// drained: the cost of a turn depends on events, not on how many wait.
    pub(super) finishing: Vec<Key>,
    /// To be called again with their leftover input, as the program asked.
    pub(super) again: VecDeque<Key>,
    /// Ended by the peer while some of its input is unused; handled like `finishing`.
    pub(super) ending: Vec<Key>,
    /// They have more to send; handled like `finishing`.
    pub(super) sending: Vec<Key>,
    backlog: Backlog,
}

/// Bytes that a call has sent, and may add to.
enum Unsent {
    /// This many bytes of the output buffer.
    Out(Key, usize),
    Static(Key, &'static [u8]),
}

/// Unconsumed input of one connection: a partial head, or a request that must wait for a slow reader.
pub(super) struct Leftover {
    pub(super) bytes: Vec<u8>,
    /// The connection is not read for now.
    pub(super) held: bool,
    /// Bytes that the program keeps itself.
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
    pub(super) fn flush(&mut self) {
        match self.unsent.take() {
            Some(Unsent::Out(k, len)) => self.io.send_out(k, len),
            Some(Unsent::Static(k, bytes)) => self.io.send_static(k, bytes),
            None => {}
        }
    }

    /// What was sent leaves now, not at the end of the turn: for calls that take long, so that peers have work while others are made.
    pub fn hand_over(&mut self) {
        self.flush();
        self.io.hand_over();
    }

    /// Whether what an earlier call has sent, or is to send, has not gone out yet: leave the input alone until it has.
    pub fn is_write_blocked(&self, k: Key) -> bool {
        self.slab.is_live(k) && self.slab.is(k, slab::SENDING) || self.io.is_write_blocked(k)
    }

    /// How many bytes of a body may be sent now, so that no more than a piece waits for a peer that reads slowly. If that is not enough, go
    /// on in [`Program::writable`](super::Program::writable), after [`Cx::call_when_writable`].
    pub fn writable_len(&self, k: Key) -> usize {
        let begun = match self.unsent {
            Some(Unsent::Out(key, len)) if key == k => len,
            Some(Unsent::Static(key, bytes)) if key == k => bytes.len(),
            _ => 0,
        };
        if self.is_write_blocked(k) { 0 } else { PIECE.saturating_sub(begun) }
    }

    /// Calls [`Program::writable`](super::Program::writable) once what was sent has left, in the next turn at the earliest.
    pub fn call_when_writable(&mut self, k: Key) {
        if !self.slab.is(k, slab::SENDING) {
            self.slab.set(k, slab::SENDING);
            self.sending.push(k);
        }
    }

    /// Whether the connection has a backlog: what is sent on it next goes there too.
    pub(crate) fn has_backlog(&self, k: Key) -> bool {
        self.backlog.has(k.index)
    }

    /// Adds to the backlog of a connection.
    pub(crate) fn defer(&mut self, k: Key, bytes: Cow<'static, [u8]>) {
        self.backlog.push(k.index, bytes);
        self.call_when_writable(k);
    }

    /// Sends the next piece of a connection's backlog, each part of it by `send`; the rest follows in the next call of
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

    /// Sends these bytes as they are.
    pub(crate) fn send_part(&mut self, k: Key, part: Cow<'static, [u8]>) {
        match part {
            Cow::Borrowed(bytes) => self.send_static(k, bytes),
            Cow::Owned(bytes) => self.send(k, bytes.len(), |out| {
                out.copy_from_slice(&bytes);
                bytes.len()
            }),
        }
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

    /// Offer further input, even none, when what was sent has left, or after [`Cx::call_again`]: the program keeps some itself.
    /// `own` is how many bytes: a connection that the peer ends is kept while they become fewer.
    pub fn call_when_drained(&mut self, k: Key, own: usize) {
        self.slab.set(k, slab::LEFTOVER);
        self.leftovers.entry(k.index).or_insert(Leftover { bytes: Vec::new(), held: false, own: 0 }).own =
            own;
    }

    /// Connections whose last send has not gone out yet.
    pub fn blocked(&self) -> usize {
        self.io.blocked()
    }

    /// How many bytes of input wait to be used, those of a partial head; none for a stale key.
    pub fn leftover_len(&self, k: Key) -> usize {
        self.find_leftover(k).map_or(0, |leftover| leftover.bytes.len() + leftover.own)
    }

    /// The same bytes, but for those that the program keeps itself.
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

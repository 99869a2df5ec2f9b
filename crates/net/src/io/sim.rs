//! [`Io`] over an in-memory network with virtual time and seeded faults, for tests.
//!
//! Everything runs in one thread: a [`Net`] holds the network and the clock, each shard has a [`SimIo`] as its transport, and [`run`] lets
//! the shards take turns and advances the time to the next event. The same seed gives the same sequence of events, to the nanosecond.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    rc::Rc,
};

use units::Nanos;

use self::{
    ends::NO_PEER,
    transit::Payload,
    world::{Event, Room, World},
};
use super::{Close, Done, Gone, Io, REGION, REGIONS, Scratch, What};
use crate::slab::Key;

mod ends;
mod ports;
mod transit;
mod world;

/// The properties of the network. Probabilities are per million.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Minimum and maximum one-way delay.
    pub delay: (Nanos, Nanos),
    /// Probability that a segment or a SYN is lost; it then arrives one retransmission timeout later.
    pub loss: u32,
    /// Probability that a segment is replaced by a reset of the connection.
    pub reset: u32,
    /// Probability that a dial is refused although a host listens.
    pub refuse: u32,
    /// Probability that a connection is dead once established: nothing arrives any more, in either direction.
    pub half_open: u32,
    /// Whether segments are split in two at random positions.
    pub split: bool,
    /// Receive window, in bytes: a sender is blocked beyond it.
    pub window: usize,
    /// Accept queue of each listener, in connections; a SYN beyond it is dropped.
    pub backlog: usize,
    /// Rate limit of a firewall: SYNs per second and burst; it drops SYNs beyond them. `None`: no firewall.
    pub syns: Option<(u32, u32)>,
    /// Whether a graceful close by the accepting end closes only its sending side. It then discards what arrives, until the other end
    /// closes too. Otherwise a close with unread input is a reset.
    pub half_close: bool,
    /// Maximum length of a send that is not static, in bytes; [`OUT_BYTES`](super::OUT_BYTES) to enforce the limit of the other backends.
    pub buffer: usize,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            delay: (Nanos::from_micros(20), Nanos::from_micros(200)),
            loss: 0,
            reset: 0,
            refuse: 0,
            half_open: 0,
            split: false,
            window: 256 * 1024,
            backlog: 4096,
            syns: None,
            half_close: false,
            buffer: usize::MAX,
        }
    }
}

/// The network.
#[derive(Clone)]
pub struct Net(Rc<RefCell<World>>);

impl Net {
    /// Creates a network without hosts, at time zero.
    pub fn new(seed: u64, faults: Faults) -> Net {
        Net(Rc::new(RefCell::new(World::new(seed, faults))))
    }

    /// Adds a host; the result is the transport of its shard.
    pub fn host(&self) -> SimIo {
        let host = self.0.borrow_mut().add_host();
        SimIo {
            world: self.0.clone(),
            host,
            done: VecDeque::new(),
            out: Vec::new(),
            ends: Vec::new(),
            calls: 0,
            sent_in: Vec::new(),
            write_checks: Cell::new(0),
            blocked: BTreeMap::new(),
        }
    }

    /// Kills the process on a host: its connections are closed, with a reset if input was not read, and it no longer listens. Its shard
    /// must not run again.
    pub fn kill(&self, host: u16) {
        self.0.borrow_mut().kill(host);
    }

    /// The virtual time.
    pub fn now(&self) -> Nanos {
        self.0.borrow().now
    }

    /// Bytes that were sent and never read: those sent to the accepting ends, then those sent to the dialling ends. Bytes that wait for the
    /// peer's window do not count as sent.
    pub fn unread(&self) -> [u64; 2] {
        self.0.borrow().unread()
    }

    /// Number of dials so far.
    pub fn dials(&self) -> u64 {
        self.0.borrow().dials
    }

    /// Number of segments, dials and closes so far: with the time, a fingerprint of the run.
    pub fn carried(&self) -> u64 {
        self.0.borrow().carried()
    }
}

/// A shard as the simulator sees it.
pub trait Turn {
    /// When it must run even if nothing arrives.
    fn wakes_at(&self) -> Nanos;
    /// Runs one turn at the current virtual time.
    fn turn(&mut self);
    /// The index of its host in the network.
    fn host(&self) -> u16;
}

/// Runs the shards until `until`, or until `stop` returns true after a turn.
pub fn run(net: &Net, shards: &mut [&mut dyn Turn], until: Nanos, mut stop: impl FnMut() -> bool) {
    loop {
        let now = net.now();
        let mut ran = false;
        for shard in shards.iter_mut() {
            if net.0.borrow().has_events(shard.host()) || shard.wakes_at() <= now {
                shard.turn();
                ran = true;
            }
        }
        if stop() || now >= until {
            return;
        }
        if !ran {
            let next = shards.iter().map(|s| s.wakes_at()).min().unwrap_or(Nanos::NEVER);
            net.0.borrow_mut().advance(next.min(until));
        }
    }
}

/// The transport of one shard: its host on a [`Net`].
pub struct SimIo {
    world: Rc<RefCell<World>>,
    host: u16,
    done: VecDeque<Done>,
    out: Vec<u8>,
    /// The end in the network and the turn of the key, by connection index.
    ends: Vec<(u32, u8)>,
    /// Number of calls of the program, and for each connection the last call that sent on it. Used to check that a call sends only once.
    calls: u64,
    sent_in: Vec<u64>,
    /// Number of calls of `is_write_blocked`.
    write_checks: Cell<u64>,
    /// Sends that the peer's window has not taken completely, by end.
    blocked: BTreeMap<u32, BlockedSend>,
}

/// Maximum bytes queued for a peer that does not read. More means that the program does not check whether the connection is blocked.
const MAX_BEHIND: usize = 8 * 1024 * 1024;

/// A send that waits for the peer's window.
struct BlockedSend {
    key: Key,
    bytes: Vec<u8>,
    /// How many of `bytes` were sent.
    sent: usize,
}

impl SimIo {
    /// The index of this host in the network.
    pub fn host(&self) -> u16 {
        self.host
    }

    /// Number of calls of `is_write_blocked`: a measure of work for tests.
    pub fn write_checks(&self) -> u64 {
        self.write_checks.get()
    }

    fn end(&self, k: Key) -> Option<u32> {
        self.ends
            .get(k.index as usize)
            .filter(|(end, turn)| *end != NO_PEER && *turn == k.turn)
            .map(|(end, _)| *end)
    }

    fn set_end(&mut self, k: Key, end: u32) {
        if k.index as usize >= self.ends.len() {
            self.ends.resize(k.index as usize + 1, (NO_PEER, 0));
        }
        self.ends[k.index as usize] = (end, k.turn);
    }

    fn send(&mut self, k: Key, payload: Payload) {
        let Some(end) = self.end(k) else { return };
        let at = k.index as usize;
        self.sent_in.resize(self.sent_in.len().max(at + 1), 0);
        let before = std::mem::replace(&mut self.sent_in[at], self.calls);
        assert!(before != self.calls || self.calls == 0, "two sends in one call: {k:?}");
        // Queued after the blocked bytes, to preserve the order.
        if let Some(blocked) = self.blocked.get_mut(&end) {
            assert!(
                blocked.bytes.len() - blocked.sent < MAX_BEHIND,
                "sends pile up where nobody reads: {k:?}"
            );
            return blocked.bytes.extend_from_slice(&payload);
        }
        let mut world = self.world.borrow_mut();
        match world.room(end) {
            Room::For(room) if room < payload.len() => {
                assert!(payload.len() < MAX_BEHIND, "a send of {} bytes is blocked: {k:?}", payload.len());
                let mut blocked = BlockedSend { key: k, bytes: payload.into_owned(), sent: 0 };
                blocked.send(&mut world, end, room);
                self.blocked.insert(end, blocked);
            }
            _ => world.send(end, payload),
        }
    }

    /// Retries blocked sends; reports those that are complete, and those that never will be.
    fn send_blocked(&mut self) {
        let mut world = self.world.borrow_mut();
        if !world.take_room(self.host) {
            return;
        }
        self.blocked.retain(|&end, blocked| {
            let what = match world.room(end) {
                Room::For(room) if !blocked.send(&mut world, end, room) => return true,
                Room::For(_) => What::Drained,
                // A connection that is being read notices the end by reading.
                Room::NoPeer if world.will_report_end(end) => return true,
                Room::NoPeer => What::Gone(Gone::Reset),
            };
            self.done.push_back(Done { key: blocked.key, what });
            false
        });
    }
}

impl BlockedSend {
    /// Sends at most `room` more bytes; returns whether all have been sent.
    fn send(&mut self, world: &mut World, end: u32, room: usize) -> bool {
        let part = &self.bytes[self.sent..];
        let part = &part[..room.min(part.len())];
        self.sent += part.len();
        world.send(end, part.to_vec().into());
        self.sent == self.bytes.len()
    }
}

impl Io for SimIo {
    fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        let end = self.world.borrow_mut().dial(self.host, k, from, to);
        self.set_end(k, end);
    }

    fn listen(&mut self, at: SocketAddr) -> io::Result<SocketAddr> {
        Ok(self.world.borrow_mut().listen(self.host, at))
    }

    fn accept(&mut self, k: Key) {
        self.world.borrow_mut().accept(self.host, k);
    }

    fn unlisten(&mut self) {
        self.world.borrow_mut().unlisten(self.host);
    }

    fn park(&mut self, k: Key) {
        if let Some(end) = self.end(k) {
            self.world.borrow_mut().set_reading(end, true);
        }
    }

    fn begin_call(&mut self) {
        self.calls += 1;
    }

    fn hand_over(&mut self) {
        // The output has left, so the program's further sends in this call cannot be joined to it.
        self.calls += 1;
    }

    fn out(&mut self, kept: usize, room: usize) -> &mut [u8] {
        let len = kept + room;
        if self.out.len() < len {
            self.out.resize(len, 0);
        }
        &mut self.out[..len]
    }

    fn send_out(&mut self, k: Key, len: usize) {
        let most = self.world.borrow().faults.buffer;
        assert!(len <= most, "a send larger than the output buffer: {len}");
        let bytes = self.out[..len].to_vec();
        self.send(k, bytes.into());
    }

    fn send_static(&mut self, k: Key, bytes: &'static [u8]) {
        self.send(k, bytes.into());
    }

    fn is_write_blocked(&self, k: Key) -> bool {
        self.write_checks.set(self.write_checks.get() + 1);
        !self.blocked.is_empty() && self.end(k).is_some_and(|end| self.blocked.contains_key(&end))
    }

    fn blocked(&self) -> usize {
        self.blocked.len()
    }

    fn hold(&mut self, k: Key) {
        if let Some(end) = self.end(k) {
            self.world.borrow_mut().set_reading(end, false);
        }
    }

    fn resume(&mut self, k: Key) {
        self.park(k);
    }

    fn close(&mut self, k: Key, how: Close) {
        let Some(end) = self.end(k) else {
            return self.world.borrow_mut().withdraw(self.host, k);
        };
        self.blocked.remove(&end);
        let mut world = self.world.borrow_mut();
        if how == Close::Reset || !world.half_close(end) {
            world.close(end, how);
        }
        drop(world);
        self.ends[k.index as usize] = (NO_PEER, 0);
    }

    fn coalesce(&mut self, _by: Nanos) {}

    fn wait(&mut self, _until: Nanos, scratch: &mut Scratch) -> Nanos {
        self.send_blocked();
        // At most one region per connection and turn, as with the kernel.
        let regions = REGIONS.min(self.world.borrow().readable(self.host)) as u16;
        let mut region = 0u16;
        loop {
            let into = (region < regions).then(|| scratch.regions(region, 1));
            let event = self.world.borrow_mut().next_event(self.host, into);
            let Some(Event { end, mut done }) = event else { break };
            match &mut done.what {
                What::Accepted => self.set_end(done.key, end),
                What::Bytes { at, .. } => {
                    *at = u32::from(region) * REGION as u32;
                    region += 1;
                }
                _ => {}
            }
            self.done.push_back(done);
        }
        self.world.borrow().now
    }

    fn next(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn now(&self) -> Nanos {
        self.world.borrow().now
    }
}

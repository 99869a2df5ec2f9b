//! An in-memory network with virtual time and seeded faults, as a fill of [`Io`].
//!
//! Everything runs in one thread: a [`Net`] holds the wires and the clock, each shard has a [`SimIo`] on it, and
//! [`run`] lets the shards take turns and moves the time to the next thing that happens. The same seed gives the
//! same sequence of events, to the nanosecond.

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

/// How bad the network is. Chances are per million.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Least and greatest one-way delay.
    pub delay: (Nanos, Nanos),
    /// A segment (or a SYN) is lost and comes one retransmission timeout later.
    pub loss: u32,
    /// A segment brings a reset instead of bytes.
    pub reset: u32,
    /// A dial is refused though someone listens.
    pub refuse: u32,
    /// A connection is established and then silently dead: nothing arrives any more, in either direction.
    pub half_open: u32,
    /// Segments are cut in two at random places.
    pub split: bool,
    /// Bytes a receiver buffers before it reads; a sender beyond that is blocked.
    pub window: usize,
    /// Connections established and not accepted yet, for each listener; a SYN beyond that is dropped.
    pub backlog: usize,
    /// A firewall passes this many SYNs a second, and this many at once; it drops others.
    pub syns: Option<(u32, u32)>,
    /// A graceful close by the end that was dialled is one of its sending side only: what still arrives is discarded,
    /// until the other end closes too. Without it, a close with unread input is a reset.
    pub half_close: bool,
    /// Bytes of the longest send that is no static one; as of the other backends, [`OUT_BYTES`](super::OUT_BYTES), where that is to be kept to.
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
    /// A network without hosts, at time zero.
    pub fn new(seed: u64, faults: Faults) -> Net {
        Net(Rc::new(RefCell::new(World::new(seed, faults))))
    }

    /// A place for one shard.
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

    /// The process on a host dies: the kernel closes its connections, with a reset if input was not read, and nothing is
    /// listening there any more. Its shard must not run again.
    pub fn kill(&self, host: u16) {
        self.0.borrow_mut().kill(host);
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.0.borrow().now
    }

    /// Bytes that were sent and that nobody has read: those to whom was dialled, and those to whom had dialled. What a window
    /// has not taken yet is not sent.
    pub fn unread(&self) -> [u64; 2] {
        self.0.borrow().unread()
    }

    /// Dials so far.
    pub fn dials(&self) -> u64 {
        self.0.borrow().dials
    }

    /// Segments, dials and closes carried so far: with the time, a fingerprint of the run.
    pub fn carried(&self) -> u64 {
        self.0.borrow().carried()
    }
}

/// A shard as the simulator sees it.
pub trait Turn {
    /// When it is due to run although nothing arrives.
    fn wakes_at(&self) -> Nanos;
    /// One turn at the present virtual time.
    fn turn(&mut self);
    /// Which host of the network it is.
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

/// One shard's place on a [`Net`].
pub struct SimIo {
    world: Rc<RefCell<World>>,
    host: u16,
    done: VecDeque<Done>,
    out: Vec<u8>,
    /// For each connection of the shard, its end in the world (with the turn it belongs to).
    ends: Vec<(u32, u8)>,
    /// Calls of the program, and for each connection the one that sent last.
    calls: u64,
    sent_in: Vec<u64>,
    /// Calls of `is_write_blocked`.
    write_checks: Cell<u64>,
    /// What the peer's window has not taken yet, by end.
    blocked: BTreeMap<u32, BlockedSend>,
}

/// What may wait for a peer that does not read: a program that sends more does not look whether it does.
const MAX_BEHIND: usize = 8 * 1024 * 1024;

/// The part of a send that waits for the peer.
struct BlockedSend {
    key: Key,
    bytes: Vec<u8>,
    /// Bytes that went.
    sent: usize,
}

impl SimIo {
    /// Which host of the network it is.
    pub fn host(&self) -> u16 {
        self.host
    }

    /// Calls of `is_write_blocked` by a shard: a measure of work for tests.
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
        // After what is blocked, to preserve the order.
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

    /// Retries what was blocked; reports what was sent, and what never will be.
    fn send_blocked(&mut self) {
        let mut world = self.world.borrow_mut();
        if !world.take_room(self.host) {
            return;
        }
        self.blocked.retain(|&end, blocked| {
            let what = match world.room(end) {
                Room::For(room) if !blocked.send(&mut world, end, room) => return true,
                Room::For(_) => What::Drained,
                // A reader notices the end by reading.
                Room::NoPeer if world.will_report_end(end) => return true,
                Room::NoPeer => What::Gone(Gone::Reset),
            };
            self.done.push_back(Done { key: blocked.key, what });
            false
        });
    }
}

impl BlockedSend {
    /// Sends at most `room` bytes more; whether that was all.
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
        // What was sent has left: what follows cannot leave with it.
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
        // One region per connection and turn, as with the kernel.
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

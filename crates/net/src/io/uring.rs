//! [`Io`] over io_uring: direct descriptors in several rings, and one multishot poll per connection.
//!
//! A ring's table of direct descriptors may have RLIMIT_NOFILE slots, and the kernel checks this limit per table: with several rings
//! throng exceeds the limit without additional ordinary descriptors. Each connection is watched by one multishot poll, armed for its
//! whole life; when it is readable, its bytes are received into the thread's scratch memory. That costs 256 bytes of kernel memory per
//! connection; an armed receive would cost 864 bytes and a buffer.
//!
//! Sends and receives are tried without waiting, during the submission: when it returns, the memory that they point to is free again.
//! Bytes that a slow peer's socket did not take are copied, off the hot path, and sent by an operation that may wait.

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, OwnedFd},
};

use io_uring::{opcode, squeue, types};
use rustix::net::SocketFlags;
use units::{Clock, Nanos};

use self::{
    address::Address,
    op::{Op, user_data},
    ring::{Mode, Ring},
    send::Sent,
};
use super::{Close, Done, Gone, Io, OUT_BYTES, REGIONS, Scratch, What, socket};
use crate::slab::Key;

mod address;
mod close;
mod completions;
mod dial;
mod op;
mod ring;
mod send;
mod turn;

/// Maximum number of sends and of dials between two submissions.
const BATCH: usize = 2048;

const CONNECTED: u32 = (libc::POLLIN | libc::POLLRDHUP) as u32;
const OVER_SIGNALS: i32 = (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) as i32;
const SKIP: squeue::Flags = squeue::Flags::SKIP_SUCCESS;

/// Parameters of a [`Uring`].
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum number of connections.
    pub connections: u32,
    /// Number of slots in the table of one ring; at most RLIMIT_NOFILE.
    pub slots: u32,
    /// Whether to use only the operations of Linux 5.19, without `bind` and socket options. For tests.
    pub old_kernel: bool,
    /// Number of entries of a ring, a power of two, so small that completions overflow all the time. `None`: the default. For tests.
    pub few_entries: Option<u32>,
}

impl Settings {
    /// Settings for this many connections, with tables of this many slots, using all features of the kernel.
    pub fn new(connections: u32, slots: u32) -> Settings {
        Settings { connections, slots, old_kernel: false, few_entries: None }
    }
}

/// The state of a slot.
#[derive(Clone, Copy, Default)]
struct Place {
    turn: u8,
    flags: u8,
}

const _: () = assert!(size_of::<Place>() <= 2, "the idle record is what a million connections cost");

/// Flag: a dial or an accept is pending.
const OPENING: u8 = 1;
/// Flag: the pending operation is an accept.
const ACCEPTING: u8 = 2;
/// Flag: the destination of the dial is on loopback.
const NEAR: u8 = 4;
/// Flag: a send of this batch is queued. It may turn out to be partial, so the next send must wait for its result.
const SENDING: u8 = 8;
/// Flag: the connection is in `readable`.
const LISTED: u8 = 16;
/// Flag: no further event will report the remaining input, so it must be read until there is none.
const OVER: u8 = 32;
/// Flag: reading is suspended.
const HELD: u8 = 64;
/// Flag: the connection has filled a region, and is read in larger pieces.
const BULK: u8 = 128;

/// The rings of one thread.
pub struct Uring {
    clock: Clock,
    settings: Settings,
    /// Whether sockets are created by ordinary system calls.
    without_chain: bool,
    mode: Mode,
    rings: Vec<Ring>,
    /// Indices of rings with queued entries.
    dirty: Vec<u16>,
    is_dirty: Vec<bool>,
    /// State per slot. Its turn detects completions that belong to an earlier connection of the slot.
    places: Vec<Place>,
    eventfd: OwnedFd,
    listener: Option<OwnedFd>,
    done: VecDeque<Done>,
    /// Connections to receive from; each at most once.
    readable: VecDeque<Key>,
    /// Number of receives whose completions have not been read. Each may still write to its regions of the scratch.
    receiving: usize,
    /// Regions that a receive of a bulk transfer may fill in this turn.
    bulk: u16,
    out: Box<[u8]>,
    out_used: usize,
    sends: Vec<(Key, Sent)>,
    /// Partial sends of this batch: index in `sends`, key, bytes sent.
    short: Vec<(u16, Key, i32)>,
    /// Output queued after a blocked send.
    behind: HashMap<Key, Vec<u8>>,
    /// Output that slow peers have not taken yet. An entry stays until its send completes, even after the connection was closed.
    blocked: HashMap<Key, Vec<u8>>,
    /// Why connections ended whose error was consumed by a send; reported once their input has been read.
    ended: HashMap<Key, Gone>,
    /// Connections whose poll has ended and must be armed again.
    rearm: Vec<Key>,
    /// Remaining bytes of partial sends, to be submitted by an operation that may wait.
    unsent: Vec<(Key, Vec<u8>)>,
    addresses: Vec<Address>,
    /// Connections with a bound socket, and their destinations.
    prepared: Vec<(Key, SocketAddr)>,
    /// Dials to check now; see [`Uring::confirm`].
    unconfirmed: Vec<Key>,
    /// Dials to check again after a delay.
    unsettled: Vec<Key>,
    gather: Nanos,
}

static ONE: libc::c_int = 1;

impl Uring {
    /// Checks whether io_uring is allowed on this machine.
    ///
    /// # Errors
    /// As for [`Uring::new`].
    pub fn probe() -> io::Result<()> {
        Uring::new(Settings::new(1, 1), Clock::start()).map(drop)
    }

    /// Creates the first ring at once, so that a refusal is reported here; further rings are created when connections need them.
    ///
    /// # Errors
    /// The error of `io_uring_setup` or of the registration: EPERM or ENOSYS if io_uring is not allowed.
    pub fn new(settings: Settings, clock: Clock) -> io::Result<Uring> {
        assert!(settings.slots > 0 && settings.connections > 0);
        let mode = if settings.connections <= settings.slots { Mode::Alone } else { Mode::Several };
        let eventfd = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK)?;
        let mut uring = Uring {
            clock,
            settings,
            without_chain: settings.old_kernel,
            mode,
            rings: Vec::new(),
            dirty: Vec::new(),
            is_dirty: Vec::new(),
            places: Vec::with_capacity(settings.connections as usize),
            eventfd,
            listener: None,
            done: VecDeque::with_capacity(BATCH),
            readable: VecDeque::with_capacity(REGIONS),
            receiving: 0,
            bulk: 1,
            out: vec![0; OUT_BYTES].into_boxed_slice(),
            out_used: 0,
            sends: Vec::with_capacity(BATCH),
            short: Vec::new(),
            behind: HashMap::new(),
            blocked: HashMap::new(),
            ended: HashMap::new(),
            rearm: Vec::new(),
            unsent: Vec::new(),
            addresses: Vec::with_capacity(2 * BATCH),
            prepared: Vec::new(),
            unconfirmed: Vec::with_capacity(BATCH),
            unsettled: Vec::new(),
            gather: Nanos::ZERO,
        };
        uring.add_ring()?;
        uring.without_chain = settings.old_kernel || !uring.rings[0].knows(opcode::Bind::CODE);
        Ok(uring)
    }

    /// Number of system calls for submissions and completions: a measure of work for tests.
    pub fn entered(&self) -> u64 {
        self.rings.iter().map(|ring| ring.entered).sum()
    }

    fn add_ring(&mut self) -> io::Result<()> {
        let mut ring = Ring::new(&self.settings, self.mode)?;
        if self.mode == Mode::Several {
            ring.signal(self.eventfd.as_raw_fd())?;
            ring.set_signalling(false);
        }
        self.rings.push(ring);
        self.is_dirty.push(false);
        Ok(())
    }

    fn place(&self, k: Key) -> (usize, types::Fixed) {
        ((k.index / self.settings.slots) as usize, types::Fixed(k.index % self.settings.slots))
    }

    fn slot(&self, k: Key) -> types::DestinationSlot {
        let (_, fixed) = self.place(k);
        types::DestinationSlot::try_from_slot_target(fixed.0).expect("a table has less than 2^32 - 2 slots")
    }

    /// Prepares the slot of `k` for a new connection. Fails if another ring is needed and the kernel refuses it.
    fn begin(&mut self, k: Key) -> io::Result<()> {
        let (ring, _) = self.place(k);
        while ring >= self.rings.len() {
            self.add_ring()?;
        }
        if k.index as usize >= self.places.len() {
            self.places.resize(k.index as usize + 1, Place::default());
        }
        self.places[k.index as usize] = Place { turn: k.turn, ..Place::default() };
        Ok(())
    }

    fn is_current(&self, k: Key) -> bool {
        self.places.get(k.index as usize).is_some_and(|place| place.turn == k.turn)
    }

    fn is(&self, k: Key, flag: u8) -> bool {
        self.places[k.index as usize].flags & flag != 0
    }

    fn set(&mut self, k: Key, flags: u8) {
        self.places[k.index as usize].flags |= flags;
    }

    fn unset(&mut self, k: Key, flags: u8) {
        self.places[k.index as usize].flags &= !flags;
    }

    /// Adds `k` to the connections to receive from.
    fn list(&mut self, k: Key) {
        if !self.is(k, LISTED) {
            self.set(k, LISTED);
            self.readable.push_back(k);
        }
    }

    /// # Safety
    /// As for [`Ring::push`].
    unsafe fn push(&mut self, k: Key, entries: &[squeue::Entry]) {
        let (ring, _) = self.place(k);
        // SAFETY: guaranteed by the caller.
        unsafe { self.rings[ring].push(entries) };
        if !self.is_dirty[ring] {
            self.is_dirty[ring] = true;
            self.dirty.push(ring as u16);
        }
    }

    fn submit(&mut self) {
        while let Some(ring) = self.dirty.pop() {
            self.is_dirty[ring as usize] = false;
            self.rings[ring as usize].submit();
        }
    }

    /// Submits everything and begins a new batch, whose buffers and addresses may reuse the memory of the last one.
    fn settle(&mut self) {
        self.connect_prepared();
        self.submit();
        self.reap();
        self.begin_batch();
    }

    fn arm(&mut self, k: Key) {
        if self.is_current(k) {
            let (_, fd) = self.place(k);
            let entry =
                opcode::PollAdd::new(fd, CONNECTED).multi(true).build().user_data(user_data(Op::Poll, 0, k));
            // SAFETY: the entry points to nothing.
            unsafe { self.push(k, &[entry]) };
        }
    }
}

impl Io for Uring {
    fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        if self.addresses.len() + self.prepared.len() + 2 > self.addresses.capacity() {
            self.settle();
        }
        if let Err(e) = self.begin(k) {
            return self.report(k, What::failed(&e));
        }
        self.prepare(k, from, to);
    }

    fn listen(&mut self, at: SocketAddr) -> io::Result<SocketAddr> {
        // Blocking: with a non-blocking listener each accept would complete with EAGAIN instead of waiting.
        let (listener, bound) = socket::listener(at, SocketFlags::empty())?;
        self.listener = Some(listener);
        Ok(bound)
    }

    fn accept(&mut self, k: Key) {
        if let Err(e) = self.begin(k) {
            return self.report(k, What::failed(&e));
        }
        let Some(listener) = &self.listener else {
            return self.report(k, What::Gone(Gone::Other(libc::EINVAL)));
        };
        let entry =
            opcode::Accept::new(types::Fd(listener.as_raw_fd()), std::ptr::null_mut(), std::ptr::null_mut())
                .file_index(Some(self.slot(k)))
                .build()
                .user_data(user_data(Op::Accept, 0, k));
        self.set(k, OPENING | ACCEPTING);
        // SAFETY: the entry points to nothing; the listener stays open until `unlisten` has woken the accepts.
        unsafe { self.push(k, &[entry]) };
    }

    fn unlisten(&mut self) {
        if let Some(listener) = self.listener.take() {
            self.submit();
            // Wakes every accept with EINVAL; the kernel holds a reference to the socket until they complete.
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
        }
    }

    fn park(&mut self, k: Key) {
        self.arm(k);
    }

    fn out(&mut self, kept: usize, room: usize) -> &mut [u8] {
        let len = kept + room;
        assert!(len <= OUT_BYTES, "a send larger than the output buffer: {len}");
        // The buffer is full: submit the turn's sends and reuse it.
        if self.out_used + len > OUT_BYTES || self.sends.len() >= BATCH {
            let begun = self.out_used;
            self.settle();
            self.out.copy_within(begun..begun + kept, 0);
        }
        &mut self.out[self.out_used..][..len]
    }

    fn send_out(&mut self, k: Key, len: usize) {
        let at = self.out_used;
        if self.is_current(k) && self.is(k, SENDING) {
            // The bytes stay where they are; the next batch begins with them.
            self.settle();
        }
        self.out_used = at + len;
        // SAFETY: this part of `out` is not written again before the next batch.
        unsafe { self.send(k, Sent::Out { at, len }) };
    }

    fn send_static(&mut self, k: Key, bytes: &'static [u8]) {
        if self.sends.len() >= BATCH || self.is_current(k) && self.is(k, SENDING) {
            self.settle();
        }
        // SAFETY: the bytes are never freed.
        unsafe { self.send(k, Sent::Static(bytes)) };
    }

    fn hand_over(&mut self) {
        self.submit();
    }

    fn is_write_blocked(&self, k: Key) -> bool {
        (!self.blocked.is_empty() && self.blocked.contains_key(&k))
            || (!self.behind.is_empty() && self.behind.contains_key(&k))
    }

    fn blocked(&self) -> usize {
        self.blocked.len() + self.behind.keys().filter(|k| !self.blocked.contains_key(k)).count()
    }

    fn hold(&mut self, k: Key) {
        if self.is_current(k) {
            self.set(k, HELD);
            let why = self.take_ended(k);
            why.into_iter().for_each(|why| self.report(k, What::Gone(why)));
        }
    }

    fn resume(&mut self, k: Key) {
        if self.is_current(k) && self.is(k, HELD) {
            self.unset(k, HELD);
            // Events may have been missed while the connection was held.
            self.set(k, OVER);
            self.list(k);
        }
    }

    fn close(&mut self, k: Key, how: Close) {
        // A slot that was never used, or whose ring could not be created, has nothing to close.
        if self.is_current(k) {
            self.end(k, how);
        }
    }

    fn coalesce(&mut self, by: Nanos) {
        self.gather = by.min(Nanos::from_micros(50));
    }

    fn wait(&mut self, until: Nanos, scratch: &mut Scratch) -> Nanos {
        self.connect_prepared();
        // Completions that were reported after the loop had taken all are still here.
        if !self.readable.is_empty() || !self.done.is_empty() {
            // Polls without sleeping, so that a flood of input does not starve deferred work.
            self.sleep(Nanos::ZERO);
            self.reap();
        } else if self.mode == Mode::Several {
            self.submit();
            self.reap();
        }
        if self.done.is_empty() && self.readable.is_empty() {
            self.sleep(until);
            self.reap();
        }
        self.receive(scratch);
        self.begin_batch();
        self.clock.now()
    }

    fn next(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }
}

//! The io_uring fill of [`Io`]: direct descriptors over several rings, one multishot poll a connection.
//!
//! A ring's table of direct descriptors may have RLIMIT_NOFILE slots, but the check is per table: several rings
//! pass the limit without a single ordinary descriptor more. Each connection is watched by one multishot poll,
//! armed for life; when it is readable its bytes are received into the thread's scratch. That costs the kernel
//! 256 bytes a connection; an armed receive would cost 864 and a buffer.
//!
//! Sends and receives are tried without waiting, inside the submission: when it returns, what they pointed to
//! is free again. What a slow peer's socket did not take is copied off the hot path and sent by an operation
//! that may wait.

use std::{
    collections::{HashMap, HashSet},
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, OwnedFd},
};

use io_uring::{opcode, squeue, types};
use rustix::net::SocketFlags;
use units::{Clock, Nanos};

use self::{
    address::Address,
    ring::{Mode, Ring},
    send::Sent,
};
use super::{Close, Done, Gone, Io, REGION, REGIONS, Scratch, What, socket};
use crate::slab::Key;

mod address;
mod completions;
mod dial;
mod ring;
mod send;

/// This turn's output; when it is full, the turn's sends are submitted and it begins anew.
const OUT_BYTES: usize = 1024 * 1024;
/// Sends and dials between two submissions, at most.
const BATCH: usize = 2048;

const CONNECTED: u32 = (libc::POLLIN | libc::POLLRDHUP) as u32;
const OVER: i32 = (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) as i32;
const SKIP: squeue::Flags = squeue::Flags::SKIP_SUCCESS;

/// What a completion answers; the top byte of its user data.
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
enum Op {
    /// A step of a dial before the connect; only its failure is told.
    Prepare,
    Connect,
    /// Asks whether a connect that succeeded did.
    Confirm,
    /// A while, before that is asked again.
    Pause,
    Accept,
    Poll,
    Receive,
    /// A send that may not wait; only its failure is told.
    Send,
    /// A send of what was left over, which may.
    SendRest,
    /// A close or a cancellation: nobody waits for the answer.
    Quiet,
}

const OPS: [Op; 10] = [
    Op::Prepare,
    Op::Connect,
    Op::Confirm,
    Op::Pause,
    Op::Accept,
    Op::Poll,
    Op::Receive,
    Op::Send,
    Op::SendRest,
    Op::Quiet,
];

fn user_data(op: Op, extra: u16, k: Key) -> u64 {
    (op as u64) << 56 | u64::from(k.turn) << 48 | u64::from(extra) << 32 | u64::from(k.index)
}

/// The numbers that a [`Uring`] is made with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Most connections at once.
    pub connections: u32,
    /// Slots in one ring's table; at most RLIMIT_NOFILE.
    pub slots: u32,
    /// Dial without the operations that Linux 6.11 brought (a test forces that).
    pub by_hand: bool,
}

/// What is known of a slot.
#[derive(Clone, Copy, Default)]
struct Place {
    turn: u8,
    /// A dial or an accept is not answered yet.
    opening: bool,
    /// A send of this batch is queued: it may go short, so that the next must wait for what becomes of it.
    sending: bool,
}

/// One thread's rings.
pub struct Uring {
    clock: Clock,
    settings: Settings,
    mode: Mode,
    rings: Vec<Ring>,
    /// Rings with something queued.
    dirty: Vec<u16>,
    is_dirty: Vec<bool>,
    /// The turn that stands in each slot now: a completion of an earlier one must not read from its successor.
    places: Vec<Place>,
    eventfd: OwnedFd,
    listener: Option<OwnedFd>,
    done: Vec<Done>,
    taken: usize,
    /// Connections to receive from, and whether their end has been signalled.
    readable: Vec<(Key, bool)>,
    held: HashSet<Key>,
    out: Box<[u8]>,
    out_used: usize,
    sends: Vec<(Key, Sent)>,
    /// What sends of this batch left over: index into `sends`, key, bytes that went.
    short: Vec<(u16, Key, i32)>,
    /// Sends that came behind another of the same connection in the same batch, or behind what is clogged.
    behind: HashMap<Key, Vec<u8>>,
    /// What slow peers have not taken yet. An entry stays until its send is answered, even past the close.
    clogged: HashMap<Key, Vec<u8>>,
    /// Polls that ended and must be armed again; rests to be sent on.
    rearm: Vec<Key>,
    unsent: Vec<(Key, Vec<u8>)>,
    addresses: Vec<Address>,
    /// Sockets to dial from, and where to.
    prepared: Vec<(Key, SocketAddr)>,
    /// Dials to ask about.
    unconfirmed: Vec<Key>,
    /// Dials to ask about again in a while.
    unsettled: Vec<Key>,
    gather: Nanos,
}

static ONE: libc::c_int = 1;
static LINGER_RESET: libc::linger = libc::linger { l_onoff: 1, l_linger: 0 };

impl Uring {
    /// Whether this machine lets us use io_uring at all.
    ///
    /// # Errors
    /// As for [`Uring::new`].
    pub fn probe() -> io::Result<()> {
        Uring::new(Settings { connections: 1, slots: 1, by_hand: false }, Clock::start()).map(drop)
    }

    /// The first ring is made at once, so that a refusal shows here; the others as connections come.
    ///
    /// # Errors
    /// What `io_uring_setup` or the registration say: EPERM or ENOSYS where io_uring is not allowed.
    pub fn new(settings: Settings, clock: Clock) -> io::Result<Uring> {
        assert!(settings.slots > 0 && settings.connections > 0);
        let mode = if settings.connections <= settings.slots { Mode::Alone } else { Mode::Several };
        let eventfd = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK)?;
        let mut uring = Uring {
            clock,
            settings,
            mode,
            rings: Vec::new(),
            dirty: Vec::new(),
            is_dirty: Vec::new(),
            places: Vec::with_capacity(settings.connections as usize),
            eventfd,
            listener: None,
            done: Vec::with_capacity(BATCH),
            taken: 0,
            readable: Vec::with_capacity(REGIONS),
            held: HashSet::new(),
            out: vec![0; OUT_BYTES].into_boxed_slice(),
            out_used: 0,
            sends: Vec::with_capacity(BATCH),
            short: Vec::new(),
            behind: HashMap::new(),
            clogged: HashMap::new(),
            rearm: Vec::new(),
            unsent: Vec::new(),
            addresses: Vec::with_capacity(2 * BATCH),
            prepared: Vec::new(),
            unconfirmed: Vec::with_capacity(BATCH),
            unsettled: Vec::new(),
            gather: Nanos::ZERO,
        };
        uring.add_ring()?;
        uring.settings.by_hand |= !uring.rings[0].knows(opcode::Bind::CODE);
        Ok(uring)
    }

    fn add_ring(&mut self) -> io::Result<()> {
        let mut ring = Ring::new(self.settings.slots.min(self.settings.connections), self.mode)?;
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

    /// Makes the place of `k` ready for a new connection; an error where a further ring is needed and refused.
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

    fn stands(&self, k: Key) -> bool {
        self.places.get(k.index as usize).is_some_and(|place| place.turn == k.turn)
    }

    /// # Safety
    /// As for [`Ring::push`].
    unsafe fn push(&mut self, k: Key, entries: &[squeue::Entry]) {
        let (ring, _) = self.place(k);
        // SAFETY: the caller's promise.
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

    /// Submits all and begins a new batch: its buffers and addresses are free again.
    fn settle(&mut self) {
        self.connect_prepared();
        self.submit();
        self.reap();
        self.begin_batch();
    }

    fn arm(&mut self, k: Key) {
        if self.stands(k) {
            let (_, fd) = self.place(k);
            let entry =
                opcode::PollAdd::new(fd, CONNECTED).multi(true).build().user_data(user_data(Op::Poll, 0, k));
            // SAFETY: the entry points to nothing.
            unsafe { self.push(k, &[entry]) };
        }
    }

    /// Receives from up to [`REGIONS`] readable connections into the scratch.
    fn receive(&mut self, scratch: &mut Scratch) {
        let mut region = 0;
        let mut waiting = std::mem::take(&mut self.readable);
        for (k, over) in waiting.drain(..waiting.len().min(REGIONS)) {
            if !self.stands(k) || self.held.contains(&k) {
                continue;
            }
            let (_, fd) = self.place(k);
            let into = scratch.region(region);
            let extra = region | if over { 0x8000 } else { 0 };
            let entry = opcode::Recv::new(fd, into.as_mut_ptr(), REGION as u32)
                .flags(libc::MSG_DONTWAIT)
                .build()
                .user_data(user_data(Op::Receive, extra, k));
            // SAFETY: the scratch outlives this call, and MSG_DONTWAIT ends the operation within the submission
            // below; each region is used once a batch.
            unsafe { self.push(k, &[entry]) };
            region += 1;
        }
        self.readable = waiting;
        self.submit();
        self.reap();
    }

    fn sleep(&mut self, until: Nanos) {
        let at_most = until.since(self.clock.now());
        if self.mode == Mode::Alone {
            self.is_dirty[0] = false;
            self.dirty.clear();
            // Half of the connections, so that few do not wait for many.
            let several = (self.settings.connections as usize / 2).clamp(1, REGIONS / 2);
            return self.rings[0].submit_and_sleep(at_most, self.gather, several);
        }
        self.submit();
        for ring in &mut self.rings {
            ring.set_signalling(true);
        }
        // A completion may have come before the signal was on.
        if at_most.0 > 0 && !self.rings.iter_mut().any(Ring::has_completions) {
            self.sleep_on_eventfd(at_most);
        }
        for ring in &mut self.rings {
            ring.set_signalling(false);
        }
    }

    fn sleep_on_eventfd(&self, at_most: Nanos) {
        let ts = rustix::time::Timespec {
            tv_sec: (at_most.0 / 1_000_000_000) as i64,
            tv_nsec: (at_most.0 % 1_000_000_000) as i64,
        };
        let mut fds = [rustix::event::PollFd::new(&self.eventfd, rustix::event::PollFlags::IN)];
        // A signal or the end of time: the loop looks around in either case.
        if rustix::event::poll(&mut fds, Some(&ts)).is_ok_and(|n| n > 0) {
            let _ = rustix::io::read(&self.eventfd, &mut [0u8; 8]);
        }
    }
}

impl Io for Uring {
    fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        if self.addresses.len() + self.prepared.len() + 2 > self.addresses.capacity() {
            self.settle();
        }
        if let Err(e) = self.begin(k) {
            return self.tell(k, What::Gone(Gone::from_errno(e.raw_os_error().unwrap_or(libc::EIO))));
        }
        self.prepare(k, from, to);
    }

    fn listen(&mut self, at: SocketAddr) -> io::Result<SocketAddr> {
        // Blocking: a non-blocking one would answer each accept with EAGAIN instead of keeping it.
        let (listener, bound) = socket::listener(at, SocketFlags::empty())?;
        self.listener = Some(listener);
        Ok(bound)
    }

    fn accept(&mut self, k: Key) {
        if let Err(e) = self.begin(k) {
            return self.tell(k, What::Gone(Gone::from_errno(e.raw_os_error().unwrap_or(libc::EIO))));
        }
        let Some(listener) = &self.listener else {
            return self.tell(k, What::Gone(Gone::Other(libc::EINVAL)));
        };
        let entry =
            opcode::Accept::new(types::Fd(listener.as_raw_fd()), std::ptr::null_mut(), std::ptr::null_mut())
                .file_index(Some(self.slot(k)))
                .build()
                .user_data(user_data(Op::Accept, 0, k));
        self.places[k.index as usize].opening = true;
        // SAFETY: the entry points to nothing; the listener is open until `unlisten` has woken the accepts.
        unsafe { self.push(k, &[entry]) };
    }

    fn unlisten(&mut self) {
        if let Some(listener) = self.listener.take() {
            self.submit();
            // Wakes every accept with EINVAL; the kernel keeps its own reference until they are answered.
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
        }
    }

    fn park(&mut self, k: Key) {
        self.arm(k);
    }

    fn out(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= OUT_BYTES, "a send larger than the output buffer: {len}");
        if self.out_used + len > OUT_BYTES || self.sends.len() >= BATCH {
            self.settle();
        }
        &mut self.out[self.out_used..][..len]
    }

    fn send_out(&mut self, k: Key, len: usize) {
        let at = self.out_used;
        self.out_used += len;
        // SAFETY: this part of `out` is not written again before the next batch.
        unsafe { self.send(k, Sent::Out { at, len }) };
    }

    fn send_static(&mut self, k: Key, bytes: &'static [u8]) {
        if self.sends.len() >= BATCH {
            self.settle();
        }
        // SAFETY: the bytes are never freed.
        unsafe { self.send(k, Sent::Static(bytes)) };
    }

    fn is_clogged(&self, k: Key) -> bool {
        (!self.clogged.is_empty() && self.clogged.contains_key(&k))
            || (!self.behind.is_empty() && self.behind.contains_key(&k))
    }

    fn clogged(&self) -> usize {
        self.clogged.len() + self.behind.keys().filter(|k| !self.clogged.contains_key(k)).count()
    }

    fn hold(&mut self, k: Key) {
        self.held.insert(k);
    }

    fn resume(&mut self, k: Key) {
        if self.held.remove(&k) {
            self.readable.push((k, true));
        }
    }

    fn close(&mut self, k: Key, how: Close) {
        // A place that was taken and never used, or for which there is no ring.
        if !self.stands(k) {
            return;
        }
        let (_, fd) = self.place(k);
        self.held.remove(&k);
        self.behind.remove(&k);
        self.give_up_opening(k);
        let quiet = |e: squeue::Entry| e.flags(SKIP).user_data(user_data(Op::Quiet, 0, k));
        // A pending operation keeps the socket open: take it back before the close. What is not pending answers
        // ENOENT, which nobody reads.
        let cancel = |op| quiet(opcode::AsyncCancel::new(user_data(op, 0, k)).build());
        if self.clogged.contains_key(&k) {
            // SAFETY: the entry points to nothing.
            unsafe { self.push(k, &[cancel(Op::SendRest)]) };
        }
        if how == Close::Reset {
            let value = std::ptr::from_ref(&LINGER_RESET).cast();
            let linger =
                opcode::SetSockOpt::new(fd, libc::SOL_SOCKET as u32, libc::SO_LINGER as u32, value, 8);
            // SAFETY: the option is static.
            unsafe { self.push(k, &[quiet(linger.build())]) };
        }
        let close = quiet(opcode::Close::new(fd).build());
        // SAFETY: the entries point to nothing.
        unsafe { self.push(k, &[cancel(Op::Poll), close]) };
        self.places[k.index as usize] = Place { turn: k.turn.wrapping_add(1), ..Place::default() };
    }

    fn coalesce(&mut self, by: Nanos) {
        self.gather = by.min(Nanos::from_micros(50));
    }

    fn wait(&mut self, until: Nanos, scratch: &mut Scratch) -> Nanos {
        // What was told after the loop had taken all is still here.
        self.done.drain(..std::mem::take(&mut self.taken));
        self.connect_prepared();
        if !self.readable.is_empty() || !self.done.is_empty() {
            // Not even a flood may starve what is deferred.
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
        let done = self.done.get(self.taken).copied();
        self.taken += usize::from(done.is_some());
        done
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }
}

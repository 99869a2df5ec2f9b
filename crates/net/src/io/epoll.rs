//! The epoll fill of [`Io`]: for machines and containers that do not allow io_uring.
//!
//! Sockets are non-blocking; each is registered once, edge-triggered, for its life. Input is received into the thread's
//! scratch, and a second time only if the first filled a region or an end was signalled. A send is tried immediately: what
//! the socket does not take is buffered off the hot path and sent when the kernel reports that it is writable. Only the
//! listener is level-triggered, and registered while an accept is pending.
//!
//! Each socket is an ordinary descriptor: RLIMIT_NOFILE binds each shard, in a table of its own
//! ([`own_open_files`](crate::own_open_files)).

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
};

use rustix::{
    event::epoll::{self, EventFlags},
    net::{RecvFlags, SocketFlags, recv, sockopt},
};
use units::{Clock, Nanos};

use self::{poll::Poll, send::BlockedSend};
use super::{Close, Done, Gone, Io, OUT_BYTES, REGION, REGIONS, Scratch, What, socket};
use crate::{machine::SharedListener, slab::Key};

mod open;
mod poll;
mod send;

/// Descriptors of a table that are no connections: the standard streams, the epoll instance, the listener, and a
/// few that come and go.
const RESERVE: u32 = 16;
/// After an accept that found no descriptor or no memory, unless a connection ends before.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(20);

/// For the life of a connection.
const READ: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);
/// For a dialled connection, and one that was write-blocked once: costs nothing until a socket has been full.
const READ_AND_WRITE: EventFlags = READ.union(EventFlags::OUT);
const OVER_SIGNALS: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);
/// What the listener is registered under; a connection's number has no bit above its turn.
const LISTENER: u64 = u64::MAX;

/// Connections that a table of `limit` open files has room for.
pub fn room(limit: u32) -> u32 {
    limit.saturating_sub(RESERVE).max(1)
}

/// The numbers that an [`Epoll`] is made with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Most connections at once.
    pub connections: u32,
    /// Sleep in whole milliseconds, as before Linux 5.11 (a test forces that).
    pub by_millis: bool,
}

/// The idle record: what is known of a place.
#[derive(Debug)]
struct Place {
    socket: Option<OwnedFd>,
    turn: u8,
    flags: u8,
}

const _: () = assert!(size_of::<Place>() <= 12, "the idle record is what a million connections cost");

/// The dial is pending.
const OPENING: u8 = 1;
/// It waits for a peer.
const WAITING: u8 = 2;
/// It is in `readable`.
const LISTED: u8 = 4;
/// No further signal will come for what is left to read: read until nothing is.
const OVER: u8 = 8;
/// Its input is left where it is.
const HELD: u8 = 16;
/// It is registered for writing too.
const WRITES: u8 = 32;
/// It has filled a region, and is read in larger pieces.
const BULK: u8 = 64;

/// One thread's epoll instance and sockets.
pub struct Epoll {
    clock: Clock,
    poll: Poll,
    places: Vec<Place>,
    listener: Option<OwnedFd>,
    /// The listener is registered.
    listening: bool,
    /// Free places that wait for a peer, first come first served.
    waiting: VecDeque<Key>,
    /// No accept before this time, for lack of descriptors or memory.
    accept_paused_until: Nanos,
    readable: VecDeque<Key>,
    blocked: HashMap<Key, BlockedSend>,
    /// How connections have ended of which a call has consumed the error: reported once their input has been read.
    ended: HashMap<Key, Gone>,
    done: VecDeque<Done>,
    out: Box<[u8]>,
    gather: Nanos,
    max_segment: Option<u16>,
    /// With this many readable, do not wait for more.
    several: usize,
}

fn data(k: Key) -> u64 {
    u64::from(k.turn) << 32 | u64::from(k.index)
}

fn key(data: u64) -> Key {
    Key { index: data as u32, turn: (data >> 32) as u8 }
}

impl Epoll {
    /// An instance without connections; memory is reserved, and touched only as they come.
    ///
    /// # Errors
    /// The error of `epoll_create1`.
    pub fn new(settings: Settings, clock: Clock) -> io::Result<Epoll> {
        let connections = settings.connections as usize;
        Ok(Epoll {
            clock,
            poll: Poll::new(settings.by_millis)?,
            places: Vec::with_capacity(connections),
            listener: None,
            listening: false,
            waiting: VecDeque::new(),
            accept_paused_until: Nanos::ZERO,
            readable: VecDeque::with_capacity(2 * REGIONS),
            blocked: HashMap::new(),
            ended: HashMap::new(),
            done: VecDeque::with_capacity(2 * REGIONS),
            out: vec![0; OUT_BYTES].into_boxed_slice(),
            gather: Nanos::ZERO,
            max_segment: None,
            // Half of the connections, so that few do not wait for many.
            several: (connections / 2).clamp(1, REGIONS / 2),
        })
    }

    /// The largest segments of TCP that either end of a dialled connection sends, bytes.
    #[must_use]
    pub fn with_max_segment(self, max_segment: Option<u16>) -> Epoll {
        Epoll { max_segment, ..self }
    }

    /// Where another thread may come in to accept from this listener.
    pub fn shared_listener(&self) -> Option<SharedListener> {
        self.listener.as_ref().map(SharedListener::of)
    }

    /// Accepts from another thread's listener.
    pub fn share(&mut self, listener: OwnedFd) {
        self.listener = Some(listener);
    }

    fn place(&mut self, k: Key) -> &mut Place {
        &mut self.places[k.index as usize]
    }

    /// Whether `k` has not been closed yet.
    fn is_current(&self, k: Key) -> bool {
        self.places.get(k.index as usize).is_some_and(|place| place.turn == k.turn)
    }

    /// The socket of an open connection.
    fn socket(&self, k: Key) -> Option<&OwnedFd> {
        self.places.get(k.index as usize).filter(|place| place.turn == k.turn)?.socket.as_ref()
    }

    fn begin(&mut self, k: Key, socket: Option<OwnedFd>, flags: u8) {
        while self.places.len() <= k.index as usize {
            self.places.push(Place { socket: None, turn: 0, flags: 0 });
        }
        *self.place(k) = Place { socket, turn: k.turn, flags };
    }

    fn report(&mut self, key: Key, what: What) {
        self.done.push_back(Done { key, what });
    }

    /// One batch of signals.
    fn gather_signals(&mut self, at_most: Nanos) {
        for at in 0..self.poll.wait(at_most) {
            let (signals, data) = self.poll.signal(at);
            self.handle(data, signals);
        }
    }

    fn handle(&mut self, data: u64, signals: EventFlags) {
        if data == LISTENER {
            return self.take_peers();
        }
        let (k, over) = (key(data), signals.intersects(OVER_SIGNALS));
        if !self.is_current(k) || self.place(k).flags & OPENING != 0 && !self.finish_dial(k, over) {
            return;
        }
        if over || signals.contains(EventFlags::IN) {
            self.list(k, over);
        }
        if signals.contains(EventFlags::OUT) && !self.blocked.is_empty() {
            self.send_blocked(k);
        }
    }

    /// Notes that there is something to read.
    fn list(&mut self, k: Key, over: bool) {
        let place = self.place(k);
        place.flags |= if over { OVER } else { 0 };
        if place.flags & LISTED == 0 {
            place.flags |= LISTED;
            self.readable.push_back(k);
        }
    }

    /// Receives from up to [`REGIONS`] readable connections into the scratch.
    fn receive(&mut self, scratch: &mut Scratch) {
        let mut region = 0;
        let bulk = scratch.bulk_regions(self.readable.len());
        for _ in 0..self.readable.len().min(REGIONS) {
            let k = self.readable.pop_front().expect("as many as were counted");
            if !self.is_current(k) {
                continue;
            }
            self.place(k).flags &= !LISTED;
            // What is held is listed again when it is resumed.
            if self.place(k).flags & HELD == 0
                && let Some(socket) = self.socket(k)
            {
                let count = if self.places[k.index as usize].flags & BULK == 0 { 1 } else { bulk };
                let received = recv(socket, scratch.regions(region, count), RecvFlags::DONTWAIT);
                let received = received.map(|(len, _)| len);
                self.handle_received(k, region, usize::from(count) * REGION, received);
                region += if matches!(received, Ok(1..)) { count } else { 0 };
            }
        }
    }

    /// `room`: bytes that might have been received.
    fn handle_received(&mut self, k: Key, region: u16, room: usize, received: rustix::io::Result<usize>) {
        match received {
            Ok(0) => {
                let why = self.take_ended(k).unwrap_or(Gone::Ended);
                self.report(k, What::Gone(why));
            }
            Ok(len) => {
                self.report(k, What::bytes_in(region, len));
                let place = self.place(k);
                place.flags = if len < REGION { place.flags & !BULK } else { place.flags | BULK };
                if len == room || place.flags & OVER != 0 {
                    self.list(k, false);
                }
            }
            Err(rustix::io::Errno::AGAIN) => {
                self.place(k).flags &= !OVER;
                let why = self.take_ended(k);
                why.into_iter().for_each(|why| self.report(k, What::Gone(why)));
            }
            Err(rustix::io::Errno::INTR) => self.list(k, false),
            Err(e) => self.report(k, What::failed(&e.into())),
        }
    }

    /// A call says that the connection has ended: its input is read first, unless the program leaves that where it is.
    fn end(&mut self, k: Key, why: Gone) {
        if self.place(k).flags & HELD != 0 {
            return self.report(k, What::Gone(why));
        }
        self.ended.entry(k).or_insert(why);
        self.list(k, true);
    }

    fn take_ended(&mut self, k: Key) -> Option<Gone> {
        if self.ended.is_empty() { None } else { self.ended.remove(&k) }
    }

    /// Sleeps until something happens; in closed loop a little longer, for what else is about to.
    fn sleep(&mut self, until: Nanos) {
        let until =
            if self.accept_paused_until == Nanos::ZERO { until } else { until.min(self.accept_paused_until) };
        let at_most = until.since(self.clock.now());
        self.gather_signals(at_most);
        if self.gather.0 > 0 && at_most >= self.gather && (1..self.several).contains(&self.readable.len()) {
            self.poll.nap(self.gather);
            self.gather_signals(Nanos::ZERO);
        }
    }
}

impl Io for Epoll {
    fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        if let Err(e) = self.begin_dial(k, from, to) {
            self.begin(k, None, 0);
            self.report(k, What::failed(&e));
        }
    }

    fn listen(&mut self, at: SocketAddr) -> io::Result<SocketAddr> {
        let (listener, bound) = socket::listener(at, SocketFlags::NONBLOCK)?;
        self.listener = Some(listener);
        Ok(bound)
    }

    fn accept(&mut self, k: Key) {
        if self.listener.is_none() {
            self.begin(k, None, 0);
            return self.report(k, What::Gone(Gone::Other(libc::EINVAL)));
        }
        self.begin(k, None, WAITING);
        self.waiting.push_back(k);
    }

    fn unlisten(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        if std::mem::take(&mut self.listening) {
            // Others may hold the same listener: it would continue to signal here.
            let _ = epoll::delete(self.poll.fd(), &listener);
        }
        while let Some(k) = self.waiting.pop_front() {
            self.place(k).flags &= !WAITING;
            self.report(k, What::Gone(Gone::Other(libc::EINVAL)));
        }
    }

    /// Nothing to do: what is dialled or accepted is registered already.
    fn park(&mut self, _: Key) {}

    fn out(&mut self, kept: usize, room: usize) -> &mut [u8] {
        let len = kept + room;
        assert!(len <= OUT_BYTES, "a send larger than the output buffer: {len}");
        &mut self.out[..len]
    }

    fn send_out(&mut self, k: Key, len: usize) {
        let out = std::mem::take(&mut self.out);
        self.send(k, &out[..len]);
        self.out = out;
    }

    fn send_static(&mut self, k: Key, bytes: &'static [u8]) {
        self.send(k, bytes);
    }

    fn is_write_blocked(&self, k: Key) -> bool {
        !self.blocked.is_empty() && self.blocked.contains_key(&k)
    }

    fn blocked(&self) -> usize {
        self.blocked.len()
    }

    fn hold(&mut self, k: Key) {
        if self.is_current(k) {
            self.place(k).flags |= HELD;
            let why = self.take_ended(k);
            why.into_iter().for_each(|why| self.report(k, What::Gone(why)));
        }
    }

    fn resume(&mut self, k: Key) {
        if self.is_current(k) && self.place(k).flags & HELD != 0 {
            self.place(k).flags &= !HELD;
            // Signals may have gone by.
            self.list(k, true);
        }
    }

    fn close(&mut self, k: Key, how: Close) {
        // A place that was taken and never used.
        if !self.is_current(k) {
            return;
        }
        let next = Place { socket: None, turn: k.turn.wrapping_add(1), flags: 0 };
        let Place { socket, flags, .. } = std::mem::replace(self.place(k), next);
        if flags & WAITING != 0 {
            self.waiting.retain(|waiting| *waiting != k);
        }
        if !self.blocked.is_empty() {
            self.blocked.remove(&k);
        }
        self.take_ended(k);
        if let Some(socket) = socket {
            if how == Close::Reset {
                let _ = sockopt::set_socket_linger(&socket, Some(std::time::Duration::ZERO));
            }
            // Closing takes the registration back too. A descriptor is free again: accept at once.
            self.accept_paused_until = Nanos::ZERO;
        }
    }

    fn coalesce(&mut self, by: Nanos) {
        self.gather = by.min(Nanos::from_micros(50));
    }

    fn wait(&mut self, until: Nanos, scratch: &mut Scratch) -> Nanos {
        self.update_listener();
        // What was reported after the loop had taken all is still here.
        if self.readable.is_empty() && self.done.is_empty() {
            self.sleep(until);
        } else {
            // Not even a flood may starve the others.
            self.gather_signals(Nanos::ZERO);
        }
        self.receive(scratch);
        self.clock.now()
    }

    fn next(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }
}

//! [`Io`] over epoll, for machines and containers that do not allow io_uring.
//!
//! Sockets are non-blocking; each is registered once, edge-triggered, for its whole life. Input is received into the thread's scratch
//! memory, and a second time only if the first receive filled a region or an end was signalled. A send is tried immediately; bytes that
//! the socket does not take are buffered off the hot path and sent when the kernel reports that it is writable. Only the listener is
//! level-triggered, and it is registered only while an accept is pending.
//!
//! Each socket is an ordinary descriptor, so RLIMIT_NOFILE limits each shard, which has its own file table
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

/// Descriptors reserved for files that are not connections: the standard streams, the epoll instance, the listener, and a few short-lived
/// ones.
const RESERVE: u32 = 16;
/// Pause after an accept that found no descriptor or no memory, unless a connection is closed earlier.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(20);

/// Events of an accepted connection, for its whole life.
const READ: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);
/// Events of a dialled connection, and of one that was write-blocked once. OUT costs nothing until the socket's buffer has been full.
const READ_AND_WRITE: EventFlags = READ.union(EventFlags::OUT);
const OVER_SIGNALS: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);
/// The registration data of the listener. The data of a connection has no bit above its turn.
const LISTENER: u64 = u64::MAX;

/// Number of connections for which a file table with `limit` entries has room.
pub fn room(limit: u32) -> u32 {
    limit.saturating_sub(RESERVE).max(1)
}

/// Parameters of an [`Epoll`].
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum number of connections.
    pub connections: u32,
    /// Whether to sleep in whole milliseconds, as before Linux 5.11. For tests.
    pub by_millis: bool,
}

/// The state of a slot: all that an idle connection costs here.
#[derive(Debug)]
struct Place {
    socket: Option<OwnedFd>,
    turn: u8,
    flags: u8,
}

const _: () = assert!(size_of::<Place>() <= 12, "the idle record is what a million connections cost");

/// Flag: the dial is pending.
const OPENING: u8 = 1;
/// Flag: the slot waits for a peer.
const WAITING: u8 = 2;
/// Flag: the connection is in `readable`.
const LISTED: u8 = 4;
/// Flag: no further event will report the remaining input, so it must be read until there is none.
const OVER: u8 = 8;
/// Flag: reading is suspended.
const HELD: u8 = 16;
/// Flag: the socket is registered for writing too.
const WRITES: u8 = 32;
/// Flag: the connection has filled a region, and is read in larger pieces.
const BULK: u8 = 64;

/// The epoll instance and the sockets of one thread.
pub struct Epoll {
    clock: Clock,
    poll: Poll,
    places: Vec<Place>,
    listener: Option<OwnedFd>,
    /// Whether the listener is registered.
    listening: bool,
    /// Slots that wait for a peer, first come, first served.
    waiting: VecDeque<Key>,
    /// No accept before this time, because descriptors or memory are short; zero if accepting is not paused.
    accept_paused_until: Nanos,
    readable: VecDeque<Key>,
    blocked: HashMap<Key, BlockedSend>,
    /// Why connections ended whose error was consumed by another call; reported once their input has been read.
    ended: HashMap<Key, Gone>,
    done: VecDeque<Done>,
    out: Box<[u8]>,
    gather: Nanos,
    max_segment: Option<u16>,
    /// With this many readable connections, the loop does not wait for more.
    several: usize,
}

fn data(k: Key) -> u64 {
    u64::from(k.turn) << 32 | u64::from(k.index)
}

fn key(data: u64) -> Key {
    Key { index: data as u32, turn: (data >> 32) as u8 }
}

impl Epoll {
    /// Creates an instance without connections; memory is reserved, but touched only as they open.
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
            // Half of the connections, so that a small number of connections does not wait for a large batch.
            several: (connections / 2).clamp(1, REGIONS / 2),
        })
    }

    /// Limits the segments that either end of a dialled connection sends, in bytes; `None`: no limit.
    #[must_use]
    pub fn with_max_segment(self, max_segment: Option<u16>) -> Epoll {
        Epoll { max_segment, ..self }
    }

    /// The listener, for another thread that is to accept from it too.
    pub fn shared_listener(&self) -> Option<SharedListener> {
        self.listener.as_ref().map(SharedListener::of)
    }

    /// Accepts from another thread's listener from now on.
    pub fn share(&mut self, listener: OwnedFd) {
        self.listener = Some(listener);
    }

    fn place(&mut self, k: Key) -> &mut Place {
        &mut self.places[k.index as usize]
    }

    /// Whether the connection `k` has not been closed yet.
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

    /// Handles one batch of events.
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

    /// Adds `k` to the connections to receive from.
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
            // A held connection is listed again when it is resumed.
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

    /// `room`: the number of bytes that might have been received.
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

    /// A call reports that the connection has ended. The input is read before that is reported, unless reading is suspended.
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

    /// Sleeps until something happens; in closed loop a little longer, to gather more events.
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
            // Other threads may hold the same listener: it would continue to signal here.
            let _ = epoll::delete(self.poll.fd(), &listener);
        }
        while let Some(k) = self.waiting.pop_front() {
            self.place(k).flags &= !WAITING;
            self.report(k, What::Gone(Gone::Other(libc::EINVAL)));
        }
    }

    /// Nothing to do: the socket is already registered.
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
            // Events may have been missed while the connection was held.
            self.list(k, true);
        }
    }

    fn close(&mut self, k: Key, how: Close) {
        // Nothing to close for a slot that was never used.
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
            // Closing the socket also removes its registration. A descriptor is free again, so accepting can continue at once.
            self.accept_paused_until = Nanos::ZERO;
        }
    }

    fn coalesce(&mut self, by: Nanos) {
        self.gather = by.min(Nanos::from_micros(50));
    }

    fn wait(&mut self, until: Nanos, scratch: &mut Scratch) -> Nanos {
        self.update_listener();
        // Completions that were reported after the loop had taken all are still here.
        if self.readable.is_empty() && self.done.is_empty() {
            self.sleep(until);
        } else {
            // Polls without sleeping, so that a flood of input does not starve other connections.
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

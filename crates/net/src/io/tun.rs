//! [`Io`] over a TUN device: TCP runs in this process, so the kernel has no socket for the near end of a connection.
//!
//! Each shard has its own device, to which its networks are routed. The kernel treats packets that are written to the device as received
//! from a network: they reach a server on this machine, or are forwarded. Replies are read from the device. The state machine is
//! [`tcp::Tcp`]; this module adds the device, the system calls and the batches.

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tcp::{Event, Tcp};
use units::Nanos;

use self::{guard::Guard, port::Port};
use super::{Close, Done, Gone, Io, MOST_REGIONS, OUT_BYTES, REGION, REGIONS, Scratch, What};
use crate::slab::Key;

mod device;
mod guard;
mod mtu;
mod port;
mod route;
mod watch;

pub use device::{Device, Incoming, TunDevice};
pub use mtu::mtu_to;
pub use port::Counts;
pub use tcp::Stuck;
pub use watch::Watch;

/// Maximum packets read in one turn: as many as connections that are read with sockets.
const PACKETS: usize = REGIONS;
/// The largest packet, with the header that a device puts before it, in bytes.
const ROOM: usize = 64 + 65_535;
/// After this many bytes of one connection in a turn, the turn ends, because the program may want to hold the connection. Together with
/// one more packet it is what a receive from a socket takes.
const MOST: u32 = (MOST_REGIONS * REGION - ROOM) as u32;
/// Number of byte counters. A connection is counted by its index modulo this; if two share a counter, a turn may end early.
const COUNTED: usize = 256;
/// How often the [`Watch`] is updated, and how many connections are checked at most, which takes some ten microseconds.
const WATCHED: Nanos = Nanos::from_millis(100);
const MOST_WATCHED: usize = 10_000;
/// Input begins at a cache line boundary.
const ALIGN: usize = 64;
/// How long an expired timer waits for packets that are still in the device. If the device never empties, losses are detected this much
/// later.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// Time limit for closing the connections when the shard is dropped. With sockets, the kernel would complete the closes.
const PARTING: Nanos = Nanos::from_secs(1);
/// Maximum closes in progress at a time meanwhile: fewer than may linger in the state machine, so that none is cut short.
const MOST_PARTING: usize = 32_768;

/// Parameters of a [`Tun`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum number of connections.
    pub connections: u32,
    /// The networks routed to the device: connections may come only from these.
    pub networks: Vec<(IpAddr, u8)>,
    /// Connections may go only to these addresses.
    pub destinations: Vec<SocketAddr>,
    /// MTU of the path to the destinations, in bytes; see [`mtu_to`].
    pub mtu: u16,
    /// The secret for initial sequence numbers (RFC 6528).
    pub secret: [u64; 2],
    /// The part of the shard's state that other threads may read.
    pub watch: Arc<Watch>,
}

/// The device and the connections of one thread.
pub struct Tun<D: Device = TunDevice> {
    tcp: Tcp,
    port: Port<D>,
    /// The turn of each slot's connection, as in its key.
    turns: Vec<u8>,
    done: VecDeque<Done>,
    watch: Arc<Watch>,
    /// When the watch is updated next.
    watched_at: Nanos,
    /// Bytes reported in this turn, per counter.
    reported: [u32; COUNTED],
    /// Whether a connection has reached [`MOST`] bytes in this turn.
    is_enough: bool,
    out: Box<[u8]>,
    gather: Nanos,
    /// With this many packets, the loop does not wait for more.
    several: usize,
}

impl Tun {
    /// The name of the device, as `ip link` shows it.
    pub fn name(&self) -> &str {
        self.port.device.name()
    }
}

impl<D: Device> Tun<D> {
    /// Creates a transport over a device; memory is reserved, but touched only as connections open.
    pub fn new(device: D, settings: Settings) -> Tun<D> {
        let Settings { connections, networks, destinations, mtu, secret, watch } = settings;
        let guard = Guard::new(&networks, &destinations);
        let tcp = tcp::Settings { places: connections, secret, mtu, ..tcp::Settings::default() };
        Tun {
            tcp: Tcp::new(tcp),
            port: Port { device, guard, counts: Counts::default() },
            turns: Vec::with_capacity(connections as usize),
            done: VecDeque::with_capacity(2 * PACKETS),
            watch,
            watched_at: Nanos::ZERO,
            reported: [0; COUNTED],
            is_enough: false,
            out: vec![0; OUT_BYTES].into_boxed_slice(),
            gather: Nanos::ZERO,
            several: (connections as usize / 2).clamp(1, PACKETS / 2),
        }
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.port.device
    }

    /// Allows connections to another address.
    pub fn add_destination(&mut self, to: SocketAddr) {
        self.port.guard.add(to);
    }

    /// Packet counters.
    pub fn counts(&self) -> Counts {
        self.port.counts
    }

    /// Connection counters.
    pub fn tcp_counts(&self) -> &tcp::Counts {
        self.tcp.counts()
    }

    /// Whether the connection `k` has not been closed yet.
    fn is_current(&self, k: Key) -> bool {
        self.turns.get(k.index as usize) == Some(&k.turn)
    }

    fn report(&mut self, key: Key, what: What) {
        self.done.push_back(Done { key, what });
    }

    /// Reports an event whose bytes, if any, are in the scratch after `begin`. Returns where they end.
    fn take(&mut self, event: Event, begin: usize) -> usize {
        let mut end = begin;
        let mut bytes = |at: u32, len: u32| {
            end = begin + (at + len) as usize;
            let reported = &mut self.reported[event.place as usize % COUNTED];
            *reported += len;
            self.is_enough |= *reported > MOST;
            What::Bytes { at: begin as u32 + at, len }
        };
        let what = match event.what {
            tcp::What::Opened => What::Dialled,
            tcp::What::Bytes { at, len } => bytes(at, len),
            tcp::What::Kept { len } => bytes(0, len),
            tcp::What::Drained => What::Drained,
            tcp::What::Ended => What::Gone(Gone::Ended),
            tcp::What::Gone(why) => What::Gone(gone(why)),
        };
        let key = Key { index: event.place, turn: self.turns[event.place as usize] };
        self.done.push_back(Done { key, what });
        end
    }

    /// Reports pending events that did not come with a packet, as long as there is room from `free` on. Returns where the free room begins
    /// then.
    fn take_events(&mut self, scratch: &mut Scratch, mut free: usize) -> usize {
        while !self.is_enough
            && let room = scratch.from(free)
            && room.len() >= ROOM
            && let Some(event) = self.tcp.next_event(&mut room[..ROOM])
        {
            free = self.take(event, free).next_multiple_of(ALIGN);
        }
        free
    }

    /// Reads up to `most` packets. Returns their number, and where the free room begins then.
    fn receive(&mut self, scratch: &mut Scratch, mut free: usize, most: usize, now: Nanos) -> (usize, usize) {
        for nth in 0..most {
            if self.is_enough {
                return (nth, free);
            }
            let Some(room) = scratch.from(free).get_mut(..ROOM) else { return (nth, free) };
            let Some(packet) = self.port.device.read(room) else { return (nth, free) };
            self.port.counts.read += 1;
            let Incoming { at, end, is_trusted } = packet;
            if let Some(event) = self.tcp.receive(&room[at..end], is_trusted, now, &mut self.port) {
                free = self.take(event, free + at).next_multiple_of(ALIGN);
            }
            free = self.take_events(scratch, free);
        }
        (most, free)
    }

    fn sleep(&mut self, until: Nanos) {
        self.port.device.wait(until.min(self.tcp.wakes_at()));
    }

    /// Handles timers that have expired by `now`. A packet that would have stopped a timer may still be in the device, so timers wait until
    /// the device is empty (`is_drained`), but at most for [`PATIENCE`].
    fn expire(&mut self, is_drained: bool, now: Nanos) {
        let wakes_at = self.tcp.wakes_at();
        if wakes_at <= now && (is_drained || now.since(wakes_at) >= PATIENCE) {
            self.tcp.expire(now, &mut self.port);
        }
    }

    /// Sends the acknowledgements that are owed, and updates the watch when it is due. Returns the time.
    fn tick(&mut self) -> Nanos {
        let now = self.port.device.now();
        self.tcp.flush(now, &mut self.port);
        if now >= self.watched_at {
            self.watched_at = now + WATCHED;
            let stuck = self.tcp.stuck(MOST_WATCHED);
            let came = if stuck.unacknowledged > 0 { self.tcp.heard_open() } else { self.tcp.heard() };
            self.watch.note(stuck, came);
        }
        now
    }

    /// Waits for packets, at most until `until`, and handles them.
    fn turn(&mut self, until: Nanos, scratch: &mut Scratch) -> Nanos {
        let begun = self.tick();
        self.reported.fill(0);
        self.is_enough = false;
        let free = self.take_events(scratch, 0);
        if self.done.is_empty() {
            self.sleep(until);
        }
        let now = self.port.device.now();
        let (count, free) = self.receive(scratch, free, PACKETS, now);
        self.expire(count < PACKETS && !self.is_enough, now);
        let free = self.take_events(scratch, free);
        if self.gather.0 > 0 && until.since(begun) >= self.gather && (1..self.several).contains(&count) {
            self.port.device.nap(self.gather);
            let now = self.port.device.now();
            self.receive(scratch, free, PACKETS - count, now);
            return now;
        }
        now
    }

    fn end(&mut self, place: u32, how: tcp::Close) {
        self.tcp.close(place, how, self.port.device.now(), &mut self.port);
    }
}

fn gone(why: tcp::Why) -> Gone {
    match why {
        tcp::Why::Refused => Gone::Refused,
        tcp::Why::Reset => Gone::Reset,
        tcp::Why::TimedOut => Gone::TimedOut,
        tcp::Why::Unreachable(errno) => Gone::from_errno(errno),
    }
}

impl<D: Device> Io for Tun<D> {
    fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        let index = k.index as usize;
        if self.turns.len() <= index {
            self.turns.resize(index + 1, 0);
        }
        self.turns[index] = k.turn;
        if !self.port.guard.allows(from, to) {
            return self.report(k, What::Gone(Gone::Denied(libc::EPERM)));
        }
        let now = self.port.device.now();
        match self.tcp.connect(k.index, from, to, now, &mut self.port) {
            Ok(()) => {}
            Err(tcp::Refusal::InUse) => self.report(k, What::Gone(Gone::AddressInUse(libc::EADDRNOTAVAIL))),
            Err(tcp::Refusal::Address) => self.report(k, What::Gone(Gone::Other(libc::EINVAL))),
        }
    }

    /// Not supported: servers use kernel sockets.
    fn listen(&mut self, _: SocketAddr) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn accept(&mut self, k: Key) {
        self.report(k, What::Gone(Gone::Other(libc::EINVAL)));
    }

    fn unlisten(&mut self) {}

    /// Nothing to do: packets are always read.
    fn park(&mut self, _: Key) {}

    fn out(&mut self, kept: usize, room: usize) -> &mut [u8] {
        let len = kept + room;
        assert!(len <= OUT_BYTES, "a send larger than the output buffer: {len}");
        &mut self.out[..len]
    }

    fn send_out(&mut self, k: Key, len: usize) {
        if self.is_current(k) {
            self.tcp.send(k.index, &self.out[..len], self.port.device.now(), &mut self.port);
        }
    }

    fn send_static(&mut self, k: Key, bytes: &'static [u8]) {
        if self.is_current(k) {
            self.tcp.send_static(k.index, bytes, self.port.device.now(), &mut self.port);
        }
    }

    fn is_write_blocked(&self, k: Key) -> bool {
        self.tcp.blocked() > 0 && self.is_current(k) && self.tcp.is_blocked(k.index)
    }

    fn blocked(&self) -> usize {
        self.tcp.blocked()
    }

    fn hold(&mut self, k: Key) {
        if self.is_current(k) {
            self.tcp.hold(k.index);
        }
    }

    fn resume(&mut self, k: Key) {
        if self.is_current(k) {
            self.tcp.resume(k.index);
        }
    }

    fn close(&mut self, k: Key, how: Close) {
        // Nothing to close for a slot that was never used.
        if !self.is_current(k) {
            return;
        }
        let how = match how {
            Close::Graceful => tcp::Close::Graceful,
            Close::Reset => tcp::Close::Reset,
        };
        self.turns[k.index as usize] = k.turn.wrapping_add(1);
        self.end(k.index, how);
    }

    fn coalesce(&mut self, by: Nanos) {
        self.gather = by.min(Nanos::from_micros(50));
    }

    fn wait(&mut self, until: Nanos, scratch: &mut Scratch) -> Nanos {
        let now = self.turn(until, scratch);
        self.watch.count(self.tcp.counts());
        now
    }

    fn next(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn now(&self) -> Nanos {
        self.port.device.now()
    }
}

impl<D: Device> Drop for Tun<D> {
    /// Closes the open connections, as the kernel does with the sockets of a process that exits. A connection for which no time remains is
    /// reset, because the peer would never learn of its end otherwise.
    fn drop(&mut self) {
        let mut scratch = Scratch::new(false);
        let mut open = 0..self.turns.len() as u32;
        let mut now = self.port.device.now();
        let until = now + PARTING;
        while now < until {
            // A peer acknowledges the FIN and sends its own: two packets to read per connection.
            let room = MOST_PARTING.saturating_sub(self.tcp.closing()).min(PACKETS / 2);
            for place in open.by_ref().take(room) {
                self.end(place, tcp::Close::Graceful);
            }
            if open.is_empty() && self.tcp.closing() == 0 {
                break;
            }
            let is_waiting = room == 0 || open.is_empty();
            self.turn(if is_waiting { until } else { now }, &mut scratch);
            self.done.clear();
            now = self.port.device.now();
        }
        for place in open {
            self.end(place, tcp::Close::Reset);
        }
        // Acknowledges the FINs of the peers that arrived last.
        self.tick();
    }
}

#[cfg(test)]
mod tests;

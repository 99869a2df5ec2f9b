//! [`Tcp`], the TCP connections of a shard: sending, receiving, events and timers.
//!
//! Each of the submodules handles one part of RFC 9293: handshake, arriving segments, acknowledgements, data, output, timeouts, closing and
//! ICMP. Events wait in a list until [`Tcp::next_event`] takes them, and acknowledgements until [`Tcp::flush`], so that data can carry
//! them.

use std::collections::VecDeque;

use units::Nanos;

use crate::connection::{DRAINED, ENDED, HELD, IN_ACK_LIST, IN_EVENT_LIST, OPENED, OWES_ACK, State};
use crate::event::{Event, What, Why};
use crate::flight::Flights;
use crate::link::Link;
use crate::packet::{self, Packet};
use crate::send_queue::SendQueue;
use crate::table::Table;

mod acknowledgement;
mod arrival;
mod ending;
mod handshake;
mod icmp;
mod output;
mod stuck;
mod text;
mod timeout;

pub use stuck::Stuck;

/// Limits and secrets of a [`Tcp`].
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum number of connections; places are numbered below it.
    pub places: u32,
    /// The key for initial sequence numbers (RFC 6528) and for the index.
    pub secret: [u64; 2],
    /// Maximum length of an IP packet on the link, in bytes.
    pub mtu: u16,
    /// Maximum number of lingering connections: closed here, but in FIN-WAIT, CLOSING, LAST-ACK or TIME-WAIT. Beyond it, the oldest in
    /// TIME-WAIT or FIN-WAIT-2 is dropped; if there is none, a close becomes a reset.
    pub lingering: u32,
    /// The receive window, in bytes: what a peer may send before it is read.
    pub window: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { places: 1024, secret: [0, 0], mtu: 1500, lingering: 65_536, window: 1024 * 1024 }
    }
}

/// How a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// FIN after all output.
    Graceful,
    /// Immediate RST.
    Reset,
}

/// Why a connection could not be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A connection with the same addresses and ports is open, closing or in TIME-WAIT.
    InUse,
    /// One address is IPv4 and the other IPv6, a port is 0, or there are more than 65,536 destinations.
    Address,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Packets passed to [`Tcp::receive`].
    pub packets_in: u64,
    /// Packets handed to the link.
    pub packets_out: u64,
    /// Retransmitted packets with unacknowledged data, SYN or FIN.
    pub retransmitted: u64,
    /// Retransmitted SYNs, which are also in `retransmitted`.
    pub syns_again: u64,
    /// Segments that arrived out of order.
    pub out_of_order: u64,
    /// Segments without anything new, or outside the window.
    pub duplicates: u64,
    /// Packets that are malformed, or of another protocol.
    pub malformed: u64,
    /// Packets with a wrong checksum.
    pub wrong_checksum: u64,
    /// Segments that belong to no connection here.
    pub not_ours: u64,
    /// Challenge ACKs (RFC 5961) sent.
    pub challenges: u64,
    /// Challenge ACKs not sent, because of the rate limit.
    pub challenges_withheld: u64,
    /// Connections that were ended early because too many lingered.
    pub cut_short: u64,
    /// ICMP errors about segments in flight.
    pub icmp_errors: u64,
}

/// Rate limit of challenge ACKs and responses to unexpected acknowledgements, per second (RFC 5961, section 7): enough for chance events,
/// too few for a loop between two ends that disagree.
const CHALLENGES_PER_SECOND: u32 = 1000;
/// Maximum acknowledgements that wait for the end of the turn; further ones are sent immediately.
const MOST_OWED: usize = 8192;

/// The connections of one shard, all dialled from here.
pub struct Tcp {
    settings: Settings,
    /// The shift of the receive window: it is advertised in units of two to this power.
    shift: u8,
    table: Table,
    flights: Flights,
    /// Connections that may owe an acknowledgement.
    owing: Vec<u32>,
    /// Places that may have events.
    events: VecDeque<u32>,
    /// Number of blocked connections.
    blocked: usize,
    /// The current second of the rate limit, and the number of challenges sent in it.
    challenges: (u64, u32),
    counts: Counts,
    heard: Nanos,
    heard_open: Nanos,
}

impl Tcp {
    /// Creates a state machine without connections.
    pub fn new(settings: Settings) -> Tcp {
        let shift = (0..14).find(|shift| settings.window >> shift <= u32::from(u16::MAX)).unwrap_or(14);
        let [k0, k1] = settings.secret;
        let key = [handshake::keyed(k0, k1, b"index 0"), handshake::keyed(k0, k1, b"index 1")];
        Tcp {
            settings,
            shift,
            table: Table::new(settings.places, settings.lingering, key, settings.mtu),
            flights: Flights::new(),
            owing: Vec::with_capacity(MOST_OWED),
            events: VecDeque::new(),
            blocked: 0,
            challenges: (0, 0),
            counts: Counts::default(),
            heard: Nanos::ZERO,
            heard_open: Nanos::ZERO,
        }
    }

    /// Sends `bytes`. Bytes that the peer's window and the congestion window do not allow now are queued, and [`What::Drained`] reports
    /// when all have been sent. Does nothing on a connection that cannot send.
    pub fn send(&mut self, place: u32, bytes: &[u8], now: Nanos, link: &mut impl Link) {
        self.queue(place, |queue| queue.push(bytes), now, link);
    }

    /// Sends static bytes, without a copy; otherwise like [`Tcp::send`].
    pub fn send_static(&mut self, place: u32, bytes: &'static [u8], now: Nanos, link: &mut impl Link) {
        self.queue(place, |queue| queue.push_static(bytes), now, link);
    }

    fn queue(&mut self, place: u32, push: impl FnOnce(&mut SendQueue), now: Nanos, link: &mut impl Link) {
        let state = self.table.get(place).state();
        if !state.sends() && !matches!(state, State::SynSent | State::SynReceived) {
            return;
        }
        let flight = self.flight(place);
        push(&mut self.flights.get_mut(flight).out);
        if state.sends() {
            self.transmit(place, false, now, link);
        }
        self.note_blocked(place);
        self.settle(place);
    }

    /// Whether bytes of an earlier send have not been sent yet.
    pub fn is_blocked(&self, place: u32) -> bool {
        self.table.get(place).flight().is_some_and(|flight| self.flights.get(flight).is_blocked)
    }

    /// Number of blocked connections.
    pub fn blocked(&self) -> usize {
        self.blocked
    }

    /// Stops reporting data of `place`: received data is kept, and the window closes.
    pub fn hold(&mut self, place: u32) {
        if self.table.get(place).state() != State::Free {
            self.table.get_mut(place).set(HELD);
        }
    }

    /// Reports data again; [`Tcp::next_event`] returns kept data first. The window opens with the next [`Tcp::flush`].
    pub fn resume(&mut self, place: u32) {
        let connection = self.table.get(place);
        if !connection.has(HELD) {
            return;
        }
        let waits = self.ready(place) > 0 || connection.has(ENDED);
        self.table.get_mut(place).clear(HELD);
        if waits {
            self.list_event(place, 0);
        }
    }

    /// Handles one IP packet; the kernel may have joined several segments into one packet of up to 64 KiB. `trusted`: its checksums need no
    /// verification. Returns the event whose bytes are in the packet itself, if any. [`Tcp::next_event`] returns the other events, and must
    /// be called until it returns `None` before the next packet.
    pub fn receive(
        &mut self,
        packet: &[u8],
        trusted: bool,
        now: Nanos,
        link: &mut impl Link,
    ) -> Option<Event> {
        self.counts.packets_in += 1;
        match packet::read(packet, trusted) {
            Packet::Segment(segment) => match self.table.find(&segment.tuple) {
                Some(id) => {
                    self.hear(id, now);
                    self.arrived(id, &segment, packet, now, link)
                }
                None => {
                    self.stray(&segment, link);
                    None
                }
            },
            Packet::Error(quote) => {
                self.icmp_error(&quote, now, link);
                None
            }
            Packet::Malformed => {
                self.counts.malformed += 1;
                None
            }
            Packet::WrongChecksum => {
                self.counts.wrong_checksum += 1;
                None
            }
        }
    }

    /// The next event that [`Tcp::receive`] did not return, caused by packets or by [`Tcp::expire`]. Kept data is copied to `buffer`, which
    /// must not be empty; data that does not fit follows in further events.
    pub fn next_event(&mut self, buffer: &mut [u8]) -> Option<Event> {
        while let Some(&place) = self.events.front() {
            if let Some(what) = self.event_of(place, buffer) {
                return Some(Event { place, what });
            }
            self.events.pop_front();
        }
        None
    }

    /// The next event of `place`; `None` if it has no more, and is no longer in the event list.
    fn event_of(&mut self, place: u32, buffer: &mut [u8]) -> Option<What> {
        let connection = *self.table.get(place);
        if !connection.has(IN_EVENT_LIST) {
            return None;
        }
        let mut take = |flag| {
            let has = connection.has(flag);
            if has {
                self.table.get_mut(place).clear(flag);
            }
            has
        };
        if take(OPENED) {
            return Some(What::Opened);
        }
        if connection.state() == State::Dead {
            self.table.remove(place);
            return Some(What::Gone(connection.why()));
        }
        if take(DRAINED) {
            return Some(What::Drained);
        }
        if !connection.has(HELD) {
            if self.ready(place) > 0 {
                return Some(What::Kept { len: self.read(place, buffer) });
            }
            if connection.has(ENDED) {
                self.table.get_mut(place).clear(ENDED);
                return Some(What::Ended);
            }
        }
        self.table.get_mut(place).clear(IN_EVENT_LIST);
        None
    }

    /// Sets `flag`, and adds `place` to the event list.
    fn list_event(&mut self, place: u32, flag: u8) {
        if !self.table.is_place(place) {
            return;
        }
        let connection = self.table.get_mut(place);
        connection.set(flag);
        if !connection.has(IN_EVENT_LIST) {
            connection.set(IN_EVENT_LIST);
            self.events.push_back(place);
        }
    }

    /// Ends a turn: sends the acknowledgements that no data has carried.
    pub fn flush(&mut self, _now: Nanos, link: &mut impl Link) {
        let mut owing = std::mem::take(&mut self.owing);
        for id in owing.drain(..) {
            let connection = self.table.get_mut(id);
            connection.clear(IN_ACK_LIST);
            if connection.has(OWES_ACK) && connection.state().is_synchronized() {
                self.acknowledge_now(id, link);
            }
        }
        self.owing = owing;
    }

    /// Schedules an acknowledgement for the end of the turn.
    fn owe(&mut self, id: u32, link: &mut impl Link) {
        if self.owing.len() >= MOST_OWED {
            return self.acknowledge_now(id, link);
        }
        let connection = self.table.get_mut(id);
        connection.set(OWES_ACK);
        if !connection.has(IN_ACK_LIST) {
            connection.set(IN_ACK_LIST);
            self.owing.push(id);
        }
    }

    /// When [`Tcp::expire`] must be called next.
    pub fn wakes_at(&self) -> Nanos {
        let wait_is_over = self.table.waits.front().map_or(Nanos::NEVER, |(at, _)| *at);
        self.flights.wakes_at().min(wait_is_over)
    }

    /// The counters since the start.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// When the last segment of a program's connection arrived. Other packets, such as those that a kernel sends to each new device, do not
    /// count, since they show nothing about a peer.
    pub fn heard(&self) -> Nanos {
        self.heard
    }

    /// When the last segment of an open connection arrived. Handshakes do not count, except for the first segment of all.
    pub fn heard_open(&self) -> Nanos {
        self.heard_open
    }

    /// Records that a segment of this connection has arrived.
    fn hear(&mut self, id: u32, now: Nanos) {
        if !self.table.is_place(id) {
            return;
        }
        self.heard = now;
        if self.table.get(id).state().sends() || self.heard_open == Nanos::ZERO {
            self.heard_open = now;
        }
    }

    /// Number of connections with something in flight: a handshake, or data that is not acknowledged, not sent or not read.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Number of connections that were closed here and have not ended yet.
    pub fn lingering(&self) -> usize {
        self.table.lingering()
    }

    /// Number of lingering connections that still exchange their end: all except those in TIME-WAIT.
    pub fn closing(&self) -> usize {
        self.table.lingering() - self.table.in_time_wait
    }

    /// The flight of a connection; begins one if there is none.
    fn flight(&mut self, id: u32) -> u32 {
        let connection = *self.table.get(id);
        if let Some(flight) = connection.flight() {
            return flight;
        }
        let mss = u32::from(self.table.paths.get(connection.path).mss);
        let number = self.flights.begin(id, connection.snd_nxt, mss);
        let flight = self.flights.get_mut(number);
        flight.window_seq = connection.rcv_nxt;
        flight.most_window = connection.peer_window();
        self.table.get_mut(id).set_flight(Some(number));
        self.flights.get_mut(number).advertised = connection.rcv_nxt.wrapping_add(self.window(id));
        number
    }

    /// Ends the flight of a connection if nothing is in flight any more.
    fn settle(&mut self, id: u32) {
        let connection = *self.table.get(id);
        let Some(number) = connection.flight() else { return };
        let flight = self.flights.get(number);
        let over = flight.una == connection.snd_nxt
            && flight.out.len() == 0
            && !flight.fin
            && flight.inbound.is_empty()
            && connection.state().is_synchronized();
        if over {
            self.end_flight(id);
        }
    }

    fn end_flight(&mut self, id: u32) {
        if let Some(number) = self.table.get(id).flight() {
            self.blocked -= usize::from(self.flights.get(number).is_blocked);
            self.flights.end(number);
            self.table.get_mut(id).set_flight(None);
        }
    }

    /// Updates whether `id` is blocked, and reports `Drained` when it becomes unblocked.
    fn note_blocked(&mut self, id: u32) {
        let connection = *self.table.get(id);
        let Some(number) = connection.flight() else { return };
        let flight = self.flights.get_mut(number);
        let is_blocked = crate::seq::before(connection.snd_nxt, flight.queue_end());
        if is_blocked == flight.is_blocked {
            return;
        }
        flight.is_blocked = is_blocked;
        if is_blocked {
            self.blocked += 1;
        } else {
            self.blocked -= 1;
            self.list_event(id, DRAINED);
        }
    }

    /// Ends a connection: a place reports why, a lingering one is removed.
    fn gone(&mut self, id: u32, why: Why) {
        self.end_flight(id);
        if self.table.is_place(id) {
            self.table.unindex(id);
            self.table.get_mut(id).die(why);
            self.list_event(id, 0);
        } else {
            self.table.remove(id);
        }
    }
}

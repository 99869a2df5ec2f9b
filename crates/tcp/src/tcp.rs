//! The connections of a shard.

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

/// What the connections of a shard may use.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Most connections at a time, each at a place below this number.
    pub places: u32,
    /// Keys initial sequence numbers (RFC 6528) and the index.
    pub secret: [u64; 2],
    /// Most bytes of an IP packet on the link.
    pub mtu: u16,
    /// Most connections that were closed here and whose end is still exchanged or waited for (FIN-WAIT, LAST-ACK, TIME-WAIT). Beyond it
    /// the oldest in TIME-WAIT goes, and where there is none a close becomes a reset.
    pub lingering: u32,
    /// Bytes that a peer may have sent and that were not read: the receive window.
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
    /// FIN after what was sent.
    Graceful,
    /// Immediate RST.
    Reset,
}

/// Why a connection was not dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The two addresses and ports are connected, closing or in TIME-WAIT.
    InUse,
    /// One address is IPv4 and the other IPv6, a port is 0, or there are more than 65,536 destinations.
    Address,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Packets handed over to [`Tcp::receive`].
    pub packets_in: u64,
    /// Packets handed to the link.
    pub packets_out: u64,
    /// Packets with unacknowledged data, SYN or FIN that were sent again.
    pub retransmitted: u64,
    /// Of those, the SYNs.
    pub syns_again: u64,
    /// Segments that came before one that they follow.
    pub out_of_order: u64,
    /// Segments of which all had come before.
    pub duplicates: u64,
    /// Packets that are malformed, or of another protocol.
    pub malformed: u64,
    /// Packets with a wrong checksum.
    pub wrong_checksum: u64,
    /// Segments of no connection here.
    pub not_ours: u64,
    /// Challenge ACKs (RFC 5961) sent.
    pub challenges: u64,
    /// Challenge ACKs not sent because there were too many.
    pub challenges_withheld: u64,
    /// Connections whose end was cut short because too many lingered.
    pub cut_short: u64,
    /// Errors by ICMP about segments under way.
    pub icmp_errors: u64,
}

/// Challenge ACKs and responses to stray acknowledgements, each second (RFC 5961, section 7): enough for what happens by chance, too few
/// for a loop of two ends that disagree.
const CHALLENGES_PER_SECOND: u32 = 1000;
/// Most acknowledgements that wait for the end of the turn; further ones are sent immediately.
const MOST_OWED: usize = 8192;

/// The connections of one shard, all dialled from here.
pub struct Tcp {
    settings: Settings,
    /// Our window is said in units of two to this power.
    shift: u8,
    table: Table,
    flights: Flights,
    /// Connections that may owe an acknowledgement.
    owing: Vec<u32>,
    /// Places that may have events.
    events: VecDeque<u32>,
    /// How many connections are blocked.
    blocked: usize,
    /// The second in which the challenges were sent, and how many.
    challenges: (u64, u32),
    counts: Counts,
    heard: Nanos,
    heard_open: Nanos,
}

impl Tcp {
    /// No connections yet.
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

    /// Sends `bytes`. What the peer's window and the network do not take now is kept, and [`What::Drained`] reports when all of it has
    /// been sent. On a connection that cannot send (any more) nothing happens.
    pub fn send(&mut self, place: u32, bytes: &[u8], now: Nanos, link: &mut impl Link) {
        self.queue(place, |queue| queue.push(bytes), now, link);
    }

    /// The same without a copy.
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

    /// Whether something of an earlier send has not been sent yet.
    pub fn is_blocked(&self, place: u32) -> bool {
        self.table.get(place).flight().is_some_and(|flight| self.flights.get(flight).is_blocked)
    }

    /// How many connections are blocked.
    pub fn blocked(&self) -> usize {
        self.blocked
    }

    /// Reports no more data from `place`: what comes is kept, and the window closes.
    pub fn hold(&mut self, place: u32) {
        if self.table.get(place).state() != State::Free {
            self.table.get_mut(place).set(HELD);
        }
    }

    /// Reports data again, what was kept first, by [`Tcp::next_event`]. The window opens with the next [`Tcp::flush`].
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

    /// Handles one IP packet; the kernel may have joined several segments to one of up to 64 KiB. `trusted`: its checksums need no
    /// verification. Returns what can only be read in the packet itself; [`Tcp::next_event`] has the other events, and must be called
    /// until there is none before the next packet.
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

    /// The next event of what has happened since, in packets or in [`Tcp::expire`]. Kept data is copied to `buffer`, which must not be
    /// empty: as much as fits, the rest follows in further events.
    pub fn next_event(&mut self, buffer: &mut [u8]) -> Option<Event> {
        while let Some(&place) = self.events.front() {
            if let Some(what) = self.event_of(place, buffer) {
                return Some(Event { place, what });
            }
            self.events.pop_front();
        }
        None
    }

    /// The next event of `place`; none: it is in the list of those with events no more.
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

    /// Something is to be reported for `place`, as `flag` says.
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

    /// The end of a turn: sends the acknowledgements that no data has carried.
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

    /// An acknowledgement is to be sent by the end of the turn.
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

    /// When [`Tcp::expire`] is to be called next.
    pub fn wakes_at(&self) -> Nanos {
        let wait_is_over = self.table.waits.front().map_or(Nanos::NEVER, |(at, _)| *at);
        self.flights.wakes_at().min(wait_is_over)
    }

    /// What has happened so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// When the last segment of a place's connection came. Other packets, as a kernel sends them to each new device, tell nothing of a peer.
    pub fn heard(&self) -> Nanos {
        self.heard
    }

    /// The same without handshakes, but for the first: when what was open already was last heard of.
    pub fn heard_open(&self) -> Nanos {
        self.heard_open
    }

    /// A segment of this connection has come.
    fn hear(&mut self, id: u32, now: Nanos) {
        if !self.table.is_place(id) {
            return;
        }
        self.heard = now;
        if self.table.get(id).state().sends() || self.heard_open == Nanos::ZERO {
            self.heard_open = now;
        }
    }

    /// How many connections have something under way: a handshake, or data that is not acknowledged, sent or read.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// How many connections were closed here whose end is still exchanged or waited for.
    pub fn lingering(&self) -> usize {
        self.table.lingering()
    }

    /// How many of those still exchange their end: all but those in TIME-WAIT.
    pub fn closing(&self) -> usize {
        self.table.lingering() - self.table.in_time_wait
    }

    /// The flight of a connection, begun if there is none.
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

    /// Ends the flight of a connection on which nothing is under way.
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

    /// A part of what `place` sends was not sent yet, or all was sent that had not been.
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

    /// The connection is no more: a place reports why, one that lingers is forgotten.
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

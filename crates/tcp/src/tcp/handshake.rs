//! How connections begin: the three-way handshake, and simultaneous open (RFC 9293, sections 3.5 and 3.10.7.3).

use std::hash::Hasher;
use std::net::SocketAddr;

use siphasher::sip::SipHasher24;
use units::Nanos;

use super::{Refusal, Tcp};
use crate::connection::{Connection, OPENED, SACKS, State};
use crate::event::{Event, Why};
use crate::link::Link;
use crate::packet::{ACK, FIN, Header, RST, SYN, Segment, Tuple, bits, is_v4};

/// The clock of initial sequence numbers advances every 4 µs (RFC 6528).
const CLOCK_NS: u64 = 4_000;

/// 64 bits that cannot be predicted without the key (SipHash-2-4).
pub(super) fn keyed(k0: u64, k1: u64, bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(k0, k1);
    hasher.write(bytes);
    hasher.finish()
}

impl Tcp {
    /// Dials: sends a SYN. `place` is taken until [`What::Gone`](crate::What::Gone) is reported for it or it is closed.
    ///
    /// # Errors
    /// Why these addresses cannot be connected; the place stays free.
    ///
    /// # Panics
    /// The place is taken.
    pub fn connect(
        &mut self,
        place: u32,
        from: SocketAddr,
        to: SocketAddr,
        now: Nanos,
        link: &mut impl Link,
    ) -> Result<(), Refusal> {
        assert!(self.table.get(place).state() == State::Free, "a place is connected once: {place}");
        let tuple = Tuple {
            local: bits(from.ip()),
            remote: bits(to.ip()),
            local_port: from.port(),
            remote_port: to.port(),
        };
        if is_v4(tuple.local) != is_v4(tuple.remote) || tuple.local_port == 0 || tuple.remote_port == 0 {
            return Err(Refusal::Address);
        }
        if self.table.find(&tuple).is_some() {
            return Err(Refusal::InUse);
        }
        let path = self.table.paths.number(&tuple).ok_or(Refusal::Address)?;
        let iss = self.initial_number(&tuple, now);
        let mut connection = Connection::FREE;
        connection.local = tuple.local as u32;
        connection.local_port = tuple.local_port;
        connection.path = path;
        connection.snd_nxt = iss;
        self.table.insert(place, connection);
        let number = self.flight(place);
        let connection = self.table.get_mut(place);
        connection.set_state(State::SynSent);
        connection.snd_nxt = iss.wrapping_add(1);
        let flight = self.flights.get_mut(number);
        flight.syn = true;
        flight.next = iss.wrapping_add(1);
        flight.time(flight.next, now);
        let rto = self.table.paths.get(path).syn_rto(0);
        self.flights.arm(number, now + rto);
        self.send_syn(place, link);
        Ok(())
    }

    /// An initial sequence number (RFC 6528, section 3): a clock plus a keyed hash of the tuple, so that other connections do not reveal
    /// it.
    fn initial_number(&self, tuple: &Tuple, now: Nanos) -> u32 {
        let mut bytes = [0; 36];
        bytes[..16].copy_from_slice(&tuple.local.to_be_bytes());
        bytes[16..32].copy_from_slice(&tuple.remote.to_be_bytes());
        bytes[32..34].copy_from_slice(&tuple.local_port.to_be_bytes());
        bytes[34..].copy_from_slice(&tuple.remote_port.to_be_bytes());
        let [k0, k1] = self.settings.secret;
        ((now.0 / CLOCK_NS) as u32).wrapping_add(keyed(k0, k1, &bytes) as u32)
    }

    /// Sends the SYN of a connection; with an ACK if the peer's SYN has already arrived.
    pub(super) fn send_syn(&mut self, id: u32, link: &mut impl Link) {
        let connection = *self.table.get(id);
        let tuple = self.table.tuple(&connection);
        let is_answer = connection.state() == State::SynReceived;
        // The peer has not offered window scaling, so it must not be offered now (RFC 7323, section 2.2).
        let scales = !is_answer || connection.is_scaled();
        let header = Header {
            seq: connection.snd_nxt.wrapping_sub(1),
            ack: connection.rcv_nxt,
            flags: if is_answer { SYN | ACK } else { SYN },
            window: self.settings.window.min(u32::from(u16::MAX)) as u16,
            mss: Some(self.table.paths.mss_here(tuple.remote)),
            scale: scales.then_some(self.shift),
            // Like window scaling (RFC 2018, section 2).
            sack_permitted: !is_answer || connection.has(SACKS),
            ..Header::of(tuple)
        };
        self.counts.packets_out += 1;
        header.send(&[], None, link);
    }

    /// Handles a segment for a connection in SYN-SENT (RFC 9293, section 3.10.7.3).
    pub(super) fn answered(
        &mut self,
        id: u32,
        segment: &Segment,
        packet: &[u8],
        now: Nanos,
        link: &mut impl Link,
    ) -> Option<Event> {
        let snd_nxt = self.table.get(id).snd_nxt;
        // Only the SYN was sent, so only its acknowledgement is valid.
        if segment.has(ACK) && segment.ack != snd_nxt {
            if !segment.has(RST) {
                self.reset_stray(segment, link);
                self.send_syn_after_reset(id, link);
            }
            return None;
        }
        if segment.has(RST) {
            if segment.has(ACK) {
                self.gone(id, Why::Refused);
            }
            return None;
        }
        if !segment.has(SYN) {
            return None;
        }
        self.take_syn(id, segment);
        if !segment.has(ACK) {
            // Simultaneous open: both ends have dialled.
            self.table.get_mut(id).set_state(State::SynReceived);
            self.send_syn(id, link);
            return None;
        }
        self.open(id, segment.ack, now);
        self.owe(id, link);
        // Handles data or a FIN that the segment carries after the SYN.
        let rest = Segment { seq: segment.seq.wrapping_add(1), flags: segment.flags & !SYN, ..*segment };
        if rest.len > 0 || rest.has(FIN) {
            self.arrived(id, &rest, packet, now, link)
        } else {
            self.transmit_settle(id, now, link);
            None
        }
    }

    /// Repeats the SYN after a reset. The peer had an earlier connection with these addresses, which the reset has ended, so the SYN can
    /// follow at once; Linux waits for a moment (`TCP_TIMEOUT_MIN`). Only once: for further such segments, the timer repeats it.
    fn send_syn_after_reset(&mut self, id: u32, link: &mut impl Link) {
        let Some(number) = self.table.get(id).flight() else { return };
        if self.flights.get_mut(number).is_first_stray() {
            self.send_syn(id, link);
        }
    }

    /// Applies the peer's SYN: sequence number, options and window.
    fn take_syn(&mut self, id: u32, segment: &Segment) {
        let connection = self.table.get_mut(id);
        connection.rcv_nxt = segment.seq.wrapping_add(1);
        connection.set_scale(segment.scale);
        if segment.sack_permitted {
            connection.set(SACKS);
        }
        connection.set_window_unscaled(segment.window);
        let connection = *connection;
        let path = self.table.paths.get_mut(connection.path);
        path.peer_mss(segment.mss);
        let advertised = connection.rcv_nxt.wrapping_add(self.settings.window.min(u32::from(u16::MAX)));
        if let Some(number) = connection.flight() {
            let flight = self.flights.get_mut(number);
            flight.window_seq = segment.seq;
            flight.most_window = connection.peer_window();
            flight.advertised = advertised;
        }
    }

    /// Establishes the connection: this end's SYN is acknowledged, and the peer's has arrived.
    pub(super) fn open(&mut self, id: u32, ack: u32, now: Nanos) {
        let connection = self.table.get_mut(id);
        connection.set_state(State::Established);
        let path = connection.path;
        let number = self.flight(id);
        let flight = self.flights.get_mut(number);
        let was_lost = flight.tries > 0;
        let mss = u32::from(self.table.paths.get(path).mss);
        let (rtt, _) = flight.acknowledge(ack, mss, now);
        flight.open(mss, was_lost);
        flight.deadline = Nanos::NEVER;
        match rtt {
            Some(rtt) => self.table.paths.get_mut(path).measured(rtt),
            None if was_lost => self.table.paths.get_mut(path).syn_was_lost(),
            None => {}
        }
        self.list_event(id, OPENED);
    }
}

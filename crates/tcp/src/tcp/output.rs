//! Sends segments: acknowledgements, and data within the peer's window and the congestion window (RFC 9293, section 3.8.6; RFC 5681).

use units::Nanos;

use super::Tcp;
use crate::connection::{IN_ACK_LIST, OWES_ACK, SACKS, State};
use crate::link::Link;
use crate::packet::{ACK, FIN, Header, PSH};
use crate::seq::{after, before};

/// The largest value of the window field, before it is shifted.
const LARGEST: u32 = 65_535;

/// Maximum payload of a packet: with both headers, its length still fits in the length field of IP.
const LARGEST_PAYLOAD: usize = 65_000;

impl Tcp {
    /// The receive window, in bytes from the next expected number on.
    pub(super) fn window(&self, id: u32) -> u32 {
        let shift = self.shift(id);
        let most = self.settings.window.min(LARGEST << shift);
        let free = most.saturating_sub(self.ready(id) as u32);
        // Rounded up: if it were rounded down, its end could move back (RFC 7323, section 2.4).
        free.div_ceil(1 << shift).min(LARGEST) << shift
    }

    fn shift(&self, id: u32) -> u8 {
        if self.table.get(id).is_scaled() { self.shift } else { 0 }
    }

    /// Sends a segment of a connection with the current acknowledgement and window. `payload`: offset and length in the send queue.
    fn emit(&mut self, id: u32, seq: u32, flags: u8, payload: Option<(usize, usize)>, link: &mut impl Link) {
        let window = self.window(id);
        let said = (window >> self.shift(id)) as u16;
        let connection = self.table.get_mut(id);
        connection.clear(OWES_ACK);
        let connection = *connection;
        let path = self.table.paths.get(connection.path);
        let tuple = path.tuple(connection.local, connection.local_port);
        let flags = flags | ACK;
        let mut header = Header { seq, ack: connection.rcv_nxt, flags, window: said, ..Header::of(tuple) };
        self.counts.packets_out += 1;
        let Some(number) = connection.flight() else { return header.send(&[], None, link) };
        let flight = self.flights.get_mut(number);
        flight.advertised = connection.rcv_nxt.wrapping_add(window);
        // With data, SACK blocks would make the segment larger than the MSS allows (RFC 6691); gaps are acknowledged at once without data.
        if payload.is_none() && connection.has(SACKS) {
            header.sacks = flight.inbound.sacks();
        }
        let bytes = payload.map_or(&[][..], |(offset, len)| flight.out.at(offset, len));
        let segment_size = (bytes.len() > usize::from(path.mss)).then_some(path.mss);
        header.send(bytes, segment_size, link);
    }

    /// Sends an acknowledgement now.
    pub(super) fn acknowledge_now(&mut self, id: u32, link: &mut impl Link) {
        let seq = self.table.get(id).snd_nxt;
        self.emit(id, seq, 0, None, link);
    }

    /// Schedules a window update for the end of the turn.
    pub(super) fn owe_update(&mut self, id: u32) {
        let connection = self.table.get_mut(id);
        connection.set(OWES_ACK);
        if !connection.has(IN_ACK_LIST) {
            connection.set(IN_ACK_LIST);
            self.owing.push(id);
        }
    }

    /// Sends a window probe: a segment with an already acknowledged number, to which the peer must respond.
    pub(super) fn probe(&mut self, id: u32, link: &mut impl Link) {
        let seq = self.table.get(id).snd_nxt.wrapping_sub(1);
        self.emit(id, seq, 0, None, link);
    }

    /// Sends what both windows allow. `force`: sends at least one segment, because a timer has expired.
    pub(super) fn transmit(&mut self, id: u32, mut force: bool, now: Nanos, link: &mut impl Link) {
        let connection = *self.table.get(id);
        let Some(number) = connection.flight() else { return };
        let flight = self.flights.get(number);
        let was_under_way = flight.una != connection.snd_nxt;
        let mut sent = false;
        while let Some((len, has_fin)) = self.next_segment(id, number, force, link) {
            self.send_segment(id, number, len, has_fin, now, link);
            (sent, force) = (true, false);
        }
        let flight = self.flights.get(number);
        let waits = before(flight.una, flight.end());
        let unarmed = flight.deadline == Nanos::NEVER || (sent && !was_under_way);
        if waits && unarmed {
            let rto = self.table.paths.get(connection.path).rto(flight.backoff);
            self.flights.arm(number, now + rto);
        }
    }

    /// Length of the next segment, and whether it carries the FIN; `None` if nothing may be sent now.
    fn next_segment(&self, id: u32, number: u32, force: bool, link: &impl Link) -> Option<(u32, bool)> {
        let connection = self.table.get(id);
        let flight = self.flights.get(number);
        let mss = u32::from(self.table.paths.get(connection.path).mss);
        let data_end = flight.queue_end();
        if !before(flight.next, flight.end()) {
            return None;
        }
        let left = if before(flight.next, data_end) { data_end.wrapping_sub(flight.next) } else { 0 };
        let window = connection.peer_window().min(flight.congestion_window(mss));
        let mut room = window.saturating_sub(flight.under_way());
        if force {
            // Data that was already sent is sent again regardless of the window.
            let again = connection.snd_nxt.wrapping_sub(flight.next);
            room = room.max(again.min(mss));
        }
        if left == 0 {
            return (room > 0).then_some((0, true));
        }
        let largest = (link.largest().min(LARGEST_PAYLOAD) as u32 / mss).max(1) * mss;
        let len = left.min(room).min(largest);
        let is_cut = len < left;
        let whole = if is_cut && len > mss { len - len % mss } else { len };
        // A small segment that is not the last waits for more room (sender-side SWS avoidance, RFC 9293, section 3.8.6.2.1).
        let is_small = is_cut && whole < mss && whole < flight.most_window / 2;
        if whole == 0 || (is_small && !force) {
            return None;
        }
        let offset = flight.next.wrapping_sub(flight.queue_start()) as usize;
        let together = flight.out.at(offset, whole as usize).len() as u32;
        let has_fin = flight.fin && together == left && room > together;
        Some((together, has_fin))
    }

    /// Sends `len` bytes from the next number on.
    fn send_segment(
        &mut self,
        id: u32,
        number: u32,
        len: u32,
        has_fin: bool,
        now: Nanos,
        link: &mut impl Link,
    ) {
        let flight = self.flights.get_mut(number);
        let seq = flight.next;
        let end = seq.wrapping_add(len + u32::from(has_fin));
        let connection = self.table.get_mut(id);
        if before(seq, connection.snd_nxt) {
            self.counts.retransmitted += 1;
        } else {
            flight.time(end, now);
        }
        flight.next = end;
        if after(end, connection.snd_nxt) {
            connection.snd_nxt = end;
        }
        let offset = seq.wrapping_sub(flight.queue_start()) as usize;
        let is_last = offset + len as usize == flight.out.len();
        let flags = if is_last && len > 0 { PSH } else { 0 } | if has_fin { FIN } else { 0 };
        self.emit(id, seq, flags, Some((offset, len as usize)), link);
    }

    /// Retransmits the first unacknowledged segment.
    pub(super) fn resend_first(&mut self, id: u32, now: Nanos, link: &mut impl Link) {
        let connection = *self.table.get(id);
        let Some(number) = connection.flight() else { return };
        let path = self.table.paths.get(connection.path);
        let (mss, rto) = (usize::from(path.mss), path.rto(0));
        // The full timeout applies to this transmission.
        self.flights.arm(number, now + rto);
        let flight = self.flights.get_mut(number);
        flight.untime();
        let sent = connection.snd_nxt.wrapping_sub(flight.una) as usize;
        let len = flight.out.at(0, mss.min(sent)).len();
        let has_fin = flight.fin && len == flight.out.len() && sent > len;
        let flags = if len == flight.out.len() && len > 0 { PSH } else { 0 } | if has_fin { FIN } else { 0 };
        let seq = flight.una;
        self.counts.retransmitted += 1;
        self.emit(id, seq, flags, Some((0, len)), link);
    }

    /// Sends what can be sent, and ends the flight if nothing is in flight any more.
    pub(super) fn transmit_settle(&mut self, id: u32, now: Nanos, link: &mut impl Link) {
        if self.table.get(id).flight().is_none() || self.table.get(id).state() == State::SynReceived {
            return;
        }
        self.transmit(id, false, now, link);
        self.note_blocked(id);
        self.settle(id);
    }
}

//! The data of a segment, and the end of the stream (RFC 9293, section 3.10.7.4, from the seventh step on).

use units::Nanos;

use super::Tcp;
use crate::connection::{Connection, ENDED, HELD, IN_EVENT_LIST, OWES_ACK, State};
use crate::event::{Event, What};
use crate::link::Link;
use crate::packet::{FIN, Segment};
use crate::seq::{after, before};

impl Tcp {
    /// Number of received bytes that can be read.
    pub(super) fn ready(&self, id: u32) -> usize {
        self.table.get(id).flight().map_or(0, |number| self.flights.get(number).inbound.ready())
    }

    /// Handles the data of a segment. Returns the event for bytes that are next in the stream and are in the packet.
    pub(super) fn text(
        &mut self,
        id: u32,
        segment: &Segment,
        packet: &[u8],
        link: &mut impl Link,
    ) -> Option<Event> {
        let connection = *self.table.get(id);
        let end = segment.seq.wrapping_add(segment.len);
        // The segment has nothing new.
        if segment.len == 0 || !after(end, connection.rcv_nxt) {
            return None;
        }
        match connection.state() {
            State::Established => {}
            // The program has closed the connection, so nothing will read the data: the peer must learn that (RFC 9293, section 3.6.1).
            State::FinWait1 | State::FinWait2 => {
                self.abort(id, link);
                return None;
            }
            // After its FIN a peer cannot send data.
            _ => return None,
        }
        let skipped = match before(segment.seq, connection.rcv_nxt) {
            true => connection.rcv_nxt.wrapping_sub(segment.seq),
            false => 0,
        };
        let seq = segment.seq.wrapping_add(skipped);
        let room = connection.rcv_nxt.wrapping_add(self.window(id)).wrapping_sub(seq);
        let len = (segment.len - skipped).min(room);
        let at = segment.at + skipped;
        if len == 0 {
            self.acknowledge_now(id, link);
            return None;
        }
        if seq == connection.rcv_nxt {
            self.in_order(id, &connection, at, &packet[at as usize..][..len as usize], link)
        } else {
            self.counts.out_of_order += 1;
            let number = self.flight(id);
            let bytes = &packet[at as usize..][..len as usize];
            self.flights.keep(number, seq, bytes, connection.rcv_nxt);
            // An immediate duplicate acknowledgement informs the peer of the gap (RFC 5681, section 4.2).
            self.acknowledge_now(id, link);
            None
        }
    }

    /// Handles the next bytes of the stream, which are in the packet from `at` on.
    fn in_order(
        &mut self,
        id: u32,
        connection: &Connection,
        at: u32,
        bytes: &[u8],
        link: &mut impl Link,
    ) -> Option<Event> {
        let len = bytes.len() as u32;
        let next = connection.rcv_nxt;
        let behind = next.wrapping_add(len);
        let inbound = connection.flight().map(|number| &mut self.flights.get_mut(number).inbound);
        let has_gap = inbound.as_ref().is_some_and(|inbound| inbound.has_gap());
        let waits = inbound.as_ref().is_some_and(|inbound| inbound.ready() > 0);
        // Bytes can be reported directly only if no earlier event of this connection is pending.
        let is_direct = !waits && !connection.has(HELD) && !connection.has(IN_EVENT_LIST);
        let behind = match (inbound, is_direct) {
            (None, true) => behind,
            (Some(inbound), true) => {
                inbound.skip(len, next);
                inbound.advance(behind)
            }
            (_, false) => {
                let number = self.flight(id);
                match self.flights.keep(number, next, bytes, next) {
                    true => self.flights.get_mut(number).inbound.advance(next),
                    false => next,
                }
            }
        };
        self.table.get_mut(id).rcv_nxt = behind;
        if !is_direct || behind != next.wrapping_add(len) {
            self.list_event(id, 0);
        }
        let mss = u32::from(self.table.paths.get(connection.path).mss);
        // Data that fills a gap, and every second full segment, is acknowledged at once (RFC 5681, section 4.2).
        if has_gap || len >= 2 * mss || (len >= mss && connection.has(OWES_ACK)) {
            self.acknowledge_now(id, link);
        } else {
            self.owe(id, link);
        }
        is_direct.then_some(Event { place: id, what: What::Bytes { at, len } })
    }

    /// Copies received bytes that can be read; returns their number. The window opens by that number.
    pub(super) fn read(&mut self, place: u32, buffer: &mut [u8]) -> u32 {
        let number = self.flight(place);
        let flight = self.flights.get_mut(number);
        let n = flight.inbound.read(buffer) as u32;
        let known = flight.advertised;
        let connection = *self.table.get(place);
        let now = connection.rcv_nxt.wrapping_add(self.window(place));
        let mss = u32::from(self.table.paths.get(connection.path).mss);
        // Smaller updates would make the peer send small segments (RFC 9293, section 3.8.6.2.2).
        if now.wrapping_sub(known) >= mss.min(self.settings.window / 2) && after(now, known) {
            self.owe_update(place);
        }
        self.settle(place);
        n
    }

    /// Handles the end of the stream: a FIN in this segment, or one that arrived earlier out of order.
    pub(super) fn fin(&mut self, id: u32, segment: &Segment, now: Nanos, link: &mut impl Link) {
        let connection = *self.table.get(id);
        let number = connection.flight();
        let kept = number.and_then(|number| self.flights.get(number).inbound.fin);
        let here = segment.has(FIN).then(|| segment.seq.wrapping_add(segment.len));
        let Some(at) = here.or(kept) else { return };
        if before(at, connection.rcv_nxt) {
            // The peer has violated the protocol: it sent data beyond the end that it announced.
            if let (Some(number), Some(_)) = (number, kept) {
                self.flights.get_mut(number).inbound.fin = None;
            }
            return;
        }
        match connection.state() {
            State::Established if after(at, connection.rcv_nxt) => {
                let number = self.flight(id);
                self.flights.get_mut(number).inbound.fin = Some(at);
                return;
            }
            // There is data before the FIN that will not be read.
            State::FinWait1 | State::FinWait2 if at != connection.rcv_nxt => {
                return self.abort(id, link);
            }
            State::Established | State::FinWait1 | State::FinWait2 => {}
            _ => return,
        }
        if let Some(number) = number {
            self.flights.get_mut(number).inbound.fin = None;
        }
        self.table.get_mut(id).rcv_nxt = at.wrapping_add(1);
        self.owe(id, link);
        match connection.state() {
            State::FinWait1 => self.table.get_mut(id).set_state(State::Closing),
            State::FinWait2 => self.wait(id, State::TimeWait, now),
            _ => {
                self.table.get_mut(id).set_state(State::CloseWait);
                self.list_event(id, ENDED);
            }
        }
    }
}

//! How connections end: closes, resets, and the waits after a close (RFC 9293, section 3.6).

use units::Nanos;

use super::{Close, Tcp};
use crate::connection::State;
use crate::link::Link;
use crate::packet::{ACK, Header, RST};

/// Duration of TIME-WAIT, and of FIN-WAIT-2 without a FIN from the peer: those of Linux.
const WAIT: Nanos = Nanos::from_secs(60);

impl Tcp {
    /// Closes a connection, or cancels a dial. The place is free at once, and nothing more is reported for it. With unread data the close
    /// becomes a reset, so that the peer does not believe that the data was read (RFC 1122, section 4.2.2.13).
    pub fn close(&mut self, place: u32, how: Close, now: Nanos, link: &mut impl Link) {
        let connection = *self.table.get(place);
        match connection.state() {
            State::Free => return,
            State::Dead => return self.table.remove(place),
            // The peer either knows nothing of the connection, or gets a reset when it responds.
            State::SynSent => {
                self.end_flight(place);
                return self.table.remove(place);
            }
            _ => {}
        }
        let unread = self.ready(place) > 0 || self.has_gap(place);
        if how == Close::Reset || unread || !connection.state().sends() {
            return self.abort(place, link);
        }
        let Some(id) = self.linger(place) else {
            self.counts.cut_short += 1;
            return self.abort(place, link);
        };
        let state = match connection.state() {
            State::CloseWait => State::LastAck,
            _ => State::FinWait1,
        };
        let number = self.flight(id);
        self.table.get_mut(id).set_state(state);
        let flight = self.flights.get_mut(number);
        flight.fin = true;
        self.blocked -= usize::from(flight.is_blocked);
        flight.is_blocked = false;
        self.transmit(id, false, now, link);
    }

    fn has_gap(&self, id: u32) -> bool {
        let flight = self.table.get(id).flight();
        flight.is_some_and(|number| self.flights.get(number).inbound.has_gap())
    }

    /// Resets a connection and removes it.
    pub(super) fn abort(&mut self, id: u32, link: &mut impl Link) {
        let connection = *self.table.get(id);
        let header = Header {
            seq: connection.snd_nxt,
            ack: connection.rcv_nxt,
            flags: RST | ACK,
            ..Header::of(self.table.tuple(&connection))
        };
        self.counts.packets_out += 1;
        header.send(&[], None, link);
        self.end_flight(id);
        self.table.remove(id);
    }

    /// Moves a connection from its place to the lingering ones; if there are too many, drops the oldest that only waits.
    fn linger(&mut self, place: u32) -> Option<u32> {
        let id = match self.table.linger(place) {
            Some(id) => id,
            None => {
                self.forget_oldest()?;
                self.table.linger(place)?
            }
        };
        let connection = self.table.get_mut(id);
        connection.keep_ack_only();
        if connection.has(crate::connection::OWES_ACK) {
            self.owe_update(id);
        }
        if let Some(number) = self.table.get(id).flight() {
            self.flights.get_mut(number).owner = id;
        }
        Some(id)
    }

    /// Ends the oldest wait early. `None` if there is none.
    fn forget_oldest(&mut self) -> Option<()> {
        while let Some((over_at, id)) = self.table.waits.pop_front() {
            if self.waits_until(id, over_at) {
                self.counts.cut_short += 1;
                self.table.remove(id);
                return Some(());
            }
        }
        None
    }

    /// Whether this entry is current: the connection still waits, and until this time.
    fn waits_until(&self, id: u32, over_at: Nanos) -> bool {
        let connection = self.table.get(id);
        connection.state().waits() && connection.over_at_ms() == over_at.millis() as u32
    }

    /// Enters TIME-WAIT or FIN-WAIT-2, which end after [`WAIT`]; the latter also by the peer's FIN.
    pub(super) fn wait(&mut self, id: u32, state: State, now: Nanos) {
        let over_at = now + WAIT;
        let over_at_ms = over_at.millis() as u32;
        let connection = self.table.get(id);
        let before = connection.state();
        // A retransmitted FIN restarts TIME-WAIT with a new entry, but at most one entry per second.
        if before == state && over_at_ms.wrapping_sub(connection.over_at_ms()) < 1000 {
            return;
        }
        self.table.in_time_wait += usize::from(before != state && state == State::TimeWait);
        self.table.get_mut(id).wait(state, over_at_ms);
        self.table.waits.push_back((over_at, id));
    }

    /// Removes the connections whose wait is over.
    pub(super) fn end_waits(&mut self, now: Nanos) {
        while let Some(&(over_at, id)) = self.table.waits.front().filter(|(over_at, _)| *over_at <= now) {
            self.table.waits.pop_front();
            if self.waits_until(id, over_at) {
                self.table.remove(id);
            }
        }
    }
}

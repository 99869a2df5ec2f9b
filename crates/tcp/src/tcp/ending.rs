//! Connections end (RFC 9293, section 3.6).

use units::Nanos;

use super::{Close, Tcp};
use crate::connection::State;
use crate::link::Link;
use crate::packet::{ACK, Header, RST};

/// How long TIME-WAIT lasts, and how long a peer is waited for that has acknowledged our FIN: those of Linux.
const WAIT: Nanos = Nanos::from_secs(60);

impl Tcp {
    /// Closes the connection, or the attempt at it. The place is free at once; nothing more is reported for it. What the program has not
    /// read makes it a reset, as the peer must not believe that it was (RFC 1122, section 4.2.2.13).
    pub fn close(&mut self, place: u32, how: Close, now: Nanos, link: &mut impl Link) {
        let connection = *self.table.get(place);
        match connection.state() {
            State::Free => return,
            State::Dead => return self.table.remove(place),
            // The peer knows of nothing, or will be told when it answers.
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

    /// Resets a connection, and forgets it.
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

    /// Moves a connection from its place to those that linger, for the oldest that only waits if there are too many.
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

    /// Ends the longest wait before its time.
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

    /// Whether the connection waits until then, and not longer.
    fn waits_until(&self, id: u32, over_at: Nanos) -> bool {
        let connection = self.table.get(id);
        connection.state().waits() && connection.over_at_ms() == over_at.millis() as u32
    }

    /// From now on only time ends the connection, or in FIN-WAIT-2 the peer's FIN.
    pub(super) fn wait(&mut self, id: u32, state: State, now: Nanos) {
        let over_at = now + WAIT;
        let over_at_ms = over_at.millis() as u32;
        let connection = self.table.get(id);
        let before = connection.state();
        // An entry for each FIN that comes again, but no more than a second.
        if before == state && over_at_ms.wrapping_sub(connection.over_at_ms()) < 1000 {
            return;
        }
        self.table.in_time_wait += usize::from(before != state && state == State::TimeWait);
        self.table.get_mut(id).wait(state, over_at_ms);
        self.table.waits.push_back((over_at, id));
    }

    /// Forgets what has waited long enough.
    pub(super) fn end_waits(&mut self, now: Nanos) {
        while let Some(&(over_at, id)) = self.table.waits.front().filter(|(over_at, _)| *over_at <= now) {
            self.table.waits.pop_front();
            if self.waits_until(id, over_at) {
                self.table.remove(id);
            }
        }
    }
}

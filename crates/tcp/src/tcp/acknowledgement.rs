//! The acknowledgement and the window of a segment (RFC 9293, section 3.10.7.4; RFC 5961, section 5).

use units::Nanos;

use super::Tcp;
use crate::connection::{Connection, State};
use crate::link::Link;
use crate::packet::{FIN, Segment};
use crate::seq::{after, before};

/// An acknowledgement may be older than SND.UNA by the peer's largest window, or by this if it is more.
const LEAST_OLDEST: u32 = 65_535;

impl Tcp {
    /// Handles the acknowledgement and the window of a segment. Returns false if the acknowledgement is unacceptable, so that the rest of
    /// the segment must be ignored, or if the connection has ended.
    pub(super) fn acknowledged(
        &mut self,
        id: u32,
        segment: &Segment,
        now: Nanos,
        link: &mut impl Link,
    ) -> bool {
        let connection = *self.table.get(id);
        let flight = connection.flight().map(|number| self.flights.get(number));
        let una = flight.map_or(connection.snd_nxt, |flight| flight.una);
        let most = flight.map_or(0, |flight| flight.most_window).max(connection.peer_window());
        let is_too_old = una.wrapping_sub(segment.ack) > most.max(LEAST_OLDEST);
        if after(segment.ack, connection.snd_nxt) || (before(segment.ack, una) && is_too_old) {
            self.challenge(id, now, link);
            return false;
        }
        if before(segment.ack, una) {
            return true;
        }
        let Some(number) = connection.flight() else {
            // Nothing is in flight; the next send will see a closed window.
            if !before(segment.seq, connection.rcv_nxt) {
                self.table.get_mut(id).window = segment.window;
            }
            return true;
        };
        let window_before = connection.window;
        self.update_window(id, number, segment);
        if segment.ack == una {
            self.no_progress(id, number, segment, window_before, now, link);
            return true;
        }
        self.progress(id, number, segment.ack, now, link)
    }

    /// Updates the peer's window (RFC 9293), but only from a segment that was sent after the one that last updated it.
    fn update_window(&mut self, id: u32, number: u32, segment: &Segment) {
        let flight = self.flights.get_mut(number);
        let is_later = after(segment.ack, flight.una) || !before(segment.seq, flight.window_seq);
        if is_later {
            flight.window_seq = segment.seq;
            let connection = self.table.get_mut(id);
            connection.window = segment.window;
            flight.most_window = flight.most_window.max(connection.peer_window());
        }
    }

    /// Handles an acknowledgement of nothing new: a duplicate that indicates a loss (RFC 5681, section 2), or the response to a probe.
    fn no_progress(
        &mut self,
        id: u32,
        number: u32,
        segment: &Segment,
        window_before: u16,
        now: Nanos,
        link: &mut impl Link,
    ) {
        let connection = *self.table.get(id);
        let mss = u32::from(self.table.paths.get(connection.path).mss);
        let flight = self.flights.get_mut(number);
        let is_under_way = flight.una != connection.snd_nxt;
        if connection.peer_window() == 0 || !is_under_way {
            // The peer responds, so the probes are not in vain.
            flight.tries = 0;
        }
        if connection.peer_window() > 0 && !is_under_way {
            flight.backoff = 0;
        }
        let is_duplicate =
            is_under_way && segment.len == 0 && !segment.has(FIN) && connection.window == window_before;
        if is_duplicate && flight.duplicate(connection.snd_nxt, mss) {
            self.resend_first(id, now, link);
        }
    }

    /// Handles an acknowledgement of new data. Returns whether the connection still exists.
    fn progress(&mut self, id: u32, number: u32, ack: u32, now: Nanos, link: &mut impl Link) -> bool {
        let connection = *self.table.get(id);
        let path = self.table.paths.get_mut(connection.path);
        let flight = self.flights.get_mut(number);
        let has_fin = flight.fin && ack == flight.end();
        let backoff = flight.backoff;
        let (rtt, resend) = flight.acknowledge(ack, u32::from(path.mss), now);
        if has_fin {
            flight.fin = false;
        }
        match rtt {
            Some(rtt) => path.measured(rtt),
            None if backoff > 0 => path.keep_backoff(backoff),
            None => {}
        }
        if ack == connection.snd_nxt {
            flight.deadline = Nanos::NEVER;
        } else {
            let rto = path.rto(0);
            self.flights.arm(number, now + rto);
        }
        if resend {
            self.resend_first(id, now, link);
        }
        !has_fin || self.fin_acknowledged(id, &connection, now)
    }

    /// Handles the acknowledgement of the FIN. Returns whether the connection still exists.
    fn fin_acknowledged(&mut self, id: u32, connection: &Connection, now: Nanos) -> bool {
        self.end_flight(id);
        match connection.state() {
            State::FinWait1 => self.wait(id, State::FinWait2, now),
            State::Closing => self.wait(id, State::TimeWait, now),
            _ => {
                self.table.remove(id);
                return false;
            }
        }
        true
    }
}

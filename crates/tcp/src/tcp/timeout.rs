//! Expired timers (RFC 9293, section 3.10.8; RFC 6298, section 5).

use units::Nanos;

use super::Tcp;
use crate::connection::State;
use crate::event::Why;
use crate::link::Link;

/// Maximum retransmissions of a SYN: `net.ipv4.tcp_syn_retries`.
const SYN_TRIES: u8 = 6;
/// Maximum retransmissions of data, or window probes: `net.ipv4.tcp_retries2`.
const TRIES: u8 = 15;
/// Maximum retransmissions on a lingering connection: `net.ipv4.tcp_orphan_retries`.
const LINGERING_TRIES: u8 = 8;

impl Tcp {
    /// Handles what is due by `now`: retransmissions, probes, the end of TIME-WAIT. [`Tcp::next_event`] returns the resulting events.
    pub fn expire(&mut self, now: Nanos, link: &mut impl Link) {
        while let Some(number) = self.flights.due(now) {
            self.timed_out(number, now, link);
        }
        self.end_waits(now);
    }

    fn timed_out(&mut self, number: u32, now: Nanos, link: &mut impl Link) {
        let flight = self.flights.get_mut(number);
        let id = flight.owner;
        let connection = *self.table.get(id);
        let path = self.table.paths.get(connection.path);
        let is_syn = !connection.state().is_synchronized();
        let most = match (is_syn, self.table.is_place(id)) {
            (true, _) => SYN_TRIES,
            (false, true) => TRIES,
            (false, false) => LINGERING_TRIES,
        };
        let has_window = connection.peer_window() > 0;
        // A lingering connection does not wait for a window forever, even if its peer responds to probes.
        let spent = if self.table.is_place(id) { flight.tries } else { flight.backoff };
        if spent >= most {
            let why = match flight.soft_errno {
                0 => Why::TimedOut,
                errno => Why::Unreachable(errno),
            };
            return self.gone(id, why);
        }
        if is_syn {
            flight.count_try();
            flight.untime();
            let rto = path.syn_rto(flight.backoff);
            self.flights.arm(number, now + rto);
            self.counts.retransmitted += 1;
            self.counts.syns_again += 1;
            return self.send_syn(id, link);
        }
        if flight.una != connection.snd_nxt {
            flight.time_out(connection.snd_nxt, u32::from(path.mss));
            self.transmit(id, true, now, link);
        } else if flight.una != flight.end() {
            flight.count_try();
            let rto = path.rto(flight.backoff);
            match has_window {
                true => self.transmit(id, true, now, link),
                false => self.probe(id, link),
            }
            if self.flights.get(number).deadline == Nanos::NEVER {
                self.flights.arm(number, now + rto);
            }
        }
        if connection.state() != State::Free {
            self.note_blocked(id);
        }
    }
}

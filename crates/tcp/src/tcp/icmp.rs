//! ICMP errors that a router or the peer's host reports about a sent segment (RFC 1122, section 4.2.3.9; RFC 1191, 5927, 8201).

use units::Nanos;

use super::Tcp;
use crate::connection::State;
use crate::event::Why;
use crate::link::Link;
use crate::packet::{Error, Quote};
use crate::seq::before;

const ECONNREFUSED: i32 = 111;

impl Tcp {
    /// Handles an error. One that does not quote a segment in flight may be forged, and is ignored (RFC 5927, section 4.1).
    pub(super) fn icmp_error(&mut self, quote: &Quote, now: Nanos, link: &mut impl Link) {
        let Some(id) = self.table.find(&quote.tuple) else { return };
        let connection = *self.table.get(id);
        let Some(number) = connection.flight() else { return };
        let flight = self.flights.get_mut(number);
        if before(quote.seq, flight.una) || !before(quote.seq, connection.snd_nxt) {
            return;
        }
        self.counts.icmp_errors += 1;
        match (quote.error, connection.state()) {
            (Error::TooBig(mtu), _) => {
                // Another connection may have lowered the path's MSS before. This segment was dropped in any case, so the data is sent
                // again, once: if the error is about the first unacknowledged segment.
                let is_smaller = self.table.paths.get_mut(connection.path).too_big(mtu);
                if (is_smaller || quote.seq == flight.una) && !flight.syn {
                    // Sends the data again in smaller segments. The congestion window stays, since the network is not congested.
                    flight.next = flight.una;
                    flight.untime();
                    self.transmit(id, true, now, link);
                }
            }
            // Fails the dial at once, as the kernel does (RFC 5461, section 2.2).
            (Error::Refused, State::SynSent | State::SynReceived) => self.gone(id, Why::Refused),
            (Error::Unreachable(errno), State::SynSent | State::SynReceived) => {
                self.gone(id, Why::Unreachable(errno));
            }
            // May be temporary: kept as the reason to report if the connection times out.
            (Error::Unreachable(errno), _) => flight.soft_errno = errno,
            (Error::Refused, _) => flight.soft_errno = ECONNREFUSED,
        }
    }
}

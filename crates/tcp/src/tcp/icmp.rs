//! A router, or the peer's host, reports an error about a segment that was sent (RFC 1122, section 4.2.3.9; RFC 1191, 5927, 8201).

use units::Nanos;

use super::Tcp;
use crate::connection::State;
use crate::event::Why;
use crate::link::Link;
use crate::packet::{Error, Quote};
use crate::seq::before;

const ECONNREFUSED: i32 = 111;

impl Tcp {
    /// Handles an error that quotes a segment under way; any other may be forged (RFC 5927, section 4.1).
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
                // Other connections may have lowered the path's before: what counts is that this segment did not come through, which
                // is said once, of the first that is not acknowledged.
                let is_smaller = self.table.paths.get_mut(connection.path).too_big(mtu);
                if (is_smaller || quote.seq == flight.una) && !flight.syn {
                    // What was too big is sent again, smaller; the network is not the cause, so its window stays.
                    flight.next = flight.una;
                    flight.untime();
                    self.transmit(id, true, now, link);
                }
            }
            // As the kernel does: whoever dials wants to know now (RFC 5461, section 2.2).
            (Error::Refused, State::SynSent | State::SynReceived) => self.gone(id, Why::Refused),
            (Error::Unreachable(errno), State::SynSent | State::SynReceived) => {
                self.gone(id, Why::Unreachable(errno));
            }
            // It may pass: the reason, if nothing helps.
            (Error::Unreachable(errno), _) => flight.soft_errno = errno,
            (Error::Refused, _) => flight.soft_errno = ECONNREFUSED,
        }
    }
}

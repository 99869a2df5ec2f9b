//! Cause: data is not acknowledged, so the path is interrupted or the host is gone.

use super::*;
use record::tolerances::{FEW, QUIET_S};

/// On nine of ten waiting connections (now, or of all that waited for a second at any time), or on half as many as had no response, data was retransmitted twice or more without an acknowledgement,
/// and nothing arrived on any of these for 1 s (TCP_INFO of up to 2,000).
pub(crate) struct Unacknowledged {
    pub(crate) count: u64,
    pub(crate) of: u64,
    pub(crate) quiet_s: f64,
}

impl Cause for Unacknowledged {
    const ID: &'static str = "unacknowledged";
    const OF: (Side, Name) = (Side::Path, Name::Unacknowledged);
    const YIELDS_TO: &'static str = "rejected-in-part forgotten black-hole";

    fn find(case: &Case) -> Option<Found<Unacknowledged>> {
        let (seen, lossy) = (&case.evidence.segments, &case.evidence.segments.lossy);
        let is_quiet = |time: Nanos| time.secs_f64() >= QUIET_S;
        let (count, quiet) = (seen.unacknowledged, seen.quiet.unwrap_or(Nanos::ZERO));
        let are_most =
            count >= FEW.min(seen.connections).max(1) && count * 10 >= (count + seen.unanswered) * 9;
        let are_half = lossy.stuck * 2 >= case.count && is_quiet(lossy.stuck_for);
        let (count, of, quiet) = match () {
            () if are_most && is_quiet(quiet) => (count, seen.connections, quiet),
            // Some connections are stuck while others are well. If mostly dials fail, those may instead be connections whose last handshake
            // packet a full queue dropped.
            () if lossy.stuck >= FEW
                && case.stage != Some(Stage::Dial)
                && (are_half || lossy.is_the_reason()) =>
            {
                (lossy.stuck, lossy.connections, lossy.stuck_for)
            }
            () => return None,
        };
        // On loopback there is no path: the peer has no such connection, or does not accept the data.
        let may_be = case.trouble == Trouble::Waiting && !case.evidence.subject.is_loopback;
        let found = Unacknowledged { count, of, quiet_s: quiet.secs_f64() };
        may_be.then(|| Found::inferred(found, case.peak()))
    }

    fn sentence(&self) -> String {
        let (n, all) = (Count(self.count), connections(self.of));
        format!("the path is interrupted: data on {n} of {all} is not acknowledged")
    }

    fn detail(&self, _: &Case) -> String {
        let (n, all, quiet_s) = (Count(self.count), connections(self.of), self.quiet_s);
        format!(
            "data sent on {n} of {all} was never acknowledged, and nothing was received on any of them for {quiet_s:.1} s: the path is \
            interrupted, or the target's host is gone"
        )
    }

    fn fix(&self, case: &Case) -> String {
        // Handshakes and pings are small, so they pass even if full-size packets are dropped.
        match case.requests().answered {
            0 => format!(
                "{WAY}; or full-size packets are dropped (path MTU, ICMP blocked): ping -M do -s 1472 HOST"
            ),
            _ => WAY.to_owned(),
        }
    }
}

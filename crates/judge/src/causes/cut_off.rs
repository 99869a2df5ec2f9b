//! Cause: dials get no reply while all open connections work, so something on the path lets no more through.

use super::*;
use record::tolerances::{ONE_IN_TEN, SYN_AGAIN_US};

/// No SYN is answered, beyond a certain number or of some dials all the time; all open connections received responses, and none was lost.
pub(crate) struct CutOff {
    pub(crate) dials: u64,
    pub(crate) opened: u64,
    /// None of the dials after those had a reply.
    pub(crate) is_beyond: bool,
}

impl Cause for CutOff {
    const ID: &'static str = "cut-off";
    const OF: (Side, Name) = (Side::Path, Name::NoSynAck);
    const YIELDS_TO: &'static str = "blocked-here rejected rejected-in-part unacknowledged conntrack queue-overflowed queue-unaccepted queue-standing";
    const FIX: &'static str = "check the firewalls on the path for a limit on connections (ct count, connlimit), and their conntrack tables (nf_conntrack_count and \
        nf_conntrack_max there)";

    fn find(case: &Case) -> Option<Found<CutOff>> {
        let (c, r) = (&case.summary.connections, case.requests());
        // A listener with a full queue leaves some connections unserved: those in the queue.
        let is_served = r.sent > 0 && r.unanswered == 0 && r.answered >= c.opened && c.dropped == 0;
        // A limit on the number of connections lets none pass later. A limit on their rate, or packet loss, does: a retransmitted SYN opens
        // them.
        let pass_later = case.summary.connect_us.mean >= ONE_IN_TEN * SYN_AGAIN_US;
        let are_dials = case.trouble == Trouble::Waiting && case.stage == Some(Stage::Dial);
        let is_it = are_dials && case.opened() > 0 && is_served && !pass_later;
        let found = CutOff { dials: case.count, opened: case.opened(), is_beyond: !case.since().is_empty() };
        is_it.then(|| Found::inferred(found, c.peak))
    }

    fn sentence(&self) -> String {
        match self.is_beyond {
            true => format!(
                "dials got no reply from the {} on, while the open connections are served",
                nth(self.opened + 1)
            ),
            false => format!(
                "{} of {} got no reply, while others at the same time were served",
                Count(self.dials),
                some(self.dials + self.opened, "dial")
            ),
        }
    }

    fn detail(&self, case: &Case) -> String {
        let (dials, held, since) = (case.n().of("dial"), Count(case.held()), case.since());
        let (open, are) = (held.of("open connection"), held.one_or("is", "are"));
        format!("{dials} got no SYN-ACK, no reset and no ICMP{since}; the {open} {are} served")
    }
}

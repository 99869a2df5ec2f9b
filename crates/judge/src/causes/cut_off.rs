use super::*;
use record::tolerances::{ONE_IN_TEN, SYN_AGAIN_US};

/// Beyond a certain number no SYN is answered; all open connections received responses, and none was lost.
pub(crate) struct CutOff {
    pub(crate) opened: u64,
}

impl Cause for CutOff {
    const ID: &'static str = "cut-off";
    const OF: (Side, Name) = (Side::Path, Name::NoSynAck);
    const YIELDS_TO: &'static str = "blocked-here rejected rejected-in-part unacknowledged conntrack queue-overflowed queue-unaccepted queue-standing";
    const FIX: &'static str = "check the firewalls on the path for a limit on connections (ct count, connlimit), and their conntrack tables (nf_conntrack_count and \
        nf_conntrack_max there)";

    fn find(case: &Case) -> Option<Found<CutOff>> {
        let (c, r) = (&case.summary.connections, case.requests());
        // A listener whose queue is full leaves some unserved: those in the queue.
        let is_served = r.sent > 0 && r.unanswered == 0 && r.answered >= c.opened && c.dropped == 0;
        // A limit on their number lets none pass later; one on their rate, or loss, does: it is opened by a SYN that was sent again.
        let pass_later = case.summary.connect_us.mean >= ONE_IN_TEN * SYN_AGAIN_US;
        let are_dials = case.trouble == Trouble::Waiting && case.stage == Some(Stage::Dial);
        let is_it = are_dials && !case.since().is_empty() && is_served && !pass_later;
        is_it.then(|| Found::inferred(CutOff { opened: case.opened() }, c.peak))
    }

    fn sentence(&self) -> String {
        format!(
            "dials got no reply from the {} on, while the open connections are served",
            nth(self.opened + 1)
        )
    }

    fn detail(&self, case: &Case) -> String {
        let (dials, held, since) = (case.n().of("dial"), Count(case.held()), case.since());
        let (open, are) = (held.of("open connection"), held.one_or("is", "are"));
        format!("{dials} got no SYN-ACK, no reset and no ICMP{since}; the {open} {are} served")
    }
}

//! Cause: SYNs are lost, so dials wait until they are sent again.

use super::*;
use crate::{dials, queue};

/// Dials timed out, a threshold on `connect` failed, or a search by arrival or burst fell short; the p99 of connecting is 0.95 s or more (the
/// first retransmission of a SYN comes after 1 s), SYNs of 1 % of the dials or more were retransmitted, and no queue of the target is seen to
/// have dropped them.
pub(crate) struct SynLoss {
    pub(crate) again: u64,
    pub(crate) p99_s: f64,
    pub(crate) by: By,
}

/// What may have dropped them: on this machine, between two that are seen, or beyond what is seen.
pub(crate) enum By {
    Firewall,
    Path,
    PathOrQueue,
}

/// Whether SYNs were lost, whatever figure is judged.
pub(crate) fn seen(case: &Case) -> Option<Found<SynLoss>> {
    let e = case.evidence;
    if !dials::have_waited(case) {
        return None;
    }
    let by = match e.there {
        // The accept queue dropped them, which another cause covers.
        Some(there) if queue::dropped(there.net) > 0 => return None,
        Some(_) if e.subject.is_loopback => By::Firewall,
        Some(_) => By::Path,
        None => By::PathOrQueue,
    };
    let (again, p99_s) = (e.here.net.syn_retrans, case.summary.connect_us.p99 / 1e6);
    Some(Found::inferred(SynLoss { again, p99_s, by }, case.left()))
}

impl Cause for SynLoss {
    const ID: &'static str = "syn-loss";
    const OF: (Side, Name) = (Side::Path, Name::SynLoss);
    const YIELDS_TO: &'static str =
        "rejected rejected-in-part blocked-here cut-off queue-overflowed queue-unaccepted queue-standing";

    fn find(case: &Case) -> Option<Found<SynLoss>> {
        if dials::timed_out(case) || dials::are_judged(case) { seen(case) } else { None }
    }

    fn sentence(&self) -> String {
        let by = match self.by {
            By::Firewall => "a firewall of this machine",
            By::Path => "the path",
            By::PathOrQueue => "the path, or a full queue of the target,",
        };
        let (were, p99_s) = (Count(self.again).were("SYN"), self.p99_s);
        format!("{were} retransmitted, and connect p99 was {p99_s:.1} s: {by} drops some SYNs")
    }

    fn detail(&self, case: &Case) -> String {
        let queues = match self.by {
            By::PathOrQueue => "",
            By::Firewall | By::Path => "; the target's queues dropped none",
        };
        format!(
            "{} for {}: {}{queues}",
            some(self.again, "SYN retransmission"),
            some(dials::made(case.summary), "dial"),
            dials::connecting_took(case.summary)
        )
    }

    fn fix(&self, _: &Case) -> String {
        let fix = match self.by {
            By::Firewall => {
                "check this machine's firewall for a limit on the rate of new connections (nft list ruleset: limit rate; iptables -S: limit, \
                hashlimit)"
            }
            By::Path => {
                "check the firewalls on the path and on both hosts for a limit on the rate of new connections (nft list ruleset: limit rate; \
                iptables -S: limit, hashlimit), and the path for loss (mtr -T)"
            }
            By::PathOrQueue => {
                "check the target's queues there (nstat -az TcpExtListenDrops TcpExtTCPReqQFullDrop, or throng observe), then the firewalls \
                on the path for a limit on the rate of new connections (limit rate, hashlimit)"
            }
        };
        fix.to_owned()
    }
}

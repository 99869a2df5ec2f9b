use super::*;

/// No dial ever succeeded, and this machine blocked outgoing SYNs (`TCPRetransFail`).
pub(crate) struct BlockedHere {
    pub(crate) dials: u64,
    pub(crate) segments: u64,
}

impl Cause for BlockedHere {
    const ID: &'static str = "blocked-here";
    const OF: (Side, Name) = (Side::Host, Name::Denied);
    const YIELDS_TO: &'static str = "rejected rejected-in-part unacknowledged";
    const FIX: &'static str = "check this host's firewall (nft list ruleset, iptables -L OUTPUT -v)";

    fn find(case: &Case) -> Option<Found<BlockedHere>> {
        let segments = case.evidence.here.net.retrans_fails;
        let is_it = super::no_syn_ack::never_opened(case) && segments > 0;
        is_it.then(|| Found::inferred(BlockedHere { dials: case.count, segments }, 0))
    }

    fn sentence(&self) -> String {
        format!("this machine's firewall dropped {}", some(self.dials, "dial"))
    }

    fn detail(&self, _: &Case) -> String {
        let (dials, segments) = (some(self.dials, "dial"), some(self.segments, "outgoing segment"));
        format!("{dials} got no SYN-ACK: this machine blocked {segments} (TCPRetransFail)")
    }
}

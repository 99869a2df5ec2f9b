//! Cause: this machine itself blocks the SYNs of dials.

use super::*;

/// Dials had no SYN-ACK, and this machine blocked SYNs that were sent again, one or more for each of them (`TCPRetransFail`), or no dial ever
/// succeeded.
pub(crate) struct BlockedHere {
    pub(crate) dials: u64,
    pub(crate) segments: u64,
    /// `: the 164th and all after it`, where others had succeeded.
    pub(crate) since: String,
}

impl Cause for BlockedHere {
    const ID: &'static str = "blocked-here";
    const OF: (Side, Name) = (Side::Host, Name::Denied);
    const YIELDS_TO: &'static str = "rejected rejected-in-part unacknowledged";
    const FIX: &'static str = "check this host's firewall (nft list ruleset, iptables -L OUTPUT -v)";

    fn find(case: &Case) -> Option<Found<BlockedHere>> {
        let segments = case.evidence.here.net.retrans_fails;
        let are_dials = case.trouble == Trouble::Waiting && case.stage == Some(Stage::Dial);
        let is_of_each = are_dials && segments >= case.count;
        let is_it = segments > 0 && (is_of_each || super::no_syn_ack::never_opened(case));
        let found = BlockedHere { dials: case.count, segments, since: case.since() };
        is_it.then(|| Found::inferred(found, case.peak()))
    }

    fn sentence(&self) -> String {
        format!("this machine's firewall dropped {}{}", some(self.dials, "dial"), self.since)
    }

    fn detail(&self, _: &Case) -> String {
        let (dials, segments) = (some(self.dials, "dial"), some(self.segments, "outgoing segment"));
        format!("{dials} got no SYN-ACK: this machine blocked {segments} (TCPRetransFail)")
    }
}

//! Cause: a link on the path has a smaller MTU, so full-size packets vanish (path-MTU black hole, RFC 2923).

use super::*;

/// Requests or handshakes had no response in time, and users after the load were served with small segments, and not with others
/// ([experiments](experiments.md)): a link on the way has a smaller MTU, and the ICMP messages that say so do not arrive (RFC 2923, section 2.1).
pub(crate) struct BlackHole {
    pub(crate) count: u64,
    pub(crate) what: &'static str,
    /// What was sent is not acknowledged: it is our packets that are dropped.
    pub(crate) is_ours: bool,
}

impl Cause for BlackHole {
    const ID: &'static str = "black-hole";
    const OF: (Side, Name) = (Side::Path, Name::Timeout);
    const FIX: &'static str = "let ICMP pass (fragmentation needed, packet too big), clamp the MSS on the narrow link, or set net.ipv4.tcp_mtu_probing=1 \
        on both hosts; to find the link: ping -M do -s 1472 HOST";

    fn find(case: &Case) -> Option<Found<BlackHole>> {
        let stage = case.stage.filter(|stage| case.trouble == Trouble::Waiting && *stage != Stage::Dial)?;
        let is_none = case.requests().answered == 0;
        let what = if stage == Stage::Exchange { "request" } else { "handshake" };
        let is_it = case.evidence.answers.needs_small_segments(is_none);
        let seen = &case.evidence.segments;
        let is_ours = seen.unacknowledged.max(seen.lossy.stuck) * 2 >= case.count;
        is_it.then(|| Found::seen(BlackHole { count: case.count, what, is_ours }, case.peak()))
    }

    fn of(&self) -> (Side, Name) {
        (Side::Path, if self.is_ours { Name::Unacknowledged } else { Name::Timeout })
    }

    fn sentence(&self) -> String {
        let n = some(self.count, self.what);
        format!(
            "the path drops large packets: {n} had no response, and users with small segments were served"
        )
    }

    fn detail(&self, _: &Case) -> String {
        let n = some(self.count, self.what);
        format!(
            "{n} timed out; after the load users were served with segments of 536 bytes, and not without that limit"
        )
    }
}

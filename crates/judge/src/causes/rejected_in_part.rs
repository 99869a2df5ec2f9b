//! Cause: most dials get no reply, and ICMP messages reject a few.

use super::*;

/// Most dials got no SYN-ACK, and ICMP messages arrived for a few (`InDestUnreachs`, `Icmp6InDestUnreachs`): routers limit their rate, and those
/// that arrive while a dial is being made are not reported for it.
pub(crate) struct RejectedInPart {
    pub(crate) dials: u64,
    pub(crate) messages: u64,
}

impl Cause for RejectedInPart {
    const ID: &'static str = "rejected-in-part";
    const OF: (Side, Name) = (Side::Path, Name::Unreachable);
    const YIELDS_TO: &'static str = "rejected";
    const FIX: &'static str = FIREWALLS;

    fn find(case: &Case) -> Option<Found<RejectedInPart>> {
        let seen = &case.evidence.segments;
        let rejected = case.faults_of(Side::Path, Kind::Unreachable);
        let messages = case.evidence.here.net.icmp_unreachable.max(rejected);
        let is_silent = seen.unanswered <= seen.unacknowledged + seen.syns;
        if messages == 0 || !is_silent || case.stage != Some(Stage::Dial) || case.trouble != Trouble::Waiting
        {
            return None;
        }
        Some(Found::inferred(RejectedInPart { dials: case.count + rejected, messages }, case.peak()))
    }

    fn sentence(&self) -> String {
        format!("{} rejected or got no SYN-ACK", Count(self.dials).were("dial"))
    }

    fn detail(&self, case: &Case) -> String {
        let (dials, messages) = (case.n().of("dial"), some(self.messages, "ICMP message"));
        let since = case.since();
        format!("{dials} got no SYN-ACK, and {messages} arrived (unreachable or prohibited){since}")
    }
}

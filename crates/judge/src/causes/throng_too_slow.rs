//! Cause: throng itself was late, or had no CPU left.

use super::*;
use crate::honesty;
use samples::Verdict;

/// The verdict is `invalid` because throng was late or had no CPU left, and nothing else failed, or it was late by half of the timeout that
/// dials and requests exceeded; or TLS handshakes timed out in a ramp for 95 % of which its threads were runnable.
pub(crate) struct ThrongTooSlow {
    pub(crate) why: String,
}

impl Cause for ThrongTooSlow {
    const ID: &'static str = "throng-too-slow";
    const OF: (Side, Name) = (Side::Host, Name::Cpu);
    const YIELDS_TO: &'static str = "throng-stopped shared-processors";

    /// That does not explain closes, resets or wrong responses; and a little lag does not explain timeouts.
    fn find(case: &Case) -> Option<Found<ThrongTooSlow>> {
        let s = case.summary;
        let waits = case.trouble == Trouble::Waiting;
        let may_be_ours = case.trouble == Trouble::None || waits && honesty::is_too_slow(s, case.evidence);
        let handshakes = honesty::late_handshakes(s).filter(|_| waits);
        let is_late = s.verdict == Verdict::Invalid && s.incomplete().is_none();
        let why = handshakes.or_else(|| s.reasons.first().filter(|_| is_late && may_be_ours).cloned())?;
        Some(Found::seen(ThrongTooSlow { why }, case.left()))
    }

    fn sentence(&self) -> String {
        self.why.clone()
    }

    fn detail(&self, _: &Case) -> String {
        self.why.clone()
    }

    fn fix(&self, case: &Case) -> String {
        let faster = case.or_less("give throng more processors or its own machine", "reduce the load");
        match self.why.contains("--max-lag") {
            true => format!("{faster}; where that lag does not matter, raise --max-lag"),
            false => faster,
        }
    }
}

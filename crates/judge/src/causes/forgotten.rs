//! Cause: the target or the path no longer knows connections after a silence.

use super::*;

/// Requests that came after a certain silence of their connection, or longer, were reset or had no response, and others were answered: by the
/// test of [what failed requests have in common](in-common.md). Silences are known to a factor of two.
pub(crate) struct Forgotten {
    pub(crate) silence: Nanos,
    pub(crate) count: u64,
    pub(crate) by: By,
}

impl Cause for Forgotten {
    const ID: &'static str = "forgotten";
    const OF: (Side, Name) = (Side::Target, Name::IdleCut);
    const YIELDS_TO: &'static str = "requests-per-connection worker-ended ended oom-killed";

    fn find(case: &Case) -> Option<Found<Forgotten>> {
        let is_of_use = case.stage == Some(Stage::Exchange)
            && (case.trouble == Trouble::Waiting || is_unannounced(case) && case.trouble == Trouble::Lost);
        let silence = case.evidence.failing_silence.filter(|_| is_of_use)?;
        // If data is acknowledged but not answered, nothing shows where the reply was lost.
        let by = if case.trouble != Trouble::Waiting {
            By::of(case)
        } else if !case.is_far() {
            By::Target
        } else if case.evidence.segments.lossy.is_the_reason() {
            By::Path
        } else {
            By::TargetOrPath
        };
        Some(Found::inferred(Forgotten { silence, count: case.count, by }, case.peak()))
    }

    fn of(&self) -> (Side, Name) {
        (self.by.side(), Self::OF.1)
    }

    fn sentence(&self) -> String {
        let (silence, n) = (self.silence.brief(), some(self.count, "request"));
        format!(
            "{} forgets idle connections: {n} failed that came after {silence} of silence or longer",
            self.by
        )
    }

    fn detail(&self, case: &Case) -> String {
        let how = if case.trouble == Trouble::Waiting { "had no response" } else { "were reset or closed" };
        format!(
            "{} {how}, nearly all of them on connections that had been silent for {} or longer, as those that were served had not",
            some(self.count, "request"),
            self.silence.brief()
        )
    }

    fn fix(&self, case: &Case) -> String {
        format!("{}; or let TCP keep-alive probes come more often", outlast(case, Nanos::ZERO))
    }
}

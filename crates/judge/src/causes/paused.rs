//! Cause: the target paused at a few moments, on all connections at once.

use super::*;
use crate::{evidence::State, slow, stall};
use samples::SlowPart;
use units::percent;

/// A threshold on latency failed by responses that are far slower than all others, and they came at a few moments, on every connection at once: by
/// the test of [what slow responses have in common](in-common.md).
pub(crate) struct Paused {
    pub(crate) times: u64,
    pub(crate) part: SlowPart,
    /// Something on the path may have.
    pub(crate) is_far: bool,
}

impl Cause for Paused {
    const ID: &'static str = "paused";
    const OF: (Side, Name) = (Side::Target, Name::Stall);
    const YIELDS_TO: &'static str = "silent collecting heap cpu cpu-quota target-stopped throng-stopped throng-too-slow shared-processors \
        oom-killed ended worker-ended syn-loss queue-slowed-dials";

    fn find(case: &Case) -> Option<Found<Paused>> {
        let (part, times) = (slow::part(case)?, case.evidence.pauses?);
        Some(Found::inferred(Paused { times, part, is_far: case.is_far() }, case.left()))
    }

    fn of(&self) -> (Side, Name) {
        (if self.is_far { Side::Unknown } else { Side::Target }, Name::Stall)
    }

    fn sentence(&self) -> String {
        let who = if self.is_far { "the target, or the path to it," } else { "the target" };
        let (share, slow) = (percent(self.part.share), self.part.slow.brief());
        format!(
            "{who} paused {}: {share} of responses took {slow}, on every connection at once",
            some(self.times, "time")
        )
    }

    fn detail(&self, _: &Case) -> String {
        let (slow, usual) = (self.part.slow.brief(), self.part.usual.brief());
        format!("responses took {slow} at {}, and {usual} at all others", some(self.times, "moment"))
    }

    fn fix(&self, _: &Case) -> String {
        stall::advice(State::Unseen).to_owned()
    }
}

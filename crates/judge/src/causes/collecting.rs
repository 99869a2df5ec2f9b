//! Cause: slow responses coincide with garbage collections of the target's JVM.

use super::*;
use crate::{evidence::State, slow, stall::advice};
use record::tolerances::HALF;
use samples::SlowPart;
use units::percent;

/// A threshold on latency failed by responses that are far slower than all others, and in at least half of the seconds with the slowest
/// ones the target (a JVM) was collecting garbage for half as long as these took.
pub(crate) struct Collecting {
    pub(crate) part: SlowPart,
    pub(crate) pause: Nanos,
}

impl Cause for Collecting {
    const ID: &'static str = "collecting";
    const OF: (Side, Name) = (Side::Target, Name::Stall);
    const YIELDS_TO: &'static str = "heap silent cpu";

    fn find(case: &Case) -> Option<Found<Collecting>> {
        let (part, pause) = (slow::part(case)?, case.evidence.pause);
        let explains = pause.secs_f64() >= HALF * part.slow.secs_f64();
        explains.then(|| Found::seen(Collecting { part, pause }, case.left()))
    }

    fn sentence(&self) -> String {
        format!("{}, while the target collected garbage", slow::sentence(&self.part))
    }

    fn detail(&self, _: &Case) -> String {
        format!(
            "{} of responses took {}; in those seconds the target was collecting garbage for {} at a time",
            percent(self.part.share),
            self.part.slow.brief(),
            self.pause.brief()
        )
    }

    fn fix(&self, _: &Case) -> String {
        advice(State::Collecting).to_owned()
    }
}

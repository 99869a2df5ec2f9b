//! Cause: both ends share too few processors.

use super::*;
use crate::evidence::Shared;

/// Both ends are confined to the same processors, fewer than the machine has, and used 85 % of them, or would have used 120 %.
pub(crate) struct SharedProcessors(pub(crate) Shared);

impl Cause for SharedProcessors {
    const ID: &'static str = "shared-processors";
    const OF: (Side, Name) = (Side::Host, Name::Cpu);
    const FIX: &'static str =
        "assign separate processors to each (taskset -c), or run throng on another machine";

    fn find(case: &Case) -> Option<Found<SharedProcessors>> {
        let shared = case.evidence.shared.clone()?;
        let is_used_up = shared.own + shared.target >= SHARED || shared.wanted >= WANTED;
        let take_part = shared.own.min(shared.target) >= TAKES_PART;
        let is_it = case.is_waiting() && is_used_up && take_part;
        is_it.then(|| Found::seen(SharedProcessors(shared), case.left()))
    }

    fn sentence(&self) -> String {
        format!("throng and the target compete for the same processors ({})", self.0.list)
    }

    fn detail(&self, _: &Case) -> String {
        let (list, own, target) = (&self.0.list, self.0.own * 100.0, self.0.target * 100.0);
        format!(
            "throng and the target share the same processors ({list}) and compete for them: throng used {own:.0} %, the target \
            {target:.0} %; the figures describe both together"
        )
    }
}

/// If both ends together used this share of the processors, they were used up: the kernel's work counts for neither end.
const SHARED: f64 = 0.85;
/// The processors that both ends would have used must exceed the available ones by this factor.
const WANTED: f64 = 1.2;
/// If the end that used less stayed below this share, it did not keep the other from running.
const TAKES_PART: f64 = 0.05;

//! Cause: the target's control group uses up its CPU quota.

use super::*;
use crate::evidence::TargetSeen;
use record::tolerances::HALF;
use units::percent;

/// The target's control group used up its CPU quota in half of the periods at full load, or more (`nr_throttled` of `nr_periods`).
pub(crate) struct CpuQuota {
    pub(crate) cores: f64,
    pub(crate) share: f64,
}

impl Cause for CpuQuota {
    const ID: &'static str = "cpu-quota";
    const OF: (Side, Name) = (Side::Target, Name::Cpu);
    const YIELDS_TO: &'static str = "heap open-files target-stopped oom-killed";

    fn find(case: &Case) -> Option<Found<CpuQuota>> {
        let is_it = |target: &TargetSeen| case.is_waiting() && !target.serves_others;
        let (cores, share) = case.evidence.target.filter(is_it)?.quota?;
        (share >= HALF).then(|| Found::seen(CpuQuota { cores, share }, case.left()))
    }

    fn sentence(&self) -> String {
        format!(
            "the target used up its CPU quota of {} cores, and had to wait in {} of all periods",
            self.cores,
            percent(self.share)
        )
    }

    fn detail(&self, case: &Case) -> String {
        format!("the control group of process {} was throttled ({})", case.pid(), self.sentence())
    }

    fn fix(&self, case: &Case) -> String {
        case.or_less(
            "raise its CPU quota (CPUQuota= of its unit, --cpus of its container)",
            "reduce the load",
        )
    }
}

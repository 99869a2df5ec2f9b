use super::*;
use crate::tolerances::HALF;

/// Responses took less than half of the load's median for one user alone, right after the load ([experiments](experiments.md)), and the target had CPU
/// left: requests wait for each other, at a lock, or for a worker, a thread, or a connection of a pool.
pub(crate) struct FewAtATime {
    pub(crate) alone: Nanos,
    pub(crate) median_us: f64,
    pub(crate) per_s: f64,
}

impl FewAtATime {
    /// How many it works on at a time: as many as are answered in the time of one (Little's law).
    fn at_a_time(&self) -> u64 {
        (self.per_s * self.alone.secs_f64()).round().max(1.0) as u64
    }
}

impl Cause for FewAtATime {
    const ID: &'static str = "few-at-a-time";
    const OF: (Side, Name) = (Side::Target, Name::Saturated);
    const YIELDS_TO: &'static [&'static str] = &[
        "cpu",
        "cpu-quota",
        "heap",
        "open-files",
        "silent",
        "collecting",
        "target-stopped",
        "throng-stopped",
        "throng-too-slow",
        "shared-processors",
        "starved",
        "slow-accept",
        "saturated",
        "falls-behind",
        "too-few-connections",
        "queue-overflowed",
        "queue-unaccepted",
        "queue-standing",
        "queue-slowed-dials",
    ];

    fn find(case: &Case) -> Option<Found<FewAtATime>> {
        let (median_us, per_s) = (case.latency_us().0.p50, case.requests().per_s);
        let alone = case.evidence.answers.faster_alone(Nanos((median_us * 1e3) as u64))?;
        // A target that is not seen may be out of CPU.
        let has_cpu_left = case.evidence.target.is_some_and(|target| target.cpu_share < HALF);
        let is_it = case.is_waiting() && has_cpu_left && case.slow().is_none();
        is_it.then(|| Found::inferred(FewAtATime { alone, median_us, per_s }, case.left()))
    }

    fn sentence(&self) -> String {
        let load = Nanos((self.median_us * 1e3) as u64).brief();
        format!(
            "the target works on about {} at a time: a response takes {} alone, and {load} under load",
            some(self.at_a_time(), "request"),
            self.alone.brief()
        )
    }

    fn detail(&self, _: &Case) -> String {
        let (alone, n) = (self.alone.brief(), self.at_a_time());
        format!(
            "{:.0}/s were answered, each of which takes {alone} alone: about {n} at a time; it had CPU left",
            self.per_s
        )
    }

    fn fix(&self, _: &Case) -> String {
        format!(
            "find what its requests wait for: a lock, or the number of its workers, its threads or its connections to what it calls; {WORKERS}"
        )
    }
}

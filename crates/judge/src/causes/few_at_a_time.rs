//! Cause: the target has CPU left but serves only a few requests at a time, as with a lock or a pool.

use super::*;
use record::tolerances::HALF;

/// Responses took less than half of the load's median for one user alone, right after the load ([experiments](experiments.md)), and the target had CPU
/// left: requests wait for each other, at a lock, or for a worker, a thread, or a connection of a pool. Where half of them or more timed out, the
/// median is no less than the timeout.
pub(crate) struct FewAtATime {
    pub(crate) alone: Nanos,
    pub(crate) median: Nanos,
    pub(crate) per_s: f64,
    /// Half of the requests or more timed out.
    pub(crate) is_most_late: bool,
}

impl FewAtATime {
    /// How many it works on at a time: as many as are answered in the time of one (Little's law). It may work on those that have timed out, too.
    fn at_a_time(&self) -> String {
        match self.is_most_late {
            true => "few requests".to_owned(),
            false => format!(
                "about {}",
                some((self.per_s * self.alone.secs_f64()).round().max(1.0) as u64, "request")
            ),
        }
    }

    fn median(&self) -> String {
        let over = if self.is_most_late { "over " } else { "" };
        format!("{over}{}", self.median.brief())
    }
}

impl Cause for FewAtATime {
    const ID: &'static str = "few-at-a-time";
    const OF: (Side, Name) = (Side::Target, Name::Saturated);
    const YIELDS_TO: &'static str = "cpu cpu-quota heap open-files silent collecting target-stopped throng-stopped throng-too-slow \
        shared-processors starved slow-accept saturated falls-behind too-few-connections queue-overflowed \
        queue-unaccepted queue-standing queue-slowed-dials";

    fn find(case: &Case) -> Option<Found<FewAtATime>> {
        let (r, times) = (case.requests(), case.latency_us().0);
        let is_most_late = case.stage == Some(Stage::Exchange) && case.count >= r.answered;
        let median = if is_most_late { case.evidence.timeout } else { Nanos((times.p50 * 1e3) as u64) };
        let alone = case.evidence.answers.faster_alone(median)?;
        // An unobserved target may be out of CPU, and so may one that uses more than half of what a single thread can.
        let has_cpu_left = case.evidence.target.is_some_and(|target| target.cores_used < HALF);
        let is_it = case.is_waiting() && has_cpu_left && case.slow().is_none();
        let found = FewAtATime { alone, median, per_s: r.per_s, is_most_late };
        is_it.then(|| Found::inferred(found, case.left()))
    }

    fn sentence(&self) -> String {
        format!(
            "the target works on {} at a time: a response takes {} alone, and {} under load",
            self.at_a_time(),
            self.alone.brief(),
            self.median()
        )
    }

    fn detail(&self, _: &Case) -> String {
        format!(
            "{:.0}/s were answered, each of which takes {} alone: {} at a time; it had CPU left",
            self.per_s,
            self.alone.brief(),
            self.at_a_time()
        )
    }

    fn fix(&self, _: &Case) -> String {
        format!(
            "find what its requests wait for: a lock, or the number of its workers, its threads or its connections to what it calls; {WORKERS}"
        )
    }
}

//! What sinks are shown of a run beside its counts: stages and commands as marks, and how thresholds stand.

use samples::{Mark, MarkKind, ThresholdResult};
use units::Nanos;

use super::Conductor;

impl Conductor<'_> {
    /// A mark on the next line.
    pub(super) fn mark(&mut self, at: Nanos, kind: MarkKind, what: String) {
        self.marks.add(Mark { at, kind, what });
    }

    /// The current stage has begun. A plan with only one has phases to tell.
    pub(super) fn mark_stage(&mut self, at: Nanos) {
        if let [_, _, ..] = self.plan.stages.as_slice() {
            self.mark(at, MarkKind::Stage, self.plan.stages[self.schedule.stage()].name.clone());
        }
    }

    /// Thresholds, judged by all lines so far, the last of which ended then: as if the load had ended with it.
    pub(crate) fn thresholds(&mut self, until: Nanos) -> Vec<ThresholdResult> {
        if self.plan.thresholds.is_empty() {
            return Vec::new();
        }
        if self.record.ended == Nanos::NEVER {
            self.measure(until);
        }
        judge::thresholds_so_far(self.plan, &self.record, self.record.ended.min(until))
    }

    /// Whether something is not as it should be at the end, so that the run may have failed.
    pub(crate) fn seems_wrong(&mut self) -> bool {
        let lost = self.sum(|tick| tick.faults.total() + tick.counts.failed + tick.counts.dropped);
        let until = self.record.ended;
        lost + self.awaited() > 0 || self.thresholds(until).iter().any(|threshold| !threshold.pass)
    }

    /// What is measured at the end of the load, by what is there now; the end replaces it.
    fn measure(&mut self, until: Nanos) {
        self.record.ramp = self.schedule.ramping_any(until);
        for (nth, population) in (0..).zip(&self.plan.populations) {
            let ramped_at = self.of(nth).map(|report| report.ramped_at).max().unwrap_or_default();
            let measured = &mut self.record.populations[usize::from(nth)];
            measured.end(population, self.schedule.ended(nth, ramped_at, until, until));
            if !measured.is_kept {
                measured.held = measured.open;
            }
        }
    }
}

//! What sinks show of a run besides its counts: marks for stages and commands, and the state of the thresholds.

use samples::{Mark, MarkKind, ThresholdResult};
use units::Nanos;

use super::Conductor;

impl Conductor<'_> {
    /// Adds a mark to the next line.
    pub(super) fn mark(&mut self, at: Nanos, kind: MarkKind, what: String) {
        self.marks.add(Mark { at, kind, what });
    }

    /// Marks the beginning of the current stage, if the plan has more than one.
    pub(super) fn mark_stage(&mut self, at: Nanos) {
        if let [_, _, ..] = self.plan.stages.as_slice() {
            self.mark(at, MarkKind::Stage, self.plan.stages[self.schedule.stage()].name.clone());
        }
    }

    /// Judges the thresholds by all lines until `until`, the end of the last line, as if the load had ended then.
    pub(crate) fn thresholds(&mut self, until: Nanos) -> Vec<ThresholdResult> {
        if self.plan.thresholds.is_empty() {
            return Vec::new();
        }
        if self.record.ended == Nanos::NEVER {
            self.measure(until);
        }
        judge::thresholds_so_far(self.plan, &self.record, self.record.ended.min(until))
    }

    /// Whether losses, missing responses or missed thresholds suggest that the run failed.
    pub(crate) fn seems_wrong(&mut self) -> bool {
        let lost = self.sum(|tick| tick.faults.total() + tick.counts.failed + tick.counts.dropped);
        let until = self.record.ended;
        lost + self.awaited() > 0 || self.thresholds(until).iter().any(|threshold| !threshold.pass)
    }

    /// Provisional end-of-load measurements at `until`; the actual end replaces them.
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

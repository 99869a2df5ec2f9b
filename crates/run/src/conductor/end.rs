//! The held connections, the end of the load, and the open connections that the target's process does not have: these are subtracted from
//! the held ones. Before the end, the thresholds are judged as if the load had just ended.

use observe::Absent;
use plan::Role;
use record::PopulationRecord;
use samples::ThresholdResult;
use units::Nanos;

use super::Conductor;

impl Conductor<'_> {
    /// Held connections and connections to be redialled, for each population; `None` below its peak load or where `counts` is false.
    pub(super) fn held(&self, counts: impl Fn(u16) -> bool) -> Vec<Option<(u64, u64)>> {
        let is_held = |nth| self.schedule.is_at_peak(nth) && counts(nth);
        let held = |nth| {
            let before = self.record.populations[usize::from(nth)].to_redial_before;
            let disconnected = before + self.of(nth).map(|report| report.disconnected).sum::<i64>();
            (self.of(nth).map(|report| report.held.count()).sum(), disconnected.max(0).unsigned_abs())
        };
        self.populations().map(|nth| is_held(nth).then(|| held(nth))).collect()
    }

    pub(super) fn keep_held(&mut self, held: &[Option<(u64, u64)>]) {
        self.add_ahead(u64::MAX);
        for (measured, held) in self.record.populations.iter_mut().zip(held) {
            held.iter().for_each(|(held, disconnected)| measured.keep_held(*held, *disconnected));
        }
    }

    /// Records the end of the load, once it has ended in all workers.
    pub(super) fn end_load(&mut self) {
        self.keep_held(&self.held(|_| true));
        // A population that never reached its peak load has held what is open now.
        let is_whole = self.record.interrupted.is_none();
        for (nth, measured) in
            (0..).zip(&mut self.record.populations).filter(|(_, measured)| !measured.is_kept)
        {
            measured.keep_held(measured.open, measured.to_redial());
            if is_whole && !self.schedule.is_at_peak(nth) {
                // All of its requests were sent before the stage with its peak load.
                measured.wanted = self.schedule.wanted(nth);
            }
        }
        let ended = match self.draining {
            Some(since) if self.goes_on() => since.min(self.schedule.ends_at()),
            _ => self.of_load().map(|report| report.drained_at).max().unwrap_or_default(),
        };
        (self.record.ended, self.record.ramp) = (ended, self.schedule.ramping_any(ended));
        for (nth, population) in (0..).zip(&self.plan.populations) {
            let ramped_at = self.ramped_at(nth).unwrap_or_default();
            // Arrivals may all have left earlier. If all workers were lost, the load lasted until the last of them was lost.
            let all = self.reports.iter().filter(|report| report.role == Role::Population(nth));
            let own = all.map(|report| report.drained_at).max().unwrap_or_default();
            let measured = &mut self.record.populations[usize::from(nth)];
            measured.end(population, self.schedule.ended(nth, ramped_at, own.min(ended), ended));
            measured.end_broadcasts(ended);
            if population.comes_and_goes() {
                self.record.ramp = self.record.ramp.max(measured.ramp);
            }
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
            let ramped_at = self.ramped_at(nth).unwrap_or_default();
            let measured = &mut self.record.populations[usize::from(nth)];
            measured.end(population, self.schedule.ended(nth, ramped_at, until, until));
            if !measured.is_kept {
                measured.held = measured.open;
            }
        }
    }

    /// Subtracts connections that exist only at throng's end, by population.
    pub(crate) fn handle_missing(&mut self, absent: &[Absent]) {
        let mut all = 0;
        for ((measured, population), absent) in
            self.record.populations.iter_mut().zip(&self.plan.populations).zip(absent)
        {
            // Connections that come and go are never held.
            if !population.comes_and_goes() {
                measured.missing = absent.missing.min(measured.held);
                measured.held -= measured.missing;
                all += measured.missing;
            }
        }
        self.record.missing = Some(all);
    }

    /// Subtracts connections that only the target's kernel has accepted, `all` in total. `listed`: their number in each population by the
    /// kernel's list, if it is available; a few of them may just have arrived.
    pub(crate) fn handle_unaccepted(&mut self, all: u64, listed: Option<&[Absent]>) {
        let Some(of_each) = self.attribute(all, listed) else {
            let held: u64 = self.may_be_absent().sum();
            self.record.unattributed = all.min(held);
            self.record.unaccepted = Some(self.record.unattributed);
            return;
        };
        for (measured, own) in self.record.populations.iter_mut().zip(&of_each) {
            (measured.held, measured.unaccepted) = (measured.held - own, *own);
        }
        self.record.unaccepted = Some(of_each.iter().sum());
    }

    /// Connections of each population that may be in the accept queue. Arrivals are excluded: they pass through it regularly.
    fn may_be_absent(&self) -> impl Iterator<Item = u64> {
        let each = self.record.populations.iter().zip(&self.plan.populations);
        each.map(|(measured, population)| if population.comes_and_goes() { 0 } else { measured.held })
    }

    /// Distributes the unaccepted connections over the populations; `None` where that is unknown.
    fn attribute(&self, all: u64, listed: Option<&[Absent]>) -> Option<Vec<u64>> {
        let open: Vec<u64> = self.may_be_absent().collect();
        let most: Vec<u64> = match listed {
            Some(listed) => open.iter().zip(listed).map(|(open, own)| own.unaccepted.min(*open)).collect(),
            // Without a list, throng's own records decide: connections in the queue have never had a response.
            None if open.iter().filter(|open| **open > 0).count() > 1 => {
                let unserved = self.record.populations.iter().map(PopulationRecord::unserved);
                let most: Vec<u64> = open.iter().zip(unserved).map(|(open, own)| own.min(*open)).collect();
                // The counts differ: connections without a response were closed, and redialled ones wait in the queue.
                return (most.iter().sum::<u64>() == all).then_some(most);
            }
            None => open,
        };
        let are_one_populations = most.iter().filter(|own| **own > 0).count() <= 1;
        if are_one_populations {
            return Some(most.into_iter().map(|own| own.min(all)).collect());
        }
        (most.iter().sum::<u64>() <= all).then_some(most)
    }
}

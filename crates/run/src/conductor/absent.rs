//! Open connections that the target's process does not have. They are subtracted from the held connections.

use super::Conductor;
use crate::both_sides::Absent;
use record::PopulationRecord;

impl Conductor<'_> {
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

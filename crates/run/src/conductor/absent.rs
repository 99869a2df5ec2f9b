//! Open connections that the target's process does not have: they are not held.

use super::Conductor;
use crate::both_sides::Absent;
use record::PopulationRecord;

impl Conductor<'_> {
    /// The number of each population's connections that exist at throng's end only.
    pub(crate) fn handle_missing(&mut self, absent: &[Absent]) {
        let mut all = 0;
        for ((measured, population), absent) in
            self.record.populations.iter_mut().zip(&self.plan.populations).zip(absent)
        {
            // Of those that come and go none is held.
            if !population.comes_and_goes() {
                measured.missing = absent.missing.min(measured.held);
                measured.held -= measured.missing;
                all += measured.missing;
            }
        }
        self.record.missing = Some(all);
    }

    /// So many are accepted only by the target's kernel. `listed`: those of each population that the kernel lists, where it does, of which
    /// a few may just have arrived.
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

    /// The connections of each population that may be in the queue: arrivals are in it now and then.
    fn may_be_absent(&self) -> impl Iterator<Item = u64> {
        let each = self.record.populations.iter().zip(&self.plan.populations);
        each.map(|(measured, population)| if population.comes_and_goes() { 0 } else { measured.held })
    }

    /// How many of them are of each population; none where that is not known.
    fn attribute(&self, all: u64, listed: Option<&[Absent]>) -> Option<Vec<u64>> {
        let open: Vec<u64> = self.may_be_absent().collect();
        let most: Vec<u64> = match listed {
            Some(listed) => open.iter().zip(listed).map(|(open, own)| own.unaccepted.min(*open)).collect(),
            // It is seen by what throng has: those in the queue have never had a response.
            None if open.iter().filter(|open| **open > 0).count() > 1 => {
                let unserved = self.record.populations.iter().map(PopulationRecord::unserved);
                let most: Vec<u64> = open.iter().zip(unserved).map(|(open, own)| own.min(*open)).collect();
                // Fewer than those: others are closed and dialled again, and wait there.
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

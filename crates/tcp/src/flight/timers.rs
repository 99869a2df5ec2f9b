//! The deadlines of flights, in a heap with lazy deletion. Nearly every deadline is cancelled within a round trip, so setting and
//! cancelling must be cheap: an entry that is early enough stays as it is, and is checked again when its time comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Nanos;

/// At most one valid entry per flight; entries that were replaced by earlier ones remain until they are popped or cleared away.
#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// The time of each flight's valid entry; [`Nanos::NEVER`] if it has none.
    entries: Vec<Nanos>,
}

/// Invalid entries are cleared away when the heap has more than twice as many entries as there are flights, plus this number.
const SLACK: usize = 64;

impl Timers {
    /// Sets the deadline of flight `number`.
    pub(super) fn arm(&mut self, number: u32, deadline: Nanos) {
        if self.entries.len() <= number as usize {
            self.entries.resize(number as usize + 1, Nanos::NEVER);
        }
        if self.entries[number as usize] <= deadline {
            return;
        }
        self.entries[number as usize] = deadline;
        if self.heap.len() > 2 * self.entries.len() + SLACK {
            let entries = &self.entries;
            self.heap.retain(|Reverse((at, number))| entries[*number as usize] == *at);
        }
        self.heap.push(Reverse((deadline, number)));
    }

    /// The time of the earliest entry; no deadline is earlier.
    pub(super) fn next(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::NEVER, |Reverse((at, _))| *at)
    }

    /// The next flight whose deadline has come. An entry whose flight has a later deadline is moved; one without a deadline is removed.
    pub(super) fn due(&mut self, now: Nanos, deadline: impl Fn(u32) -> Nanos) -> Option<u32> {
        while self.next() <= now {
            let Reverse((at, number)) = self.heap.pop()?;
            if self.entries[number as usize] != at {
                continue;
            }
            self.entries[number as usize] = Nanos::NEVER;
            match deadline(number) {
                due if due <= now => return Some(number),
                Nanos::NEVER => {}
                later => self.arm(number, later),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a list: each flight is due when its deadline has come, not earlier, and only once.
        #[test]
        fn is_due_in_time(acts in prop::collection::vec((0u32..20, 0u64..3000, any::<bool>()), 0..400)) {
            let mut timers = Timers::default();
            let mut deadlines = [Nanos::NEVER; 20];
            let mut now = Nanos::ZERO;
            for (number, span, arms) in acts {
                if arms {
                    let deadline = now + Nanos(span);
                    deadlines[number as usize] = deadline;
                    timers.arm(number, deadline);
                } else if span % 3 == 0 {
                    deadlines[number as usize] = Nanos::NEVER;
                } else {
                    now = now + Nanos(span);
                    let mut due = Vec::new();
                    while let Some(number) = timers.due(now, |number| deadlines[number as usize]) {
                        due.push(number);
                        deadlines[number as usize] = Nanos::NEVER;
                    }
                    due.sort_unstable();
                    let is_unique = due.windows(2).all(|pair| pair[0] < pair[1]);
                    prop_assert!(is_unique, "{due:?}");
                    prop_assert!(deadlines.iter().all(|deadline| *deadline > now));
                }
                let first = deadlines.iter().min().copied().unwrap_or(Nanos::NEVER);
                prop_assert!(timers.next() <= first, "it wakes in time");
                prop_assert!(timers.heap.len() <= 2 * 20 + SLACK + 1);
            }
        }
    }

    /// In closed loop nearly everything is acknowledged at once: setting a later deadline must not add entries.
    #[test]
    fn what_is_armed_again_later_costs_no_entry() {
        let mut timers = Timers::default();
        for round in 0..100_000 {
            timers.arm(3, Nanos(1_000_000 + round));
        }
        assert_eq!(timers.heap.len(), 1);
    }
}

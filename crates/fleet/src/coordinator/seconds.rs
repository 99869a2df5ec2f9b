//! The counts of each agent, second by second, for display.

use std::{collections::BTreeMap, mem};

use samples::{AgentTicks, Tick};

/// Maximum lead in seconds. Counts further ahead are moved to the last of these seconds.
const AHEAD: u64 = 3;

/// Counts of seconds that have not been taken yet.
#[derive(Default)]
pub(super) struct Seconds {
    of: BTreeMap<u64, AgentTicks>,
    /// The last second taken.
    taken: u64,
}

impl Seconds {
    /// Adds the counts of the agent at index `place` for a second. Returns them instead if they are late: if the second has been taken,
    /// or the agent is lost.
    pub(super) fn add(
        &mut self,
        place: usize,
        second: u64,
        tick: &Tick,
        is_lost: bool,
    ) -> Option<Box<AgentTicks>> {
        if is_lost || second <= self.taken {
            let mut late = AgentTicks::default();
            tick.report(place, &mut late);
            return Some(Box::new(late));
        }
        let second = second.min(self.taken.saturating_add(AHEAD));
        tick.report(place, self.of.entry(second).or_default());
        None
    }

    /// Takes the counts of all seconds up to `until`.
    pub(super) fn take(&mut self, until: u64) -> AgentTicks {
        self.taken = self.taken.max(until);
        let later = self.of.split_off(&until.saturating_add(1));
        let mut due = mem::replace(&mut self.of, later).into_values();
        let mut all = due.next().unwrap_or_default();
        due.for_each(|later| all.extend(&later));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ahead_waits_and_what_is_late_is_returned() {
        let mut seconds = Seconds::default();
        let add = |seconds: &mut Seconds, place, second, is_lost| {
            let mut tick = Tick { open: 5, ..Tick::default() };
            tick.counts.answered = second;
            seconds.add(place, second, &tick, is_lost)
        };
        let requests = |agents: &AgentTicks| [0, 1].map(|place| AgentTicks::value(&agents.requests, place));
        for (place, second) in [(0, 1), (1, 1), (0, 2)] {
            assert_eq!(add(&mut seconds, place, second, false), None, "{place} {second}");
        }
        assert_eq!(requests(&seconds.take(1)), [1, 1]);
        let late = add(&mut seconds, 1, 1, false).expect("the second was taken");
        assert_eq!((requests(&late), late.open.0[1]), ([0, 1], 5));
        assert_eq!(add(&mut seconds, 1, 2, false), None);
        assert!(add(&mut seconds, 1, 3, true).is_some(), "it is lost");
        assert_eq!(requests(&seconds.take(2)), [2, 2]);
        // From a clock that is far ahead.
        assert_eq!(add(&mut seconds, 0, 1_000_000, false), None);
        assert_eq!(requests(&seconds.take(5)), [1_000_000, 0]);
    }
}

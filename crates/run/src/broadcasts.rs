//! Broadcasts: numbers that a server sends to many connections, from the first receipt to the last. Shards and agents report who
//! received what; here it is put together, since none of them sees all receivers.

use std::collections::BTreeMap;

use plan::{Population, Receivers};
use samples::{Phase, Tick};
use units::Nanos;

/// Numbers that are waited for at most; of more, the lowest are given up.
const MOST: usize = 4096;

/// Those of a population.
#[derive(Default)]
pub(crate) struct Broadcasts {
    receivers: Option<Receivers>,
    /// What is received this much later is not waited for.
    patience: Nanos,
    open: BTreeMap<u64, Broadcast>,
}

/// A number on its way to its receivers.
struct Broadcast {
    first: Nanos,
    last: Nanos,
    count: u64,
    /// How many are to have it.
    wanted: u64,
    /// All of them have; what comes now is not of them.
    is_complete: bool,
}

impl Broadcasts {
    pub(crate) fn of(population: &Population) -> Broadcasts {
        let receivers = population.pushes.receivers;
        Broadcasts { receivers, patience: population.timeout, open: BTreeMap::new() }
    }

    /// Takes what a shard or an agent reports, while the population had this many connections `open`. Only at full load is it known
    /// who is to receive what.
    pub(crate) fn take(&mut self, tick: &Tick, open: u64) {
        let Some(receivers) = self.receivers else { return };
        for it in tick.pushes.receipts.iter() {
            if tick.phase != Phase::Hold && !self.open.contains_key(&it.number) {
                continue;
            }
            let wanted = match receivers {
                Receivers::All => open,
                Receivers::Of(count) => count.into(),
            };
            let new = Broadcast { first: it.first, last: it.last, count: 0, wanted, is_complete: false };
            let own = self.open.entry(it.number).or_insert(new);
            if !own.is_complete {
                (own.first, own.last) = (own.first.min(it.first), own.last.max(it.last));
                own.count += it.count;
            }
        }
    }

    /// Adds what is known by `now` to a line of the population.
    pub(crate) fn settle(&mut self, now: Nanos, line: &mut Tick) {
        for it in self.open.values_mut().filter(|it| !it.is_complete && it.count >= it.wanted.max(1)) {
            it.is_complete = true;
            line.pushes.broadcasts += 1;
            line.pushes.complete += 1;
            line.spread.record(it.last.since(it.first));
        }
        let mut surplus = self.open.len().saturating_sub(MOST);
        let patience = self.patience;
        self.open.retain(|_, it| {
            let is_over = now.since(it.last) >= patience || surplus > 0;
            surplus = surplus.saturating_sub(1);
            if is_over && !it.is_complete {
                line.pushes.broadcasts += 1;
                line.spread.censor();
            }
            !is_over
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broadcasts(receivers: Receivers) -> Broadcasts {
        let mut population = crate::fixture::plan(&[]).populations.remove(0);
        population.pushes.receivers = Some(receivers);
        population.timeout = Nanos::from_secs(5);
        Broadcasts::of(&population)
    }

    fn tick(phase: Phase, receipts: &[(u64, u64)]) -> Tick {
        let mut tick = Tick { phase, ..Tick::default() };
        receipts
            .iter()
            .for_each(|(number, ms)| tick.pushes.receipts.record(*number, Nanos::from_millis(*ms)));
        tick
    }

    /// Outcomes known, complete ones, censored ones, and the longest time in milliseconds.
    fn settled(broadcasts: &mut Broadcasts, now_s: u64) -> (u64, u64, u64, u64) {
        let mut line = Tick::default();
        broadcasts.settle(Nanos::from_secs(now_s), &mut line);
        assert_eq!(line.spread.count(), line.pushes.complete);
        (line.pushes.broadcasts, line.pushes.complete, line.spread.censored(), line.spread.max().millis())
    }

    #[test]
    fn a_broadcast_lasts_until_the_last_of_all_receivers_has_it() {
        let mut all = broadcasts(Receivers::All);
        // Three connections in two shards; the second number reaches two of them.
        all.take(&tick(Phase::Hold, &[(7, 1_000), (7, 1_030), (8, 1_100)]), 3);
        assert_eq!(settled(&mut all, 1), (0, 0, 0, 0));
        all.take(&tick(Phase::Hold, &[(7, 990), (8, 1_150)]), 3);
        assert_eq!(settled(&mut all, 2), (1, 1, 0, 40));
        // A further receipt of what is complete changes nothing.
        all.take(&tick(Phase::Hold, &[(7, 1_500)]), 3);
        assert_eq!(settled(&mut all, 6), (0, 0, 0, 0));
        assert_eq!(settled(&mut all, 7), (1, 0, 1, 0));
        assert!(all.open.is_empty());
    }

    #[test]
    fn receivers_may_be_fewer_than_all_connections() {
        let mut two = broadcasts(Receivers::Of(2));
        two.take(&tick(Phase::Hold, &[(1, 10), (1, 25), (2, 30)]), 100);
        assert_eq!(settled(&mut two, 1), (1, 1, 0, 15));
    }

    #[test]
    fn what_began_before_full_load_is_none() {
        let mut all = broadcasts(Receivers::All);
        all.take(&tick(Phase::Ramp, &[(1, 10)]), 1);
        assert_eq!(settled(&mut all, 9), (0, 0, 0, 0));
        // What began in it may end after it.
        all.take(&tick(Phase::Hold, &[(2, 10)]), 2);
        all.take(&tick(Phase::Drain, &[(2, 60), (3, 70)]), 2);
        assert_eq!(settled(&mut all, 9), (1, 1, 0, 50));
    }

    #[test]
    fn of_too_many_the_lowest_are_given_up() {
        let mut all = broadcasts(Receivers::All);
        for from in 0..5u64 {
            let receipts: Vec<(u64, u64)> = (0..1_000).map(|n| (from * 1_000 + n, 1_000)).collect();
            all.take(&tick(Phase::Hold, &receipts), 2);
        }
        assert_eq!(settled(&mut all, 1), (904, 0, 904, 0));
        assert_eq!((all.open.len(), all.open.keys().next()), (MOST, Some(&904)));
    }
}

//! Broadcasts: numbered messages that a server sends to many connections, and the time from the first receipt to the last. Shards and
//! agents report receipts; this module combines them, since none of them sees all receivers.

use std::collections::{BTreeMap, VecDeque};

use plan::{Population, Receivers};
use samples::{Phase, Tick};
use units::Nanos;

/// Maximum number of broadcasts in progress; beyond it, the lowest numbers are given up.
const MOST: usize = 4096;
/// A broadcast received this shortly before the end may still be in progress even if no other took as long: workers send their last ticks
/// at different times, and clocks of agents differ.
const UNDER_WAY: Nanos = Nanos::from_millis(100);

/// Maximum number of stored reports of early numbers: some seconds from many shards.
const MOST_EARLY: usize = 256;

/// The broadcasts of a population.
#[derive(Default)]
pub struct Broadcasts {
    receivers: Option<Receivers>,
    /// How long to wait for further receipts.
    patience: Nanos,
    open: BTreeMap<u64, Broadcast>,
    /// The number that recently opened connections had already received, and when. A broadcast with at most this number, received later by
    /// others, began before these connections were to receive it.
    early: VecDeque<(u64, Nanos)>,
    /// The longest time from first to last receipt of a complete broadcast.
    longest: Nanos,
}

/// A broadcast in progress.
struct Broadcast {
    first: Nanos,
    last: Nanos,
    count: u64,
    /// Number of connections that are to receive it.
    wanted: u64,
    /// It is complete, or began before full load; further receipts do not count.
    is_over: bool,
}

impl Broadcasts {
    /// No broadcasts yet; nothing is measured if the population has no receivers.
    pub fn of(population: &Population) -> Broadcasts {
        let receivers = population.pushes.receivers;
        let (open, early, longest) = (BTreeMap::new(), VecDeque::new(), Nanos::ZERO);
        Broadcasts { receivers, patience: population.timeout, open, early, longest }
    }

    /// Takes the receipts in a tick of a shard or agent, while `stayed` connections of the population were open throughout. Connections
    /// opened meanwhile need not have received earlier broadcasts. The set of receivers is known only at full load.
    pub fn take(&mut self, tick: &Tick, stayed: u64) {
        let Some(receivers) = self.receivers else { return };
        let wanted = match receivers {
            Receivers::All => stayed,
            Receivers::Of(count) => count.into(),
        };
        // Connections that ended in this tick may not have received broadcasts that are still being received by others.
        let recent = self.open.values_mut().filter(|it| it.last + UNDER_WAY >= tick.from);
        recent.for_each(|it| it.wanted = it.wanted.min(wanted));
        self.early.retain(|(_, at)| *at + self.patience >= tick.until);
        for it in tick.pushes.receipts.iter() {
            if it.count == 0 {
                self.early.push_back((it.number, it.last));
                self.early.drain(..self.early.len().saturating_sub(MOST_EARLY));
                continue;
            }
            let is_new = !self.open.contains_key(&it.number);
            if tick.phase > Phase::Hold && is_new {
                continue;
            }
            let has_begun = |(number, at): &(u64, Nanos)| it.number <= *number && it.first >= *at;
            let is_early = tick.phase < Phase::Hold || is_new && self.early.iter().any(has_begun);
            let new = Broadcast { first: it.first, last: it.last, count: 0, wanted, is_over: is_early };
            let own = self.open.entry(it.number).or_insert(new);
            // Another shard may have reported the same number before, already at full load.
            own.is_over |= is_early && it.first < own.first;
            if !own.is_over {
                (own.first, own.last) = (own.first.min(it.first), own.last.max(it.last));
                own.count += it.count;
            }
        }
    }

    /// Adds the broadcasts that are known to be complete or given up at `now` to a line.
    pub fn settle(&mut self, now: Nanos, line: &mut Tick) {
        for it in self.open.values_mut().filter(|it| !it.is_over && it.count >= it.wanted.max(1)) {
            it.is_over = true;
            line.pushes.broadcasts += 1;
            line.pushes.complete += 1;
            let spread = it.last.since(it.first);
            line.spread.record(spread);
            self.longest = self.longest.max(spread);
        }
        let surplus = self.open.len().saturating_sub(MOST);
        self.give_up(self.patience, surplus, now, line);
    }

    /// Ends all broadcasts at the end of the load. A broadcast without another receipt for longer than any complete one took counts as
    /// incomplete; the outcome of more recent ones is unknown, and they are not counted.
    pub fn end(&mut self, ended: Nanos, line: &mut Tick) {
        self.settle(ended, line);
        self.give_up(self.patience.min(self.longest.max(UNDER_WAY)), 0, ended, line);
        self.open.clear();
    }

    /// Gives up broadcasts without a receipt for `patience`, and the lowest numbers if there are too many.
    fn give_up(&mut self, patience: Nanos, mut surplus: usize, now: Nanos, line: &mut Tick) {
        self.open.retain(|_, it| {
            let is_given_up = now.since(it.last) >= patience || surplus > 0;
            surplus = surplus.saturating_sub(1);
            if is_given_up && !it.is_over {
                line.pushes.broadcasts += 1;
                line.spread.censor();
            }
            !is_given_up
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

    /// Known outcomes, complete ones, censored ones, and the longest time in milliseconds.
    fn settled(broadcasts: &mut Broadcasts, now_s: u64) -> (u64, u64, u64, u64) {
        let mut line = Tick::default();
        broadcasts.settle(Nanos::from_secs(now_s), &mut line);
        assert_eq!(line.spread.count(), line.pushes.complete);
        (line.pushes.broadcasts, line.pushes.complete, line.spread.censored(), line.spread.max().millis())
    }

    /// Connections opened just before received it without being expected to.
    #[test]
    fn what_had_begun_before_connections_were_settled_is_not_judged() {
        let mut all = broadcasts(Receivers::All);
        let mut first = tick(Phase::Hold, &[]);
        first.pushes.receipts.record_early(7, Nanos::from_secs(1));
        all.take(&first, 0);
        all.take(&tick(Phase::Hold, &[(7, 1_020), (8, 1_100), (8, 1_120), (8, 1_140)]), 3);
        assert_eq!(settled(&mut all, 30), (1, 1, 0, 40));
        // Connections opened earlier receive it as well.
        let mut live = broadcasts(Receivers::All);
        live.take(&tick(Phase::Hold, &[(9, 1_900), (9, 1_950)]), 3);
        let mut beside = tick(Phase::Hold, &[]);
        beside.pushes.receipts.record_early(9, Nanos::from_secs(2));
        live.take(&beside, 3);
        live.take(&tick(Phase::Hold, &[(9, 2_010)]), 3);
        assert_eq!(settled(&mut live, 2), (1, 1, 0, 110));
        // The numbers start again, after the timeout of 5 s.
        let late = Tick { until: Nanos::from_secs(8), ..tick(Phase::Hold, &[(1, 7_900)]) };
        live.take(&late, 3);
        assert_eq!(settled(&mut live, 30), (1, 0, 1, 0));
    }

    /// The connection that left may have been the last to receive it.
    #[test]
    fn who_leaves_while_others_still_receive_it_need_not_have_it() {
        let mut all = broadcasts(Receivers::All);
        let later = |ms| Tick { from: Nanos::from_millis(ms), ..tick(Phase::Hold, &[]) };
        all.take(&tick(Phase::Hold, &[(7, 1_000), (7, 1_080), (7, 1_160)]), 4);
        all.take(&later(1_200), 3);
        assert_eq!(settled(&mut all, 2), (1, 1, 0, 160));
        // Much later: the connection did miss it.
        all.take(&tick(Phase::Hold, &[(8, 2_000), (8, 2_080)]), 3);
        all.take(&later(2_200), 2);
        assert_eq!(settled(&mut all, 30), (1, 0, 1, 0));
    }

    #[test]
    fn a_broadcast_lasts_until_the_last_of_all_receivers_has_it() {
        let mut all = broadcasts(Receivers::All);
        // Three connections in two shards; the second number reaches two of them.
        all.take(&tick(Phase::Hold, &[(7, 1_000), (7, 1_030), (8, 1_100)]), 3);
        assert_eq!(settled(&mut all, 1), (0, 0, 0, 0));
        all.take(&tick(Phase::Hold, &[(7, 990), (8, 1_150)]), 3);
        assert_eq!(settled(&mut all, 2), (1, 1, 0, 40));
        // A further receipt of a complete broadcast changes nothing.
        all.take(&tick(Phase::Hold, &[(7, 1_500)]), 3);
        assert_eq!(settled(&mut all, 6), (0, 0, 0, 0));
        assert_eq!(settled(&mut all, 7), (1, 0, 1, 0));
        assert!(all.open.is_empty());
    }

    #[test]
    fn who_was_not_open_all_the_while_need_not_receive_it() {
        let mut all = broadcasts(Receivers::All);
        // Of ten connections, three are closed and redialled: seven receive both broadcasts, and one of the three the second.
        all.take(&tick(Phase::Hold, &[(7, 1_000); 7]), 7);
        all.take(&tick(Phase::Hold, &[(8, 1_100); 8]), 10);
        assert_eq!(settled(&mut all, 1), (1, 1, 0, 0));
        // Two of the others end before they received it; those that end later had received it, or never would.
        let until = |from: u64| Tick { from: Nanos::from_millis(from), ..tick(Phase::Hold, &[]) };
        all.take(&until(1_300), 5);
        assert_eq!(settled(&mut all, 2), (0, 0, 0, 0));
        all.take(&until(1_200), 8);
        assert_eq!(settled(&mut all, 2), (1, 1, 0, 0));
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
        // A broadcast that began at full load may end after it.
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

    /// Known outcomes when the load ends (in milliseconds), and complete ones.
    fn ended(broadcasts: &mut Broadcasts, ended_ms: u64) -> (u64, u64) {
        let mut line = Tick::default();
        let ended = Nanos::from_millis(ended_ms);
        broadcasts.end(ended, &mut line);
        assert_eq!(line.spread.censored(), line.pushes.broadcasts - line.pushes.complete);
        (line.pushes.broadcasts, line.pushes.complete)
    }

    #[test]
    fn at_the_end_what_lacks_a_receiver_for_longer_than_any_took_is_not_complete() {
        // The timeout is five seconds; the longest complete broadcast takes 300 ms.
        let receipts = [(1, 1_000), (1, 1_300), (2, 1_400), (3, 1_650), (4, 1_750), (5, 1_990)];
        let mut all = broadcasts(Receivers::All);
        all.take(&tick(Phase::Hold, &receipts), 2);
        assert_eq!(ended(&mut all, 2_000), (3, 1));
        assert!(all.open.is_empty(), "what comes later is of no interest");
        // If none was complete, those that may still be in progress are left out.
        let mut none = broadcasts(Receivers::All);
        none.take(&tick(Phase::Hold, &receipts), 3);
        assert_eq!(ended(&mut none, 2_000), (4, 0));
        // Broadcasts from before full load are not counted.
        let mut early = broadcasts(Receivers::All);
        early.take(&tick(Phase::Ramp, &receipts), 2);
        assert_eq!(ended(&mut early, 9_000), (0, 0));
    }

    #[test]
    fn what_some_received_before_full_load_is_no_broadcast() {
        for is_early_first in [true, false] {
            let mut all = broadcasts(Receivers::All);
            let mut ticks = [tick(Phase::Ramp, &[(1, 990)]), tick(Phase::Hold, &[(1, 1_010), (2, 1_100)])];
            if !is_early_first {
                ticks.reverse();
            }
            ticks.iter().for_each(|tick| all.take(tick, 2));
            all.take(&tick(Phase::Hold, &[(2, 1_120)]), 2);
            assert_eq!(settled(&mut all, 9), (1, 1, 0, 20), "{is_early_first}");
        }
        // In a ramp after full load, the remaining connections may receive a broadcast that began at full load.
        let mut all = broadcasts(Receivers::All);
        all.take(&tick(Phase::Hold, &[(1, 1_000)]), 2);
        all.take(&tick(Phase::Ramp, &[(1, 1_030)]), 2);
        assert_eq!(settled(&mut all, 9), (1, 1, 0, 30));
    }
}

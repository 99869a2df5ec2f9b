//! Silences of a population's target: times in which no connection received a response, although requests were outstanding, the load
//! continued and throng was on time. Taken from ticks, in bounded memory.

use std::collections::VecDeque;

use crate::tolerances::{FEW, OWN_STALL};
use samples::{Phase, Tick};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Minimum length in periods: each end may have had a response within its period.
const LEAST: u64 = 3;
/// Maximum number of periods for which reports of shards are missing; older ones are used as they are.
const MAX_OPEN: usize = 64;
/// Maximum number of silences stored individually.
const MAX_KEPT: usize = 32;

/// A time without responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Silence {
    /// Start.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
    /// Outstanding requests at its end.
    pub waiting: u64,
    /// Outstanding requests before it began.
    pub before: u64,
    /// Responses per second before it began.
    pub per_s: u64,
    /// A response ended it.
    pub is_over: bool,
}

impl Silence {
    /// Its duration.
    pub fn length(&self) -> Nanos {
        self.until.since(self.from)
    }
}

/// One period, summed over all shards.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Period {
    answered: u64,
    waiting: u64,
    open: u64,
    is_ours: bool,
    /// The load had not ended, so new requests could be sent.
    is_loaded: bool,
}

/// The silences found so far, and the state of the search for them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Silences {
    /// Length of a period, which is that of the shards' ticks.
    period: Nanos,
    /// Periods from number `first` on.
    periods: VecDeque<Period>,
    first: u64,
    /// A response has come at any time.
    is_served: bool,
    /// The last periods, the most recent first.
    latest: [Period; 3],
    /// The current silence, and its first period.
    current: Option<(Silence, Period)>,
    found: Vec<Silence>,
    count: u64,
}

impl Silences {
    /// No silences yet; `period`: length of a period.
    pub fn new(period: Nanos) -> Silences {
        Silences { period, ..Silences::default() }
    }

    /// Takes a tick of one shard; all shards have reported up to `complete`.
    pub fn take(&mut self, tick: &Tick, complete: Nanos) {
        let period = self.period.0;
        let number = |at: Nanos| at.0 / period;
        // A tick ends slightly after its period, and a shard may end several in one: only one of them sets the state.
        let nearest = |at: Nanos| (at.0 + period / 2) / period;
        let states = nearest(tick.from)..nearest(tick.until);
        let last = number(Nanos(tick.until.0.saturating_sub(1)));
        if self.periods.is_empty() && self.first == 0 {
            self.first = number(tick.from);
        }
        // throng stalled for longer than the window: start again.
        if self.periods.is_empty() && last.saturating_sub(self.first) >= 4 * MAX_OPEN as u64 {
            (self.first, self.current) = (number(tick.from), None);
        }
        for number in number(tick.from).max(self.first)..=last {
            let at = (number - self.first) as usize;
            if at >= 4 * MAX_OPEN {
                break;
            }
            if self.periods.len() <= at {
                self.periods.resize(at + 1, Period::default());
            }
            let period = &mut self.periods[at];
            period.answered += tick.counts.answered;
            period.is_ours |= tick.stalled >= OWN_STALL;
            period.is_loaded |= tick.phase != Phase::Drain;
            if states.contains(&number) {
                period.waiting += tick.waiting;
                period.open += tick.open;
            }
        }
        while self.is_complete(complete) {
            let period = self.periods.pop_front().expect("it is complete");
            self.first += 1;
            self.end_period(period);
        }
    }

    fn is_complete(&self, complete: Nanos) -> bool {
        let ends = Nanos((self.first + 1) * self.period.0);
        !self.periods.is_empty() && (ends <= complete || self.periods.len() > MAX_OPEN)
    }

    /// Evaluates the period before `first`.
    fn end_period(&mut self, period: Period) {
        self.is_served |= period.answered > 0;
        // After the load, only its last requests are outstanding, and may just be slow: no new silence begins then.
        let may_be = period.is_loaded || self.lasting().is_some();
        let is_silent =
            period.answered == 0 && period.waiting > 0 && !period.is_ours && self.is_served && may_be;
        if is_silent {
            self.go_on(period)
        } else {
            self.end_silence(period.answered > 0)
        }
        self.latest = [period, self.latest[0], self.latest[1]];
    }

    /// Extends the current silence by one period.
    fn go_on(&mut self, period: Period) {
        let until = Nanos(self.first * self.period.0);
        let new = self.begin(Nanos(until.0 - self.period.0));
        let (silence, _) = self.current.get_or_insert((new, period));
        (silence.until, silence.waiting) = (until, period.waiting);
        // A few slow responses are no silence: all connections must be waiting, or more and more of them.
        let (silence, first) = self.current.expect("just now");
        let grows = silence.waiting >= first.waiting + FEW;
        // Waiting connections that throng has closed since were open in the first period.
        let open = period.open.max(first.open);
        let all = period.waiting >= FEW && period.waiting * 10 >= open * 9;
        let is_long = silence.length().0 >= LEAST * self.period.0;
        if is_long && (grows || all) && self.lasting().is_none_or(|known| known.from != silence.from) {
            self.count += 1;
            self.found.push(silence);
        }
        if let Some(known) = self.found.last_mut().filter(|known| known.from == silence.from) {
            *known = silence;
        }
    }

    /// A silence that begins at `from` or up to two periods before, to which earlier responses may be attributed. If most connections were
    /// already waiting before these periods, those waiting at their end count as waiting before, because slow responses may have occupied
    /// one connection after the other.
    fn begin(&self, from: Nanos) -> Silence {
        let [last, earlier @ ..] = self.latest;
        let had_room = |one: &&Period| one.open > 0 && 2 * one.waiting <= one.open;
        let before = earlier.iter().find(had_room).unwrap_or(&last).waiting;
        let answered = last.answered.max(earlier[0].answered);
        let per_s = (u128::from(answered) * 1_000_000_000 / u128::from(self.period.0)) as u64;
        Silence { from, before, per_s, ..Silence::default() }
    }

    fn end_silence(&mut self, by_response: bool) {
        let Some((silence, _)) = self.current.take() else { return };
        if let Some(known) = self.found.last_mut().filter(|known| known.from == silence.from) {
            known.is_over = by_response;
        }
        // The longest and the first silences are stored.
        if self.found.len() > MAX_KEPT {
            let longest = self.found.iter().map(Silence::length).max();
            let place = self.found.iter().rposition(|one| Some(one.length()) != longest).unwrap_or(0);
            self.found.remove(place);
        }
    }

    /// The silence that has not ended yet.
    pub fn lasting(&self) -> Option<&Silence> {
        let (current, _) = self.current?;
        self.found.last().filter(|known| known.from == current.from)
    }

    /// The number of silences, and the longest one stored.
    pub fn longest(&self) -> Option<(u64, Silence)> {
        self.found.iter().max_by_key(|one| one.length()).map(|longest| (self.count, *longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Nanos = Nanos::from_millis(200);

    /// (responses, outstanding, stalled ms) per period, of one shard with 20 connections.
    type Seen = (u64, u64, u64);

    fn tick(index: u64, (answered, waiting, stalled_ms): Seen) -> Tick {
        let (from, until) = (Nanos(index * PERIOD.0), Nanos((index + 1) * PERIOD.0));
        let mut tick = Tick { from, until, waiting, open: 20, ..Tick::default() };
        tick.stalled = Nanos::from_millis(stalled_ms);
        tick.counts.answered = answered;
        tick
    }

    fn silences(seen: &[Seen]) -> Silences {
        let mut silences = Silences::new(PERIOD);
        for (index, seen) in (0..).zip(seen) {
            let tick = tick(index, *seen);
            silences.take(&tick, tick.until);
        }
        silences
    }

    /// (number, longest from and until in ms, over)
    fn check(seen: &[Seen], expected: Option<(u64, u64, u64, bool)>) {
        let longest = silences(seen).longest();
        let seen = longest.map(|(n, one)| (n, one.from.millis(), one.until.millis(), one.is_over));
        assert_eq!(seen, expected);
    }

    const BUSY: Seen = (500, 20, 1);
    const SILENT: Seen = (0, 20, 1);

    #[test]
    fn a_gap_between_responses_is_a_silence() {
        check(&[vec![BUSY; 5], vec![SILENT; 10], vec![BUSY; 5]].concat(), Some((1, 1_000, 3_000, true)));
        check(&[vec![BUSY; 5], vec![SILENT; 10]].concat(), Some((1, 1_000, 3_000, false)));
        check(&[vec![BUSY; 5], vec![SILENT; 2], vec![BUSY; 5]].concat(), None);
        let twice = [vec![BUSY; 5], vec![SILENT; 4], vec![BUSY], vec![SILENT; 3], vec![BUSY]].concat();
        check(&twice, Some((2, 1_000, 1_800, true)));
        check(&[], None);
    }

    #[test]
    fn targets_without_requests_or_responses_are_not_silent() {
        check(&[vec![SILENT; 20], vec![BUSY; 5]].concat(), None);
        check(&[vec![BUSY; 5], vec![(0, 0, 1); 10], vec![BUSY; 5]].concat(), None);
    }

    #[test]
    fn a_stall_of_our_own_is_none_of_the_targets() {
        let own = [vec![BUSY; 5], vec![SILENT], vec![(0, 20, 1_800)], vec![SILENT], vec![BUSY; 5]].concat();
        check(&own, None);
        // One tick that covers the whole time for which throng was stopped.
        let mut silences = silences(&[BUSY; 5]);
        let mut late = tick(5, (0, 20, 2_000));
        late.until = Nanos(20 * PERIOD.0);
        silences.take(&late, late.until);
        assert_eq!(silences.longest(), None);
    }

    #[test]
    fn a_few_slow_responses_are_no_silence() {
        // Two of twenty wait, the others pause.
        check(&[vec![(1, 2, 1); 5], vec![(0, 2, 1); 10], vec![(2, 0, 1); 5]].concat(), None);
        // More and more wait.
        let growing: Vec<Seen> = (0..10).map(|n| (0, 2 + n, 1)).collect();
        check(&[vec![(1, 2, 1); 5], growing, vec![(2, 0, 1); 5]].concat(), Some((1, 1_000, 3_000, true)));
    }

    #[test]
    fn requests_that_are_the_last_ones_may_just_be_slow() {
        let play = |seen: &[(Seen, Phase)]| {
            let mut silences = Silences::new(PERIOD);
            for (index, (seen, phase)) in (0..).zip(seen) {
                let tick = Tick { phase: *phase, ..tick(index, *seen) };
                silences.take(&tick, tick.until);
            }
            silences.longest().map(|(n, one)| (n, one.from.millis(), one.until.millis(), one.is_over))
        };
        let of = |seen: Seen, phase, n| vec![(seen, phase); n];
        let load = of(BUSY, Phase::Hold, 5);
        let end = of(BUSY, Phase::Drain, 1);
        assert_eq!(play(&[load.clone(), of(SILENT, Phase::Drain, 10), end.clone()].concat()), None);
        // It began just before the load ended, and was too short by then.
        let late = [load.clone(), of(SILENT, Phase::Hold, 2), of(SILENT, Phase::Drain, 9), end.clone()];
        assert_eq!(play(&late.concat()), None);
        let seen = [load, of(SILENT, Phase::Hold, 3), of(SILENT, Phase::Drain, 7), end];
        assert_eq!(play(&seen.concat()), Some((1, 1_000, 3_000, true)));
    }

    #[test]
    fn what_waited_before_is_known() {
        let before = |seen: &[Seen]| {
            let (_, silence) = silences(seen).longest().expect("there is one");
            (silence.before, silence.waiting, silence.per_s)
        };
        // A closed loop: all connections wait all the time.
        assert_eq!(before(&[vec![BUSY; 5], vec![SILENT; 4], vec![BUSY]].concat()), (20, 20, 2_500));
        // With pauses: connections begin to wait one after the other, from the middle of a period on.
        let pauses = [(10, 1, 1), (10, 1, 1), (5, 6, 1), (0, 16, 1), (0, 20, 1), (0, 20, 1), (9, 0, 1)];
        assert_eq!(before(&pauses), (1, 20, 50));
        // Slow responses occupy one connection after the other, and the last ones at once.
        let taken = [(90, 10, 1), (90, 13, 1), (90, 16, 1), (90, 19, 1), (0, 20, 1), (0, 20, 1), (0, 20, 1)];
        assert_eq!(before(&taken), (19, 20, 450));
    }

    #[test]
    fn requests_that_wait_are_counted_once() {
        // Two requests on the only two connections; ticks end a millisecond late, and one ends in the middle of a period.
        let mut silences = Silences::new(PERIOD);
        for index in 0..20 {
            let mut tick = tick(index, if (5..15).contains(&index) { (0, 2, 1) } else { (9, 2, 1) });
            (tick.open, tick.from, tick.until) =
                (2, tick.from + Nanos(1_000_000), tick.until + Nanos(1_000_000));
            let middle = Nanos(tick.from.0 + 50_000_000);
            if index == 9 {
                silences.take(&Tick { until: middle, ..tick.clone() }, middle);
                tick.from = middle;
            }
            silences.take(&tick, tick.until);
        }
        assert_eq!(silences.longest(), None);
        assert!(silences.is_served && silences.periods.len() <= 1);
    }

    #[test]
    fn all_shards_must_be_silent() {
        let mut silences = Silences::new(PERIOD);
        let shards = [
            [BUSY, BUSY, SILENT, SILENT, SILENT, SILENT, BUSY],
            [BUSY, BUSY, SILENT, BUSY, SILENT, SILENT, BUSY],
        ];
        for index in 0..7 {
            for (shard, seen) in shards.iter().enumerate() {
                let tick = tick(index, seen[index as usize]);
                // The second shard reports last.
                silences.take(&tick, if shard == 1 { tick.until } else { tick.from });
            }
        }
        assert_eq!(silences.longest(), None);
    }

    #[test]
    fn memory_has_a_bound_and_the_longest_is_kept() {
        let mut seen = vec![BUSY];
        for n in 0..3 * MAX_KEPT {
            seen.extend(vec![SILENT; if n == 40 { 9 } else { 3 }]);
            seen.push(BUSY);
        }
        let all = silences(&seen);
        let (count, longest) = all.longest().expect("there are many");
        assert_eq!((count, longest.length().millis()), (3 * MAX_KEPT as u64, 1_800));
        assert!(all.found.len() <= MAX_KEPT + 1 && all.periods.is_empty());
        // A shard that stops reporting does not make the others' periods accumulate.
        let mut silences = Silences::new(PERIOD);
        (0..10_000).for_each(|index| silences.take(&tick(index, BUSY), Nanos::ZERO));
        assert!((1..=MAX_OPEN).contains(&silences.periods.len()));
    }
}

//! Whether more arrives than is served: those that wait for a response become more from the beginning of full load to its end.

use std::borrow::Cow;

use plan::Load;
use samples::{Kind, Phase, Tick};
use units::Nanos;

/// Periods that are kept, ten minutes of ticks; a longer load is not judged.
const MOST: usize = 3_000;
/// Full load in parts, in each of which more wait than in the one before.
const PARTS: usize = 4;
/// Fewer periods in a part have no median that means anything.
const LEAST_PERIODS: usize = 2 * PARTS;
/// By this share of what arrives in a part, and by no fewer than this many: responses that take a little longer let a few more wait.
const SHARE: f64 = 0.02;
const FEW: u64 = 3;
/// Responses come at most this many times as fast at the end as at the beginning, whose first ones are still under way.
const SERVED: f64 = 3.0;

/// What all shards reported of a period.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    waiting: u64,
    answered: u64,
    /// Dials and requests that timed out.
    timed_out: u64,
    /// Of a rate: requests that became due, and those that ended.
    due: u64,
    ended: u64,
}

/// More and more were without a response, from the beginning of full load to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unserved {
    /// Those that waited at the end.
    pub(crate) waiting: u64,
    /// In which time as many arrive as waited then or had timed out before.
    pub(crate) behind: Nanos,
}

/// Those that wait, by period of full load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    /// The length of a period: that of the shards' ticks. Zero: nothing is kept.
    period: Nanos,
    /// Requests are due by a rate: they wait for a connection, too.
    is_by_rate: bool,
    /// Number of the first.
    first: u64,
    periods: Vec<Period>,
}

impl Backlog {
    /// None yet, in periods of this length. What is sent in closed loop has none.
    pub(crate) fn of(load: Load, period: Nanos) -> Backlog {
        match load {
            Load::Held { .. } => Backlog::default(),
            load => Backlog { period, is_by_rate: load.is_paced(), ..Backlog::default() },
        }
    }

    /// Takes a tick of one shard.
    pub(crate) fn take(&mut self, tick: &Tick) {
        if self.period == Nanos::ZERO || tick.phase != Phase::Hold {
            return;
        }
        // Ticks end a little after their period.
        let number = (tick.until.0 + self.period.0 / 2) / self.period.0;
        if self.periods.is_empty() {
            self.first = number;
        }
        // A shard that reports its first period after the others have reported their second is missing in one: fewer wait there.
        let Some(at) = number.checked_sub(self.first).map(|at| at as usize).filter(|at| *at < MOST) else {
            return;
        };
        if self.periods.len() <= at {
            self.periods.resize(at + 1, Period::default());
        }
        self.periods[at].answered += tick.counts.answered;
        let timed_out = tick.faults.iter().filter(|(fault, _)| fault.kind == Kind::Timeout);
        self.periods[at].timed_out += timed_out.map(|(_, n)| n).sum::<u64>();
        if self.is_by_rate {
            // The lag of each is recorded when it becomes due, and again if its response was late by a stall of throng, or if it was
            // withdrawn, and sent on another connection.
            let again = tick.latency.lower_bounds() + tick.counts.withdrawn;
            self.periods[at].due += tick.lag.count().saturating_sub(again);
            self.periods[at].ended += tick.counts.answered + tick.counts.missed + tick.faults.total();
            return;
        }
        // A shard may end two ticks in a period; one of them is the longer.
        if 2 * tick.until.since(tick.from).0 > self.period.0 {
            self.periods[at].waiting += tick.waiting;
        }
    }

    /// Those that wait at the end of full load, if more and more did all the time, while responses came no faster than at its beginning.
    /// A stall passes, and moves no median for long; a slow response is awaited by as many from its own length on, and lets responses come
    /// only then.
    pub(crate) fn grown(&self) -> Option<u64> {
        let all = self.with_slots();
        let grows = if self.is_by_rate { grows_by_rate(&all) } else { grows(&all) };
        all.last().map(|last| last.waiting).filter(|_| grows)
    }

    /// The same of arrivals, of which those that time out count as if they still waited: once the first of them do, no more wait
    /// than arrive within the timeout.
    pub(crate) fn unserved(&self) -> Option<Unserved> {
        if self.is_by_rate {
            return None;
        }
        let mut timed_out = 0;
        let sum = |period: &Period| {
            timed_out += period.timed_out;
            Period { waiting: period.waiting + timed_out, ..*period }
        };
        let all: Vec<Period> = self.periods.iter().map(sum).collect();
        let (waiting, without) = (self.periods.last()?.waiting, all.last()?.waiting);
        let share = without as f64 / (answered(&all) + without).max(1) as f64;
        let behind = Nanos((share * (self.period.0 * all.len() as u64) as f64) as u64);
        (waiting > 0 && grows(&all)).then_some(Unserved { waiting, behind })
    }

    /// The periods; by a rate, all wait that became due and have not ended.
    fn with_slots(&self) -> Cow<'_, [Period]> {
        if !self.is_by_rate {
            return Cow::Borrowed(&self.periods);
        }
        let mut sum = 0_i64;
        let sums = self.periods.iter().map(|period| {
            sum += period.due as i64 - period.ended as i64;
            sum
        });
        let sums: Vec<i64> = sums.collect();
        // What the step before has left ends in this one: as many more may wait than it seems.
        let least = sums.iter().copied().min().unwrap_or(0).min(0);
        let waiting = sums.iter().map(|sum| (sum - least) as u64);
        self.periods.iter().zip(waiting).map(|(period, waiting)| Period { waiting, ..*period }).collect()
    }
}

/// Whether more and more wait, while responses come no faster than at the beginning.
fn grows(all: &[Period]) -> bool {
    let Some(last) = all.last().filter(|_| (LEAST_PERIODS..MOST).contains(&all.len())) else { return false };
    let usual = [0, 1, 2, 3].map(|nth| median(part(all, nth)));
    let arrived = answered(all) + last.waiting;
    let more = ((arrived as f64 * SHARE / PARTS as f64) as u64).max(FEW);
    // A period of each, since parts may differ by one.
    let [early, late] =
        [0, PARTS - 1].map(|nth| part(all, nth)).map(|part| answered(part) as f64 / part.len() as f64);
    let is_served = early > 0.0 && SERVED * early >= late;
    usual.windows(2).all(|two| two[1] >= two[0] + more) && is_served
}

fn part(all: &[Period], nth: usize) -> &[Period] {
    &all[nth * all.len() / PARTS..(nth + 1) * all.len() / PARTS]
}

fn answered(periods: &[Period]) -> u64 {
    periods.iter().map(|one| one.answered).sum()
}

/// Of those that wait; a period in which the tick of a shard is missing has fewer.
fn median(periods: &[Period]) -> u64 {
    let mut waiting: Vec<u64> = periods.iter().map(|one| one.waiting).collect();
    waiting.sort_unstable();
    waiting.get(waiting.len() / 2).copied().unwrap_or(0)
}

/// The same of requests by a rate. They come evenly, so that few more show it; and all the time, since the first part is that in which
/// as many come under way as then stay: from the second to the last, in each of them. A stall at the end is in the last one alone; and
/// where responses take now longer, now shorter, those that wait vary by their root.
fn grows_by_rate(all: &[Period]) -> bool {
    let Some(last) = all.last().filter(|_| (LEAST_PERIODS..MOST).contains(&all.len())) else { return false };
    let [early, middle, late] = [1, 2, 3].map(|nth| median(part(all, nth)));
    let arrived = (answered(all) + last.waiting) as f64 * 2.0 / PARTS as f64;
    let more = late.saturating_sub(early);
    let is_even = middle >= early + more / 4 && late >= middle + more / 4;
    let is_served = answered(part(all, 1)) > 0;
    more >= ((arrived * SHARE) as u64).max(early.isqrt()).max(FEW) && is_even && is_served
}

#[cfg(test)]
mod tests {
    use samples::{Fault, Stage, Took};
    use units::Rate;

    use super::*;

    const PERIOD: Nanos = Nanos::from_millis(200);
    const ARRIVALS: Load = Load::Arrivals { rate: Rate::per_s(184), total: None };

    fn tick(index: u64, (waiting, answered): (u64, u64)) -> Tick {
        let (from, until) = (Nanos(index * PERIOD.0), Nanos((index + 1) * PERIOD.0));
        let mut tick = Tick { from, until, waiting, phase: Phase::Hold, ..Tick::default() };
        tick.counts.answered = answered;
        tick
    }

    /// Periods of one shard, with those that wait at the end of each and the responses in it.
    fn check(periods: impl Iterator<Item = (u64, u64)>, expected: Option<u64>) {
        let mut backlog = Backlog::of(ARRIVALS, PERIOD);
        let periods: Vec<(u64, u64)> = periods.collect();
        (7..).zip(&periods).for_each(|(index, period)| backlog.take(&tick(index, *period)));
        assert_eq!(backlog.grown(), expected, "{periods:?}");
    }

    #[test]
    fn more_arrive_than_are_accepted() {
        // 184 a second, of which 100 are accepted: in 5 s, and in 2 s; and a few more than are.
        check((1..=25).map(|n| (17 * n, 20)), Some(425));
        check((1..=10).map(|n| (17 * n, 20)), Some(170));
        check((1..=50).map(|n| (n, 20)), Some(50));
        // They wait before anything comes, as after a pause.
        check((1..=25).map(|n| (100 + 17 * n, 20)), Some(525));
        // A shard reports two periods as one, now and then.
        check((1..=20).map(|n| (if n % 4 == 1 { 4 * n / 2 } else { 4 * n }, 20)), Some(80));
        // Responses come in bursts, and sometimes there are fewer for a moment.
        check((1..=24).map(|n| (17 * n - 10 * (n % 3), 20 + 10 * (n % 3))), Some(408));
    }

    #[test]
    fn a_target_that_keeps_up_has_no_backlog() {
        check((0..25).map(|n| (n * 7 % 10, 37)), None);
        check((0..25).map(|_| (0, 37)), None);
        // A stall at the end, and one in the middle.
        check((0..25).map(|n| (if n < 20 { 3 } else { 37 * (n - 19) }, if n < 20 { 37 } else { 0 })), None);
        check((0..25).map(|n| (if (10..15).contains(&n) { 37 * (n - 9) } else { 3 }, 30)), None);
        // Responses take a little longer with each connection.
        check((0..25).map(|n| (2 + n / 3, 37)), None);
        // Too short to tell.
        check((1..=7).map(|n| (17 * n, 20)), None);
    }

    #[test]
    fn slow_responses_are_no_backlog() {
        // 1, 2, 3 and 4 s, and longer than the load lasts.
        for slow in [5, 10, 15, 20, 30] {
            check((1..=25).map(|n| (37 * n.min(slow), if n > slow { 37 } else { 0 })), None);
        }
        // One in ten takes no time.
        check((1..=25).map(|n| (33 * n.min(20), if n > 20 { 37 } else { 4 })), None);
        // Connections that make more and more requests until as many leave as come.
        check((1..=25).map(|n| (5 * n, 3 * n)), None);
    }

    #[test]
    fn shards_are_added_up_and_ends_of_the_load_are_none_of_it() {
        let mut backlog = Backlog::of(ARRIVALS, PERIOD);
        for index in 0..25 {
            (0..2).for_each(|_| backlog.take(&tick(index, (9 * (index + 1), 10))));
            // A tick that ends another one in the same period.
            let short = Tick { from: Nanos((index + 1) * PERIOD.0 - 9), ..tick(index, (500, 0)) };
            backlog.take(&short);
        }
        backlog.take(&Tick { phase: Phase::Drain, ..tick(25, (0, 900)) });
        assert_eq!(backlog.grown(), Some(450));
    }

    /// 184 arrive in a second, of which 100 are served, and the others wait for a second at the most.
    #[test]
    fn what_timed_out_counts_as_if_it_still_waited() {
        let unserved = |timed_out_from: u64, (served, timed_out): (u64, u64)| {
            let mut backlog = Backlog::of(ARRIVALS, PERIOD);
            for n in 0..25 {
                let is_late = n >= timed_out_from;
                let mut tick = tick(7 + n, (17 * (n + 1).min(timed_out_from), served));
                (0..if is_late { timed_out } else { 0 })
                    .for_each(|_| tick.faults.count(Fault::target(Stage::Exchange, Kind::Timeout)));
                backlog.take(&tick);
            }
            (backlog.grown(), backlog.unserved())
        };
        let (grown, found) = unserved(5, (20, 17));
        let found = found.expect("ever more are not served");
        assert_eq!((grown, found.waiting), (None, 85));
        // 425 of the 925 that came in five seconds.
        assert_eq!(found.behind.millis(), 2_297);
        // They time out in the first second only, or there are few.
        assert_eq!(unserved(5, (37, 0)).1, None);
        assert_eq!(Backlog::default().unserved(), None);
    }

    /// Requests due in a period, and responses in it.
    #[test]
    fn requests_by_a_rate_wait_for_connections_too() {
        let check = |periods: &[(u64, u64)], expected: Option<u64>| {
            let load = Load::Rate { connections: 50, rate: Rate::per_s(164) };
            let mut backlog = Backlog::of(load, PERIOD);
            for (index, (due, answered)) in (7..).zip(periods) {
                // No more wait for a response than there are connections.
                let mut tick = tick(index, (50, *answered));
                tick.lag.record_n(Nanos::ZERO, *due);
                backlog.take(&tick);
            }
            assert_eq!(backlog.grown(), expected, "{periods:?}");
        };
        check(&[(33, 30); 25], Some(75));
        check(&[(33, 33); 25], None);
        // It stalls, and makes up for it.
        check(&[&[(33_u64, 33_u64); 10][..], &[(33, 0); 5], &[(33, 66); 5], &[(33, 33); 5]].concat(), None);
        // A little more comes than is served: 173 a second of which 166 are.
        check(&[(35, 33); 12], Some(24));
        check(&[&[(35_u64, 34_u64), (34, 33)][..]; 6].concat(), Some(12));
        // Responses of 300 ms, and 1.2 s, of which those of the step before come first; and as many as that left.
        check(&[&[(33_u64, 17_u64), (33, 25)][..], &[(33, 33); 18]].concat(), None);
        check(&[&[(33_u64, 17_u64); 6][..], &[(33, 33); 14]].concat(), None);
        check(&[&[(33_u64, 83_u64); 4][..], &[(33, 33); 16]].concat(), None);
        check(&[&[(33_u64, 83_u64); 4][..], &[(33, 30); 16]].concat(), Some(48));
        // Those of a first step, and of 1 s.
        check(&[&[(35_u64, 0_u64), (35, 16)][..], &[(35, 33); 8]].concat(), Some(70));
        check(&[&[(33_u64, 0_u64); 5][..], &[(33, 33); 5]].concat(), None);
        // Of a hundred that wait, a few more for a short time may be chance; for a longer one they are not.
        check(&[&[(33_u64, 3_u64); 3][..], &[(33, 32); 9]].concat(), None);
        check(&[&[(33_u64, 3_u64); 3][..], &[(33, 32); 27]].concat(), Some(117));
        // It pauses at the end, for a part of the last of four.
        check(&[&[(33_u64, 33_u64); 8][..], &[(33, 10), (33, 0)]].concat(), None);
        let held = Backlog::of(Load::Held { connections: 50 }, PERIOD);
        assert_eq!(held.period, Nanos::ZERO);
    }

    /// What throng was late with, and what it sent twice, was due once.
    #[test]
    fn a_request_is_due_once() {
        let grown = |stalled, withdrawn| {
            let mut backlog = Backlog::of(Load::Rate { connections: 50, rate: Rate::per_s(164) }, PERIOD);
            for index in 7..32 {
                let mut tick = tick(index, (50, 33));
                tick.lag.record_n(Nanos::ZERO, 33 + 3);
                tick.counts.withdrawn = withdrawn;
                (0..stalled).for_each(|_| {
                    tick.latency.record_seen(Took { time: PERIOD, stalled: PERIOD });
                });
                backlog.take(&tick);
            }
            backlog.grown()
        };
        assert_eq!([grown(0, 0), grown(3, 0), grown(0, 3)], [Some(75), None, None]);
    }

    #[test]
    fn memory_has_a_bound_and_a_longer_load_is_not_judged() {
        let mut backlog = Backlog::of(ARRIVALS, PERIOD);
        (0..2 * MOST as u64).for_each(|index| backlog.take(&tick(index, (17 * index, 20))));
        assert_eq!((backlog.periods.len(), backlog.grown()), (MOST, None));
        let mut none = Backlog::default();
        none.take(&tick(1, (5, 5)));
        assert!(none.periods.is_empty());
    }
}

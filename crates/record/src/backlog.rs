//! Whether more arrives than is served: those that wait for a response become more from the beginning of full load to its end, and are
//! served later and later.

use crate::tolerances::FEW;
use plan::Load;
use samples::{Kind, Latency, Phase, Tick};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Periods that are kept, ten minutes of ticks; a longer load is not judged.
const MOST: usize = 3_000;
/// Full load in parts, in each of which more wait than in the one before.
const PARTS: usize = 4;
/// Fewer periods in a part have no median that means anything.
const LEAST_PERIODS: usize = 2 * PARTS;
/// By this share of what arrives in a part, and by no fewer than this many: responses that take a little longer let a few more wait.
const SHARE: f64 = 0.02;
/// Responses come at most this many times as fast at the end as at the beginning, whose first ones are still under way.
const SERVED: f64 = 3.0;

/// Times within which connections are served, each √2 of the one before: from 2 ms to 5.8 s.
const TIMES: usize = 24;
const SHORTEST: Nanos = Nanos::from_millis(2);
/// Within one of them are served this many times as many at the beginning as late, and more by this many standard deviations: times that
/// differ from each other all the time are no queue, and none of these differences is chance.
const SOONER: f64 = 2.0;
const SIGMAS: f64 = 3.0;

/// Fewer responses in a tick say nothing of how much their times differ.
const FEW_RESPONSES: u64 = 5;

/// What all shards reported of a period.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Period {
    waiting: u64,
    answered: u64,
    /// Dials and requests that timed out.
    timed_out: u64,
    /// Of arrivals: connections that were served within each of the [`times`].
    within: [u32; TIMES],
    /// Of a rate: requests that became due, and those that ended.
    due: u64,
    ended: u64,
    /// The same: by how much the times of the responses of a shard differ, at the most.
    spread: Option<Nanos>,
}

/// Those that wait, by period of full load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Backlog {
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
    pub fn of(load: Load, period: Nanos) -> Backlog {
        match load {
            Load::Held { .. } => Backlog::default(),
            load => Backlog { period, is_by_rate: load.is_paced(), ..Backlog::default() },
        }
    }

    /// The length of a period.
    pub fn period(&self) -> Nanos {
        self.period
    }

    /// Takes a tick of one shard.
    pub fn take(&mut self, tick: &Tick) {
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
            self.periods[at].spread = self.periods[at].spread.max(spread(&tick.latency));
            return;
        }
        let within = &mut self.periods[at].within;
        within.iter_mut().zip(served_within(tick)).for_each(|(all, own)| *all = all.saturating_add(own));
        // A shard may end two ticks in a period; one of them is the longer.
        if 2 * tick.until.since(tick.from).0 > self.period.0 {
            self.periods[at].waiting += tick.waiting;
        }
    }

    /// Those that wait at the end of full load, if more and more did all the time, while responses came no faster than at its beginning,
    /// and to arrivals later. A stall passes, and moves no median for long; a slow response is awaited by as many from its own length
    /// on, and lets responses come only then.
    pub fn grown(&self) -> Option<u64> {
        let all = self.with_slots();
        let grows = if self.is_by_rate { grows_by_rate(&all) } else { grows(&all) && is_served_later(&all) };
        all.last().map(|last| last.waiting).filter(|_| grows)
    }

    /// The same of arrivals, of which those that time out count as if they still waited: once the first of them do, no more wait
    /// than arrive within the timeout.
    pub fn outpaced(&self) -> Option<u64> {
        if self.is_by_rate {
            return None;
        }
        let mut timed_out = 0;
        let sum = |period: &Period| {
            timed_out += period.timed_out;
            Period { waiting: period.waiting + timed_out, ..*period }
        };
        let all: Vec<Period> = self.periods.iter().map(sum).collect();
        let waiting = self.periods.last()?.waiting;
        (waiting > 0 && grows(&all) && is_served_later(&all)).then_some(waiting)
    }

    /// By how much the times of responses that come together differ, as a rule, late in full load; none where there are few.
    pub fn spread(&self) -> Option<Nanos> {
        let late = &self.periods[self.periods.len() / 2..];
        let mut spreads: Vec<Nanos> = late.iter().filter_map(|one| one.spread).collect();
        spreads.sort_unstable();
        let usual = spreads.get(spreads.len() / 2).copied();
        usual.filter(|_| 2 * spreads.len() >= late.len())
    }

    /// The periods; by a rate, all wait that became due and have not ended.
    fn with_slots(&self) -> std::borrow::Cow<'_, [Period]> {
        if !self.is_by_rate {
            return self.periods.as_slice().into();
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

/// Whether connections that come early are served sooner than those that come late, as in a queue that grows. Responses that merely take
/// different times do so from the beginning to the end: within any time, no fewer of them come late than early.
fn is_served_later(all: &[Period]) -> bool {
    let sooner = |time: usize| {
        let per_period = |nth: usize| {
            let part = part(all, nth);
            part.iter().map(|one| f64::from(one.within[time])).sum::<f64>() / part.len() as f64
        };
        // The greater one: a stall in one of them is none in the other.
        let late = per_period(PARTS - 2).max(per_period(PARTS - 1));
        let (mut early, mut expected) = (0.0_f64, 0.0_f64);
        all[..all.len() / 2].iter().any(|one| {
            early += f64::from(one.within[time]);
            expected += late;
            early >= SOONER * expected && early - expected >= SIGMAS * (early + expected).sqrt().max(1.0)
        })
    };
    (0..TIMES).any(sooner)
}

fn times() -> [Nanos; TIMES] {
    std::array::from_fn(|nth| {
        let doubled = SHORTEST.0 << (nth / 2);
        // 181 of 128 are √2.
        Nanos(if nth.is_multiple_of(2) { doubled } else { doubled * 181 / 128 })
    })
}

/// Connections of a tick that were served within each of these times: in their TLS handshakes, upgrades, and first responses, as far as
/// there are such. Of several responses to a connection, only the first waits until it is served.
fn served_within(tick: &Tick) -> [u32; TIMES] {
    let firsts = tick.served.min(tick.latency.count());
    let stages =
        [(&tick.tls, tick.tls.count()), (&tick.handshake, tick.handshake.count()), (&tick.latency, firsts)];
    let times = times();
    let within = |(waited, connections): (&Latency, u64)| {
        let all = waited.count();
        waited.counts_up_to(&times).map(|soon| connections.saturating_sub(all - soon.min(all)))
    };
    let each = stages.into_iter().filter(|(waited, _)| waited.count() > 0).map(within);
    let fewest = each.reduce(|one, other| std::array::from_fn(|nth| one[nth].min(other[nth])));
    fewest.unwrap_or([0; TIMES]).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

/// By how much these times differ.
fn spread(times: &Latency) -> Option<Nanos> {
    (times.count() >= FEW_RESPONSES).then(|| times.max().since(times.min()))
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
        tick.served = answered;
        // In the order in which they come.
        if let Some(each) = (waiting * PERIOD.0).checked_div(answered) {
            tick.latency.record_n(Nanos(each), answered);
        }
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
        let found = |timed_out_from: u64, (served, timed_out): (u64, u64)| {
            let mut backlog = Backlog::of(ARRIVALS, PERIOD);
            for n in 0..25 {
                let is_late = n >= timed_out_from;
                let mut tick = tick(7 + n, (17 * (n + 1).min(timed_out_from), served));
                time_out(&mut tick, if is_late { timed_out } else { 0 });
                backlog.take(&tick);
            }
            (backlog.grown(), backlog.outpaced())
        };
        assert_eq!(found(5, (20, 17)), (None, Some(85)));
        // They time out in the first second only, or there are few.
        assert_eq!(found(5, (37, 0)).1, None);
        assert_eq!(Backlog::default().outpaced(), None);
    }

    fn time_out(tick: &mut Tick, n: u64) {
        (0..n).for_each(|_| tick.faults.count(Fault::target(Stage::Exchange, Kind::Timeout)));
    }

    /// Of 37 that arrive in a period, these have a response after so many periods; the others after five or more, or none in time.
    #[test]
    fn responses_that_take_different_times_are_no_backlog() {
        let found = |soon: &[(u64, u64)], times_out: bool| {
            let mut backlog = Backlog::of(ARRIVALS, PERIOD);
            let others = 37 - soon.iter().map(|(_, n)| n).sum::<u64>();
            for index in 0..25 {
                let came = soon.iter().filter(|(after, _)| *after <= index);
                let late = if times_out { 5 } else { 30 };
                let slower: u64 = soon.iter().map(|(after, n)| n * (*after).min(index + 1)).sum();
                let mut tick = tick(7 + index, (slower + others * late.min(index + 1), 0));
                for (after, n) in came {
                    tick.latency.record_n(Nanos(PERIOD.0 * after + PERIOD.0 / 10), *n);
                    (tick.counts.answered, tick.served) = (tick.counts.answered + n, tick.served + n);
                }
                time_out(&mut tick, if index >= late { others } else { 0 });
                backlog.take(&tick);
            }
            (grows(&backlog.with_slots()), backlog.grown(), backlog.outpaced())
        };
        // Three in ten take longer than the load lasts: ever more wait, and the others are served as soon as ever.
        assert_eq!(found(&[(0, 26)], false), (true, None, None));
        // They take up to 1.2 s, and a fifth of them more than the timeout of 1 s.
        assert_eq!(found(&[(0, 6), (1, 6), (2, 6), (3, 6), (4, 6)], true).2, None);
        assert_eq!(found(&[(0, 26)], true).2, None);
    }

    /// In random order: some that have just come are served, and the longer it goes on, the fewer of all.
    #[test]
    fn a_queue_without_order_is_a_backlog() {
        let mut backlog = Backlog::of(ARRIVALS, PERIOD);
        for index in 0..25 {
            let mut tick = tick(7 + index, (17 * (index + 1), 0));
            (tick.counts.answered, tick.served) = (20, 20);
            (0..20).for_each(|nth| tick.latency.record(Nanos((index + 1) * PERIOD.0 * nth / 20)));
            backlog.take(&tick);
        }
        assert_eq!((backlog.grown(), backlog.outpaced()), (Some(425), Some(425)));
    }

    #[test]
    fn of_several_responses_only_the_first_waits() {
        let mut tick = Tick::default();
        tick.latency.record_n(Nanos::from_millis(1), 90);
        tick.latency.record_n(Nanos::from_secs(1), 10);
        tick.served = 10;
        let at =
            |time: u64| times().iter().position(|one| *one >= Nanos::from_millis(time)).expect("it is there");
        let within = served_within(&tick);
        assert_eq!([within[0], within[at(700)], within[at(1_020)]], [0, 0, 10]);
        // Two upgrades of which one took long.
        [5, 500].into_iter().for_each(|ms| tick.handshake.record(Nanos::from_millis(ms)));
        let within = served_within(&tick);
        assert_eq!([within[0], within[at(10)], within[at(1_020)]], [0, 0, 2]);
        assert_eq!(served_within(&Tick::default()), [0; TIMES]);
    }

    #[test]
    fn times_of_responses_that_come_together_differ_by_so_much() {
        let spread = |responses: &[u64]| {
            let mut backlog = Backlog::of(Load::Rate { connections: 20, rate: Rate::per_s(164) }, PERIOD);
            for index in 0..10 {
                let mut tick = tick(index, (20, 0));
                // Later and later.
                responses.iter().for_each(|ms| tick.latency.record(Nanos::from_millis(100 * index + ms)));
                backlog.take(&tick);
            }
            backlog.spread()
        };
        assert_eq!(spread(&[10, 30, 50, 20, 60]), Some(Nanos::from_millis(50)));
        assert_eq!(spread(&[10, 30, 50, 20]), None);
        assert_eq!(Backlog::default().spread(), None);
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

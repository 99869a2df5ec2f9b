//! Detects overload by a growing backlog: the number of waiting requests grows from the beginning of full load to its end, and later
//! arrivals are served later. Slow responses and stalls alone do not look like that.

use crate::tolerances::FEW;
use plan::Load;
use samples::{Kind, Latency, Phase, Tick};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Maximum number of periods stored: ten minutes of ticks. A longer load is not judged.
const MOST: usize = 3_000;
/// Number of parts of full load; more must wait in each than in the one before.
const PARTS: usize = 4;
/// Minimum number of periods: with fewer, the medians of the parts are meaningless.
const LEAST_PERIODS: usize = 2 * PARTS;
/// Minimum growth per part, as a share of arrivals (and at least `FEW`): slightly slower responses let a few more wait.
const SHARE: f64 = 0.02;
/// Maximum ratio of the response rate at the end to that at the beginning, whose first responses are still outstanding.
const SERVED: f64 = 3.0;

/// Number of time limits within which connections are served, each √2 times the one before: from 2 ms to 5.8 s.
const TIMES: usize = 24;
const SHORTEST: Nanos = Nanos::from_millis(2);
/// Within one limit, early periods must serve this many times as many as late ones, and exceed them by this many standard deviations. Times
/// that vary during the whole load are no queue, and the difference must not be chance.
const SOONER: f64 = 2.0;
const SIGMAS: f64 = 3.0;

/// With fewer responses in a tick, their spread is meaningless.
const FEW_RESPONSES: u64 = 5;

/// One period, summed over all shards.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Period {
    waiting: u64,
    answered: u64,
    /// Dials and requests that timed out.
    timed_out: u64,
    /// Arrivals only: connections that were served within each of the [`times`].
    within: [u32; TIMES],
    /// Rates only: requests that became due, and requests that ended.
    due: u64,
    ended: u64,
    /// Rates only: the maximum over shards of the spread between response times.
    spread: Option<Nanos>,
}

/// The waiting requests, by period of full load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Backlog {
    /// Length of a period, which is that of the shards' ticks. Zero: nothing is recorded.
    period: Nanos,
    /// Requests are due at a rate, so requests waiting for a connection count, too.
    is_by_rate: bool,
    /// Number of the first period.
    first: u64,
    periods: Vec<Period>,
}

impl Backlog {
    /// An empty backlog for this load; a closed loop has none.
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
        // Ticks end slightly after their period.
        let number = (tick.until.0 + self.period.0 / 2) / self.period.0;
        if self.periods.is_empty() {
            self.first = number;
        }
        // A shard that reports its first period after the others' second one is missing from a period, in which fewer wait.
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
            // The lag of a request is recorded when it becomes due, and again if a stall of throng delayed its response, or if it was
            // withdrawn and sent on another connection.
            let again = tick.latency.lower_bounds() + tick.counts.withdrawn;
            self.periods[at].due += tick.lag.count().saturating_sub(again);
            self.periods[at].ended += tick.counts.answered + tick.counts.missed + tick.faults.total();
            self.periods[at].spread = self.periods[at].spread.max(spread(&tick.latency));
            return;
        }
        let within = &mut self.periods[at].within;
        within.iter_mut().zip(served_within(tick)).for_each(|(all, own)| *all = all.saturating_add(own));
        // A shard may end two ticks in one period; the longer one counts.
        if 2 * tick.until.since(tick.from).0 > self.period.0 {
            self.periods[at].waiting += tick.waiting;
        }
    }

    /// The number waiting at the end of full load, if it grew during all of it, while responses did not become faster and (for arrivals)
    /// came later. A stall passes without moving a median for long; slow responses stop the growth after their own duration, and only then
    /// come at all.
    pub fn grown(&self) -> Option<u64> {
        let all = self.with_slots();
        let grows = if self.is_by_rate { grows_by_rate(&all) } else { grows(&all) && is_served_later(&all) };
        all.last().map(|last| last.waiting).filter(|_| grows)
    }

    /// As `grown`, for arrivals whose timeouts count as still waiting: once the first ones time out, no more than arrive within the timeout
    /// can wait.
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

    /// The usual spread of response times within a tick, late in full load; `None` with too few responses.
    pub fn spread(&self) -> Option<Nanos> {
        let late = &self.periods[self.periods.len() / 2..];
        let mut spreads: Vec<Nanos> = late.iter().filter_map(|one| one.spread).collect();
        spreads.sort_unstable();
        let usual = spreads.get(spreads.len() / 2).copied();
        usual.filter(|_| 2 * spreads.len() >= late.len())
    }

    /// The periods; at a rate, with all requests waiting that were due and have not ended.
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
        // Requests left by the step before end in this one, so the sum can start below zero.
        let least = sums.iter().copied().min().unwrap_or(0).min(0);
        let waiting = sums.iter().map(|sum| (sum - least) as u64);
        self.periods.iter().zip(waiting).map(|(period, waiting)| Period { waiting, ..*period }).collect()
    }
}

/// Whether the number waiting grows from part to part, while responses do not become faster.
fn grows(all: &[Period]) -> bool {
    let Some(last) = all.last().filter(|_| (LEAST_PERIODS..MOST).contains(&all.len())) else { return false };
    let usual = [0, 1, 2, 3].map(|nth| median(part(all, nth)));
    let arrived = answered(all) + last.waiting;
    let more = ((arrived as f64 * SHARE / PARTS as f64) as u64).max(FEW);
    // Per period, since parts may differ by one period.
    let [early, late] =
        [0, PARTS - 1].map(|nth| part(all, nth)).map(|part| answered(part) as f64 / part.len() as f64);
    let is_served = early > 0.0 && SERVED * early >= late;
    usual.windows(2).all(|two| two[1] >= two[0] + more) && is_served
}

fn part(all: &[Period], nth: usize) -> &[Period] {
    &all[nth * all.len() / PARTS..(nth + 1) * all.len() / PARTS]
}

/// Whether early connections are served sooner than late ones, as in a growing queue. If response times merely vary, no limit is met by
/// fewer connections late than early.
fn is_served_later(all: &[Period]) -> bool {
    let sooner = |time: usize| {
        let per_period = |nth: usize| {
            let part = part(all, nth);
            part.iter().map(|one| f64::from(one.within[time])).sum::<f64>() / part.len() as f64
        };
        // The larger one: a stall in one part does not affect the other.
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
        // 181/128 approximates √2.
        Nanos(if nth.is_multiple_of(2) { doubled } else { doubled * 181 / 128 })
    })
}

/// Connections of a tick that were served within each limit, in the slowest of their stages (TLS handshake, upgrade, first response). Of
/// several responses on a connection, only the first waits for a free server.
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

/// The difference between the longest and the shortest time; `None` with too few responses.
fn spread(times: &Latency) -> Option<Nanos> {
    (times.count() >= FEW_RESPONSES).then(|| times.max().since(times.min()))
}

fn answered(periods: &[Period]) -> u64 {
    periods.iter().map(|one| one.answered).sum()
}

/// Median of the number waiting. A period without a shard's tick has a smaller number.
fn median(periods: &[Period]) -> u64 {
    let mut waiting: Vec<u64> = periods.iter().map(|one| one.waiting).collect();
    waiting.sort_unstable();
    waiting.get(waiting.len() / 2).copied().unwrap_or(0)
}

/// As `grows`, for requests at a rate. They come evenly, so less growth is significant. The first part is excluded, because the outstanding
/// requests build up in it; from the second to the last, each part must contribute, as a stall at the end affects only the last part. If
/// response times vary, the number waiting varies by its square root.
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
        // Served in the order of arrival.
        if let Some(each) = (waiting * PERIOD.0).checked_div(answered) {
            tick.latency.record_n(Nanos(each), answered);
        }
        tick
    }

    /// Periods of one shard, with (waiting at the end, responses).
    fn check(periods: impl Iterator<Item = (u64, u64)>, expected: Option<u64>) {
        let mut backlog = Backlog::of(ARRIVALS, PERIOD);
        let periods: Vec<(u64, u64)> = periods.collect();
        (7..).zip(&periods).for_each(|(index, period)| backlog.take(&tick(index, *period)));
        assert_eq!(backlog.grown(), expected, "{periods:?}");
    }

    #[test]
    fn more_arrive_than_are_accepted() {
        // 184 per second arrive, of which 100 are accepted, for 5 s and for 2 s; and slightly more than are accepted.
        check((1..=25).map(|n| (17 * n, 20)), Some(425));
        check((1..=10).map(|n| (17 * n, 20)), Some(170));
        check((1..=50).map(|n| (n, 20)), Some(50));
        // They wait before any response comes, as after a pause.
        check((1..=25).map(|n| (100 + 17 * n, 20)), Some(525));
        // A shard occasionally reports two periods as one.
        check((1..=20).map(|n| (if n % 4 == 1 { 4 * n / 2 } else { 4 * n }, 20)), Some(80));
        // Responses come in bursts, and are occasionally fewer for a moment.
        check((1..=24).map(|n| (17 * n - 10 * (n % 3), 20 + 10 * (n % 3))), Some(408));
    }

    #[test]
    fn a_target_that_keeps_up_has_no_backlog() {
        check((0..25).map(|n| (n * 7 % 10, 37)), None);
        check((0..25).map(|_| (0, 37)), None);
        // A stall at the end, and one in the middle.
        check((0..25).map(|n| (if n < 20 { 3 } else { 37 * (n - 19) }, if n < 20 { 37 } else { 0 })), None);
        check((0..25).map(|n| (if (10..15).contains(&n) { 37 * (n - 9) } else { 3 }, 30)), None);
        // Responses take slightly longer with each connection.
        check((0..25).map(|n| (2 + n / 3, 37)), None);
        // Too short to judge.
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
        // Connections that make more and more requests until departures equal arrivals.
        check((1..=25).map(|n| (5 * n, 3 * n)), None);
    }

    #[test]
    fn shards_are_added_up_and_ends_of_the_load_are_none_of_it() {
        let mut backlog = Backlog::of(ARRIVALS, PERIOD);
        for index in 0..25 {
            (0..2).for_each(|_| backlog.take(&tick(index, (9 * (index + 1), 10))));
            // A second, short tick in the same period.
            let short = Tick { from: Nanos((index + 1) * PERIOD.0 - 9), ..tick(index, (500, 0)) };
            backlog.take(&short);
        }
        backlog.take(&Tick { phase: Phase::Drain, ..tick(25, (0, 900)) });
        assert_eq!(backlog.grown(), Some(450));
    }

    /// 184 arrive per second, of which 100 are served and the others wait for at most one second.
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
        // Timeouts in the first second only.
        assert_eq!(found(5, (37, 0)).1, None);
        assert_eq!(Backlog::default().outpaced(), None);
    }

    fn time_out(tick: &mut Tick, n: u64) {
        (0..n).for_each(|_| tick.faults.count(Fault::target(Stage::Exchange, Kind::Timeout)));
    }

    /// Of 37 arrivals per period, these are answered after this many periods; the others after five or more, or not in time.
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
        // Three in ten take longer than the load lasts: more and more wait, and the others are served as fast as before.
        assert_eq!(found(&[(0, 26)], false), (true, None, None));
        // Responses take up to 1.2 s, a fifth of them more than the timeout of 1 s.
        assert_eq!(found(&[(0, 6), (1, 6), (2, 6), (3, 6), (4, 6)], true).2, None);
        assert_eq!(found(&[(0, 26)], true).2, None);
    }

    /// In random order: some new arrivals are served, but fewer and fewer of all.
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
        // Two upgrades, one of them slow.
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
                // At most as many requests as connections are outstanding.
                let mut tick = tick(index, (50, *answered));
                tick.lag.record_n(Nanos::ZERO, *due);
                backlog.take(&tick);
            }
            assert_eq!(backlog.grown(), expected, "{periods:?}");
        };
        check(&[(33, 30); 25], Some(75));
        check(&[(33, 33); 25], None);
        // It stalls, and catches up.
        check(&[&[(33_u64, 33_u64); 10][..], &[(33, 0); 5], &[(33, 66); 5], &[(33, 33); 5]].concat(), None);
        // Slightly more come than are served: 173 per second, of which 166.
        check(&[(35, 33); 12], Some(24));
        check(&[&[(35_u64, 34_u64), (34, 33)][..]; 6].concat(), Some(12));
        // Responses of 300 ms and 1.2 s, beginning with those of the step before; and as many as that step left.
        check(&[&[(33_u64, 17_u64), (33, 25)][..], &[(33, 33); 18]].concat(), None);
        check(&[&[(33_u64, 17_u64); 6][..], &[(33, 33); 14]].concat(), None);
        check(&[&[(33_u64, 83_u64); 4][..], &[(33, 33); 16]].concat(), None);
        check(&[&[(33_u64, 83_u64); 4][..], &[(33, 30); 16]].concat(), Some(48));
        // The first step of a search, and responses of 1 s.
        check(&[&[(35_u64, 0_u64), (35, 16)][..], &[(35, 33); 8]].concat(), Some(70));
        check(&[&[(33_u64, 0_u64); 5][..], &[(33, 33); 5]].concat(), None);
        // With a hundred waiting, slight growth may be chance for a short time, but not for a long one.
        check(&[&[(33_u64, 3_u64); 3][..], &[(33, 32); 9]].concat(), None);
        check(&[&[(33_u64, 3_u64); 3][..], &[(33, 32); 27]].concat(), Some(117));
        // It pauses at the end, for a part of the last quarter.
        check(&[&[(33_u64, 33_u64); 8][..], &[(33, 10), (33, 0)]].concat(), None);
        let held = Backlog::of(Load::Held { connections: 50 }, PERIOD);
        assert_eq!(held.period, Nanos::ZERO);
    }

    /// Requests that throng delayed or sent twice were due only once.
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

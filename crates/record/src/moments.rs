//! A run second by second: timeouts, response times, and the activity of the target's processes. In bounded memory: a long run is stored
//! with longer moments.

use samples::{Detail, Fault, FaultCount, Kind, Latency, Stage, TargetSample, Tick};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Maximum number of moments; beyond it, adjacent ones are merged in pairs.
const MOST: usize = 600;

/// The activity of the target's processes during some samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Doing {
    /// A process was stopped by a signal or a debugger.
    pub is_stopped: bool,
    /// Number of samples in which a thread was in uninterruptible sleep.
    pub blocked: u32,
    /// Number of samples.
    pub samples: u32,
    /// Maximum time that one thread ran or was ready to run, as a share of a second.
    pub thread: f64,
    /// Processors used, as a share of those that the target may use.
    pub share: f64,
    /// Garbage collections since the target's start, at the last sample.
    pub collected: Option<Collected>,
}

/// Garbage collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collected {
    /// Number of collections.
    pub count: u64,
    /// Time that they stopped the program, in nanoseconds.
    pub ns: u64,
}

impl Collected {
    /// The collections after `earlier`.
    pub fn since(self, earlier: Collected) -> Collected {
        let (count, ns) = (self.count.saturating_sub(earlier.count), self.ns.saturating_sub(earlier.ns));
        Collected { count, ns }
    }
}

impl Doing {
    /// The activity in one sample.
    pub fn seen(target: &TargetSample) -> Doing {
        let process = &target.process;
        Doing {
            is_stopped: process.stopped > 0,
            blocked: u32::from(process.blocked > 0),
            samples: 1,
            // A wait is reported when it is over, so it may belong to the previous second.
            thread: process.busiest_wanted.min(1.0),
            share: process.cores.map_or(0.0, |cores| process.cores_used / cores.max(1) as f64),
            collected: target.jvm.map(|jvm| Collected { count: jvm.gc_count, ns: jvm.gc_pause_ns }),
        }
    }

    /// The sum with a later activity.
    pub fn and(self, later: Doing) -> Doing {
        Doing {
            is_stopped: self.is_stopped || later.is_stopped,
            blocked: self.blocked + later.blocked,
            samples: self.samples + later.samples,
            thread: self.thread.max(later.thread),
            share: self.share.max(later.share),
            collected: later.collected.or(self.collected),
        }
    }
}

/// Bounds of the histogram: powers of two nanoseconds, from 1 µs to 18 min.
const BOUNDS: [Nanos; 31] = {
    let mut bounds = [Nanos::ZERO; 31];
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = Nanos(1 << (10 + at));
        at += 1;
    }
    bounds
};

/// A coarse histogram of response times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// Number of responses.
    pub count: u64,
    /// Number of responses not longer than each of [`BOUNDS`].
    up_to: [u64; BOUNDS.len()],
}

impl Times {
    /// The histogram of these times.
    pub fn of(latency: &Latency) -> Times {
        Times { count: latency.count(), up_to: latency.counts_up_to(&BOUNDS) }
    }

    /// Number of responses longer than a bound between `time` / 2 and `time`.
    pub fn over(&self, time: Nanos) -> u64 {
        let below = BOUNDS.partition_point(|bound| *bound <= time);
        self.count - below.checked_sub(1).map_or(0, |at| self.up_to[at])
    }

    /// Lower bound of the median: half of the responses took longer than this, or than a time down to half of it.
    pub fn half(&self) -> Nanos {
        let at = self.up_to.iter().position(|n| 2 * n > self.count);
        at.and_then(|at| at.checked_sub(1)).map_or(Nanos::ZERO, |below| BOUNDS[below])
    }

    /// The histogram without the longest `n` times.
    #[must_use]
    pub fn without_longest(self, n: u64) -> Times {
        let count = self.count.saturating_sub(n);
        Times { count, up_to: self.up_to.map(|up_to| up_to.min(count)) }
    }

    /// The sum of both histograms.
    pub fn plus(&self, other: &Times) -> Times {
        let sum = |at: usize| self.up_to[at] + other.up_to[at];
        Times { count: self.count + other.count, up_to: std::array::from_fn(sum) }
    }
}

/// A second of the run, or several in a long run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moment {
    /// Start.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
    /// Dials and requests that got no response in time.
    pub timeouts: u64,
    /// Number of responses.
    pub answered: u64,
    /// 99th percentile of their times.
    pub slow: Nanos,
    /// Response times at full load.
    pub times: Times,
    /// The target's activity; `None` if not observed.
    pub target: Option<Doing>,
}

/// The moments of a run, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Moments {
    all: Vec<Moment>,
    /// Each fault with the line in which it first occurred: from and until.
    firsts: Vec<(FaultCount, Nanos, Nanos)>,
    /// From the first line with a failure to the last one, including failures of the probe.
    failing: Option<(Nanos, Nanos)>,
}

impl Moments {
    /// Takes the next line of a run.
    pub fn take(&mut self, line: &Tick, target: Option<Doing>) {
        let timeouts = line.faults.iter().filter(|(fault, _)| fault.kind == Kind::Timeout);
        let moment = Moment {
            from: line.from,
            until: line.until,
            timeouts: timeouts.map(|(_, n)| n).sum::<u64>() + line.counts.unanswered,
            answered: line.counts.answered,
            slow: line.latency.quantile(0.99).max(line.ramp_latency.quantile(0.99)),
            times: Times::of(&line.latency),
            target,
        };
        self.take_firsts(line);
        self.take_failing(line);
        if self.all.len() >= MOST {
            self.all = self.all.chunks(2).map(|pair| pair.iter().skip(1).fold(pair[0], together)).collect();
        }
        self.all.push(moment);
    }

    /// Bounded by the number of different faults.
    fn take_firsts(&mut self, line: &Tick) {
        // Requests that are still unanswered at the end of the run count as timeouts.
        let unanswered = (Fault::target(Stage::Exchange, Kind::Timeout), line.counts.unanswered);
        for (fault, n) in line.faults.iter().chain([unanswered]) {
            let fault = FaultCount::new(Fault { detail: Detail::NONE, ..fault }, n);
            let is_same = |known: &FaultCount| {
                (known.side, known.stage, known.kind) == (fault.side, fault.stage, fault.kind)
            };
            if n > 0 && !self.firsts.iter().any(|(known, ..)| is_same(known)) {
                self.firsts.push((fault, line.from, line.until));
            }
        }
    }

    /// Lines of a fleet may arrive out of order.
    fn take_failing(&mut self, line: &Tick) {
        let probes = line.probe.as_deref().map_or(0, |probe| probe.failed);
        if probes > 0 || line.faults.iter().next().is_some() {
            let (from, until) = self.failing.unwrap_or((line.from, line.until));
            self.failing = Some((from.min(line.from), until.max(line.until)));
        }
    }

    /// Time from the first failure to the last, in whole lines; `None` without failures.
    pub fn failing(&self) -> Option<Nanos> {
        self.failing.map(|(from, until)| until.since(from))
    }

    /// Each fault with the line in which it first occurred: from and until.
    pub fn firsts(&self) -> impl Iterator<Item = (FaultCount, Nanos, Nanos)> + '_ {
        self.firsts.iter().cloned()
    }

    /// These moments, for tests.
    #[cfg(any(test, feature = "fixture"))]
    pub fn of(moments: &[Moment]) -> Moments {
        Moments { all: moments.to_vec(), ..Moments::default() }
    }

    /// The moments that overlap this interval by at least half of their length.
    pub fn between(&self, from: Nanos, until: Nanos) -> impl Iterator<Item = &Moment> {
        let overlap = move |one: &Moment| one.until.min(until).since(one.from.max(from));
        self.all.iter().filter(move |one| 2 * overlap(one).0 >= one.until.since(one.from).0.max(1))
    }

    /// The moments in which requests or dials were waiting that later timed out: up to `timeout` before each timeout.
    pub fn before_timeouts(&self, timeout: Nanos) -> impl Iterator<Item = &Moment> {
        let failed: Vec<Nanos> =
            self.all.iter().filter(|one| one.timeouts > 0).map(|one| one.until).collect();
        self.all.iter().filter(move |one| {
            // The first timeout after it.
            let at = failed.partition_point(|at| *at < one.until);
            failed.get(at).is_some_and(|at| at.since(one.until) <= timeout)
        })
    }

    /// The slowest moments, with at least half of the highest 99th percentile.
    pub fn slowest(&self) -> impl Iterator<Item = &Moment> {
        let most = self.all.iter().map(|one| one.slow).max().unwrap_or(Nanos::ZERO);
        self.all.iter().filter(move |one| one.answered > 0 && 2 * one.slow.0 >= most.0)
    }

    /// The moments with responses at full load.
    pub fn loaded(&self) -> impl Iterator<Item = &Moment> {
        self.all.iter().filter(|one| one.times.count > 0)
    }
}

fn together(one: Moment, next: &Moment) -> Moment {
    Moment {
        from: one.from,
        until: next.until,
        timeouts: one.timeouts + next.timeouts,
        answered: one.answered + next.answered,
        slow: one.slow.max(next.slow),
        times: one.times.plus(&next.times),
        target: match (one.target, next.target) {
            (Some(one), Some(next)) => Some(one.and(next)),
            (one, next) => one.or(next),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64, timeouts: u64, slow_ms: u64) -> Moment {
        let (from, until) = (Nanos::from_secs(n), Nanos::from_secs(n + 1));
        let slow = Nanos::from_millis(slow_ms);
        Moment { from, until, timeouts, answered: 9, slow, ..Moment::default() }
    }

    fn starts<'a>(moments: impl Iterator<Item = &'a Moment>) -> Vec<u64> {
        moments.map(|one| one.from.millis() / 1_000).collect()
    }

    #[test]
    fn seconds_are_found_by_their_faults() {
        let timeouts = [0, 0, 0, 0, 0, 0, 0, 5, 0, 0];
        let all: Vec<Moment> = (0..).zip(timeouts).map(|(n, timeouts)| second(n, timeouts, 10 * n)).collect();
        let moments = Moments::of(&all);
        assert_eq!(starts(moments.before_timeouts(Nanos::from_secs(2))), [5, 6, 7]);
        assert_eq!(
            starts(moments.between(Nanos::from_millis(2_400), Nanos::from_millis(5_600))),
            [2, 3, 4, 5]
        );
        assert_eq!(starts(moments.slowest()), [5, 6, 7, 8, 9]);
        assert_eq!(Moments::default().slowest().count(), 0);
    }

    #[test]
    fn what_failed_did_so_within_a_time() {
        let mut moments = Moments::default();
        let mut take = |second: u64, resets: u64, probes: u64| {
            let (from, until) = (Nanos::from_secs(second), Nanos::from_secs(second + 1));
            let probe = Some(Box::new(samples::Probe { failed: probes, ..Default::default() }));
            let mut line = Tick { from, until, probe, ..Tick::default() };
            (0..resets).for_each(|_| line.faults.count(Fault::target(Stage::Exchange, Kind::Reset)));
            moments.take(&line, None);
            moments.failing()
        };
        assert_eq!(take(1, 0, 0), None);
        assert_eq!(take(3, 2, 0), Some(Nanos::from_secs(1)));
        assert_eq!(take(2, 0, 1), Some(Nanos::from_secs(2)), "the probe's, which came later");
        assert_eq!(take(9, 0, 0), Some(Nanos::from_secs(2)));
    }

    #[test]
    fn memory_has_a_bound_and_nothing_is_forgotten() {
        let mut moments = Moments::default();
        let doing = Doing { samples: 1, thread: 0.5, ..Doing::default() };
        let mut line = Tick::default();
        for n in 0..5 * MOST as u64 {
            (line.from, line.until) = (Nanos::from_secs(n), Nanos::from_secs(n + 1));
            line.counts.answered = 1;
            moments.take(&line, Some(doing));
        }
        assert!((MOST / 2..=MOST).contains(&moments.all.len()), "{}", moments.all.len());
        assert_eq!(moments.all.iter().map(|one| one.answered).sum::<u64>(), 5 * MOST as u64);
        let samples: u32 = moments.all.iter().filter_map(|one| one.target).map(|target| target.samples).sum();
        assert_eq!(samples, 5 * MOST as u32);
        assert!(moments.all.windows(2).all(|pair| pair[0].until == pair[1].from));
    }
}

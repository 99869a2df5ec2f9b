//! Distributions of times as HDR histograms: constant memory for any number of values. Events that never ended are counted as
//! right-censored, so that percentiles can include them.

use hdrhistogram::Histogram;
use units::Nanos;

use crate::{
    buckets::{Bucket, Buckets, COARSE, DIGITS, LOWEST_BITS},
    encode,
    merge::{Merge, merged},
    quantiles::{Censored, Quantiles, Stalled},
};

/// Resolution of three significant digits: times that differ by less than this share may be reported as equal, and equal ones may differ by
/// it.
const GRAIN: f64 = 1e-3;

merged! {
    /// The distribution of one time, of what came to its end; what never did is counted beside it as [censored](Latency::censor).
    /// 8 KiB for each factor of two that the times span, 220 KiB at the most (a bucket of 32 bits would be full after a day and
    /// a half at 30,000 a second); one a shard, never one a connection.
    pub struct Latency {
        #[serde(with = "encode::hdr", skip_serializing_if = "Buckets::is_empty")]
        #[cfg_attr(test, ts(type = "string"))]
        #[serde(rename = "histogram")]
        buckets: Buckets = Buckets::new(DIGITS),
        /// Exact sum, nanoseconds: the mean does not suffer from the buckets.
        #[serde(with = "encode::wide", skip_serializing_if = "encode::is_zero")]
        #[cfg_attr(test, ts(type = "number"))]
        sum: u128,
        /// Exact, and `u64::MAX` where nothing is recorded.
        #[serde(skip_serializing_if = "encode::is_most")]
        min: u64 = u64::MAX => always least,
        #[serde(skip_serializing_if = "encode::is_zero")]
        max: u64 => always most,
        /// Times that have no end: right-censored observations.
        #[serde(skip_serializing_if = "encode::is_zero")]
        censored: u64,
        /// Those among the recorded that are lower bounds.
        #[serde(skip_serializing_if = "encode::is_zero")]
        stalled: u64,
        /// The most that was taken off one of them, nanoseconds.
        #[serde(skip_serializing_if = "encode::is_zero")]
        taken_off: u64 => always most,
    }
}

/// Minimum factor between a [slow part](Latency::slow_part) and all shorter times.
const FAR: f64 = 4.0;
/// Minimum number of slow times; fewer are single events.
const FEW: u64 = 3;

/// A part of a distribution that is far longer than the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowPart {
    /// Its share of all times, 0..=1.
    pub share: f64,
    /// Median of the slow part.
    pub slow: Nanos,
    /// Median of the rest.
    pub usual: Nanos,
}

/// A measured duration, and how exactly throng could measure it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Took {
    /// The duration without the time for which throng stalled.
    pub time: Nanos,
    /// The length of the stall after which the end was seen; it may have come at any moment during it. Zero without a stall.
    pub stalled: Nanos,
}

impl Latency {
    /// An empty distribution with two significant digits, which takes a fifth of the memory.
    pub fn coarse() -> Latency {
        Latency { buckets: Buckets::new(COARSE), ..Latency::default() }
    }

    /// Whether nothing is recorded or censored.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty() && self.censored == 0
    }

    /// Records a time.
    pub fn record(&mut self, time: Nanos) {
        self.record_n(time, 1);
    }

    /// Records the same time `n` times.
    pub fn record_n(&mut self, time: Nanos, n: u64) {
        if n == 0 {
            return;
        }
        self.buckets.record_n(time.0, n);
        self.sum += u128::from(time.0) * u128::from(n);
        self.min = self.min.min(time.0);
        self.max = self.max.max(time.0);
    }

    /// Records a time that is a lower bound if a stall was subtracted from it.
    pub fn record_seen(&mut self, took: Took) {
        self.record(took.time);
        self.stalled += u64::from(took.stalled > Nanos::ZERO);
        self.taken_off = self.taken_off.max(took.stalled.0);
    }

    /// Counts an event that never ended (a request without a response, a dial without a connection), which ranks above every recorded time.
    pub fn censor(&mut self) {
        self.censor_n(1);
    }

    /// Counts `n` such events.
    pub fn censor_n(&mut self, n: u64) {
        self.censored += n;
    }

    /// Number of events that never ended.
    pub fn censored(&self) -> u64 {
        self.censored
    }

    /// Censored events as a share (0..=1) of all events; zero without any.
    pub fn censored_share(&self) -> f64 {
        self.censored as f64 / (self.censored + self.count()).max(1) as f64
    }

    /// Number of recorded times that are lower bounds, because a stall was subtracted.
    pub fn lower_bounds(&self) -> u64 {
        self.stalled
    }

    /// Whether the `q`-quantile (0..=1) may be longer than reported, because too many times are lower bounds.
    pub fn is_at_least(&self, q: f64) -> bool {
        Stalled::reaches(self.stalled, self.count(), q)
    }

    /// The `q`-quantile (0..=1) of all events, with censored ones ranked above all others; `None` if it lies among those, or if there is no
    /// event.
    pub fn judged_quantile(&self, q: f64) -> Option<Nanos> {
        let (n, all) = (self.count(), self.count() + self.censored);
        // The product may be wrong in its last digits: 0.99 of 1,000 is the 990th.
        let rank = ((q * all as f64 * (1.0 - 1e-12)).ceil() as u64).max(1);
        // The middle of the rank's interval, which rounds to that rank.
        (rank <= n).then(|| self.quantile((rank as f64 - 0.5) / n as f64))
    }

    /// Number of recorded times.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// The `q`-quantile (0..=1) of the recorded times; zero without any.
    pub fn quantile(&self, q: f64) -> Nanos {
        let rank = ((q.min(1.0) * self.count() as f64).ceil() as u64).max(1);
        let reported = |bucket: Bucket| if q == 0.0 { bucket.lowest } else { bucket.highest() };
        Nanos(self.buckets.ranked(rank).map_or(0, |bucket| reported(bucket).min(self.max)))
    }

    /// The shortest time, exact; zero without any.
    pub fn min(&self) -> Nanos {
        Nanos(if self.buckets.is_empty() { 0 } else { self.min })
    }

    /// The longest time, exact; zero without any.
    pub fn max(&self) -> Nanos {
        Nanos(self.max)
    }

    /// The sum of all times in seconds, exact.
    pub fn sum_s(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    /// Arithmetic mean in seconds, exact; zero without any time.
    pub fn mean_s(&self) -> f64 {
        self.sum_s() / self.count().max(1) as f64
    }

    /// Standard deviation in seconds, from the histogram; zero without any time.
    pub fn stdev_s(&self) -> f64 {
        if self.buckets.is_empty() {
            return 0.0;
        }
        let n = self.count() as f64;
        let sum = |of: &dyn Fn(f64) -> f64| -> f64 {
            self.buckets.iter().map(|bucket| of(bucket.middle() as f64) * bucket.count as f64).sum()
        };
        let mean = sum(&|time| time) / n;
        (sum(&|time| (time - mean).powi(2)) / n).sqrt() / 1e9
    }

    /// The part of the times that is far longer than the rest, if its times are about equal and it is at most half of all. `None` if times
    /// are spread.
    pub fn slow_part(&self) -> Option<SlowPart> {
        let (mut shorter, mut longest) = (0, u64::MAX);
        // The widest gap, and the number of times below it.
        let mut gap = (FAR, 0);
        for bucket in self.buckets.iter() {
            let factor = bucket.lowest as f64 / longest as f64;
            if factor >= gap.0 {
                gap = (factor, shorter);
            }
            shorter += bucket.count;
            longest = bucket.highest();
        }
        let (usual, all) = (gap.1, self.count());
        let slow = all - usual;
        let at = |rank: f64| self.quantile(rank / all as f64);
        let of_slow = |share: f64| at(usual as f64 + share * slow as f64);
        let are_many = slow >= FEW && slow <= usual;
        let are_equal = are_many && of_slow(0.95).0 <= 2 * of_slow(0.05).0;
        are_equal.then(|| SlowPart {
            share: slow as f64 / all as f64,
            slow: of_slow(0.5),
            usual: at(0.5 * usual as f64),
        })
    }

    /// Number of times between these two, both included, to the histogram's three digits.
    pub fn count_within(&self, from: Nanos, to: Nanos) -> u64 {
        if from > to { 0 } else { self.buckets.count_within(from.0, to.0) }
    }

    /// Number of times that do not exceed each of these ascending bounds, to the histogram's three digits.
    pub fn counts_up_to<const N: usize>(&self, times: &[Nanos; N]) -> [u64; N] {
        let mut counts = [0; N];
        for bucket in self.buckets.iter() {
            if let Some(first) = times.iter().position(|time| bucket.lowest <= time.0) {
                counts[first] += bucket.count;
            }
        }
        for at in 1..N {
            counts[at] += counts[at - 1];
        }
        counts
    }

    /// Relative error of a time in microseconds, due to the histogram's resolution.
    pub fn grain(us: f64) -> f64 {
        GRAIN.max(f64::from(1u32 << LOWEST_BITS) / 1e3 / us)
    }

    /// The histogram in nanoseconds, for exporters.
    pub fn histogram(&self) -> Histogram<u64> {
        (&self.buckets).into()
    }

    /// Adds the times of another distribution.
    pub fn merge(&mut self, other: &Latency) {
        Merge::merge(self, other);
    }

    /// The figures of the summary, in microseconds.
    pub fn quantiles(&self) -> Quantiles {
        let us = |t: Nanos| t.0 as f64 / 1e3;
        Quantiles {
            count: self.count(),
            mean: self.sum as f64 / self.count().max(1) as f64 / 1e3,
            stdev: self.stdev_s() * 1e6,
            min: us(self.min()),
            p50: us(self.quantile(0.5)),
            p75: us(self.quantile(0.75)),
            p90: us(self.quantile(0.9)),
            p95: us(self.quantile(0.95)),
            p99: us(self.quantile(0.99)),
            p999: us(self.quantile(0.999)),
            p9999: us(self.quantile(0.9999)),
            max: us(self.max()),
            censored: self.judged(),
            stalled: self.stalled(),
        }
    }

    fn stalled(&self) -> Option<Stalled> {
        (self.stalled > 0).then(|| Stalled {
            count: self.stalled,
            share: self.stalled as f64 / self.count() as f64,
            most: self.taken_off as f64 / 1e3,
        })
    }

    /// The percentiles by which a run is judged, if any event is censored.
    fn judged(&self) -> Option<Censored> {
        let us = |q: f64| self.judged_quantile(q).map(|t| t.0 as f64 / 1e3);
        (self.censored > 0).then(|| Censored {
            count: self.censored,
            share: self.censored_share(),
            p50: us(0.5),
            p75: us(0.75),
            p90: us(0.9),
            p95: us(0.95),
            p99: us(0.99),
            p999: us(0.999),
            p9999: us(0.9999),
        })
    }
}

#[cfg(test)]
mod tests;

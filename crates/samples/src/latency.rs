//! Times as HDR histograms: constant memory whatever their number.

use hdrhistogram::Histogram;
use units::Nanos;

use crate::{
    buckets::{Bucket, Buckets, COARSE, DIGITS, LOWEST_BITS},
    encode,
    merge::{Merge, merged},
    quantiles::{Censored, Quantiles, Stalled},
};

/// Three significant digits: two times that differ by less than this share may be reported as equal, and equal ones as this
/// different.
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

/// So much longer than all shorter ones is a time of a [slow part](Latency::slow_part).
const FAR: f64 = 4.0;
/// Fewer slow ones are single events.
const FEW: u64 = 3;

/// A part of some times that is far longer than the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowPart {
    /// How many of all, 0..=1.
    pub share: f64,
    /// The median of these.
    pub slow: Nanos,
    /// The median of the others.
    pub usual: Nanos,
}

/// How long something took, as far as throng could see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Took {
    /// Without the time of a stall of throng.
    pub time: Nanos,
    /// That time, if its end was seen only after it: the end may have come at any moment of it.
    pub stalled: Nanos,
}

impl Latency {
    /// To two significant digits from the beginning: a fifth of the room.
    pub fn coarse() -> Latency {
        Latency { buckets: Buckets::new(COARSE), ..Latency::default() }
    }

    /// Whether nothing is recorded, nor censored.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty() && self.censored == 0
    }

    /// One more.
    pub fn record(&mut self, time: Nanos) {
        self.record_n(time, 1);
    }

    /// One more of the same time for each of `n`.
    pub fn record_n(&mut self, time: Nanos, n: u64) {
        if n == 0 {
            return;
        }
        self.buckets.record_n(time.0, n);
        self.sum += u128::from(time.0) * u128::from(n);
        self.min = self.min.min(time.0);
        self.max = self.max.max(time.0);
    }

    /// One more, which is a lower bound where a stall was taken off it.
    pub fn record_seen(&mut self, took: Took) {
        self.record(took.time);
        self.stalled += u64::from(took.stalled > Nanos::ZERO);
        self.taken_off = self.taken_off.max(took.stalled.0);
    }

    /// One more that never ended: a request without a response, a dial without a connection. Longer than every time recorded.
    pub fn censor(&mut self) {
        self.censor_n(1);
    }

    /// The same `n` times.
    pub fn censor_n(&mut self, n: u64) {
        self.censored += n;
    }

    /// How many never ended.
    pub fn censored(&self) -> u64 {
        self.censored
    }

    /// Censored ones as a share (0..=1) of all, those with a time and those without; zero of none.
    pub fn censored_share(&self) -> f64 {
        self.censored as f64 / (self.censored + self.count()).max(1) as f64
    }

    /// How many times are lower bounds: a stall was taken off them.
    pub fn lower_bounds(&self) -> u64 {
        self.stalled
    }

    /// Whether the `q`-quantile (0..=1) may be longer than reported: too many times are lower bounds.
    pub fn is_at_least(&self, q: f64) -> bool {
        Stalled::reaches(self.stalled, self.count(), q)
    }

    /// The time that a share `q` (0..=1) of all did not exceed, where censored ones are longer than every other; none where
    /// it lies among those, or of nothing.
    pub fn judged_quantile(&self, q: f64) -> Option<Nanos> {
        let (n, all) = (self.count(), self.count() + self.censored);
        // The product may be off in its last digits: 0.99 of 1,000 is the 990th.
        let rank = ((q * all as f64 * (1.0 - 1e-12)).ceil() as u64).max(1);
        // The middle of the rank's place, which rounds to that rank.
        (rank <= n).then(|| self.quantile((rank as f64 - 0.5) / n as f64))
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// The time that a share `q` (0..=1) of all did not exceed; zero without any.
    pub fn quantile(&self, q: f64) -> Nanos {
        let rank = ((q.min(1.0) * self.count() as f64).ceil() as u64).max(1);
        let reported = |bucket: Bucket| if q == 0.0 { bucket.lowest } else { bucket.highest() };
        Nanos(self.buckets.ranked(rank).map_or(0, |bucket| reported(bucket).min(self.max)))
    }

    /// The shortest, exact; zero without any.
    pub fn min(&self) -> Nanos {
        Nanos(if self.buckets.is_empty() { 0 } else { self.min })
    }

    /// The longest, exact; zero without any.
    pub fn max(&self) -> Nanos {
        Nanos(self.max)
    }

    /// All together, exact, seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    /// Arithmetic mean, exact, seconds; zero without any.
    pub fn mean_s(&self) -> f64 {
        self.sum_s() / self.count().max(1) as f64
    }

    /// Standard deviation, from the histogram, seconds; zero without any.
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

    /// Times that are about equal, and far longer than all others; at most half of all. None where times are spread.
    pub fn slow_part(&self) -> Option<SlowPart> {
        let (mut shorter, mut longest) = (0, u64::MAX);
        // The widest gap, and how many are below it.
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

    /// How many lie between these two, both included (to the histogram's three digits).
    pub fn count_within(&self, from: Nanos, to: Nanos) -> u64 {
        if from > to { 0 } else { self.buckets.count_within(from.0, to.0) }
    }

    /// How many did not exceed each of these times, which ascend (to the histogram's three digits).
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

    /// The relative error of a time of this many microseconds: the histogram's resolution.
    pub fn grain(us: f64) -> f64 {
        GRAIN.max(f64::from(1u32 << LOWEST_BITS) / 1e3 / us)
    }

    /// The histogram, in nanoseconds, for exporters.
    pub fn histogram(&self) -> Histogram<u64> {
        (&self.buckets).into()
    }

    /// Adds another's times.
    pub fn merge(&mut self, other: &Latency) {
        Merge::merge(self, other);
    }

    /// The figures of the summary, microseconds.
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

    /// The percentiles by which a run is judged, where any is censored.
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

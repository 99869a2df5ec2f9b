//! Times as HDR histograms: constant memory whatever their number.

use hdrhistogram::Histogram;
use serde::Serialize;
use units::Nanos;

/// Smallest difference told, nanoseconds. With three significant digits below it nothing would be gained: the
/// clock and the loop are coarser.
const LOWEST: u64 = 64;
/// An hour: longer times are recorded as this.
const HIGHEST: u64 = 3_600_000_000_000;

/// The distribution of one time. About 110 KiB; one a shard, never one a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    histogram: Histogram<u32>,
    /// Exact sum, nanoseconds: the mean does not suffer from the buckets.
    sum: u128,
    max: u64,
}

impl Default for Latency {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(LOWEST, HIGHEST, 3).expect("constant bounds are valid");
        Latency { histogram, sum: 0, max: 0 }
    }
}

impl Latency {
    /// One more.
    pub fn record(&mut self, time: Nanos) {
        self.histogram.saturating_record(time.0);
        self.sum += u128::from(time.0);
        self.max = self.max.max(time.0);
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The time that a share `q` (0..=1) of all did not exceed; zero without any.
    pub fn quantile(&self, q: f64) -> Nanos {
        Nanos(if self.histogram.is_empty() { 0 } else { self.histogram.value_at_quantile(q).min(self.max) })
    }

    /// Adds another's times.
    pub fn merge(&mut self, other: &Latency) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Forgets all, keeping the memory.
    pub fn clear(&mut self) {
        if !self.histogram.is_empty() {
            self.histogram.reset();
        }
        (self.sum, self.max) = (0, 0);
    }

    /// The figures of the summary, microseconds.
    pub fn quantiles(&self) -> Quantiles {
        let us = |t: Nanos| t.0 as f64 / 1e3;
        let count = self.count();
        Quantiles {
            count,
            mean: if count == 0 { 0.0 } else { self.sum as f64 / count as f64 / 1e3 },
            stdev: if count == 0 { 0.0 } else { self.histogram.stdev() / 1e3 },
            p50: us(self.quantile(0.5)),
            p75: us(self.quantile(0.75)),
            p90: us(self.quantile(0.9)),
            p99: us(self.quantile(0.99)),
            p999: us(self.quantile(0.999)),
            max: self.max as f64 / 1e3,
        }
    }
}

/// A distribution in figures; times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many times.
    pub count: u64,
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// Standard deviation, from the histogram.
    pub stdev: f64,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The longest, exact.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_recorded_reads_zero() {
        assert_eq!(Latency::default().quantiles(), Quantiles::default());
    }

    #[test]
    fn a_ramp_of_times_has_its_quantiles() {
        let mut l = Latency::default();
        for us in 1..=10_000 {
            l.record(Nanos::from_micros(us));
        }
        let q = l.quantiles();
        assert_eq!((q.count, q.mean, q.max), (10_000, 5000.5, 10_000.0));
        for (got, want) in
            [(q.p50, 5_000.0), (q.p75, 7_500.0), (q.p90, 9_000.0), (q.p99, 9_900.0), (q.p999, 9_990.0)]
        {
            assert!((got / want - 1.0).abs() < 0.002, "{got} for {want}");
        }
        // Of 1..n: sqrt((n² - 1) / 12).
        assert!((q.stdev / 2886.75 - 1.0).abs() < 0.002, "{}", q.stdev);
    }

    #[test]
    fn longer_than_an_hour_counts_as_an_hour_with_its_true_maximum() {
        let mut l = Latency::default();
        l.record(Nanos::from_secs(7200));
        assert_eq!((l.count(), l.quantiles().max), (1, 7.2e9));
        assert!(l.quantile(0.5) >= Nanos::from_secs(3590));
    }

    proptest! {
        /// Merging is associative and commutative, and equals recording everything in one place.
        #[test]
        fn merging_equals_recording_together(a in times(), b in times(), c in times()) {
            let of = |lists: &[&Vec<u64>]| {
                let mut l = Latency::default();
                lists.iter().for_each(|list| list.iter().for_each(|t| l.record(Nanos(*t))));
                l
            };
            let together = of(&[&a, &b, &c]);
            let (mut left, mut right) = (of(&[&a]), of(&[&c]));
            left.merge(&of(&[&b]));
            left.merge(&of(&[&c]));
            right.merge(&of(&[&b]));
            right.merge(&of(&[&a]));
            prop_assert_eq!(&left, &together);
            prop_assert_eq!(&right, &together);
        }
    }

    fn times() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(0u64..10_000_000_000, 0..40)
    }
}

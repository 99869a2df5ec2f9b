//! Times as HDR histograms: constant memory whatever their number.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{
    buckets::{Bucket, Buckets, COARSE, DIGITS, LOWEST_BITS},
    encode,
    merge::Merge,
    quantiles::{Censored, Quantiles, Stalled},
};

/// Three significant digits: two times that differ by less than this share may be reported as equal, and equal ones as this
/// different.
const GRAIN: f64 = 1e-3;

/// The distribution of one time, of what came to its end; what never did is counted beside it as [censored](Latency::censor).
/// 8 KiB for each factor of two that the times span, 220 KiB at the most (a bucket of 32 bits would be full after a day and
/// a half at 30,000 a second); one a shard, never one a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Latency {
    #[serde(with = "encode::hdr", skip_serializing_if = "Buckets::is_empty")]
    #[cfg_attr(test, ts(type = "string"))]
    #[serde(rename = "histogram")]
    buckets: Buckets,
    /// Exact sum, nanoseconds: the mean does not suffer from the buckets.
    #[serde(skip_serializing_if = "encode::is_zero")]
    sum: u128,
    /// Exact, and `u64::MAX` where nothing is recorded.
    #[serde(skip_serializing_if = "encode::is_most")]
    min: u64,
    #[serde(skip_serializing_if = "encode::is_zero")]
    max: u64,
    /// Times that have no end: right-censored observations.
    #[serde(skip_serializing_if = "encode::is_zero")]
    censored: u64,
    /// Those among the recorded that are lower bounds.
    #[serde(skip_serializing_if = "encode::is_zero")]
    stalled: u64,
    /// The most that was taken off one of them, nanoseconds.
    #[serde(skip_serializing_if = "encode::is_zero")]
    taken_off: u64,
}

/// How long something took, as far as throng could see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Took {
    /// Without the time of a stall of throng.
    pub time: Nanos,
    /// That time, if its end was seen only after it: the end may have come at any moment of it.
    pub stalled: Nanos,
}

impl Default for Latency {
    fn default() -> Self {
        Latency {
            buckets: Buckets::new(DIGITS),
            sum: 0,
            min: u64::MAX,
            max: 0,
            censored: 0,
            stalled: 0,
            taken_off: 0,
        }
    }
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
        self.censored += 1;
    }

    /// How many never ended.
    pub fn censored(&self) -> u64 {
        self.censored
    }

    /// Censored ones as a share (0..=1) of all, those with a time and those without; zero of none.
    pub fn censored_share(&self) -> f64 {
        self.censored as f64 / (self.censored + self.count()).max(1) as f64
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
        let told = |bucket: Bucket| if q == 0.0 { bucket.lowest } else { bucket.highest() };
        Nanos(self.buckets.ranked(rank).map_or(0, |bucket| told(bucket).min(self.max)))
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
        self.buckets.merge(&other.buckets);
        self.sum += other.sum;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        self.censored += other.censored;
        self.stalled += other.stalled;
        self.taken_off = self.taken_off.max(other.taken_off);
    }

    /// To two significant digits: a fifth of the memory, for charts. Sum, minimum and maximum stay exact.
    pub fn coarsen(&mut self) {
        let mut coarse = Buckets::new(COARSE);
        coarse.merge(&self.buckets);
        self.buckets = coarse;
    }

    /// Forgets all, keeping the memory.
    pub fn clear(&mut self) {
        self.buckets.clear();
        (self.sum, self.min, self.max) = (0, u64::MAX, 0);
        (self.censored, self.stalled, self.taken_off) = (0, 0, 0);
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
            p99: us(0.99),
            p999: us(0.999),
            p9999: us(0.9999),
        })
    }
}

impl Merge for Latency {
    fn merge(&mut self, other: &Latency) {
        Latency::merge(self, other);
    }

    fn clear(&mut self) {
        Latency::clear(self);
    }

    fn coarsen(&mut self) {
        Latency::coarsen(self);
    }

    fn reserve(&mut self) {
        self.buckets.reserve();
    }
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
    fn a_coarse_one_is_right_to_a_hundredth() {
        let mut l = Latency::default();
        for us in 1..=10_000 {
            l.record(Nanos::from_micros(us));
        }
        let fine = l.quantiles();
        l.coarsen();
        let coarse = l.quantiles();
        assert_eq!(
            (coarse.count, coarse.mean, coarse.min, coarse.max),
            (fine.count, fine.mean, fine.min, fine.max)
        );
        for (coarse, fine) in [(coarse.p50, fine.p50), (coarse.p99, fine.p99), (coarse.p999, fine.p999)] {
            assert!((coarse / fine - 1.0).abs() < 0.01, "{coarse} for {fine}");
        }
        let mut twice = l.clone();
        twice.merge(&l);
        assert_eq!((twice.count(), twice.quantile(0.5)), (20_000, l.quantile(0.5)));
    }

    #[test]
    fn a_ramp_of_times_has_its_quantiles() {
        let mut l = Latency::default();
        for us in 1..=10_000 {
            l.record(Nanos::from_micros(us));
        }
        let q = l.quantiles();
        assert_eq!((q.count, q.min, q.max), (10_000, 1.0, 10_000.0));
        for (got, want) in [
            (q.mean, 5_000.5),
            (q.p50, 5_000.0),
            (q.p75, 7_500.0),
            (q.p90, 9_000.0),
            (q.p99, 9_900.0),
            (q.p999, 9_990.0),
            (q.p9999, 9_999.0),
        ] {
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

    #[test]
    fn shares_sums_and_extremes_are_of_what_was_recorded() {
        let mut l = Latency::default();
        assert_eq!((l.min(), l.max(), l.mean_s(), l.stdev_s()), (Nanos::ZERO, Nanos::ZERO, 0.0, 0.0));
        assert_eq!(l.count_within(Nanos::ZERO, Nanos::NEVER), 0);
        for ms in [4, 1, 2, 3, 10] {
            l.record(Nanos::from_millis(ms));
        }
        assert_eq!((l.min(), l.max()), (Nanos::from_millis(1), Nanos::from_millis(10)));
        assert!((l.sum_s() - 0.020).abs() < 1e-12 && (l.mean_s() - 0.004).abs() < 1e-12);
        let within = |from, to| l.count_within(Nanos::from_millis(from), Nanos::from_millis(to));
        assert_eq!((within(0, 1), within(2, 3), within(5, 9), within(0, 10), within(3, 2)), (1, 2, 0, 5, 0));
        let bounds = [0, 1, 3, 9, 10, 60_000].map(Nanos::from_millis);
        assert_eq!(l.counts_up_to(&bounds), [0, 1, 3, 4, 5, 5]);
        assert_eq!(Latency::default().counts_up_to(&bounds), [0; 6]);
        let (mut empty, before) = (Latency::default(), l.quantiles());
        l.merge(&empty);
        empty.merge(&l);
        assert_eq!((l.quantiles(), empty.quantiles()), (before, before), "nothing is the neutral element");
        l.clear();
        assert_eq!(l.quantiles(), Quantiles::default());
    }

    #[test]
    fn what_never_ended_is_longer_than_all_that_did() {
        // (with a time: 1 ms, 2 ms, …; without; quantile; milliseconds)
        let check = |n: u64, censored: u64, q: f64, expected: Option<u64>| {
            let mut l = Latency::default();
            (1..=n).for_each(|ms| l.record(Nanos::from_millis(ms)));
            (0..censored).for_each(|_| l.censor());
            let got = l.judged_quantile(q).map(|t| (t.0 as f64 / 1e6).round() as u64);
            assert_eq!(got, expected, "{n} with a time, {censored} without, quantile {q}");
            assert_eq!((l.count(), l.censored()), (n, censored));
        };
        check(0, 0, 0.5, None);
        check(0, 5, 0.5, None);
        check(100, 0, 0.99, Some(99));
        check(100, 0, 1.0, Some(100));
        // Exactly one in a hundred has no response, and then one more.
        check(990, 10, 0.99, Some(990));
        check(990, 11, 0.99, None);
        check(100, 100, 0.25, Some(50));
        check(100, 100, 0.5, Some(100));
        check(100, 101, 0.5, None);
        check(100, 102, 0.51, None);
        check(1, 0, 0.001, Some(1));
        let mut l = Latency::default();
        assert_eq!((l.quantiles().censored, l.censored_share()), (None, 0.0));
        l.record_n(Nanos::from_millis(4), 3);
        l.record_n(Nanos::from_millis(9), 0);
        l.censor();
        let mut twice = l.clone();
        twice.merge(&l);
        let q = twice.quantiles();
        assert_eq!((q.count, q.mean, q.max), (6, 4_000.0, 4_000.0), "the figures of what was measured stay");
        let censored = q.censored.unwrap();
        assert_eq!((censored.count, censored.share, censored.p99), (2, 0.25, None));
        assert!((censored.p75.unwrap() / 4_000.0 - 1.0).abs() < 1e-3, "{censored:?}");
        let read: Latency = serde_json::from_str(&serde_json::to_string(&twice).unwrap()).unwrap();
        assert_eq!(read, twice);
        twice.clear();
        assert_eq!(twice.quantiles(), Quantiles::default());
    }

    #[test]
    fn a_bucket_takes_more_than_32_bits() {
        let mut l = Latency::default();
        l.record_n(Nanos::from_millis(1), 3 << 30);
        let half = l.clone();
        l.merge(&half);
        l.record_n(Nanos::from_millis(100), 3 << 30);
        assert_eq!(l.count(), 9 << 30);
        assert_eq!(
            l.count_within(Nanos::ZERO, Nanos::from_millis(2)),
            6 << 30,
            "the buckets add up to the total"
        );
        assert_eq!((l.quantile(0.66).millis(), l.quantile(0.67).millis()), (1, 100));
        let read: Latency = serde_json::from_str(&serde_json::to_string(&l).unwrap()).unwrap();
        assert_eq!(read.count_within(Nanos::ZERO, Nanos::from_millis(2)), 6 << 30);
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

    proptest! {
        /// A quantile is off by no more than is said.
        #[test]
        fn a_time_is_as_exact_as_its_grain(ns in 1u64..crate::buckets::HIGHEST) {
            let mut l = Latency::default();
            l.record(Nanos(ns));
            l.record(Nanos(crate::buckets::HIGHEST));
            let (us, read) = (ns as f64 / 1e3, l.quantile(0.5).0 as f64 / 1e3);
            prop_assert!((read - us).abs() <= us * Latency::grain(us), "{} for {}", read, us);
        }
    }

    proptest! {
        /// The two ways to count agree.
        #[test]
        fn counts_up_to_a_time_are_those_within_it(values in times(), bound in 0u64..10_000_000_000) {
            let mut l = Latency::default();
            values.iter().for_each(|t| l.record(Nanos(*t)));
            let bounds = [Nanos(bound / 2), Nanos(bound)];
            prop_assert_eq!(l.counts_up_to(&bounds), bounds.map(|to| l.count_within(Nanos::ZERO, to)));
        }
    }

    fn times() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(0u64..10_000_000_000, 0..40)
    }
}

//! Figures other than times, in constant memory: sizes by their moments (count, sum, sum of squares, extremes), and rates by their
//! distribution.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{
    encode,
    latency::Latency,
    merge::{Merge, merged},
};

merged! {
    /// How many, their sum, their squares' sum and their extremes: enough for a mean and its deviation, exactly.
    #[derive(Copy, Eq)]
    pub struct Moments {
        count: u64,
        sum: u64,
        #[serde(with = "encode::wide")]
        #[cfg_attr(test, ts(type = "number"))]
        squares: u128,
        /// `u64::MAX` where nothing is recorded.
        #[serde(skip_serializing_if = "encode::is_most")]
        min: u64 = u64::MAX => always least,
        max: u64 => always most,
    }
}

impl Moments {
    /// Adds a value.
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.sum += value;
        self.squares += u128::from(value).pow(2);
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Smallest value; 0 without any.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// Largest value; 0 without any.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Arithmetic mean; 0 without values.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Standard deviation of the whole population (divided by n, not by n − 1); 0 without values.
    pub fn stdev(&self) -> f64 {
        let n = u128::from(self.count.max(1));
        // Integer arithmetic gives equal values a deviation of exactly zero.
        let sum = u128::from(self.sum);
        match (self.squares.checked_mul(n), sum.checked_mul(sum)) {
            (Some(squares), Some(square)) => (squares.saturating_sub(square) as f64).sqrt() / n as f64,
            _ => (self.squares as f64 / n as f64 - self.mean().powi(2)).max(0.0).sqrt(),
        }
    }
}

/// The distribution of a rate, to three digits from a thousandth per second on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Rates(Latency);

/// A rate in thousandths per second, stored in a [`Latency`] in place of nanoseconds.
fn thousandths(per_s: f64) -> Nanos {
    Nanos((per_s * RESOLUTION).round() as u64)
}

const RESOLUTION: f64 = 1e3;
/// Converts the figures of [`Latency`], which are in seconds, to rates per second.
const PER_SECOND: f64 = 1e9 / RESOLUTION;

impl Rates {
    /// Adds a rate, per second.
    pub fn record(&mut self, per_s: f64) {
        self.0.record(thousandths(per_s));
    }

    /// Number of rates.
    pub fn count(&self) -> u64 {
        self.0.count()
    }

    /// Arithmetic mean, per second; 0 without rates.
    pub fn mean(&self) -> f64 {
        self.0.mean_s() * PER_SECOND
    }

    /// Standard deviation, per second; 0 without rates.
    pub fn stdev(&self) -> f64 {
        self.0.stdev_s() * PER_SECOND
    }

    /// Highest rate, per second; 0 without rates.
    pub fn max(&self) -> f64 {
        self.0.max().0 as f64 / RESOLUTION
    }

    /// Number of rates from `from` to `to`, both included.
    pub fn count_within(&self, from: f64, to: f64) -> u64 {
        self.0.count_within(thousandths(from), thousandths(to))
    }
}

impl Merge for Rates {
    fn merge(&mut self, other: &Rates) {
        self.0.merge(&other.0);
    }

    fn clear(&mut self) {
        Merge::clear(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Moments {
        let mut m = Moments::default();
        values.iter().for_each(|v| m.record(*v));
        m
    }

    /// (values; count, sum, min, max, mean, stdev)
    fn check(values: &[u64], (count, sum, min, max, mean, stdev): (u64, u64, u64, u64, f64, f64)) {
        let m = of(values);
        assert_eq!((m.count(), m.sum(), m.min(), m.max()), (count, sum, min, max), "{values:?}");
        assert_eq!((m.mean(), m.stdev()), (mean, stdev), "{values:?}");
    }

    #[test]
    fn moments_are_those_of_the_values() {
        check(&[], (0, 0, 0, 0, 0.0, 0.0));
        check(&[7], (1, 7, 7, 7, 7.0, 0.0));
        check(&[1339, 1349], (2, 2688, 1339, 1349, 1344.0, 5.0));
        check(&[204; 1000], (1000, 204_000, 204, 204, 204.0, 0.0));
        check(&[2, 4, 4, 4, 5, 5, 7, 9], (8, 40, 2, 9, 5.0, 2.0));
    }

    #[test]
    fn sums_that_leave_128_bits_still_have_a_deviation() {
        let mut many = of(&[0, 1 << 40]);
        for _ in 0..22 {
            many.merge(&many.clone());
        }
        // 2²³ values, half of them 2⁴⁰: the squares' sum times n is 2¹²⁵; once more, and it is too much.
        assert_eq!(many.stdev(), (1u64 << 39) as f64);
        let huge = Moments { count: 1 << 30, sum: 1 << 62, squares: 1 << 100, min: 0, max: 1 << 40 };
        assert!((huge.stdev() / ((1u128 << 70) as f64 - (1u128 << 64) as f64).sqrt() - 1.0).abs() < 1e-9);
    }

    proptest! {
        /// Merging is associative and commutative, and equals recording everything in one place.
        #[test]
        fn merging_equals_recording_together(a in sizes(), b in sizes(), c in sizes()) {
            let mut left = of(&a);
            left.merge(&of(&b));
            left.merge(&of(&c));
            let mut right = of(&c);
            right.merge(&of(&b));
            right.merge(&of(&a));
            prop_assert_eq!(left, right);
            prop_assert_eq!(left, of(&[a, b, c].concat()));
        }
    }

    fn sizes() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(0u64..1 << 32, 0..30)
    }

    #[test]
    fn rates_have_their_figures_per_second() {
        let mut rates = Rates::default();
        assert_eq!((rates.count(), rates.mean(), rates.stdev(), rates.max()), (0, 0.0, 0.0, 0.0));
        for per_s in [1000.0, 2000.0, 3000.0] {
            rates.record(per_s);
        }
        let close = |got: f64, want: f64| (got / want - 1.0).abs() < 0.002;
        assert!(close(rates.mean(), 2000.0) && close(rates.stdev(), 816.5), "{rates:?}");
        assert_eq!((rates.count(), rates.max()), (3, 3000.0));
        assert_eq!((rates.count_within(1183.5, 2816.5), rates.count_within(-5.0, 1e6)), (1, 3));
        let mut slow = Rates::default();
        slow.record(0.25);
        assert_eq!((slow.mean(), slow.max()), (0.25, 0.25));
    }
}

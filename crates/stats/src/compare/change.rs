//! How much a figure changed, and whether by more than repetitions differ.
//!
//! The interval is that of Welch's t-test on logarithms: B. L. Welch, The generalization of "Student's" problem when several different
//! population variances are involved, Biometrika 34 (1947). For reporting the interval of a ratio instead of a test's verdict: T. Kalibera
//! and R. Jones, Rigorous benchmarking in reasonable time, ISMM 2013.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The change of a figure from the base to a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Group divided by base; `None` if the base is 0.
    pub ratio: Option<f64>,
    /// 95 % confidence interval of the ratio; `None` if unknown.
    pub interval: Option<[f64; 2]>,
    /// Its significance.
    pub standing: Standing,
}

/// The significance of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The interval of the ratio excludes 1.
    Larger,
    /// The interval of the ratio includes 1.
    Within,
    /// Unknown, because one of the two is a single run.
    Unknown,
    /// No difference, in values compared exactly.
    Same,
    /// A difference, in values compared exactly.
    Differs,
}

/// Two-sided 95 %: the share of the distribution below the interval's upper end.
const UPPER: f64 = 0.975;
/// Tolerance for rounding in logarithms and sums of equal values.
pub(super) const ROUNDING: f64 = 1e-9;

impl Change {
    /// The change of positive values, by their logarithms; `grain`: resolution of the figure, as a share. `None` without values.
    pub(super) fn between(base: &[f64], other: &[f64], grain: f64) -> Option<Change> {
        if is_one_value(base.iter().chain(other)) {
            return Change::as_such(base, other);
        }
        let (base, other) = (Logs::of(base)?, Logs::of(other)?);
        let log = other.mean - base.mean;
        let half = half_width(&base, &other).map(|half| half + grain + ROUNDING);
        let standing = match half {
            None => Standing::Unknown,
            Some(half) if log.abs() > half => Standing::Larger,
            Some(_) => Standing::Within,
        };
        let interval = half.map(|half| [(log - half).exp(), (log + half).exp()]);
        Some(Change { ratio: Some(log.exp()), interval, standing })
    }

    /// The change of values that are compared exactly, because some have no logarithm or none are expected.
    pub(super) fn as_such(base: &[f64], other: &[f64]) -> Option<Change> {
        let (base, other) = (mean(base)?, mean(other)?);
        let standing = if base == other { Standing::Same } else { Standing::Differs };
        let ratio = if base == other { Some(1.0) } else { Some(other / base).filter(|_| base > 0.0) };
        Some(Change { ratio, interval: None, standing })
    }
}

impl Standing {
    /// Text in the table.
    pub const fn description(self) -> &'static str {
        match self {
            Standing::Larger => "larger than the noise",
            Standing::Within => "within the noise",
            Standing::Unknown => "not known",
            Standing::Same => "the same",
            Standing::Differs => "differs",
        }
    }

    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Standing::Larger => "larger",
            Standing::Within => "within",
            Standing::Unknown => "unknown",
            Standing::Same => "same",
            Standing::Differs => "differs",
        }
    }
}

/// Arithmetic mean; exact if all values are equal.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    let first = values.first()?;
    Some(if is_one_value(values.iter()) { *first } else { values.iter().sum::<f64>() / values.len() as f64 })
}

/// Geometric mean of positive values.
pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    if is_one_value(values.iter()) { mean(values) } else { Logs::of(values).map(|logs| logs.mean.exp()) }
}

fn is_one_value<'a>(mut values: impl Iterator<Item = &'a f64>) -> bool {
    let first = values.next();
    values.all(|value| Some(value) == first)
}

/// Statistics of the logarithms of repeated values.
struct Logs {
    n: f64,
    mean: f64,
    /// Variance of the mean; `None` for a single value.
    mean_variance: Option<f64>,
}

impl Logs {
    fn of(values: &[f64]) -> Option<Logs> {
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let (n, mean) = (logs.len() as f64, mean(&logs)?);
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let mean_variance = (logs.len() > 1).then(|| squares / (n - 1.0) / n);
        Some(Logs { n, mean, mean_variance })
    }
}

/// Half of the confidence interval of the difference of two means: Welch's equations, with degrees of freedom in Satterthwaite's form.
fn half_width(a: &Logs, b: &Logs) -> Option<f64> {
    let (va, vb) = (a.mean_variance?, b.mean_variance?);
    let variance = va + vb;
    let freedom = variance.powi(2) / (va.powi(2) / (a.n - 1.0) + vb.powi(2) / (b.n - 1.0));
    // If all values are equal, the degrees of freedom are 0 / 0.
    let Ok(t) = StudentsT::new(0.0, 1.0, freedom) else { return Some(0.0) };
    Some(t.inverse_cdf(UPPER) * variance.sqrt())
}

/// `+12.3 %` for 1.123, `+0.12 %` for 1.0012.
pub fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent.abs() {
        ..0.005 => "0.0 %".to_owned(),
        ..0.995 => format!("{percent:+.2} %"),
        _ => format!("{percent:+.1} %"),
    }
}

/// `+5.0 % to +20.0 %`.
pub fn interval([from, to]: [f64; 2]) -> String {
    format!("{} to {}", percent(from), percent(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares ratio and interval to nine digits.
    fn check(base: &[f64], other: &[f64], expected: (f64, [f64; 2]), standing: Standing) {
        let change = Change::between(base, other, 0.0).unwrap();
        let found = [change.ratio.unwrap(), change.interval.unwrap()[0], change.interval.unwrap()[1]];
        let expected = [expected.0, expected.1[0], expected.1[1]];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 3e-9, "{found} for {expected}: {base:?} {other:?}");
        }
        assert_eq!(change.standing, standing, "{base:?} {other:?}");
    }

    /// Expected values: `scipy.stats.ttest_ind(log(other), log(base), equal_var=False).confidence_interval(0.95)`.
    #[test]
    fn intervals_are_those_of_welchs_test() {
        check(
            &[98.1, 101.4, 99.7, 100.3, 102.2],
            &[109.0, 111.8, 110.1, 108.4, 112.9],
            (1.1006392065, [1.0745320579, 1.1273806622]),
            Standing::Larger,
        );
        check(
            &[1.21, 1.35, 1.19, 1.44, 1.3],
            &[1.28, 1.25, 1.41, 1.33, 1.22],
            (1.0011882048, [0.9042627413, 1.1085028452]),
            Standing::Within,
        );
        check(
            &[812.0, 1530.0, 990.0],
            &[1450.0, 2100.0, 1800.0, 1610.0],
            (1.6086461898, [0.8105975308, 3.1923889052]),
            Standing::Within,
        );
        check(
            &[48213.0, 48001.5, 47950.2, 48344.9],
            &[47100.0, 47890.3],
            (0.9868342609, [0.9050744348, 1.0759798542]),
            Standing::Within,
        );
        check(&[5.0, 5.1], &[5.6, 5.7], (1.1188229109, [1.0559581734, 1.1854301973]), Standing::Larger);
    }

    /// Table of Student's t, 0.975: one degree of freedom 12.706, two 4.303, eight 2.306.
    #[test]
    fn two_and_two_runs_have_a_wide_interval() {
        let change = Change::between(&[1.0, 1.1], &[1.05, 1.15], 0.0).unwrap();
        assert_eq!(change.standing, Standing::Within);
        // Equal variances of the logarithms: two degrees of freedom.
        let (a, b) = ([1.0, 1.1_f64], [2.0, 2.2_f64]);
        let half = 4.302_653 * (1.1_f64.ln() / 2.0) * 2.0_f64.sqrt();
        let interval = Change::between(&a, &b, 0.0).unwrap().interval.unwrap();
        assert!((interval[1].ln() - 2.0_f64.ln() - half).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn a_single_run_has_no_noise_estimate() {
        let change = Change::between(&[100.0], &[120.0, 121.0], 0.0).unwrap();
        assert_eq!((change.interval, change.standing), (None, Standing::Unknown));
        assert!((change.ratio.unwrap() - 1.204_99).abs() < 1e-4);
        assert_eq!(Change::between(&[], &[1.0], 0.0), None);
        assert_eq!(Change::between(&[1.0], &[], 0.0), None);
    }

    #[test]
    fn values_without_noise_differ_where_they_differ() {
        let check = |base: &[f64], other: &[f64], grain, expected| {
            assert_eq!(Change::between(base, other, grain).unwrap().standing, expected, "{base:?} {other:?}");
        };
        check(&[200.0; 3], &[200.0; 5], 0.0, Standing::Same);
        check(&[0.1; 3], &[0.1; 1], 0.0, Standing::Same);
        check(&[0.1; 3], &[0.1, 0.1, 0.1 + 1e-12], 0.0, Standing::Within);
        check(&[200.0; 3], &[180.0; 3], 0.0, Standing::Larger);
        // One bucket of a histogram with three digits.
        check(&[24.1; 3], &[24.11; 3], 1e-3, Standing::Within);
        check(&[24.1; 3], &[24.2; 3], 1e-3, Standing::Larger);
    }

    #[test]
    fn counts_are_compared_as_they_are() {
        let check = |base: &[f64], other: &[f64], ratio, standing| {
            let expected = Change { ratio, interval: None, standing };
            assert_eq!(Change::as_such(base, other), Some(expected), "{base:?} {other:?}");
        };
        check(&[0.0, 0.0], &[0.0], Some(1.0), Standing::Same);
        check(&[0.0, 0.0], &[3.0], None, Standing::Differs);
        check(&[2.0, 4.0], &[0.0, 3.0], Some(0.5), Standing::Differs);
        assert_eq!(Change::as_such(&[], &[3.0]), None);
    }

    /// Normal random numbers by Box and Muller.
    struct Noise(units::Random);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            (self.0.bits() >> 11) as f64 / (1u64 << 53) as f64
        }

        /// Log-normal values around `median`.
        fn runs(&mut self, n: usize, median: f64, spread: f64) -> Vec<f64> {
            let normal = |noise: &mut Noise| {
                let (a, b) = (1.0 - noise.uniform(), noise.uniform());
                (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
            };
            (0..n).map(|_| median * (spread * normal(self)).exp()).collect()
        }
    }

    /// The number of trials out of 2,000 in which a difference is found between groups of these sizes, spreads and medians.
    fn found(sizes: [usize; 2], spreads: [f64; 2], medians: [f64; 2]) -> u32 {
        let mut noise = Noise(units::Random::new(7));
        let mut trial = || {
            let [base, other] = [0, 1].map(|i| noise.runs(sizes[i], medians[i], spreads[i]));
            Change::between(&base, &other, 0.0).unwrap().standing == Standing::Larger
        };
        (0..2_000).map(|_| u32::from(trial())).sum()
    }

    /// 5 % of 2,000 are 100, with a standard deviation of 9.7. Welch's test is an approximation: in 200,000 trials it finds differences in
    /// 4.4, 4.4, 5.4 and 6.1 % for these groups.
    #[test]
    fn equal_groups_differ_in_one_of_twenty_trials() {
        for (sizes, spreads) in
            [([5, 5], [0.02, 0.02]), ([5, 5], [0.3, 0.3]), ([5, 5], [0.02, 0.1]), ([3, 12], [0.1, 0.02])]
        {
            let found = found(sizes, spreads, [1.0, 1.0]);
            assert!((66..=134).contains(&found), "{found} of 2,000: {sizes:?} {spreads:?}");
        }
    }

    #[test]
    fn a_tenth_is_found_through_two_percent_of_noise() {
        assert_eq!(found([5, 5], [0.02, 0.02], [100.0, 110.0]), 2_000);
        let weak = found([3, 3], [0.02, 0.02], [100.0, 110.0]);
        assert!(weak > 1_900, "{weak} of 2,000");
    }
}

//! Trend of values: the slope by P. K. Sen (Estimates of the regression coefficient based on Kendall's tau, JASA 63, 1968), and M. G.
//! Kendall's test (Rank correlation methods, 1975). Both are robust: a single outlier does not make a trend.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::median;

/// The trend of a series of points `(x, y)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Median of the slopes between all pairs of points.
    pub slope: f64,
    /// p-value: the probability that points without a trend are at least as ordered.
    pub p: f64,
}

impl Trend {
    /// The trend of points in the order of `x`; `None` without two different `x`.
    pub fn of(points: &[(f64, f64)]) -> Option<Trend> {
        let pairs = || {
            points
                .iter()
                .enumerate()
                .flat_map(|(nth, from)| points[nth + 1..].iter().map(move |to| (from, to)))
        };
        let slope = median(pairs().filter(|(a, b)| b.0 > a.0).map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)))?;
        let rises = pairs().map(|(a, b)| f64::from(i8::from(b.1 > a.1) - i8::from(b.1 < a.1))).sum();
        let values: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
        Some(Trend { slope, p: p_value(rises, &values) })
    }
}

/// Two-sided p-value by the normal approximation, with corrections for ties and continuity.
fn p_value(rises: f64, values: &[f64]) -> f64 {
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|tied| spread(tied.len() as f64)).sum();
    let variance = (spread(values.len() as f64) - ties) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (rises.abs() - 1.0).max(0.0) / variance.sqrt();
    2.0 * Normal::standard().sf(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kendalls_example() {
        // 5 of 45 pairs fall, so S = 35; its variance is 10 · 9 · 25 / 18 = 125, z = 34 / √125 = 3.041.
        let values = [1.0, 2.0, 4.0, 3.0, 6.0, 5.0, 9.0, 7.0, 10.0, 8.0];
        let mut rises = 0.0;
        for (nth, a) in values.iter().enumerate() {
            rises += values[nth + 1..].iter().map(|b| f64::signum(b - a)).sum::<f64>();
        }
        assert_eq!(rises, 35.0);
        assert!((p_value(rises, &values) - 0.002_358).abs() < 1e-6, "{}", p_value(rises, &values));
        assert_eq!(p_value(0.0, &[1.0; 10]), 1.0);
    }
}

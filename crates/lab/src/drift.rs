//! Tests whether figures drift during a soak: a drift is a significant trend that is also large enough to matter. The trend test is
//! that of [`Trend`].

use serde::{Deserialize, Serialize};
use stats::{Trend, median};

use crate::{curve::Interval, figure::shown, table::Row};

/// The result of the test for one figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Drift {
    /// The figure's name in `FIGURES`.
    pub(crate) figure: String,
    /// The median of its values, in the figure's unit.
    pub(crate) median: f64,
    /// The slope of the trend per hour: the median of the slopes between all pairs of values.
    pub(crate) per_hour: f64,
    /// The p-value: the probability that values without a trend are at least as ordered.
    pub(crate) p: f64,
    /// Whether the figure has a significant trend that is large enough.
    pub(crate) drifts: bool,
}

/// Significance level: low, because eight figures are tested, and neighbouring values are correlated.
const CHANCE: f64 = 0.001;
/// Minimum change over the whole soak, as a share of the median; a smaller one does not count as drift, even if significant.
const MIN_CHANGE: f64 = 0.01;
/// Share of the soak that is ignored at its beginning, while caches fill and a virtual machine warms up.
const WARM_UP: f64 = 0.1;
/// Minimum number of values for the test.
const MIN_VALUES: usize = 8;

/// Reads a figure from an interval; `None` if it was not measured.
type Figure = fn(&Interval) -> Option<f64>;

/// The figures that are tested, with their displayed names.
const FIGURES: &[(&str, Figure)] = &[
    ("memory of the server", |s| s.target_bytes),
    ("memory of throng", |s| s.own_bytes),
    ("latency p50", |s| s.p50_us),
    ("latency p99", |s| s.p99_us),
    ("connections lost per hour", |s| (s.time_s > 0.0).then(|| s.dropped / s.time_s * 3600.0)),
    ("connections open", |s| Some(s.open)),
    ("answers/s", |s| Some(s.answers_per_s)),
    ("garbage collection, ms per second", |s| {
        s.gc_pause_ms.filter(|_| s.time_s > 0.0).map(|ms| ms / s.time_s)
    }),
];

/// Tests all figures that have enough values. The intervals are those at full load.
pub(crate) fn drifts(intervals: &[Interval]) -> Vec<Drift> {
    let warm = &intervals[(intervals.len() as f64 * WARM_UP).ceil() as usize..];
    let one = |(name, figure): &(&str, Figure)| {
        let series: Vec<(f64, f64)> =
            warm.iter().filter_map(|s| Some((s.at_s / 3600.0, figure(s)?))).collect();
        Drift::of(name, &series)
    };
    FIGURES.iter().filter_map(one).collect()
}

/// The results as a table, one row per figure.
pub(crate) fn drift_rows(drifts: &[Drift]) -> Vec<Row> {
    let head = ["over the soak", "median", "per hour", "by chance", ""].map(str::to_owned);
    let row = |one: &Drift| {
        let drifts = if one.drifts { "drifts" } else { "" };
        let (median, p) = (one.shown(one.median), format!("{:.3}", one.p));
        [one.figure.clone(), median, one.slope(), p, drifts.to_owned()]
    };
    [head].into_iter().chain(drifts.iter().map(row)).map(Row::from).collect()
}

impl Drift {
    /// The drift as a sentence.
    pub(crate) fn line(&self) -> String {
        format!("{} drifts: {} per hour, median {}", self.figure, self.slope(), self.shown(self.median))
    }

    fn slope(&self) -> String {
        let sign = if self.per_hour < 0.0 { "−" } else { "+" };
        format!("{sign}{}", self.shown(self.per_hour.abs()))
    }

    fn shown(&self, n: f64) -> String {
        // A path in the summary that has the same unit.
        let path = match self.figure.split(' ').next() {
            Some("memory") => "bytes",
            Some("latency") => "latency_us.",
            _ => return format!("{n:.1}"),
        };
        shown(path, n)
    }

    /// Tests a figure; `series` contains hours and values.
    fn of(figure: &str, series: &[(f64, f64)]) -> Option<Drift> {
        let (Some(first), Some(last)) = (series.first(), series.last()) else { return None };
        if series.len() < MIN_VALUES {
            return None;
        }
        let Trend { slope: per_hour, p } = Trend::of(series)?;
        let median = median(series.iter().map(|(_, value)| *value))?;
        let whole = per_hour.abs() * (last.0 - first.0);
        let drifts = p < CHANCE && whole > median.abs() * MIN_CHANGE;
        Some(Drift { figure: figure.to_owned(), median, per_hour, p, drifts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..20).map(f64::from).map(|n| (n / 60.0, value(n))).collect()
    }

    /// Noise: evenly distributed, and without a trend.
    fn noise(n: f64) -> f64 {
        ((n * 7.0) % 5.0) - 2.0
    }

    #[test]
    fn a_leak_is_distinguished_from_noise_and_from_a_step() {
        let check = |value: &dyn Fn(f64) -> f64, per_hour: f64, drifts: bool| {
            let drift = Drift::of("x", &series(value)).unwrap();
            assert!((drift.per_hour - per_hour).abs() <= per_hour.abs() * 0.1 + 1e-9, "{drift:?}");
            assert_eq!(drift.drifts, drifts, "{drift:?}");
        };
        check(&|n| 1000.0 + 10.0 * n + noise(n), 600.0, true);
        check(&|n| 1000.0 - 10.0 * n, -600.0, true);
        check(&|_| 1000.0, 0.0, false);
        check(&|n| 1000.0 + noise(n), 0.0, false);
        // A single outlier is not a trend.
        check(&|n| if n == 13.0 { 90_000.0 } else { 1000.0 }, 0.0, false);
        // A steady but small trend: 0.2 % over the whole time.
        check(&|n| 1000.0 + 0.1 * n, 6.0, false);
        assert_eq!(Drift::of("x", &series(|n| n)[..7]), None);
    }

    #[test]
    fn the_warm_up_is_not_looked_at() {
        let interval = |n: u32| Interval {
            at_s: f64::from(n) * 60.0,
            time_s: 60.0,
            target_bytes: Some(if n < 3 { 100.0 } else { 1000.0 }),
            ..Interval::default()
        };
        let all: Vec<Interval> = (0..30).map(interval).collect();
        let found = drifts(&all);
        let names: Vec<&str> = found.iter().map(|drift| drift.figure.as_str()).collect();
        assert_eq!(
            names,
            ["memory of the server", "connections lost per hour", "connections open", "answers/s"]
        );
        let row = ["memory of the server", "1000 B", "+0 B", "1.000", ""].map(str::to_owned);
        assert_eq!(drift_rows(&found)[1], row);
        assert_eq!((found[0].median, found[0].per_hour, found[0].p), (1000.0, 0.0, 1.0));
        assert!(found.iter().all(|drift| !drift.drifts));
        assert_eq!(drifts(&[]), []);
    }
}

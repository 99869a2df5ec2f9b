//! A distribution as a few figures, as the summary shows it.

use serde::{Deserialize, Serialize};

/// A distribution in figures; times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Quantiles {
    /// How many times.
    pub count: u64,
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// Standard deviation, from the histogram.
    pub stdev: f64,
    /// The shortest, exact.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// 99.99th percentile.
    pub p9999: f64,
    /// The longest, exact.
    pub max: f64,
    /// Requests without a response, or dials without a connection, which the figures above do not include; null if there
    /// are none.
    pub censored: Option<Censored>,
    /// Times that are lower bounds because throng stalled; null if there are none.
    pub stalled: Option<Stalled>,
}

impl Quantiles {
    /// Whether the `q`-quantile (0..=1; 1: the maximum) may be longer than reported, because throng stalled.
    pub fn is_at_least(&self, q: f64) -> bool {
        self.stalled.is_some_and(|stalled| Stalled::reaches(stalled.count, self.count, q))
    }

    /// Number of censored values: requests without a response, dials without a connection.
    pub fn censored_count(&self) -> u64 {
        self.censored.as_ref().map_or(0, |censored| censored.count)
    }
}

/// Times whose end was noticed only after a stall of throng. The stall is subtracted: the result is a lower bound, and with
/// the stall added an upper one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Stalled {
    /// How many.
    pub count: u64,
    /// As a share (0..=1) of the times measured.
    pub share: f64,
    /// The most that was taken off one of them, microseconds.
    pub most: f64,
}

impl Stalled {
    /// Whether the `q`-quantile of `count` values may lie among the `stalled` lower bounds: each may in truth be longer than all other
    /// values.
    pub fn reaches(stalled: u64, count: u64, q: f64) -> bool {
        stalled as f64 > (1.0 - q) * count as f64 * (1.0 + 1e-12)
    }
}

/// Requests without a response, or dials without a connection, and the percentiles if these count as longer than every measured
/// time, as in thresholds. Microseconds; null if the percentile falls among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Censored {
    /// How many never ended.
    pub count: u64,
    /// As a share (0..=1) of all.
    pub share: f64,
    /// Median.
    pub p50: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// 99.99th percentile.
    pub p9999: Option<f64>,
}

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

/// A figure of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// How many times there are.
    Count,
    /// Arithmetic mean.
    Mean,
    /// Standard deviation.
    Stdev,
    /// The shortest time.
    Min,
    /// Median.
    P50,
    /// 75th percentile.
    P75,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// 99.99th percentile.
    P9999,
    /// The longest time.
    Max,
}

impl Statistic {
    /// All, in the order of the summary's JSON, by their names there.
    pub const ALL: [(&str, Statistic); 12] = [
        ("count", Statistic::Count),
        ("mean", Statistic::Mean),
        ("stdev", Statistic::Stdev),
        ("min", Statistic::Min),
        ("p50", Statistic::P50),
        ("p75", Statistic::P75),
        ("p90", Statistic::P90),
        ("p95", Statistic::P95),
        ("p99", Statistic::P99),
        ("p999", Statistic::P999),
        ("p9999", Statistic::P9999),
        ("max", Statistic::Max),
    ];

    /// The statistic of this name.
    pub fn named(name: &str) -> Option<Statistic> {
        Statistic::ALL.iter().find(|(own, _)| *own == name).map(|(_, statistic)| *statistic)
    }

    /// Whether it is the median or another percentile.
    pub fn is_percentile(self) -> bool {
        self.share().is_some_and(|share| share < 1.0)
    }

    /// The share (0..=1) of the times that it covers, beginning with the shortest; `None` for those that no long time moves.
    pub(crate) const fn share(self) -> Option<f64> {
        match self {
            Statistic::Count | Statistic::Min | Statistic::Stdev => None,
            Statistic::P50 => Some(0.5),
            Statistic::P75 => Some(0.75),
            Statistic::P90 => Some(0.9),
            Statistic::P95 => Some(0.95),
            Statistic::P99 => Some(0.99),
            Statistic::P999 => Some(0.999),
            Statistic::P9999 => Some(0.9999),
            Statistic::Mean | Statistic::Max => Some(1.0),
        }
    }
}

impl Quantiles {
    /// The value of a statistic, in microseconds, or a count; `None` if there are no times.
    pub fn get(&self, statistic: Statistic) -> Option<f64> {
        let value = match statistic {
            Statistic::Count => return Some(self.count as f64),
            Statistic::Mean => self.mean,
            Statistic::Stdev => self.stdev,
            Statistic::Min => self.min,
            Statistic::P50 => self.p50,
            Statistic::P75 => self.p75,
            Statistic::P90 => self.p90,
            Statistic::P95 => self.p95,
            Statistic::P99 => self.p99,
            Statistic::P999 => self.p999,
            Statistic::P9999 => self.p9999,
            Statistic::Max => self.max,
        };
        (self.count > 0).then_some(value)
    }

    /// The same with what has no end as longer than every time; `None` also if the statistic lies among those, and for mean, deviation
    /// and maximum, which then have no bound.
    pub fn judged(&self, statistic: Statistic) -> Option<f64> {
        let Some(censored) = &self.censored else { return self.get(statistic) };
        match statistic {
            Statistic::Count | Statistic::Min => self.get(statistic),
            Statistic::P50 => censored.p50,
            Statistic::P75 => censored.p75,
            Statistic::P90 => censored.p90,
            Statistic::P95 => censored.p95,
            Statistic::P99 => censored.p99,
            Statistic::P999 => censored.p999,
            Statistic::P9999 => censored.p9999,
            Statistic::Mean | Statistic::Stdev | Statistic::Max => None,
        }
    }

    /// Whether a statistic lies among what has no end, even if `without` of that is left out.
    pub fn lacks(&self, statistic: Statistic, without: u64) -> bool {
        let never = self.censored_count().saturating_sub(without);
        let reaches = |share| Stalled::reaches(never, self.count + never, share);
        never > 0 && statistic.share().is_some_and(reaches)
    }

    /// The upper bound of a statistic as it is [judged](Quantiles::judged): if throng stalled, the longest stall that was subtracted is
    /// added again. `None` if the value is exact.
    pub fn at_most(&self, statistic: Statistic) -> Option<f64> {
        let stalled = self.stalled?;
        let never = self.censored_count();
        // What has no end is longer than all others, so it precedes the stalled times in rank.
        let is_reached = Stalled::reaches(stalled.count + never, self.count + never, statistic.share()?);
        Some(self.judged(statistic)? + stalled.most).filter(|_| is_reached)
    }

    /// The lower bound of a statistic as it is [judged](Quantiles::judged), if `late` of the times may include a delay by throng of at
    /// most `most` microseconds. `None` if it covers none of them.
    pub fn at_least(&self, statistic: Statistic, late: u64, most: f64) -> Option<f64> {
        let (share, all) = (statistic.share()?, self.count + self.censored_count());
        if late == 0 || !Stalled::reaches(late + self.censored_count(), all, share) {
            return None;
        }
        // Without the delay they may be the shortest times, which moves the others up in rank.
        let below = share - late as f64 / all as f64;
        let percentiles = &Statistic::ALL[4..11];
        let is_below = |own: &&(&str, Statistic)| own.1.share().is_some_and(|share| share <= below);
        let others = percentiles.iter().rev().find(is_below).map_or(Statistic::Min, |(_, own)| *own);
        Some((self.judged(statistic)? - most).max(self.get(others)?))
    }

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

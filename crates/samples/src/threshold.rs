//! Thresholds, as they are known before a run and as they were met.

use serde::{Deserialize, Serialize};

/// A threshold as it is known before it is judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ThresholdBound {
    /// As written.
    pub expr: String,
    /// The path of its figure in the summary: `latency_us.p99`.
    pub figure: String,
    /// In the unit of that figure, or percent.
    pub bound: f64,
    /// Whether the bound is a percentage of another figure.
    pub is_share: bool,
}

/// A threshold and how it went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ThresholdResult {
    /// As written.
    pub expr: String,
    /// Measured, in the unit of the summary's figure, or in percent where the bound is; none where there was nothing to
    /// measure, and then it has failed.
    pub value: Option<f64>,
    /// The same with its unit, as people read it: `141 µs`, `99.9 %`; empty where there is none.
    pub shown: String,
    /// Met.
    pub pass: bool,
}

impl ThresholdResult {
    /// The value as people read it.
    pub fn measured(&self) -> String {
        match self.value {
            None => "nothing was measured".to_owned(),
            // Earlier versions stored no unit.
            Some(value) if self.shown.is_empty() => ((value * 1e3).round() / 1e3).to_string(),
            Some(_) => self.shown.clone(),
        }
    }
}

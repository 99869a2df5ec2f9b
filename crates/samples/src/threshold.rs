//! Thresholds before the run, and how the run met them.

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
    /// measure, or where requests without a response decide, and then it has failed.
    pub value: Option<f64>,
    /// The same with its unit, as people read it: `141 µs`, `99.9 %`. Without a value, the share that decides: `2.3 % had no
    /// response in time`; empty where nothing was measured. Of a time that failed, with throng's own lag where `--max-lag` allows
    /// much of it: `45.0 ms, including throng's own lag (p99 14.0 ms)`.
    pub shown: String,
    /// Met.
    pub pass: bool,
    /// Not judged: throng was late or could not dial, and may be why it is met or not (`unreliable` of the run); absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unreliable: bool,
}

impl ThresholdResult {
    /// Whether this threshold makes the run fail.
    pub fn fails(&self) -> bool {
        !self.pass && !self.unreliable
    }

    /// The outcome in words.
    pub fn outcome(&self) -> &'static str {
        match self.pass {
            _ if self.unreliable => "not judged",
            true => "met",
            false => "failed",
        }
    }

    /// The measured value with its unit, or why there is none.
    pub fn measured(&self) -> String {
        match self.value {
            _ if !self.shown.is_empty() => self.shown.clone(),
            // Earlier versions stored no unit.
            Some(value) => ((value * 1e3).round() / 1e3).to_string(),
            None => "nothing was measured".to_owned(),
        }
    }
}

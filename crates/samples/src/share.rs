//! The share of its machine's calibration that a run reached.

use serde::{Deserialize, Serialize};

/// A run's figures as shares of its machine's calibration; 1 is as much.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct CalibrationShare {
    /// When that was.
    pub calibrated_at: String,
    /// Of the connection rate; none if the ramp was too short.
    pub open_per_s: Option<f64>,
    /// Of the responses per second at full load; none without any, or if the hold was too short.
    pub requests_per_s: Option<f64>,
    /// The most connections open, of those that would fit.
    pub connections: Option<f64>,
}

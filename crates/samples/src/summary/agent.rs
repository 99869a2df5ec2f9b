//! An agent of a fleet in the summary.

use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::encode;

/// An agent of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct AgentSummary {
    /// Its name in the fleet.
    pub id: String,
    /// What became of it.
    pub state: AgentState,
    /// Connections that it was to hold.
    #[cfg_attr(test, ts(type = "number"))]
    pub wanted: u64,
    /// Processors that it may use.
    pub cores: u32,
    /// Connections that it held at the end of the load; 0 if it was lost before.
    #[cfg_attr(test, ts(type = "number"))]
    pub held: u64,
    /// Connections that it had when it was lost; absent if there are none.
    #[cfg_attr(test, ts(type = "number"))]
    #[serde(skip_serializing_if = "encode::is_zero")]
    pub lost_with: u64,
    /// If it was lost: requests due whose outcome was not known as of its last report. Those of all agents are the run's `requests.lost`;
    /// absent if there are none.
    #[cfg_attr(test, ts(type = "number"))]
    #[serde(skip_serializing_if = "encode::is_zero")]
    pub requests_lost: u64,
    /// How much later than the run it began, milliseconds; null if it did not begin.
    pub began_late_ms: Option<f64>,
    /// The possible error of that figure, milliseconds: its clock is estimated from the round trip of messages.
    pub clock_error_ms: Option<f64>,
    /// How late it sent, 99th percentile, microseconds; null if unknown.
    pub lag_p99_us: Option<f64>,
    /// CPU time of its process as a share of what its processors could have provided during the run; null if unknown.
    pub cpu_share: Option<f64>,
    /// Longest delay of an iteration of its event loop, microseconds; absent if none did.
    #[serde(skip_serializing_if = "encode::is_zero")]
    pub stall_us: f64,
    /// For how long it sent no report while it held its part, seconds; absent if it was never away.
    #[serde(skip_serializing_if = "encode::is_zero")]
    pub away_s: f64,
    /// The longest time for which no agent carried its part, seconds: from its last sign of life until others had taken it over; absent if none has.
    #[serde(skip_serializing_if = "encode::is_zero")]
    pub gap_s: f64,
    /// Connections that it closed because its lease had expired, which are among the run's `finished`; absent if there are none.
    #[cfg_attr(test, ts(type = "number"))]
    #[serde(skip_serializing_if = "encode::is_zero")]
    pub closed_by_lease: u64,
    /// What it sent and what did not arrive; absent if there is none.
    #[cfg_attr(test, ts(type = "number"))]
    #[serde(skip_serializing_if = "encode::is_zero")]
    pub missing_ticks: u64,
    /// Its final message arrived, and its counts match the totals there.
    pub sealed: bool,
    /// Why it ended before its time; absent if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Agents that have taken over its part after it was lost; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_over_by: Vec<String>,
}

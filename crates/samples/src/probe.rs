//! The probe: requests on their own schedule, independent of the population.

use serde::{Deserialize, Serialize};

use crate::{latency::Latency, merge::merged, quantiles::Quantiles};

merged! {
    /// Counts and times of the probe in a period; merges like a tick.
    pub struct Probe {
        /// Requests that were sent, or given up before.
        pub sent: u64,
        /// Requests with a correct response.
        pub answered: u64,
        /// Failed: not dialled, lost, timed out, or with a wrong response.
        pub failed: u64,
        /// Without a response or a fault when the run ended.
        pub unanswered: u64,
        /// From due to the complete correct response, on kept connections.
        pub kept: Latency,
        /// The same on a fresh connection each, its dial and handshake included.
        pub fresh: Latency,
        /// Of both, those that were due at full load.
        pub held: Latency,
        /// From when a dial of the probe was due until it was connected.
        pub connect: Latency,
    }
}

/// The probe in the summary; times in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProbeSummary {
    /// Requests per second as configured.
    pub rate: f64,
    /// Begun.
    pub sent: u64,
    /// Requests with a correct response.
    pub answered: u64,
    /// Requests without a correct response.
    pub failed: u64,
    /// Without a response when the run ended.
    pub unanswered: u64,
    /// Of all with a response.
    pub latency_us: Quantiles,
    /// Of those on kept connections.
    pub kept_us: Quantiles,
    /// Of those on fresh ones.
    pub fresh_us: Quantiles,
    /// Of those that were due at full load, kept and fresh.
    pub held_us: Quantiles,
    /// Dial to connection.
    pub connect_us: Quantiles,
    /// The probe's times by the number of open connections, ascending.
    pub by_connections: Vec<ProbePoint>,
}

/// The probe while this many connections were open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProbePoint {
    /// Connections of the population, on average over the requests that ended.
    pub connections: u64,
    /// Median time to a response, kept and fresh together.
    pub latency_p50_us: f64,
    /// 99th percentile of it.
    pub latency_p99_us: f64,
    /// The share (0..=1) of the requests that had no response: in neither of these.
    pub no_response: f64,
    /// 99th percentile of the connect time.
    pub connect_p99_us: f64,
}

//! The probe lane: requests on a clock of their own, beside the population.

use serde::{Deserialize, Serialize};

use crate::{latency::Latency, merge::merged, quantiles::Quantiles};

merged! {
    /// What the probe lane did in a period; merges as a tick does.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(test, derive(ts_rs::TS))]
    #[serde(default)]
    pub struct Probe {
        /// Requests that were sent, or given up before.
        pub sent: u64,
        /// Answered rightly.
        pub answered: u64,
        /// Not dialled, lost, not in time, or answered wrongly.
        pub failed: u64,
        /// Without a response or a fault when the run ended.
        pub unanswered: u64,
        /// From due to the whole right answer, on connections that the lane keeps.
        pub kept: Latency,
        /// The same on a fresh connection each, its dial and handshake included.
        pub fresh: Latency,
        /// Of both, those that were due at full load.
        pub held: Latency,
        /// From when a dial of the lane was due to the connection.
        pub connect: Latency,
    }
}

/// The probe lane in the summary; times in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProbeSummary {
    /// Requests per second asked for.
    pub rate: f64,
    /// Begun.
    pub sent: u64,
    /// Answered rightly.
    pub answered: u64,
    /// Not answered, or not rightly.
    pub failed: u64,
    /// Without a response when the run ended.
    pub unanswered: u64,
    /// Of all that were answered.
    pub latency_us: Quantiles,
    /// Of those on kept connections.
    pub kept_us: Quantiles,
    /// Of those on fresh ones.
    pub fresh_us: Quantiles,
    /// Of those that were due at full load, kept and fresh.
    pub held_us: Quantiles,
    /// Dial to connection.
    pub connect_us: Quantiles,
    /// The lane's times against the connections that the population had open, ascending.
    pub by_connections: Vec<ProbePoint>,
}

/// The probe lane while so many connections were open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProbePoint {
    /// Connections of the population, on average over the requests that ended.
    pub connections: u64,
    /// Median time to an answer, kept and fresh together.
    pub latency_p50_us: f64,
    /// 99th percentile of it.
    pub latency_p99_us: f64,
    /// The share (0..=1) of the requests that had no response: in neither of these.
    pub no_response: f64,
    /// 99th percentile of the connect time.
    pub connect_p99_us: f64,
}

//! The summary of a run: all figures, the verdict and the limit. Schema `throng.summary/1`; its field names do not change.

use std::{
    borrow::Cow,
    ops::{Deref, DerefMut},
};

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

mod agent;
mod connections;
mod errors;
mod requests;
mod streams;

pub use agent::AgentSummary;
pub use connections::Connections;
pub use errors::Errors;
pub use requests::Requests;
pub use streams::StreamLimit;

use crate::{
    cause::Cause,
    cost::Cost,
    destination::DestinationSummary,
    fault::{FaultCount, Faults, Side},
    in_common::InCommon,
    merge::{Merge, merged},
    observation::Observation,
    probe::ProbeSummary,
    pushes::PushFigures,
    quantiles::Quantiles,
    sample::ProcessMemory,
    share::CalibrationShare,
    threshold::ThresholdResult,
    tick::Tick,
    words::words,
};

words! {
    /// What a run means.
    #[derive(Default)]
    #[cfg_attr(test, derive(ts_rs::TS))]
    Verdict {
        /// The load was reached and held, every threshold met.
        #[default]
        Pass = "pass",
        /// It was not, or a threshold failed.
        Fail = "fail",
        /// The generator was the limit: the figures do not describe the target.
        Invalid = "invalid",
        /// Ended by a signal.
        Interrupted = "interrupted",
    }
}

impl Verdict {
    /// The exit status of throng for this verdict.
    pub const fn exit_status(self) -> u8 {
        match self {
            Verdict::Pass => 0,
            Verdict::Fail => 1,
            Verdict::Invalid => 4,
            Verdict::Interrupted => 130,
        }
    }
}

words! {
    /// How sure a limit is.
    #[derive(Default)]
    #[cfg_attr(test, derive(ts_rs::TS))]
    Certainty {
        /// One explanation of several; the fix is how to find out.
        #[default]
        Guess = "guess",
        /// It follows from a pattern in what happened.
        Inferred = "inferred",
        /// The cause itself was seen: a counter, a state, an error.
        Seen = "seen",
    }
}

/// What kept a run from reaching its load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Limit {
    /// The side that the limit is on.
    #[cfg_attr(test, ts(type = "string"))]
    #[serde(deserialize_with = "known")]
    pub side: Side,
    /// The cause.
    #[cfg_attr(test, ts(type = "string"))]
    #[serde(deserialize_with = "known")]
    pub cause: Cause,
    /// Connections open when it showed.
    pub at_connections: u64,
    /// How sure that is.
    pub certainty: Certainty,
    /// Second of the run at which it was first seen, to a second; none where that is not known.
    pub first_seen_s: Option<f64>,
    /// What it is, in one sentence without the fix: `connection refused: nothing listens on 127.0.0.1:81`.
    pub sentence: String,
    /// What was seen.
    pub detail: String,
    /// What to do.
    #[serde(rename = "cure")]
    pub fix: String,
}

/// A load in figures: one population's, or all of them together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Figures {
    /// As the user wrote it.
    pub target: String,
    /// Shards.
    pub threads: u32,
    /// How long the ramps took, in which connections are opened; of several populations the longest.
    pub ramp_s: f64,
    /// How long full load lasted; of several populations the longest.
    pub duration_s: f64,
    /// From the first dial to the end of full load; of one of several populations to its last response, if that came before.
    pub elapsed_s: f64,
    /// Connections.
    pub connections: Connections,
    /// What went wrong.
    pub faults: Vec<FaultCount>,
    /// Requests.
    pub requests: Requests,
    /// The error rate.
    pub errors: Errors,
    /// From due to the response, of requests due at full load.
    pub latency_us: Quantiles,
    /// The same of the ramps.
    pub ramp_latency_us: Quantiles,
    /// From due to connected.
    pub connect_us: Quantiles,
    /// From when the transport was open to TLS, by a full handshake.
    pub tls_us: Quantiles,
    /// The same, by resuming an earlier session.
    pub tls_resumed_us: Quantiles,
    /// From when the WebSocket upgrade was sent to its 101.
    pub handshake_us: Quantiles,
    /// From due to the first byte of the response, of gRPC to its first message, of requests due at full load; HTTP and TCP.
    pub first_byte_us: Quantiles,
    /// Between consecutive messages of a server: in a gRPC server-streaming response, or pushed on a
    /// WebSocket.
    pub gap_us: Quantiles,
    /// Messages that servers pushed on WebSockets.
    pub pushes: PushFigures,
    /// From the timestamp in a pushed message to its receipt.
    pub delay_us: Quantiles,
    /// Broadcasts: from the first receiver's receipt to the last's.
    pub spread_us: Quantiles,
    /// HTTP/2: from a PING, sent in addition to requests, to its acknowledgement.
    pub ping_rtt_us: Quantiles,
    /// HTTP/2: how many of the wanted streams per connection the server allowed; absent if it allowed all. With several
    /// populations, of the one with the fewest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamLimit>,
}

impl Figures {
    /// Adds the figures of another load: counts are sums, and durations the maximum. Percentiles cannot be added, and are reset.
    pub fn merge(&mut self, other: &Figures) {
        self.ramp_s = self.ramp_s.max(other.ramp_s);
        self.duration_s = self.duration_s.max(other.duration_s);
        self.elapsed_s = self.elapsed_s.max(other.elapsed_s);
        self.connections.merge(&other.connections);
        self.requests.merge(&other.requests);
        let mut faults = Faults::from(std::mem::take(&mut self.faults));
        faults.merge(&other.faults.clone().into());
        self.faults = faults.into();
        self.errors.merge(&other.errors);
        self.pushes.merge(&other.pushes);
        self.streams = StreamLimit::fewest([self.streams, other.streams].into_iter().flatten());
        self.set_times(&Tick::default());
    }

    /// Sets the distributions from this tick.
    pub fn set_times(&mut self, totals: &Tick) {
        self.latency_us = totals.latency.quantiles();
        self.ramp_latency_us = totals.ramp_latency.quantiles();
        self.connect_us = totals.connect.quantiles();
        self.tls_us = totals.tls.quantiles();
        self.tls_resumed_us = totals.tls_resumed.quantiles();
        self.handshake_us = totals.handshake.quantiles();
        self.first_byte_us = totals.first_byte.quantiles();
        self.gap_us = totals.gap.quantiles();
        self.delay_us = totals.delay.quantiles();
        self.spread_us = totals.spread.quantiles();
        self.ping_rtt_us = totals.ping_rtt.quantiles();
    }
}

/// One population in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct PopulationSummary {
    /// As the [`Summary`] has them of all.
    #[serde(flatten)]
    pub figures: Figures,
    /// By step, if it has several, those of which a request was due, in the order of the scenario.
    pub steps: IndexMap<String, StepSummary>,
}

/// One step of a population.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct StepSummary {
    /// From due to the response, of requests due at full load.
    pub latency_us: Quantiles,
    /// The same, of requests due during the ramp.
    pub ramp_latency_us: Quantiles,
    /// What went wrong with its requests.
    pub faults: Vec<FaultCount>,
}

impl StepSummary {
    /// The times to show, and the suffix for the step's name: those of the ramp if no request was due at full load.
    pub fn shown(&self) -> (&'static str, &Quantiles) {
        let is_of_ramp = self.latency_us.count == 0 && self.latency_us.censored.is_none();
        if is_of_ramp { (" (ramp)", &self.ramp_latency_us) } else { ("", &self.latency_us) }
    }
}

merged! {
    /// Resources used by throng; of several machines, figures known only per machine are none.
    pub struct Generator {
        /// CPU time, seconds.
        pub cpu_s: f64,
        /// The time in which it was used, from the first sample to the last, seconds; of several machines the longest.
        pub over_s: f64 => always most,
        /// The part of it that the kernel took, seconds.
        pub system_s: f64,
        /// Resident memory, bytes.
        pub rss_bytes: u64,
        /// Slope of resident memory against open connections over the ramp; none where the points do not carry one.
        pub user_bytes_per_connection: Option<f64> => always alone,
        /// CPU time over the hold, as a share of what its threads could have had; none where the hold was too short.
        pub cpu_share: Option<f64> => always alone,
        /// Longest delay of an iteration of its event loop, microseconds.
        pub stall_us: f64 => always most,
    }
}

impl Generator {
    /// Adds the figures of another machine.
    pub fn merge(&mut self, other: &Generator) {
        Merge::merge(self, other);
    }
}

/// What the target's process cost, where it runs on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProcessCost {
    /// Process.
    pub pid: u32,
    /// Resident memory of all its processes, bytes.
    pub rss_bytes: u64,
    /// Slope of resident memory against open connections over the ramp; none where the points do not carry one.
    pub user_bytes_per_connection: Option<f64>,
    /// CPU time since the run began, seconds.
    pub cpu_s: f64,
    /// The time in which it was used, from the first sample to the last, seconds.
    pub over_s: f64,
    /// Each process individually at the last sample at full load, `pid` first; at most 64.
    pub processes: Vec<ProcessMemory>,
}

/// What a connection costs the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct KernelCost {
    /// Bytes.
    pub value: f64,
    /// One figure for the pair: both ends are on this machine.
    pub both_ends: bool,
}

/// A command of the user that was carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct UserCommand {
    /// When, since the first dial.
    pub at_s: f64,
    /// `paused`, `resumed`, `load 90 %`, `drained`, `stopped`.
    pub what: String,
}

/// A question to the target, asked after the load by one connection more, because two causes look alike in what the load saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ExperimentSummary {
    /// What was done: `pause`, `other-source`, `other-address`, `alone`, `half`, `small-segments`, `silent`, `busy`, `tls`.
    pub what: String,
    /// The causes that it distinguishes: `a full target, or a broken target`.
    pub why: String,
    /// The outcome: `served after 0.4 ms, with 50 connections open`.
    pub answer: String,
    /// How long it took, seconds.
    pub took_s: f64,
}

/// A run in figures, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Summary {
    /// `throng.summary/1`.
    pub schema: Cow<'static, str>,
    /// Whether it passed.
    pub verdict: Verdict,
    /// The last line of the output: the verdict in one sentence, with the limit and its fix.
    pub headline: String,
    /// Why it did not pass, and notes (`note: …`), which change nothing.
    pub reasons: Vec<String>,
    /// Why times, and what is judged by them, are not the target's, if throng was late or could not dial; absent otherwise. The verdict is
    /// `invalid`, or `fail` if something else failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreliable: Option<String>,
    /// Which error in throng ended the run, and where: message, place in the source, thread; absent otherwise. The verdict is `invalid`, and
    /// the figures are those until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What stopped the target, the path or this machine, if a limit was reached.
    pub limit: Option<Limit>,
    /// The next limit, if none was reached: for a search, which applies stricter criteria than the run.
    #[serde(skip)]
    pub suspect: Option<Limit>,
    /// Seconds in which all that failed did, requests of the probe included; none where nothing did. For a search, which measures a
    /// step with one short burst once more.
    #[serde(skip)]
    pub failing_s: Option<f64>,
    /// Latency in the seconds in which all runs of a comparison had the same load: for the comparison.
    #[serde(skip)]
    pub equal_load_us: Option<Quantiles>,
    /// The seed of the random numbers: `--seed` with it repeats the run.
    pub seed: u64,
    /// The I/O backend: `uring`, `epoll` or `tun`.
    pub io: Cow<'static, str>,
    /// The whole load in figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Commands of the user during the run.
    pub asks: Vec<UserCommand>,
    /// What the target was asked after the load; absent where nothing was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<ExperimentSummary>,
    /// Each destination separately, if there are several; if there are more than 64, neighbours are combined.
    pub destinations: Vec<DestinationSummary>,
    /// What the slow, the wrong and the missing have in common: for each of the three the clearest, if there is any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_common: Vec<InCommon>,
    /// From due to sent: how late throng was.
    pub lag_us: Quantiles,
    /// Each population separately, by name, in the order of the scenario.
    pub populations: IndexMap<String, PopulationSummary>,
    /// The probe, if there is one.
    pub probe: Option<ProbeSummary>,
    /// What throng cost.
    pub generator: Generator,
    /// What the target cost, where it can be seen.
    pub target_cost: Option<ProcessCost>,
    /// What a connection cost the kernel.
    pub kernel_bytes_per_connection: Option<KernelCost>,
    /// Costs by regression, with their errors.
    pub cost: Cost,
    /// What target, hosts and throng itself showed meanwhile.
    pub observed: Observation,
    /// The run's figures as shares of this machine's calibration (`throng calibrate`); null if it was not calibrated.
    pub rig: Option<CalibrationShare>,
    /// Thresholds, in the user's order.
    pub thresholds: Vec<ThresholdResult>,
    /// How long full load was to last, seconds, if the run ended before because no connection was left; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_s: Option<f64>,
    /// The agents of a fleet; absent without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentSummary>,
}

words! {
    /// What became of an agent.
    #[derive(Default)]
    #[cfg_attr(test, derive(ts_rs::TS))]
    AgentState {
        /// It takes part.
        #[default]
        Ready = "ready",
        /// Its part has ended.
        Done = "done",
        /// It was not heard of any more.
        Lost = "lost",
        /// It took no part.
        Refused = "refused",
    }
}

/// Makes the figures accessible as fields of the summary: `summary.requests`.
macro_rules! has_figures {
    ($($name:ident),+) => {$(
        impl Deref for $name {
            type Target = Figures;

            fn deref(&self) -> &Figures {
                &self.figures
            }
        }

        impl DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Figures {
                &mut self.figures
            }
        }
    )+};
}

has_figures!(Summary, PopulationSummary);

impl Summary {
    /// Reads a summary written by this or an earlier version. Fields that are missing or `null` get their default.
    ///
    /// # Errors
    /// It is no summary.
    pub fn from_json(json: &Value) -> Result<Summary, String> {
        let mut known = json.clone();
        without_nulls(&mut known);
        serde_json::from_value(known).map_err(|e| e.to_string())
    }
}

/// Removes nulls: numbers without a value (NaN) were written as `null`.
fn without_nulls(json: &mut Value) {
    if let Value::Object(fields) = json {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(without_nulls);
    } else if let Value::Array(items) = json {
        items.iter_mut().for_each(without_nulls);
    }
}

/// A word from another version is unknown here, and becomes the default.
fn known<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(d: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(d)?).unwrap_or_default())
}

#[cfg(test)]
mod tests;

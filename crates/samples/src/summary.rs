//! The end of a run in figures: schema `throng.summary/1`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    calibration::Rig,
    cost::Cost,
    destination::DestinationSummary,
    errno::Errno,
    fault::{Fault, Kind, Side, Stage},
    look::ProcessMemory,
    observation::Observation,
    probe::ProbeSummary,
    quantiles::Quantiles,
};

/// What a run means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The load was reached and held, every threshold met.
    #[default]
    Pass,
    /// It was not, or a threshold failed.
    Fail,
    /// The generator was the limit: the figures do not speak of the target.
    Invalid,
    /// Ended by a signal.
    Interrupted,
}

impl Verdict {
    /// The exit status that goes with it.
    pub const fn exit_status(self) -> u8 {
        match self {
            Verdict::Pass => 0,
            Verdict::Fail => 1,
            Verdict::Invalid => 4,
            Verdict::Interrupted => 130,
        }
    }

    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Invalid => "invalid",
            Verdict::Interrupted => "interrupted",
        }
    }
}

/// How sure a limit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// One explanation of several; the fix says what would tell.
    #[default]
    Guess,
    /// It follows from a pattern in what happened.
    Inferred,
    /// The cause itself was seen: a counter, a state, an error.
    Seen,
}

impl Certainty {
    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Certainty::Guess => "guess",
            Certainty::Inferred => "inferred",
            Certainty::Seen => "seen",
        }
    }
}

/// What stopped it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Limit {
    /// `target`, `host`, `path`, `plan` or `unknown`.
    pub side: &'static str,
    /// One word: `open-files`, `refused`, …
    pub cause: &'static str,
    /// Connections open when it showed.
    pub at_connections: u64,
    /// How sure that is.
    pub certainty: Certainty,
    /// Second of the run at which it was first seen, to a second; none where that is not known.
    pub first_seen_s: Option<f64>,
    /// What was seen.
    pub detail: String,
    /// What to do.
    pub cure: String,
}

/// Connections over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Connections {
    /// Asked for.
    pub wanted: u64,
    /// Dialled successfully for the first time.
    pub opened: u64,
    /// Dialled in vain.
    pub failed: u64,
    /// Most open at once.
    pub peak: u64,
    /// Open at the end of the hold.
    pub held: u64,
    /// Lost without notice.
    pub dropped: u64,
    /// Those of them that were lost after the end of the load, while the last responses were waited for: not from `held`.
    pub dropped_in_drain: u64,
    /// Closed by the server with notice.
    pub closed: u64,
    /// Dialled again after that, or after a loss.
    pub redialled: u64,
    /// Closed by throng as planned: its calls were done, or fewer connections were wanted.
    pub finished: u64,
    /// Opened per second over the ramp.
    pub open_per_s: f64,
    /// Open at the end of the hold as the target's host counts them; none where that cannot be seen.
    pub seen_by_target: Option<u64>,
    /// Established at the end of the hold by the kernel only: they stood in the target's accept queue, and are not among
    /// those `held`; none where its queue cannot be seen.
    pub unaccepted: Option<u64>,
    /// Seconds before the end of the hold at which anything, be it an acknowledgement, came last from the target on one of
    /// the connections held, of a sample; none where that cannot be seen.
    pub quiet_s: Option<f64>,
}

/// One fault and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FaultCount {
    /// Whose doing.
    #[cfg_attr(test, ts(type = "string"))]
    pub side: Side,
    /// When.
    #[cfg_attr(test, ts(type = "string"))]
    pub stage: Stage,
    /// What.
    #[cfg_attr(test, ts(type = "string"))]
    pub kind: Kind,
    /// How often.
    pub count: u64,
    /// The kernel's error, `EADDRNOTAVAIL`; of the same fault with another error there is a count of its own.
    #[cfg_attr(test, ts(as = "Option<String>", optional))]
    #[serde(default, skip_serializing_if = "Errno::is_none")]
    pub detail: Errno,
}

impl FaultCount {
    /// A fault that occurred so often.
    pub fn new(Fault { side, stage, kind, errno }: Fault, count: u64) -> FaultCount {
        FaultCount { side, stage, kind, count, detail: errno }
    }

    /// Which.
    pub fn fault(&self) -> Fault {
        Fault { side: self.side, stage: self.stage, kind: self.kind, errno: self.detail }
    }
}

/// Requests over the whole run; `per_s` at full load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Requests {
    /// Sent.
    pub sent: u64,
    /// Answered completely.
    pub answered: u64,
    /// Neither answered nor failed when the run ended. `sent` is the sum of `answered`, of the faults of requests under way
    /// (stage `exchange`, other than wrong answers, which are answers) and of these.
    pub unanswered: u64,
    /// Due by the open loop's schedule and not sent: no connection was free within the timeout.
    pub missed: u64,
    /// Messages sent whose answer was not awaited.
    pub told: u64,
    /// Answers per second at full load; of several populations, of each at its own.
    pub per_s: f64,
    /// A closed loop that left throng's threads no time: the target may be able to do more than `per_s`.
    pub lower_bound: bool,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Bytes of content of complete answers; what came of one that was cut off is among `bytes_in` only.
    pub body_bytes_in: u64,
    /// Answers by status.
    pub status: BTreeMap<u16, u64>,
}

/// One population in figures, as the [`Summary`] has them of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PopulationSummary {
    /// As the user wrote it.
    pub target: String,
    /// Shards.
    pub threads: u32,
    /// How long its ramps took.
    pub ramp_s: f64,
    /// How long it was at full load.
    pub duration_s: f64,
    /// From its first dial to its last answer, or to the end of full load.
    pub elapsed_s: f64,
    /// Connections.
    pub connections: Connections,
    /// What went wrong.
    pub faults: Vec<FaultCount>,
    /// Requests.
    pub requests: Requests,
    /// From due to the answer, of requests due at full load.
    pub latency_us: Quantiles,
    /// The same of its ramps.
    pub ramp_latency_us: Quantiles,
    /// From due to connected.
    pub connect_us: Quantiles,
    /// From when the WebSocket upgrade was sent to its 101.
    pub handshake_us: Quantiles,
    /// From due to the first byte of the answer, of requests due at full load; HTTP and TCP.
    pub first_byte_us: Quantiles,
    /// By step, where it has several, those that had answers.
    pub steps: BTreeMap<String, StepSummary>,
}

/// One step of a population.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct StepSummary {
    /// From due to the answer, of requests due at full load.
    pub latency_us: Quantiles,
}

/// What throng itself cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Generator {
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// The part of it that the kernel took, seconds.
    pub system_s: f64,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
    /// Slope of resident memory against open connections over the ramp; none where the points do not carry one.
    pub user_bytes_per_connection: Option<f64>,
    /// CPU time over the hold, as a share of what its threads could have had; none where the hold was too short.
    pub cpu_share: Option<f64>,
    /// By how much a turn of its loop came too late, the most; microseconds.
    pub stall_us: f64,
}

/// What the target's process cost, where it runs on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ProcessCost {
    /// Process.
    pub pid: u32,
    /// Resident memory of all its processes, bytes.
    pub rss_bytes: u64,
    /// Slope of resident memory against open connections over the ramp; none where the points do not carry one.
    pub user_bytes_per_connection: Option<f64>,
    /// CPU time since the run began, seconds.
    pub cpu_s: f64,
    /// Each process by itself at the last look at full load, the first is `pid`; at most 64.
    pub processes: Vec<ProcessMemory>,
}

/// What a connection costs the kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct KernelCost {
    /// Bytes.
    pub value: f64,
    /// One figure for the pair: both ends are on this machine.
    pub both_ends: bool,
}

/// Something that was asked for by hand, and done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Asked {
    /// When, since the first dial.
    pub at_s: f64,
    /// `paused`, `resumed`, `load 90 %`, `drained`, `stopped`.
    pub what: String,
}

/// A threshold and how it went.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ThresholdResult {
    /// As written.
    pub expr: String,
    /// Measured, in the unit of the summary's figure, or in percent where the bound is; none where there was nothing to
    /// measure, and then it is not met.
    pub value: Option<f64>,
    /// Met.
    pub pass: bool,
}

/// The whole, in the order in which it is written. The default: of a run in which nothing happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Summary {
    /// `throng.summary/1`.
    pub schema: &'static str,
    /// What it means.
    pub verdict: Verdict,
    /// The same in one sentence, with what stopped it and the cure.
    pub headline: String,
    /// Why.
    pub reasons: Vec<String>,
    /// What stopped it, if anything did.
    pub limit: Option<Limit>,
    /// What would have stopped it, where nothing did: for a search, which asks for more than the run does.
    #[serde(skip)]
    pub suspect: Option<Limit>,
    /// As the user wrote it.
    pub target: String,
    /// Repeats the run.
    pub seed: u64,
    /// `uring` or `epoll`.
    pub io: &'static str,
    /// Shards.
    pub threads: u32,
    /// How long the ramp took; of several populations the longest.
    pub ramp_s: f64,
    /// How long full load lasted; of several populations the longest.
    pub duration_s: f64,
    /// From the first dial to the end of full load.
    pub elapsed_s: f64,
    /// What was changed by hand while it ran.
    pub asks: Vec<Asked>,
    /// Connections.
    pub connections: Connections,
    /// What went wrong.
    pub faults: Vec<FaultCount>,
    /// Each destination by itself, where there are several; neighbours together where there are more than 64.
    pub destinations: Vec<DestinationSummary>,
    /// Requests.
    pub requests: Requests,
    /// From due to the answer, of requests due at full load.
    pub latency_us: Quantiles,
    /// The same of the ramp.
    pub ramp_latency_us: Quantiles,
    /// From due to connected.
    pub connect_us: Quantiles,
    /// From when the WebSocket upgrade was sent to its 101.
    pub handshake_us: Quantiles,
    /// From due to the first byte of the answer, of requests due at full load; HTTP and TCP.
    pub first_byte_us: Quantiles,
    /// From due to sent: how late throng was.
    pub lag_us: Quantiles,
    /// Each population by itself, by its name.
    pub populations: BTreeMap<String, PopulationSummary>,
    /// The probe lane, when there is one.
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
    /// How near this machine came to what `throng calibrate` measured; none where it was not calibrated.
    pub rig: Option<Rig>,
    /// Thresholds, in the user's order.
    pub thresholds: Vec<ThresholdResult>,
}

//! What a run measures and stores: faults, counts and latencies, the [`Tick`] that carries them every period, and the [`Summary`] at the
//! end of a run. Ticks of shards, agents and periods merge in any order.

// A new variant must be a decision at every match.
#![deny(clippy::wildcard_enum_match_arm)]

mod agents;
pub mod books;
pub mod breakdown;
mod buckets;
mod calibration;
mod cause;
mod congestion;
mod cost;
mod counts;
mod destination;
mod detail;
mod encode;
mod error_sample;
mod example;
mod fault;
mod figure;
mod find;
mod gauge;
mod in_common;
mod latency;
mod mark;
mod merge;
mod moments;
mod observation;
mod probe;
mod pushes;
mod quantiles;
mod record;
mod rule;
mod said;
mod sample;
mod secrets;
mod share;
mod sink;
mod sinks;
mod sparse;
mod summary;
mod threshold;
mod tick;
pub mod transcript;
#[cfg(test)]
mod typescript;
mod words;

pub use agents::{AgentShare, AgentTicks, Highest, Latest};
pub use calibration::{Calibration, Measurement, bytes_per_pair};
pub use cause::Cause;
pub use congestion::Congestion;
pub use cost::{Cost, Discarded, Fit};
pub use counts::Counts;
pub use destination::{Destination, DestinationSummary, MAX_DESTINATIONS, name_of, row_of};
pub use detail::Detail;
pub use error_sample::{ErrorSample, ErrorSamples};
pub use example::{Example, Examples};
pub use fault::{Fault, FaultCount, Faults, Kind, Side, Stage};
pub use figure::{Figure, GROUPS, NUMBERS, Number, Place, STATUS, TIMES, Times, at};
pub use find::{Baseline, FindOutcome, FindSummary, IdleTimeout, Point};
pub use gauge::{Gauge, Growth};
pub use in_common::{Bad, InCommon, InCommonRow};
pub use latency::{Latency, SlowPart, Took};
pub use mark::{Mark, MarkKind, Marks};
pub use moments::{Moments, Rates};
pub use observation::{HostSeen, Observation, ObserverSeen, ProcessSeen, RejectionSeen, Samples, TargetSeen};
pub use probe::{Probe, ProbeFailure, ProbePoint, ProbeSummary};
pub use pushes::{PushFigures, Pushes, Receipt, Receipts};
pub use quantiles::{Censored, Quantiles, Stalled, Statistic};
pub use record::{HostFacts, RunRecord, SCHEMA, Setting, TickRecord};
pub use rule::Rule;
pub use said::FAILED;
pub use sample::{
    CpuQuota, HostSample, JvmSample, LogKind, LogLine, NetCounters, ProcessMemory, ProcessSample, Sample,
    SockStat, TargetSample,
};
pub use secrets::{is_secret_name, secret_words};
pub use share::CalibrationShare;
pub use sink::{Command, Header, Sink, Tell};
pub use sinks::Sinks;
pub use summary::{
    AgentState, AgentSummary, Certainty, Connections, Errors, ExperimentSummary, Figures, Generator,
    KernelCost, Limit, PopulationSummary, ProcessCost, Requests, StepSummary, StreamLimit, Summary,
    UserCommand, Verdict,
};
pub use threshold::{ThresholdBound, ThresholdResult};
pub use tick::{Phase, Tick, Timing};

//! The result of a search (`throng find`): schema `throng.find/1`.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    summary::{Limit, Verdict},
    threshold::ThresholdResult,
};

/// One load that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Point {
    /// Connections, or connections/s, or requests/s, those of the probe among them.
    pub load: u64,
    /// Whether the thresholds were met.
    pub pass: bool,
    /// Throng itself, or by rate its number of connections, was the limit, so that the step shows nothing about the target; it does not `pass`.
    pub invalid: bool,
    /// Connections open at the end of the step.
    pub held: u64,
    /// Responses per second.
    pub requests_per_s: f64,
    /// The median time from due to the response, microseconds; null where no request due at full load had one.
    pub latency_p50_us: Option<f64>,
    /// The 95th percentile of it.
    pub latency_p95_us: Option<f64>,
    /// The 99th percentile of it.
    pub latency_p99_us: Option<f64>,
    /// The share (0..=1) of the requests due at full load that had no response: in none of these percentiles.
    pub no_response: f64,
    /// The 99th percentile of the probe's latency at full load, `probe.held.p99` of a threshold; null without a probe.
    pub probe_p99_us: Option<f64>,
    /// The share (0..=1) of the probe's requests at full load that had no response.
    pub probe_no_response: f64,
    /// The 99th percentile of the time to connect; null where no dial became a connection.
    pub connect_p99_us: Option<f64>,
    /// The share (0..=1) of the dials that did not become a connection.
    pub connect_no_response: f64,
    /// The share (0..=1) that failed: of the requests due, and of the connections on which none was; of dials where no request was due. Null
    /// where nothing was attempted.
    pub errors: Option<f64>,
    /// Processors that the target's processes used at full load, the most between two samples; null where they were not seen.
    pub target_cores: Option<f64>,
    /// Processors that they may use, by affinity and control group; null where that is not known.
    pub target_cores_limit: Option<u64>,
    /// The most that one of their threads used of a processor, or waited for one, at full load: 1 is a thread that could not have done more.
    pub target_thread: Option<f64>,
    /// Its place in the order in which loads were tried, from 1.
    pub step: u32,
    /// From the first dial to the end of full load, seconds.
    pub elapsed_s: f64,
    /// Why it did not pass; of one that passes, why it did not when it was measured before.
    pub reasons: Vec<String>,
}

/// What the probe's p99 of a step is compared with where there are no thresholds: the lowest of those that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Baseline {
    /// The load that had it.
    pub load: u64,
    /// The 99th percentile of the probe's latency at full load of it, microseconds.
    pub probe_p99_us: f64,
    /// The most that a step may have, microseconds.
    pub allowed_us: f64,
}

/// The target closes connections that are idle, and pauses between requests became shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct IdleTimeout {
    /// After this many seconds, as it announced, or as connections were closed.
    pub timeout_s: f64,
    /// The shortest and the longest pause since then, seconds.
    pub think_s: [f64; 2],
}

impl fmt::Display for IdleTimeout {
    /// `think 1.5s..3s: the server closes idle connections after 5s`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IdleTimeout { timeout_s, think_s: [least, most] } = self;
        write!(f, "think {least}s..{most}s: the server closes idle connections after {timeout_s:.1} s")
    }
}

/// How a search ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum FindOutcome {
    /// The largest load that passes is known.
    Found,
    /// All that was allowed passed, or it was interrupted, or throng itself was the limit above `max` ([`FindSummary::invalid`]):
    /// `max` is a lower bound.
    NotReached,
    /// The steps contradict each other, or its time was over: `max` is the largest load that passed.
    Unsettled,
    /// Nothing did.
    #[default]
    Impossible,
}

/// A search in figures, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct FindSummary {
    /// `throng.find/1`.
    pub schema: Cow<'static, str>,
    /// What was made larger, as `--by` names it: `connections`.
    pub by: Cow<'static, str>,
    /// What a load is counted in: `connections/s`.
    pub unit: Cow<'static, str>,
    /// As the user wrote it.
    pub target: String,
    /// Repeats the search's random choices.
    pub seed: u64,
    /// The largest load that passed; 0 where none did.
    pub max: u64,
    /// What the target sustains is within this of `max`, with a probability of 95 %; 0 if no load failed because of the target.
    pub error: u64,
    /// How it ended.
    pub outcome: FindOutcome,
    /// Throng itself, or with `--by rate` its number of connections, was the limit at each load that did not pass:
    /// none shows a limit of the target.
    pub invalid: bool,
    /// The smallest load above `max` that did not pass, of those that show a limit of the target if there is one; none where all did.
    pub failed: Option<u64>,
    /// What that load did not meet.
    pub criterion: Option<String>,
    /// Ended early: `max` passed; above it, nothing is known except `failed`.
    pub interrupted: bool,
    /// What ended it early, where that was no signal: `agent g2 was lost`, or `its time was over`; or which load was refused, and why, where all
    /// smaller ones passed; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What stopped it.
    pub limit: Option<Limit>,
    /// The load that showed the limit: not always that which failed first; null without a limit.
    pub limit_load: Option<u64>,
    /// What the probe's p99 was compared with; null with thresholds, and where no step had one.
    pub baseline: Option<Baseline>,
    /// Requests per second of the probe; 0 without one. By rate they are part of each load, otherwise beside it.
    pub probe_per_s: f64,
    /// After what time the target closes idle connections, where pauses became shorter for that; null otherwise.
    pub idle: Option<IdleTimeout>,
    /// The thresholds at `max`.
    pub thresholds: Vec<ThresholdResult>,
    /// Every load that was tried, ascending.
    pub curve: Vec<Point>,
}

impl FindSummary {
    /// Exit status: 0 if the limit was found, or everything allowed passed; 1 if nothing passed, or the steps contradict each other or ran
    /// out of time; 4, as for a run, if throng itself was the limit.
    pub fn exit_status(&self) -> u8 {
        if self.invalid {
            return Verdict::Invalid.exit_status();
        }
        u8::from(matches!(self.outcome, FindOutcome::Impossible | FindOutcome::Unsettled))
    }
}

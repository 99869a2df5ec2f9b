//! The interface of a run's consumers.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    agents::AgentShare, observation::Samples, summary::Summary, threshold::ThresholdBound, tick::Tick,
};

/// A command of a user who watches a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// Keep connections open, start nothing new; the probe continues.
    Pause,
    /// Continue after a pause.
    Resume,
    /// Increase the load by a tenth of the plan's, up to all of it.
    Up,
    /// Decrease the load by a tenth of the plan's, down to a tenth of it.
    Down,
    /// Set the load to this share of the plan's, in millionths, from 1 to all of it: 250,000 is a quarter.
    Load(u32),
    /// Set the load to this number of the plan's connections, from 1 to all of them.
    Connections(u64),
    /// End the load, wait for outstanding responses, write the summary.
    Drain,
    /// Stop immediately, write the summary.
    Stop,
}

/// What is known before the first tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Header {
    /// The target as the user wrote it.
    pub target: String,
    /// Connections to hold.
    pub connections: u64,
    /// How long all stages together are to hold their loads, seconds; none, where there is no end.
    pub hold_s: Option<f64>,
    /// The longest time that an adaptive ramp has, seconds, until it dials at a fixed rate; none without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp_deadline_s: Option<f64>,
    /// The seed that repeats the run.
    pub seed: u64,
    /// `uring` or `epoll`.
    pub io: Cow<'static, str>,
    /// Shards.
    pub threads: u32,
    /// The plan's populations by name, in the order in which [`Tick::populations`] has them.
    pub populations: Vec<String>,
    /// All steps, `users.login`, in the order in which [`Tick::steps`] has them.
    pub steps: Vec<String>,
    /// Destinations, or groups of neighbouring ones, in the order in which [`Tick::destinations`] has them; empty where there is
    /// only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<String>,
    /// The agents of a fleet, in the order in which [`Tick::agents`] has them; none on one machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentShare>,
    /// Thresholds, in the user's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdBound>,
}

/// Where a sink reports trouble, a line each.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Takes a run as it happens. A sink that may block has its own thread and a bounded queue.
pub trait Sink {
    /// Before the first tick.
    fn begin(&mut self, _header: &Header) {}
    /// One period, all shards merged, and the last samples of hosts and processes, throng itself among them.
    fn tick(&mut self, tick: &Tick, looks: &Samples);
    /// What happened in a period whose tick was shown before, beside what that says ([`Tick::amend`]): it came late, from an agent
    /// of a fleet that was away.
    fn late(&mut self, _tick: &Tick) {}
    /// Polled many times a second: commands for the run, the oldest first. `run` decides what they do.
    fn ask(&mut self) -> Option<Command> {
        None
    }
    /// After the last tick, before the summary: what the judge reads, as JSON, from which any later version judges the run again.
    fn measured(&mut self, _json: &str) {}
    /// After the last one.
    fn finish(&mut self, _summary: &Summary) {}
}

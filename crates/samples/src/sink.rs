//! The interface of the consumers of a run: printer, page, store and others.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    agents::AgentShare, observation::Samples, summary::Summary, threshold::ThresholdBound, tick::Tick,
};

/// A command of a user who watches a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// Keep connections open, but start nothing new; the probe continues.
    Pause,
    /// Continue after a pause.
    Resume,
    /// Increase the load by a tenth of the plan's, up to all of it.
    Up,
    /// Decrease the load by a tenth of the plan's, down to a tenth of it.
    Down,
    /// Set the load to this share of the plan's, in millionths, from 1 to 1,000,000: 250,000 is a quarter.
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

/// Callback for a sink's warnings, one line each.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Receives a run as it happens. A sink that may block runs in its own thread, with a bounded queue.
pub trait Sink {
    /// Called before the first tick.
    fn begin(&mut self, _header: &Header) {}
    /// Called for each period, with the tick of all shards merged and the latest samples of hosts and processes, throng itself included.
    fn tick(&mut self, tick: &Tick, looks: &Samples);
    /// Called for a late addition to a period whose tick was shown before ([`Tick::amend`]), by an agent of a fleet that was away. It holds
    /// only what is new.
    fn late(&mut self, _tick: &Tick) {}
    /// Polled many times a second for the user's commands, the oldest first. The crate `run` decides what they do.
    fn ask(&mut self) -> Option<Command> {
        None
    }
    /// Called after the last tick and before the summary, with the judge's input as JSON: any later version can judge the run again from
    /// it.
    fn measured(&mut self, _json: &str) {}
    /// Called once at the end.
    fn finish(&mut self, _summary: &Summary) {}
}

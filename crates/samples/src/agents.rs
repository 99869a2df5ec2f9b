//! Figures per agent of a fleet, one column per figure. They merge like the rest of a tick: counts add up, [`Latest`] takes the later
//! value, and [`Highest`] the larger one.

use serde::{Deserialize, Serialize};

use crate::merge::{Merge, merged};

/// An agent as it is known before the first tick.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct AgentShare {
    /// Its name in the fleet.
    pub id: String,
    /// Connections that are its share of the plan.
    pub wanted: u64,
    /// Processors that it may use.
    pub cores: u32,
}

/// What each agent is at the end of a period: a later period's takes its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Latest(pub Vec<u64>);

/// The highest value of each agent in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Highest(pub Vec<u64>);

merged! {
    /// What each agent of a fleet did in a period. A column for each figure has the agents by their places in
    /// [`Header::agents`](crate::Header::agents); those beyond its end have 0. Columns, since a record of a thousand agents is
    /// stored, and sent to pages, each second.
    #[derive(Eq)]
    pub struct AgentTicks {
        /// How often each has reported: once a second and when its load ends, never while it is away.
        pub reports: Vec<u64>,
        /// 1: lost at the end of the period.
        pub lost: Latest,
        /// Connections open at the end of the period.
        pub open: Latest,
        /// Dials that led to a connection, repeated ones included.
        pub connects: Vec<u64>,
        /// Complete responses, and messages sent without a reply expected.
        pub requests: Vec<u64>,
        /// Faults.
        pub faults: Vec<u64>,
        /// 99th percentile of latency, microseconds, at least 1; of several reports the highest. 0: without a response.
        pub latency_p99_us: Highest,
        /// 99th percentile of how late it sent, microseconds, at least 1; the same. 0: nothing was due at full load.
        pub lag_p99_us: Highest,
        /// CPU time of its process, milliseconds.
        pub cpu_ms: Vec<u64>,
    }
}

impl AgentTicks {
    /// Marks the agent at this place as lost: it holds no connection any more.
    pub fn lose(&mut self, place: usize) {
        *at(&mut self.lost.0, place) = 1;
        *at(&mut self.open.0, place) = 0;
    }

    /// Adds a later period.
    pub fn extend(&mut self, later: &AgentTicks) {
        Merge::extend(self, later);
    }

    /// The value of the agent at `place` in a column; 0 beyond its end.
    pub fn value(column: &[u64], place: usize) -> u64 {
        column.get(place).copied().unwrap_or_default()
    }
}

/// The value of the agent at `place`, mutable; the column grows to include it.
pub(crate) fn at(column: &mut Vec<u64>, place: usize) -> &mut u64 {
    column.resize(column.len().max(place + 1), 0);
    &mut column[place]
}

impl Merge for Latest {
    fn merge(&mut self, other: &Latest) {
        self.0.merge(&other.0);
    }

    fn extend(&mut self, later: &Latest) {
        self.0.clone_from(&later.0);
    }

    fn clear(&mut self) {
        Merge::clear(&mut self.0);
    }
}

impl Merge for Highest {
    fn merge(&mut self, other: &Highest) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own = (*own).max(*other));
    }

    fn clear(&mut self) {
        Merge::clear(&mut self.0);
    }
}

#[cfg(test)]
mod tests;

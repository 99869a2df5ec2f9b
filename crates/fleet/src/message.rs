//! Everything that goes between a coordinator and its agents, as JSON.

use plan::Role;
use run::Order;
use samples::Tick;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Of these messages; an agent serves only a coordinator of its own.
pub(crate) const PROTOCOL: u32 = 1;

/// Where agents say that they are there.
pub(crate) const HERE: &str = "throng.here";

/// Where an agent is spoken to.
pub(crate) fn to_agent(id: &str) -> String {
    format!("throng.agent.{id}")
}

/// Where the agents of a run report.
pub(crate) fn to_run(run: &str) -> String {
    format!("throng.run.{run}")
}

/// An agent is there: each second, on [`HERE`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Here {
    /// Unique in the fleet.
    pub(crate) id: String,
    /// [`PROTOCOL`].
    pub(crate) protocol: u32,
    /// throng's version.
    pub(crate) version: String,
    /// Agents with the same value share ports: one network namespace of one host.
    pub(crate) network: String,
    /// Processors that it may use.
    pub(crate) cores: u32,
    /// The run that it takes part in.
    pub(crate) run: Option<String>,
}

/// From the coordinator to an agent. Times are of the run: from when it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Down {
    /// A run, and this agent's share of it.
    Offer {
        run: String,
        protocol: u32,
        /// The flags that make the plan, each with its value.
        flags: Vec<(String, String)>,
        /// Text of the scenario file, where the target names one.
        scenario: Option<String>,
        /// This agent's part and the sum of all.
        share: (u32, u32),
    },
    /// Which shards of the plan are this agent's.
    Assign {
        run: String,
        /// For each population the first of its shards, and their number in the whole fleet.
        shards: Vec<(u32, u32)>,
        /// Whether the probe's are its own, too.
        probe: bool,
        /// Tuple shares before its own, and all, of agents with the same ports.
        tuples: (u32, u32),
        /// Where the local addresses begin.
        salt: u64,
    },
    /// The run begins.
    Begin { run: String },
    /// An order of the run's conductor.
    Order { run: String, order: Order },
    /// The coordinator is there.
    Alive { run: String },
}

/// From an agent to the run's coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Up {
    /// The agent.
    pub(crate) id: String,
    pub(crate) news: News,
}

/// What an agent reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum News {
    /// It can take its share with this many shards of each population.
    Offered { shards: Vec<u32> },
    /// It takes no part.
    Refused { why: String },
    /// Its shards wait for the beginning.
    Ready { roles: Vec<Role>, io: String },
    /// What a shard counted, since its tick before; `sequence` from 0 for each shard.
    Tick { shard: u32, sequence: u64, tick: Box<Tick> },
    /// A shard has ended without an order to.
    Lost { shard: u32 },
    /// All have ended; how many ticks each has sent.
    Ended { ticks: Vec<u64> },
}

/// How often agents say that they are there.
pub(crate) const EVERY: Nanos = Nanos::from_secs(1);
/// An agent that is not heard of for this long is lost; one that hears of no coordinator ends its load.
pub(crate) const LEASE: Nanos = Nanos::from_secs(4);

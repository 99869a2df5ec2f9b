//! What was observed of the target, the hosts and throng itself during a run, and the cost derived from it.

use std::net::SocketAddr;

use samples::{Cost, Generator, KernelCost, Observation, ProcessCost, Samples};
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{accepts::Accepts, ends::OwnCounts, segments::Segments, signs::Signs};

/// Observations of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// All samples, as sums and extremes.
    pub seen: Observation,
    /// CPU and memory in relation to the load.
    pub cost: Cost,
    /// throng's cost.
    pub generator: Generator,
    /// The cost of the target's processes.
    pub target: Option<ProcessCost>,
    /// Kernel memory per connection.
    pub kernel: Option<KernelCost>,
    /// Both ends are on this host, so its samples include the target.
    pub both_here: bool,
    /// throng's ends of the connections are not kernel sockets.
    pub is_tun: bool,
    /// Counts of throng's TCP, which the kernel does not see then.
    pub own_counts: OwnCounts,
    /// Time from the first to the last sample at full load, without pauses.
    pub held_for: Nanos,
    /// How the target accepts connections.
    pub accepts: Accepts,
    /// Connections in the target's accept queues when full load ended; `None` if unknown.
    pub queued_at_end: Option<u64>,
    /// The part of them that throng had already given up; 0 if unknown.
    pub given_up_at_end: u64,
    /// TCP state of waiting connections, when most were waiting.
    pub segments: Segments,
    /// Number of processors of this machine.
    pub processors: Option<u64>,
    /// Maximum accept queue of a listener on this machine (`net.core.somaxconn`).
    pub somaxconn: Option<u64>,
    /// When signs of possible causes were seen.
    pub signs: Signs,
    /// The first of several destinations that had a listener and lost it.
    pub deserted: Option<SocketAddr>,
}

impl Observed {
    /// The last samples.
    pub fn latest(&self) -> Samples {
        self.seen.latest(self.both_here, self.is_tun)
    }
}

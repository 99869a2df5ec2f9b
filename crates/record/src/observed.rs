//! What was seen of the target, of the hosts and of throng itself while a run lasted, and what it cost.

use std::net::SocketAddr;

use samples::{Cost, Generator, KernelCost, Observation, ProcessCost, Samples};
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{accepts::Accepts, ends::OwnCounts, segments::Segments, signs::Signs};

/// What a run was seen to cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// All samples, as sums and extremes.
    pub seen: Observation,
    /// CPU and memory against the load.
    pub cost: Cost,
    /// throng itself.
    pub generator: Generator,
    /// The target's processes.
    pub target: Option<ProcessCost>,
    /// The kernel's memory for each connection.
    pub kernel: Option<KernelCost>,
    /// Both ends are on this host: its samples cover the target too.
    pub both_here: bool,
    /// Our ends are no sockets of the kernel.
    pub is_tun: bool,
    /// What it would count of them.
    pub own_counts: OwnCounts,
    /// From the first to the last sample at full load, pauses not counted.
    pub held_for: Nanos,
    /// How the target accepts.
    pub accepts: Accepts,
    /// Connections in the target's accept queues when full load ended, where that can be seen.
    pub queued_at_end: Option<u64>,
    /// Of those, the ones that throng had given up before, where that can be seen.
    pub given_up_at_end: u64,
    /// What TCP knew of connections that waited, when most of them did.
    pub segments: Segments,
    /// Processors of this machine.
    pub processors: Option<u64>,
    /// The longest queue that a listener of this machine may have.
    pub somaxconn: Option<u64>,
    /// When what may explain a failure was seen.
    pub signs: Signs,
    /// The first destination of several at which something listened and then nothing did any more.
    pub deserted: Option<SocketAddr>,
}

impl Observed {
    /// What was seen last.
    pub fn latest(&self) -> Samples {
        self.seen.latest(self.both_here, self.is_tun)
    }
}

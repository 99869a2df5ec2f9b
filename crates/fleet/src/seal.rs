//! What ticks must add up to: counted apart from them, and compared at the end.

use samples::{Counts, Tick};
use serde::{Deserialize, Serialize};

/// Sums over the ticks of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sums {
    counts: Counts,
    faults: u64,
    /// How many times of each kind were measured.
    latencies: u64,
    connects: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, tick: &Tick) {
        self.counts += &tick.counts;
        self.faults += tick.faults.iter().map(|(_, n)| n).sum::<u64>();
        self.latencies += tick.latency.count() + tick.ramp_latency.count();
        self.connects += tick.connect.count();
    }

    /// Requests that count in a number of them: all that were due.
    pub(crate) fn begun(&self) -> u64 {
        self.counts.due()
    }

    /// Connections that have come, or failed to.
    pub(crate) fn arrived(&self) -> u64 {
        self.counts.opened + self.counts.failed
    }

    #[cfg(test)]
    pub(crate) fn sent(&self) -> u64 {
        self.counts.sent
    }
}

//! Checksums of ticks: sums that an agent counts independently, compared with the ticks received at the end.

use samples::{Counts, Tick};
use serde::{Deserialize, Serialize};

/// The sums over the ticks of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sums {
    counts: Counts,
    faults: u64,
    /// Number of measured latencies and connect times.
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

    /// Requests that count towards a fixed number: all that were due.
    pub(crate) fn begun(&self) -> u64 {
        self.counts.due()
    }

    /// Arrivals: connections that were opened, or failed to open.
    pub(crate) fn arrived(&self) -> u64 {
        self.counts.opened + self.counts.failed
    }

    #[cfg(test)]
    pub(crate) fn sent(&self) -> u64 {
        self.counts.sent
    }
}

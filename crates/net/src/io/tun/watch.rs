//! A view of a shard's TCP state for other threads. With sockets they would query the kernel.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tcp::{Counts, Stuck};
use units::Nanos;

/// Written by the shard, and read by the observation of the run.
#[derive(Debug, Default)]
pub struct Watch {
    syns: AtomicU64,
    unacknowledged: AtomicU64,
    syns_again: AtomicU64,
    icmp: AtomicU64,
    /// When the last segment arrived, by the device's clock, in nanoseconds.
    came: AtomicU64,
}

impl Watch {
    /// Updates the values that require checking many connections, a few times per second.
    pub(super) fn note(&self, stuck: Stuck, came: Nanos) {
        self.syns.store(stuck.syns, Relaxed);
        self.unacknowledged.store(stuck.unacknowledged, Relaxed);
        self.came.store(came.0, Relaxed);
    }

    /// Updates the counters, in each turn: a tick of the shard that counts failed dials must not be ahead of the reason why they failed.
    pub(super) fn count(&self, counts: &Counts) {
        self.syns_again.store(counts.syns_again, Relaxed);
        self.icmp.store(counts.icmp_errors, Relaxed);
    }

    /// Connections that wait for an acknowledgement after retransmissions.
    pub fn stuck(&self) -> Stuck {
        Stuck { syns: self.syns.load(Relaxed), unacknowledged: self.unacknowledged.load(Relaxed) }
    }

    /// Number of SYNs retransmitted so far.
    pub fn syns_again(&self) -> u64 {
        self.syns_again.load(Relaxed)
    }

    /// Number of ICMP errors about connections so far.
    pub fn icmp(&self) -> u64 {
        self.icmp.load(Relaxed)
    }

    /// When the last segment arrived. While a connection has data stuck without acknowledgement, only segments of connections that were
    /// already open count: a path that drops large packets still passes handshakes.
    pub fn came(&self) -> Nanos {
        Nanos(self.came.load(Relaxed))
    }
}

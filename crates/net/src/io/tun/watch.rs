//! What others may know of a shard's connections: over sockets the kernel would tell them.

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
    /// When the last segment came, by the device's clock.
    came: AtomicU64,
}

impl Watch {
    /// What takes a look at many connections, some times a second.
    pub(super) fn note(&self, stuck: Stuck, came: Nanos) {
        self.syns.store(stuck.syns, Relaxed);
        self.unacknowledged.store(stuck.unacknowledged, Relaxed);
        self.came.store(came.0, Relaxed);
    }

    /// What is known already, in each turn: a tick of the shard that counts failed dials must not be ahead of why they failed.
    pub(super) fn count(&self, counts: &Counts) {
        self.syns_again.store(counts.syns_again, Relaxed);
        self.icmp.store(counts.icmp_errors, Relaxed);
    }

    /// Connections that wait for an acknowledgement in vain.
    pub fn stuck(&self) -> Stuck {
        Stuck { syns: self.syns.load(Relaxed), unacknowledged: self.unacknowledged.load(Relaxed) }
    }

    /// SYNs that were sent again so far.
    pub fn syns_again(&self) -> u64 {
        self.syns_again.load(Relaxed)
    }

    /// Messages of ICMP about connections so far.
    pub fn icmp(&self) -> u64 {
        self.icmp.load(Relaxed)
    }

    /// When the last segment of a connection came; as long as data waits for an acknowledgement in vain, of one that was open before, as a
    /// way that large packets do not pass lets handshakes through.
    pub fn came(&self) -> Nanos {
        Nanos(self.came.load(Relaxed))
    }
}

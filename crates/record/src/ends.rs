//! Counts of connections at both ends.

use serde::{Deserialize, Serialize};

/// The same connections, counted at both ends.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BothSides {
    /// On this host.
    pub here: u64,
    /// On the target's host.
    pub there: u64,
}

/// Events that the kernel counts for its own sockets. With TUN, throng's TCP counts them instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnCounts {
    /// Retransmitted SYNs.
    pub syns_again: u64,
    /// ICMP messages.
    pub icmp: u64,
}

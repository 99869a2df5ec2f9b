//! Counts of the two ends of connections.

use serde::{Deserialize, Serialize};

/// The same connections counted at both ends.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BothSides {
    /// Here.
    pub here: u64,
    /// There.
    pub there: u64,
}

/// What the kernel counts of connections that are sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnCounts {
    /// SYNs that were sent again.
    pub syns_again: u64,
    /// Messages of ICMP.
    pub icmp: u64,
}

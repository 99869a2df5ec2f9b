//! What TCP knows of connections that wait.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Connections and dials to the target, a bounded sample of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Segments {
    /// Established connections examined.
    pub connections: u64,
    /// Of those: what was sent last is not acknowledged, and was sent again twice or more.
    pub unacknowledged: u64,
    /// Of those: all that was sent is acknowledged, and nothing has come since.
    pub unanswered: u64,
    /// The shortest time since anything came on one of them, be it an acknowledgement.
    pub quiet: Option<Nanos>,
    /// Dials whose SYN was sent again.
    pub syns: u64,
}

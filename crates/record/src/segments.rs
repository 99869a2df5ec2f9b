//! What TCP knows of connections that wait.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::tolerances::{FEW, NINE_TENTHS};

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
    /// The shortest time since anything came on any of them, be it an acknowledgement.
    pub quiet: Option<Nanos>,
    /// Dials whose SYN was sent again.
    pub syns: u64,
    /// When most of them showed that segments were lost, of a target on another machine; at any time while requests waited.
    pub lossy: Lossy,
}

/// Connections on which segments are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lossy {
    /// Established connections examined.
    pub connections: u64,
    /// Of those: what was sent last is not acknowledged, and was sent again twice or more.
    pub stuck: u64,
    /// The shortest time since anything came on one of these, be it an acknowledgement.
    pub stuck_for: Nanos,
    /// Of all: segments came out of their order, as they do where others are lost.
    pub disordered: u64,
    /// Of all samples together, those that were stuck; and those of which all was acknowledged, and which waited for a second or longer.
    pub all_stuck: u64,
    /// As above: those that waited.
    pub all_slow: u64,
}

impl Lossy {
    /// Takes another sample, of which `slow` waited for a second or longer though all was acknowledged.
    pub fn take(&mut self, now: Lossy, slow: u64) {
        let (all_stuck, all_slow) = (self.all_stuck + now.stuck, self.all_slow + slow);
        if now.stuck + now.disordered > self.stuck + self.disordered {
            *self = now;
        }
        (self.all_stuck, self.all_slow) = (all_stuck, all_slow);
    }

    /// Whether nearly all that waited for long did so because what was sent did not arrive.
    pub fn is_the_reason(&self) -> bool {
        self.all_stuck >= FEW
            && self.all_stuck as f64 >= NINE_TENTHS * (self.all_stuck + self.all_slow) as f64
    }
}

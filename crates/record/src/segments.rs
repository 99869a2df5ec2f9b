//! TCP state of waiting connections, which shows whether segments are lost on the way to the target.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::tolerances::{FEW, NINE_TENTHS};

/// TCP state of connections and dials to the target, from a bounded sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Segments {
    /// Established connections examined.
    pub connections: u64,
    /// The part of them whose last data is unacknowledged and was retransmitted at least twice.
    pub unacknowledged: u64,
    /// The part of them whose data is all acknowledged, without any reply since.
    pub unanswered: u64,
    /// The minimum time since anything was received on any of them, including acknowledgements.
    pub quiet: Option<Nanos>,
    /// Dials whose SYN was retransmitted.
    pub syns: u64,
    /// Signs of lost segments at the sample with the most of them, at any time while requests waited; only for a target on another machine.
    pub lossy: Lossy,
}

/// Connections on which segments are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lossy {
    /// Established connections examined.
    pub connections: u64,
    /// The part of them whose last data is unacknowledged and was retransmitted at least twice.
    pub stuck: u64,
    /// The minimum time since anything was received on one of these, including acknowledgements.
    pub stuck_for: Nanos,
    /// Connections that received segments out of order, as happens when others are lost.
    pub disordered: u64,
    /// Sum of `stuck` over all samples.
    pub all_stuck: u64,
    /// Sum over all samples of connections whose data was all acknowledged, and which waited for at least a second.
    pub all_slow: u64,
}

impl Lossy {
    /// Adds a sample; `slow`: connections that waited for at least a second although all was acknowledged.
    pub fn take(&mut self, now: Lossy, slow: u64) {
        let (all_stuck, all_slow) = (self.all_stuck + now.stuck, self.all_slow + slow);
        if now.stuck + now.disordered > self.stuck + self.disordered {
            *self = now;
        }
        (self.all_stuck, self.all_slow) = (all_stuck, all_slow);
    }

    /// Whether lost segments explain nearly all of the long waits.
    pub fn is_the_reason(&self) -> bool {
        self.all_stuck >= FEW
            && self.all_stuck as f64 >= NINE_TENTHS * (self.all_stuck + self.all_slow) as f64
    }
}

//! Completed requests, by properties that bad ones may have in common.

use samples::{
    Tick,
    breakdown::{Bins, Breakdown},
};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Completed requests, by properties that bad ones may have in common.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shares {
    /// By each dimension.
    pub all: Breakdown,
    /// By the time when they ended.
    pub bins: Bins,
}

impl Shares {
    /// Takes a tick of any shard of the load.
    pub fn take(&mut self, tick: &Tick) {
        if !tick.breakdown.is_empty() {
            self.all.merge(&tick.breakdown);
            self.bins.add(Nanos(tick.from.0 / 2 + tick.until.0 / 2), &tick.breakdown.all());
        }
    }
}

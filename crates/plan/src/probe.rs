//! The probe lane: what a further user would see.

use units::{Nanos, Rate};

use crate::Population;

/// Requests on a clock of their own, half of them on fresh connections, half on a few kept ones, beside the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// In a time; never zero.
    pub rate: Rate,
    /// What it asks, as a connection of this population would with its first step. Its load is the lane's own.
    pub does: Population,
}

/// Connections that the lane keeps.
pub const PROBES_KEPT: u32 = 2;
/// Fresh connections that it has under way at most, however slow the target is.
const MOST_PROBES: u32 = 1_024;

impl Probe {
    /// The most connections that it has at one time.
    pub fn places(&self) -> u32 {
        // Half of the requests are on fresh connections, and each lasts for a dial and an answer at most.
        let longest = Nanos(self.does.timeout.0.saturating_mul(2));
        let fresh = self.rate.due(longest).min(u64::from(MOST_PROBES)) as u32;
        PROBES_KEPT + fresh.max(1)
    }
}

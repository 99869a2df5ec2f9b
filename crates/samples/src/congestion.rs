//! What an adaptive ramp learns of the target.

use crate::{
    encode,
    merge::{Merge, merged},
};

merged! {
    /// What first dials of an adaptive ramp have met, in a period; counted once their results are due, a little later.
    #[derive(Copy, Eq)]
    pub struct Congestion {
        /// First dials.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub dialled: u64,
        /// Of those, the ones that were not open within a few round trips: their SYN was lost.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub lost: u64,
        /// Of those dialled, the ones of a shard that paces its dials, because SYNs were lost before.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub paced: u64,
        /// Of those, the ones of a time in which its pace was reached and no response was queued.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub reached: u64,
        /// Dials and first responses of such a shard that were slow or failed.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub slow: u64,
    }
}

impl Congestion {
    /// Adds what others met, or what was met later.
    pub fn merge(&mut self, other: &Congestion) {
        Merge::merge(self, other);
    }

    /// Takes what was counted, to be counted anew.
    #[must_use]
    pub fn take(&mut self) -> Congestion {
        std::mem::take(self)
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Congestion::default()
    }
}

//! What an adaptive ramp learns about the target: how many of its dials lost their SYN, and when it first met a limit.

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
        /// Of those, the ones of a time in which its pace was reached.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub reached: u64,
        /// First dials of a shard before it met a limit: SYNs that were lost, or first responses that came too late for more of them.
        /// Counted when they are made, as those after it are.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub straight: u64,
        /// First dials of a shard after that.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub bent: u64,
    }
}

impl Congestion {
    /// Adds another shard's counts, or those of a later period.
    pub fn merge(&mut self, other: &Congestion) {
        Merge::merge(self, other);
    }

    /// Returns the counts and resets them.
    #[must_use]
    pub fn take(&mut self) -> Congestion {
        std::mem::take(self)
    }

    /// Number of connections from which on the target limited how fast more could be opened; `None` if it never did.
    pub fn bent_at(&self) -> Option<u64> {
        (self.bent > 0).then_some(self.straight)
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Congestion::default()
    }
}

//! What the agents of a simulation can take: they are unlike.

use crate::message::{Calibrated, Can};

/// Every other seed, each agent was calibrated.
pub(super) fn calibrated(seed: u64, id: usize) -> Option<Calibrated> {
    let per_s = 1_000.0 * (1 + id % 7) as f64;
    seed.is_multiple_of(2).then_some(Calibrated { open_per_s: per_s, requests_per_s: per_s })
}

/// Of four agents the second may do half of what would be an equal share; the machine of the third has room for little more than
/// that share. Each of fewer agents can do the work of all.
pub(super) fn can(share: u64, id: usize, agents: u32) -> Can {
    let of_four = if agents < 4 { 0 } else { id % 4 };
    let cap = (of_four == 1).then_some(share / 2);
    let fits = if of_four == 2 { share + share / 10 } else { u64::MAX };
    Can { fits, limited_by: "memory".to_owned(), cap, per_s: None }
}

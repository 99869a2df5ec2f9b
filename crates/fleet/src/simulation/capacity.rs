//! The capacities of the agents in a simulation, which differ.

use crate::message::{Calibrated, Can};

/// The calibration of an agent; only in every other seed.
pub(super) fn calibrated(seed: u64, id: usize) -> Option<Calibrated> {
    let per_s = 1_000.0 * (1 + id % 7) as f64;
    seed.is_multiple_of(2).then_some(Calibrated { open_per_s: per_s, requests_per_s: per_s })
}

/// With four or more agents, the second in four may take half of an equal share, and the machine of the third has capacity for little
/// more than that share. With fewer agents, each can carry out the whole plan.
pub(super) fn can(share: u64, id: usize, agents: u32) -> Can {
    let of_four = if agents < 4 { 0 } else { id % 4 };
    let cap = (of_four == 1).then_some(share / 2);
    let fits = if of_four == 2 { share + share / 10 } else { u64::MAX };
    Can { fits, limited_by: "memory".to_owned(), cap, per_s: None }
}

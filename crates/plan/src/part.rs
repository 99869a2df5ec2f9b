//! The split of a plan: parts that sum to the whole.

use crate::{Plan, random::nth_seed};

/// What one shard does of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which shard, from 0.
    pub shard: u32,
    /// Of how many.
    pub shards: u32,
    /// Connections it holds, or opens in all; 0 where there are more shards than connections.
    pub connections: u32,
    /// The most connections that it has at one time, the probe lane's among them.
    pub places: u32,
    /// Its own seed, from the plan's seed and its number.
    pub seed: u64,
}

impl Plan {
    /// The plan's connections over `shards` (at least 1) shards: they sum to the whole and differ by at most
    /// one. The probe lane is the first shard's.
    pub fn parts(&self, shards: u32) -> Vec<Part> {
        let mut parts = split(self.connections, self.seed, shards);
        for part in &mut parts {
            part.places = self.most_open().div_ceil(shards).min(part.connections);
        }
        parts[0].places += self.probe_places();
        parts
    }
}

fn split(connections: u32, seed: u64, shards: u32) -> Vec<Part> {
    assert!(shards > 0, "a plan is split over at least one shard");
    let (each, rest) = (connections / shards, connections % shards);
    let part = |shard| Part {
        shard,
        shards,
        connections: each + u32::from(shard < rest),
        places: each + u32::from(shard < rest),
        seed: nth_seed(seed, shard),
    };
    (0..shards).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn parts_sum_to_the_whole_and_differ_by_at_most_one(connections: u32, seed: u64, shards in 1u32..2_000) {
            let parts = split(connections, seed, shards);
            prop_assert_eq!(parts.iter().map(|part| u64::from(part.connections)).sum::<u64>(), u64::from(connections));
            let sizes = parts.iter().map(|part| part.connections);
            prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
            prop_assert!(parts.iter().enumerate().all(|(i, part)| part.shard == i as u32 && part.shards == shards));
            prop_assert_eq!(parts.iter().map(|part| part.seed).collect::<HashSet<_>>().len(), shards as usize);
        }
    }
}

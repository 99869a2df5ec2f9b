//! Who of a fleet does which part of a plan.

use std::collections::HashMap;

/// What an agent was offered to take part with.
pub(crate) struct Offered {
    /// Agents with the same value share ports.
    pub(crate) network: String,
    /// Shards of each population.
    pub(crate) shards: Vec<u32>,
}

/// Which shards are an agent's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Assigned {
    /// For each population the first of its shards, and their number in the whole fleet.
    pub(crate) shards: Vec<(u32, u32)>,
    /// Its own number of them.
    pub(crate) own: Vec<u32>,
    /// Its place among the agents with the same ports, and their number.
    pub(crate) tuples: (u32, u32),
}

/// The shards of all agents, one after the other.
pub(crate) fn assign(offered: &[Offered]) -> Vec<Assigned> {
    let populations = offered.first().map_or(0, |agent| agent.shards.len());
    let all: Vec<u32> =
        (0..populations).map(|nth| offered.iter().map(|agent| agent.shards[nth]).sum()).collect();
    let mut neighbours: HashMap<&str, u32> = HashMap::new();
    let (mut next, mut assigned) = (vec![0; populations], Vec::new());
    for agent in offered {
        let shards = next.iter().copied().zip(all.iter().copied()).collect();
        let place = neighbours.entry(&agent.network).or_default();
        assigned.push(Assigned { shards, own: agent.shards.clone(), tuples: (*place, 0) });
        *place += 1;
        next.iter_mut().zip(&agent.shards).for_each(|(next, own)| *next += own);
    }
    for (agent, assigned) in offered.iter().zip(&mut assigned) {
        assigned.tuples.1 = neighbours[agent.network.as_str()];
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_follow_each_other_and_hosts_share_their_ports() {
        let agent =
            |network: &str, shards: [u32; 2]| Offered { network: network.to_owned(), shards: shards.into() };
        let assigned = assign(&[agent("a", [2, 1]), agent("b", [3, 1]), agent("a", [1, 1])]);
        let shards: Vec<_> = assigned.iter().map(|agent| agent.shards.clone()).collect();
        assert_eq!(shards, [[(0, 6), (0, 3)], [(2, 6), (1, 3)], [(5, 6), (2, 3)]]);
        let tuples: Vec<_> = assigned.iter().map(|agent| agent.tuples).collect();
        assert_eq!(tuples, [(0, 2), (0, 1), (1, 2)]);
    }
}

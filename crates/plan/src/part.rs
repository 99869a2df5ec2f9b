//! Splits a plan into parts for shards, which sum to the whole.

use std::collections::HashMap;

use units::nth_seed;

use crate::{Plan, Population, ProbeKind, Slice, Turn};

/// The part of a plan that one shard executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The role of the shard.
    pub role: Role,
    /// The slice of its population that its machine executes.
    pub slice: Slice,
    /// Index among the shards with the same role and slice, from 0.
    pub shard: u32,
    /// Number of shards with the same role and slice.
    pub shards: u32,
    /// Maximum of held connections, or total of arrivals; 0 if there are more shards than connections.
    pub connections: u32,
    /// Maximum of connections at one time.
    pub places: u32,
    /// Total of requests; `None` is no limit.
    pub requests: Option<u64>,
    /// Seed, derived from the plan's seed and the part's position.
    pub seed: u64,
    /// Its share of the 4-tuples.
    pub tuple_share: TupleShare,
}

/// The role of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Role {
    /// The population of this index.
    Population(u16),
    /// One of the probe's two populations, each in a shard of its own. Both follow one schedule of requests.
    Probe(ProbeKind),
}

/// A shard's share of the 4-tuples: among those of its process, `width` of every `of` tuples, from `from` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TupleShare {
    /// The part of its process among those that share the tuples in turn.
    pub process: Slice,
    /// First index, less than `of`.
    pub from: u32,
    /// Number of tuples per turn, at least 1.
    pub width: u32,
    /// Sum of the widths of all shares.
    pub of: u32,
}

impl TupleShare {
    /// The share of a single shard.
    pub const ALL: TupleShare = TupleShare { process: Slice::WHOLE, from: 0, width: 1, of: 1 };

    /// The first of `n` destinations for this share: spread, so that shards with few connections together reach all of them.
    pub(crate) fn first_of(self, n: u64) -> u32 {
        let Slice { from, width, of: processes } = self.process;
        let of = u128::from(self.of);
        let place = u128::from(from) * of + u128::from(width) * u128::from(self.from);
        // The number of processes comes from another machine.
        (place * u128::from(n) / (of * u128::from(processes)).max(1)) as u32
    }
}

/// Maximum width of a share.
const MAX_WIDTH: u64 = 64;

impl Plan {
    /// The population that a role executes.
    pub fn population(&self, role: Role) -> &Population {
        match role {
            Role::Population(nth) => &self.populations[usize::from(nth)],
            Role::Probe(kind) => {
                &self.probe.as_ref().expect("a part of it is there").populations[kind as usize]
            }
        }
    }

    pub(crate) fn population_mut(&mut self, role: Role) -> &mut Population {
        match role {
            Role::Population(nth) => &mut self.populations[usize::from(nth)],
            Role::Probe(kind) => {
                &mut self.probe.as_mut().expect("a part of it is there").populations[kind as usize]
            }
        }
    }

    /// Number of (address, port) pairs needed between the same two hosts, such that each part's share suffices.
    pub fn pairs_needed(&self) -> u64 {
        let needed = |part: Part| {
            let own = self.population(part.role).pairs_needed();
            own.saturating_mul(part.tuple_share.of.into()).div_ceil(part.tuple_share.width.into())
        };
        self.parts(|_| 1).into_iter().map(needed).max().unwrap_or(0)
    }

    /// Splits the plan into parts: `shards` (at least 1) per population, and one for each of the probe's. The connections of a population's
    /// shards differ by at most one. All tuple shares together are one turn.
    pub fn parts(&self, shards: impl Fn(u16) -> u32) -> Vec<Part> {
        self.parts_of(&vec![Slice::WHOLE; self.populations.len()], self.probe.is_some(), shards)
    }

    /// The parts of one machine, which has these slices of the populations, and the probe or not. A population with an empty slice has no
    /// shard.
    pub fn parts_of(&self, slices: &[Slice], has_probe: bool, shards: impl Fn(u16) -> u32) -> Vec<Part> {
        let is_whole = has_probe == self.probe.is_some() && slices.iter().all(|slice| *slice == Slice::WHOLE);
        let mut parts = Vec::new();
        let mut add = |role, slice: Slice, (shard, shards), connections, places: u32, requests| {
            let tuple_share = TupleShare { width: places.max(1), of: 0, ..TupleShare::ALL };
            let seed = match is_whole {
                true => nth_seed(self.seed, parts.len() as u32),
                false => self.seed_of(role, slice, shard),
            };
            parts.push(Part { role, slice, shard, shards, connections, places, requests, seed, tuple_share });
        };
        for ((nth, population), &slice) in (0..).zip(&self.populations).zip(slices) {
            if slice.width == 0 {
                continue;
            }
            let shards = shards(nth).max(1);
            let places = slice.of_at_most(population.most_open()).div_ceil(shards);
            let all = population.load.connections();
            let mut first = slice.before(all);
            for (shard, connections) in (0..).zip(split(slice.of(all), shards)) {
                let places = places.min(connections);
                let quota = population.quota();
                let requests =
                    quota.map(|quota| quota.of_shard(slice, (shard, shards), (first, connections)));
                add(Role::Population(nth), slice, (shard, shards), connections, places, requests);
                first += connections;
            }
        }
        if let Some(probe) = self.probe.as_ref().filter(|_| has_probe) {
            let kinds = [ProbeKind::Fresh, ProbeKind::Kept];
            for (kind, places) in kinds.into_iter().zip(probe.populations.iter().map(Population::most_open)) {
                add(Role::Probe(kind), Slice::WHOLE, (kind as u32, 2), places, places, None);
            }
        }
        tuple_share(&mut parts);
        parts
    }

    /// The seed of a part, derived from its position, so that it differs between machines.
    fn seed_of(&self, role: Role, slice: Slice, shard: u32) -> u64 {
        let of_role = match role {
            Role::Population(nth) => nth_seed(self.seed, nth.into()),
            Role::Probe(kind) => nth_seed(self.seed, u32::MAX - kind as u32),
        };
        nth_seed(nth_seed(of_role, slice.from), shard)
    }
}

impl Part {
    /// Its turn in the common schedule of its population.
    pub fn turn(&self) -> Turn {
        Turn::new(self.slice, self.shard, self.shards)
    }
}

/// The size of one part of `n`; the parts differ by at most one.
pub(crate) fn split_long(n: u64, (part, parts): (u32, u32)) -> u64 {
    let parts = u64::from(parts);
    n / parts + u64::from(u64::from(part) < n % parts)
}

/// Splits `n` into parts that differ by at most one.
pub fn split(n: u32, parts: u32) -> impl Iterator<Item = u32> {
    assert!(parts > 0, "there is at least one part");
    (0..parts).map(move |part| n / parts + u32::from(part < n % parts))
}

/// Assigns tuple shares in proportion to places, which are passed in `width`; shards of one population get equal shares.
fn tuple_share(parts: &mut [Part]) {
    let mut most: HashMap<Role, u32> = HashMap::new();
    for part in parts.iter() {
        let most = most.entry(part.role).or_insert(1);
        *most = (*most).max(part.tuple_share.width);
    }
    let all = most.values().copied().max().unwrap_or(1);
    let width = |part: &Part| (u64::from(most[&part.role]) * MAX_WIDTH).div_ceil(u64::from(all)) as u32;
    let widths: Vec<u32> = parts.iter().map(width).collect();
    let shared =
        widths.iter().fold(0, |shared, width| greatest_common_divisor(shared, u64::from(*width))) as u32;
    let of = widths.iter().map(|width| width / shared).sum();
    let mut from = 0;
    for (part, width) in parts.iter_mut().zip(widths) {
        part.tuple_share = TupleShare { from, width: width / shared, of, ..part.tuple_share };
        from += width / shared;
    }
}

/// If one number is 0, the other one.
pub(crate) fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::plan;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn parts_sum_to_the_whole_and_differ_by_at_most_one(connections in 1u32.., seed: u64, shards in 1u32..200) {
            let parts = plan(&[("-c", &connections.to_string()), ("--seed", &seed.to_string())]).parts(|_| shards);
            prop_assert_eq!(parts.iter().map(|part| u64::from(part.connections)).sum::<u64>(), u64::from(connections));
            let sizes = parts.iter().map(|part| part.connections);
            prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
            prop_assert!(parts.iter().enumerate().all(|(i, part)| part.shard == i as u32 && part.shards == shards));
            prop_assert_eq!(parts.iter().map(|part| part.seed).collect::<HashSet<_>>().len(), shards as usize);
            let tuple_share = |i| TupleShare { from: i, of: shards, ..TupleShare::ALL };
            prop_assert!((0..).zip(&parts).all(|(i, part)| part.tuple_share == tuple_share(i)));
        }
    }

    proptest! {
        #[test]
        fn slices_of_a_plan_have_all_of_it_and_seeds_of_their_own(
            widths in proptest::collection::vec(0u32..40_000_000, 1..6), shards in 1u32..5, seed: u64
        ) {
            let connections: u32 = widths.iter().sum();
            prop_assume!(connections > 0);
            let plan = plan(&[("-c", &connections.to_string()), ("--seed", &seed.to_string()), ("--probe", "10/s")]);
            let (mut from, mut seeds) = (0, HashSet::new());
            for (nth, &width) in widths.iter().enumerate() {
                let slice = Slice { from, width, of: connections };
                from += width;
                let parts = plan.parts_of(&[slice], nth == 0, |_| shards);
                let of_load = || parts.iter().filter(|part| part.role == Role::Population(0));
                prop_assert_eq!(of_load().map(|part| u64::from(part.connections)).sum::<u64>(), u64::from(width));
                prop_assert!(of_load().all(|part| part.places == part.connections && part.slice == slice));
                prop_assert_eq!(parts.len() - of_load().count(), if nth == 0 { 2 } else { 0 });
                prop_assert!(parts.iter().all(|part| seeds.insert(part.seed)));
            }
        }
    }

    proptest! {
        #[test]
        fn requests_are_shared_out_exactly(
            n in 1u64..1 << 50, widths in proptest::collection::vec(0u32..5_000, 1..6), shards in 1u32..9
        ) {
            let connections: u32 = widths.iter().sum();
            prop_assume!(connections > 0);
            let (connections_text, n_text) = (connections.to_string(), n.to_string());
            let flags = [("-c", &*connections_text), ("-n", &n_text), ("--probe", "10/s")];
            let by_rate = plan(&[&flags[..], &[("--rate", "5/s")]].concat());
            let plan = plan(&flags);
            let (mut from, mut sum, mut sum_of_rate) = (0, 0, 0);
            for &width in &widths {
                let slice = Slice { from, width, of: connections };
                from += width;
                let requests = |part: Part| part.requests.unwrap();
                sum_of_rate += by_rate.parts_of(&[slice], false, |_| shards).into_iter().map(requests).sum::<u64>();
                for part in plan.parts_of(&[slice], false, |_| shards) {
                    let own = requests(part);
                    let fair = n as f64 * f64::from(part.connections) / f64::from(connections);
                    prop_assert!((own as f64 - fair).abs() < 1.01 + fair * 1e-12, "{} of {}", own, fair);
                    sum += own;
                }
            }
            prop_assert_eq!((sum, sum_of_rate), (n, n));
            // The probe has no limit.
            prop_assert!(plan.parts(|_| shards).iter().all(|part| part.requests.is_none() == (part.role != Role::Population(0))));
        }
    }

    #[test]
    fn the_probes_have_shards_of_their_own_and_shares_of_the_tuples() {
        let parts = plan(&[("-c", "101"), ("--probe", "10/s"), ("--timeout", "1s")]).parts(|_| 2);
        let main = Role::Population(0);
        let [fresh, kept] = [ProbeKind::Fresh, ProbeKind::Kept].map(Role::Probe);
        let sizes: Vec<_> = parts.iter().map(|part| (part.role, part.connections, part.places)).collect();
        assert_eq!(sizes, [(main, 51, 51), (main, 50, 50), (fresh, 10, 10), (kept, 12, 12)]);
        // Both follow one schedule.
        let turns: Vec<_> = parts[2..].iter().map(|part| (part.shard, part.shards)).collect();
        assert_eq!(turns, [(0, 2), (1, 2)]);
        // 10 and 12 of 51 places, rounded up to 64ths.
        let deals: Vec<_> = parts
            .iter()
            .map(|part| (part.tuple_share.from, part.tuple_share.width, part.tuple_share.of))
            .collect();
        assert_eq!(deals, [(0, 64, 157), (64, 64, 157), (128, 13, 157), (141, 16, 157)]);
    }
}

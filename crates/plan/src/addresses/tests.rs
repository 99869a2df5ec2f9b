use super::*;
use crate::{Slice, split};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashSet;

/// A listed pool with few pairs, and how it is divided.
#[derive(Clone, Debug)]
struct Case {
    sources: Vec<Network>,
    ports: Vec<u16>,
    destinations: usize,
    shards: u32,
    start: u64,
}

impl Case {
    fn tuples(&self, shard: u32) -> Tuples {
        self.dealt(TupleShare { from: shard, of: self.shards, ..TupleShare::ALL })
    }

    fn dealt(&self, tuple_share: TupleShare) -> Tuples {
        let ports = Ports { list: self.ports.clone(), inside: 0 };
        let pool = SourcePool::Listed(self.sources.clone());
        Tuples::new(pool, ports, 0..self.destinations as u32, tuple_share, self.start)
    }

    fn capacity(&self) -> u64 {
        let addresses: u64 = self.sources.iter().map(Network::count).sum();
        addresses * self.ports.len() as u64 * self.destinations as u64
    }
}

fn cases() -> impl Strategy<Value = Case> {
    // Prefixes of one, two, six and fourteen addresses, none overlapping.
    let sources = vec(28u8..=32, 1..4).prop_map(|prefixes| {
        let network = |(i, prefix)| Network::parse(&format!("10.0.{i}.0/{prefix}")).unwrap();
        prefixes.into_iter().enumerate().map(network).collect()
    });
    (sources, 1u16..12, 1usize..9, 1u32..12, any::<u64>()).prop_map(
        |(sources, ports, destinations, shards, start)| Case {
            sources,
            ports: (2_000..2_000 + ports).collect(),
            destinations,
            shards,
            start,
        },
    )
}

proptest! {
    #[test]
    fn shards_are_disjoint_and_cover_everything(case in cases()) {
        let mut seen = HashSet::new();
        for shard in 0..case.shards {
            let (mut tuples, next) = (case.tuples(shard), case.tuples((shard + 1) % case.shards));
            for _ in 0..tuples.count() {
                let tuple = tuples.next();
                prop_assert!((tuple.destination as usize) < case.destinations);
                prop_assert!(case.ports.contains(&tuple.from.port()));
                prop_assert!(seen.insert(tuple), "twice: {:?}", tuple);
                prop_assert!(tuples.has_source(tuple.from, tuple.destination), "{:?}", tuple);
                prop_assert!(case.shards == 1 || !next.has_source(tuple.from, tuple.destination), "{:?}", tuple);
            }
            prop_assert_eq!(tuples.count(), 0);
        }
        prop_assert_eq!(seen.len() as u64, case.capacity());
        let strange = SocketAddr::from(([10, 9, 0, 1], 2_000));
        prop_assert!(!case.tuples(0).has_source(strange, 0));
    }

    #[test]
    fn the_share_of_a_shard_is_its_part(case in cases()) {
        for (shard, connections) in (0..).zip(split(case.capacity() as u32, case.shards)) {
            prop_assert_eq!(case.tuples(shard).count(), u64::from(connections));
        }
    }

    #[test]
    fn destinations_are_balanced(case in cases(), shard: u32) {
        let mut tuples = case.tuples(shard % case.shards);
        let least = tuples.cursors.iter().map(|cursor| cursor.fresh).min().unwrap();
        let mut counts = vec![0u64; case.destinations];
        for _ in 0..least * case.destinations as u64 {
            counts[tuples.next().destination as usize] += 1;
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn it_repeats_its_own_tuples(case in cases(), shard: u32) {
        let mut tuples = case.tuples(shard % case.shards);
        let count = tuples.count() as usize;
        let all: HashSet<Tuple> = (0..count).map(|_| tuples.next()).collect();
        prop_assert!((0..2 * count).all(|_| all.contains(&tuples.next())));
    }

    #[test]
    fn redials_keep_to_fresh_tuples_too(case in cases(), turns in vec(any::<Option<u8>>(), 0..200)) {
        let mut tuples = case.tuples(0);
        let mut seen = HashSet::new();
        for turn in turns {
            if tuples.count() == 0 {
                break;
            }
            let destination = turn.map(|n| u32::from(n) % case.destinations as u32);
            let tuple = match destination {
                Some(d) if tuples.cursors[d as usize].fresh == 0 => continue,
                Some(destination) => Tuple { from: tuples.next_to(destination), destination },
                None => tuples.next(),
            };
            prop_assert!(seen.insert(tuple), "twice: {:?}", tuple);
        }
    }

    #[test]
    fn a_loopback_source_serves_one_destination(start: u64, destinations in 1usize..40, shards in 1u32..5) {
        let mut seen = HashSet::new();
        for shard in 0..shards {
            let ports = Ports { list: vec![1_024, 2_000, 65_535], inside: 0 };
            let mut tuples = Tuples::new(SourcePool::Loopback4, ports, 0..destinations as u32, one(shard, shards), start);
            let mut counts = vec![0u32; destinations];
            for _ in 0..500 {
                let tuple = tuples.next();
                counts[tuple.destination as usize] += 1;
                prop_assert!(seen.insert(tuple.from), "twice: {:?}", tuple);
                prop_assert!(tuples.has_source(tuple.from, tuple.destination));
                let again = tuples.next_to(tuple.destination);
                prop_assert!(tuples.has_source(again, tuple.destination));
                prop_assert!(seen.insert(again));
            }
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        }
    }
}

/// One of `shards` equal shares.
fn one(shard: u32, shards: u32) -> TupleShare {
    TupleShare { from: shard, of: shards, ..TupleShare::ALL }
}

proptest! {
    #[test]
    fn unequal_tuple_shares_are_disjoint_and_cover_everything(case in cases(), widths in vec(1u32..5, 1..5)) {
        let of: u32 = widths.iter().sum();
        let (mut seen, mut from) = (HashSet::new(), 0);
        for width in widths {
            let mut tuples = case.dealt(TupleShare { from, width, of, ..TupleShare::ALL });
            let share = case.capacity() * u64::from(width) / u64::from(of);
            prop_assert!(tuples.count().abs_diff(share) <= u64::from(width) * case.destinations as u64);
            for _ in 0..tuples.count() {
                let tuple = tuples.next();
                prop_assert!(seen.insert(tuple), "twice: {:?}", tuple);
            }
            from += width;
        }
        prop_assert_eq!(seen.len() as u64, case.capacity());
    }
}

proptest! {
    /// Holds whatever each process does with its share.
    #[test]
    fn processes_that_share_the_tuples_have_each_its_own(case in cases(), shards in vec((1u32..5, 1u32..20), 1..5)) {
        let (mut seen, mut first) = (HashSet::new(), 0);
        let all: u32 = shards.iter().map(|(_, width)| width).sum();
        let pairs = case.capacity() / case.destinations as u64;
        for (shards, width) in shards {
            let process = Slice { from: first, width, of: all };
            first += width;
            let mut own = 0;
            for from in 0..shards {
                let mut tuples = case.dealt(TupleShare { process, from, width: 1, of: shards });
                own += tuples.count();
                for _ in 0..tuples.count() {
                    let tuple = tuples.next();
                    prop_assert!(tuples.has_source(tuple.from, tuple.destination), "{:?}", tuple);
                    prop_assert!(seen.insert(tuple), "twice: {:?}", tuple);
                }
            }
            // At least its share of the tuples, for each destination.
            prop_assert!(own >= pairs / u64::from(all) * u64::from(width) * case.destinations as u64);
        }
        prop_assert_eq!(seen.len() as u64, case.capacity());
    }
}

#[test]
fn loopback_has_each_of_its_addresses_once() {
    let mut seen = vec![false; 1 << 24];
    for shard in 0..3 {
        let ports = Ports { list: vec![5_000], inside: 0 };
        let mut tuples = Tuples::new(SourcePool::Loopback4, ports, 0..7, one(shard, 3), u64::MAX);
        for _ in 0..tuples.count() {
            let IpAddr::V4(address) = tuples.next().from.ip() else { panic!("IPv4") };
            let [first, second, third, last] = address.octets();
            assert!(first == 127 && (second, third) != (0, 0) && last != 0 && last != 255, "{address}");
            let seen = &mut seen[address.to_bits() as usize & 0xff_ffff];
            assert!(!std::mem::replace(seen, true), "{address} twice");
        }
    }
    assert_eq!(seen.iter().filter(|seen| **seen).count(), 16_645_890);
}

#[test]
fn addresses_and_ports_vary_together_and_start_moves_the_first() {
    let from = |ports: &[u16], start, shard, shards| {
        let pool: SourcePool =
            ["10.0.0.1", "10.0.0.2"].map(|text| text.parse::<IpAddr>().unwrap()).into_iter().collect();
        let ports = Ports { list: ports.to_vec(), inside: 0 };
        let mut tuples = Tuples::new(pool, ports, 0..1, one(shard, shards), start);
        (0..3).map(|_| tuples.next().from.to_string()).collect::<Vec<_>>().join(" ")
    };
    let three = [1_024, 1_025, 1_026];
    assert_eq!(from(&three, 0, 0, 1), "10.0.0.1:1024 10.0.0.2:1025 10.0.0.1:1026");
    assert_eq!(from(&three, 5, 0, 1), "10.0.0.2:1026 10.0.0.1:1024 10.0.0.2:1025");
    assert_eq!(from(&three, 6, 1, 2), "10.0.0.2:1025 10.0.0.2:1024 10.0.0.2:1026");
    // When addresses and ports wrap around together, the next diagonal follows.
    assert_eq!(from(&three[..2], 0, 0, 1), "10.0.0.1:1024 10.0.0.2:1025 10.0.0.1:1025");
}

#[test]
fn loopback_varies_ports_fastest() {
    let ports = Ports { list: vec![1_024, 1_025], inside: 0 };
    let mut tuples = Tuples::new(SourcePool::Loopback4, ports, 0..1, one(0, 1), 0);
    let three = [0; 3].map(|_| tuples.next().from.to_string());
    assert_eq!(three, ["127.0.1.1:1024", "127.0.1.1:1025", "127.0.1.2:1024"]);
}

#[test]
fn shards_of_few_connections_reach_all_destinations() {
    for (destinations, shards, each) in [(8, 4, 2), (30, 3, 10), (4, 8, 1), (7, 7, 1), (1, 5, 3)] {
        let mut counts = vec![0; destinations];
        for shard in 0..shards {
            let ports = Ports { list: vec![1_024], inside: 0 };
            let mut tuples =
                Tuples::new(SourcePool::Loopback4, ports, 0..destinations as u32, one(shard, shards), 3);
            (0..each).for_each(|_| counts[tuples.next().destination as usize] += 1);
        }
        let even = shards as usize * each / destinations;
        assert!(counts.iter().all(|count| *count == even), "{destinations} {shards} {each}: {counts:?}");
    }
}

#[test]
fn a_shard_without_tuples_says_so() {
    let case = Case { sources: Vec::new(), ports: Vec::new(), destinations: 2, shards: 1, start: 9 };
    let mut tuples = case.tuples(0);
    assert_eq!(tuples.count(), 0);
    assert!(std::panic::catch_unwind(move || tuples.next()).is_err());
}

//! The 4-tuples: from which address and port to dial which destination, so that no two shards ever take the
//! same.
//!
//! The kernel's own choice collapses once half of the local ports towards one destination are used; therefore
//! each source is named here. Pure arithmetic: a shard counts through its share of all (address, port) pairs
//! and stores only where it is.

use crate::{Deal, Network, Ports};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Blocks of 256 addresses in 127.0.0.0/8, without 127.0.0.0/24: there live the host's own services and their
/// clients.
const LOOPBACK_BLOCKS: u64 = (1 << 16) - 1;
/// Addresses of a block that we use: not x.x.x.0, not x.x.x.255.
const PER_BLOCK: u64 = 254;
/// Pairs beyond this are never reached (a million dials a second for twelve days); the limit keeps all sums
/// within 64 bits.
const MOST_PAIRS: u64 = 1 << 40;

/// The local addresses to dial from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcePool {
    /// All of 127.0.0.0/8 but 127.0.0.0/24 and last octets 0 and 255: 16,645,890 addresses. So many that no
    /// (address, port) is ever used for two destinations.
    Loopback4,
    /// These; all of one family, none twice.
    Listed(Vec<Network>),
}

impl SourcePool {
    /// How many addresses.
    pub fn count(&self) -> u64 {
        match self {
            SourcePool::Loopback4 => LOOPBACK_BLOCKS * PER_BLOCK,
            SourcePool::Listed(networks) => networks.iter().map(Network::count).sum(),
        }
    }
}

impl SourcePool {
    /// Whether this address is one of them.
    pub fn has(&self, address: IpAddr) -> bool {
        match (self, address) {
            (SourcePool::Loopback4, IpAddr::V4(address)) => {
                let [first, second, third, last] = address.octets();
                first == 127 && (second, third) != (0, 0) && !matches!(last, 0 | 255)
            }
            (SourcePool::Loopback4, IpAddr::V6(_)) => false,
            (SourcePool::Listed(networks), _) => networks.iter().any(|network| network.has(address)),
        }
    }
}

impl FromIterator<IpAddr> for SourcePool {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(addresses: I) -> SourcePool {
        SourcePool::Listed(addresses.into_iter().map(Network::from).collect())
    }
}

/// One connection's place: the local end, and which of the target's destinations is the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Bind to this.
    pub from: SocketAddr,
    /// Connect to the destination of this index.
    pub destination: u32,
}

/// The 4-tuples of one shard, an endless sequence: it begins again when all are through. Different shards of
/// the same pool, ports and `start`, with deals of one turn, never share one, and together they have all. On loopback
/// ports vary fastest, then addresses; of a listed pool both vary at once, so that few connections too come from all of
/// its addresses, and many addresses do not crowd on one port (the kernel looks through all who bound it).
///
/// The pairs of a destination are dealt out to the shards in turn, like cards. What is left over when they do
/// not divide evenly goes to the shards after those that the previous destination favoured: so the shares of equal
/// deals differ by at most one in all, as do [`crate::Part`]s.
#[derive(Clone, Debug)]
pub struct Tuples {
    pool: Pool,
    ports: Vec<u16>,
    /// Pairs of address and port.
    pairs: u64,
    /// Addresses, and steps after which address and port together come around.
    addresses: u64,
    cycle: u64,
    /// The pair that comes first.
    start: u64,
    deal: Deal,
    destinations: u32,
    /// Whose turn it is.
    turn: u32,
    /// One for each destination, or a single one where no pair serves two.
    lanes: Vec<Lane>,
    /// Tuples not yet given out, over all lanes.
    fresh: u64,
}

/// Where the shard is among the pairs of a destination.
#[derive(Clone, Debug)]
struct Lane {
    /// The first pair that is dealt to it, were there a turn before it: what is dealt repeats from here.
    first: u64,
    /// The next pair, counted from `start`; beyond all pairs where the shard has none.
    next: u64,
    /// Pairs not yet given out.
    fresh: u64,
}

impl Tuples {
    /// The share of a shard with this deal. `lanes` numbers its destinations: a destination that several shards have
    /// must have the same number in all of them. `start` is a salt that moves the first address and port:
    /// take it from the clock or the process, not from the run's seed, so that a run repeated at once does
    /// not meet its own TIME_WAITs; it must be the same for all shards.
    pub fn new(
        pool: SourcePool,
        ports: Ports,
        lanes: impl IntoIterator<Item = u32>,
        deal: Deal,
        start: u64,
    ) -> Tuples {
        let mut lanes: Vec<u32> = lanes.into_iter().collect();
        let destinations = u32::try_from(lanes.len()).expect("a target has at most 65,536 destinations");
        let Deal { from, width, of } = deal;
        assert!(width > 0 && from + width <= of && destinations > 0, "{deal:?}, {destinations} destinations");
        if pool == SourcePool::Loopback4 {
            lanes = vec![0];
        }
        let pairs = pool.count().saturating_mul(ports.list.len() as u64).min(MOST_PAIRS);
        let mut tuples = Tuples {
            addresses: pool.count(),
            cycle: least_common_multiple(pool.count(), ports.list.len() as u64),
            pool: Pool::new(pool),
            ports: ports.list,
            pairs,
            start: start.checked_rem(pairs).unwrap_or(0),
            deal,
            destinations,
            // Spread, so that shards of a few connections each still reach all destinations.
            turn: (u64::from(from) * u64::from(destinations) / u64::from(of)) as u32,
            lanes: Vec::new(),
            fresh: 0,
        };
        tuples.lanes = lanes.into_iter().map(|lane| tuples.lane(lane)).collect();
        tuples.fresh = tuples.count();
        tuples
    }

    /// How many different tuples there are that have not been given out yet; of a new sequence, all of this
    /// shard's.
    pub fn count(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.fresh).sum()
    }

    /// Whether there are tuples that have not been given out yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh > 0
    }

    /// Whether it has one for this destination; `fresh`: one that has not been given out yet.
    pub(crate) fn has(&self, destination: u32, fresh: bool) -> bool {
        let lane = &self.lanes[self.lane_of(destination)];
        if fresh { lane.fresh > 0 } else { lane.next < self.pairs }
    }

    /// Is the same (address, port) used towards several destinations, so that SO_REUSEADDR is needed to bind
    /// it?
    pub fn shares_ports(&self) -> bool {
        self.lanes.len() > 1
    }

    /// The next one; destinations take turns. While there are tuples that were never given out, it is one of
    /// them. Panics where this shard has none at all, which the preflight refuses.
    #[expect(clippy::should_implement_trait, reason = "it never ends: an Option would only be unwrapped")]
    pub fn next(&mut self) -> Tuple {
        for _ in 0..self.destinations {
            let destination = self.turn;
            self.turn = if destination + 1 == self.destinations { 0 } else { destination + 1 };
            let lane = &self.lanes[self.lane_of(destination)];
            if lane.fresh > 0 || self.fresh == 0 && lane.next < self.pairs {
                return Tuple { from: self.next_to(destination), destination };
            }
        }
        panic!("{:?} dials, and has no tuple of {} pairs", self.deal, self.pairs);
    }

    /// Another source for this destination: to dial again, or after EADDRINUSE or EADDRNOTAVAIL. Panics where
    /// this shard has no tuple towards it; after [`Tuples::next`] gave one, it has.
    pub fn next_to(&mut self, destination: u32) -> SocketAddr {
        let index = self.lane_of(destination);
        let Deal { width, of, .. } = self.deal;
        let lane = &mut self.lanes[index];
        assert!(lane.next < self.pairs, "{:?} has no tuple to destination {destination}", self.deal);
        let moved = lane.next + self.start;
        let pair = if moved < self.pairs { moved } else { moved - self.pairs };
        let in_turn = lane.place(lane.next, of);
        lane.next += if in_turn + 1 < u64::from(width) { 1 } else { u64::from(of - width) + 1 };
        if lane.fresh > 0 {
            lane.fresh -= 1;
            self.fresh -= 1;
        }
        if lane.next >= self.pairs {
            lane.next = lane.beginning(self.deal);
        }
        let (address, port) = self.split(pair);
        SocketAddr::new(self.pool.nth(address), self.ports[port as usize])
    }

    /// The numbers of a pair's address and port.
    fn split(&self, pair: u64) -> (u64, u64) {
        let ports = self.ports.len() as u64;
        match self.pool {
            Pool::Loopback4 => (pair / ports, pair % ports),
            // A diagonal through the table of addresses and ports; where it would come around, the next one.
            Pool::Listed(_) => (pair % self.addresses, (pair + pair / self.cycle) % ports),
        }
    }

    fn lane_of(&self, destination: u32) -> usize {
        if self.lanes.len() == 1 { 0 } else { destination as usize }
    }

    /// The leftovers of the lanes before it decide who is dealt to first.
    fn lane(&self, number: u32) -> Lane {
        let (of, from) = (u64::from(self.deal.of), u64::from(self.deal.from));
        let leftover = self.pairs % of;
        let first = (from + of - u64::from(number) * leftover % of) % of;
        let mut lane = Lane { first, next: 0, fresh: 0 };
        lane.next = lane.beginning(self.deal);
        let width = u64::from(self.deal.width);
        let of_last_turn =
            (0..self.pairs % of).filter(|pair| lane.place(*pair, self.deal.of) < width).count();
        lane.fresh = self.pairs / of * width + of_last_turn as u64;
        lane
    }
}

impl Lane {
    /// Where a pair stands in its turn, counted from the shard's first.
    fn place(&self, pair: u64, of: u32) -> u64 {
        (pair + u64::from(of) - self.first) % u64::from(of)
    }

    /// The shard's first pair: its turn may have begun before the first one of all.
    fn beginning(&self, deal: Deal) -> u64 {
        if self.place(0, deal.of) < u64::from(deal.width) { 0 } else { self.first }
    }
}

/// Saturates; of 0 and anything 0.
fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor.max(1)).saturating_mul(b)
}

/// A [`SourcePool`] that finds its n-th address quickly.
#[derive(Clone, Debug)]
enum Pool {
    Loopback4,
    /// Each network, with the number of addresses before it.
    Listed(Vec<(u64, Network)>),
}

impl Pool {
    fn new(pool: SourcePool) -> Pool {
        let SourcePool::Listed(networks) = pool else { return Pool::Loopback4 };
        let mut before = 0;
        let listed = networks.into_iter().map(|network| {
            let entry = (before, network);
            before += network.count();
            entry
        });
        Pool::Listed(listed.collect())
    }

    fn nth(&self, index: u64) -> IpAddr {
        match self {
            Pool::Loopback4 => {
                let (block, last) = (1 + index / PER_BLOCK, 1 + index % PER_BLOCK);
                Ipv4Addr::from_bits(127 << 24 | (block << 8 | last) as u32).into()
            }
            Pool::Listed(networks) => {
                let (before, network) =
                    &networks[networks.partition_point(|(before, _)| *before <= index) - 1];
                network.nth(index - before)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// A listed pool with few pairs, and how they are shared out.
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
            self.dealt(Deal { from: shard, width: 1, of: self.shards })
        }

        fn dealt(&self, deal: Deal) -> Tuples {
            let ports = Ports { list: self.ports.clone(), inside: 0 };
            let pool = SourcePool::Listed(self.sources.clone());
            Tuples::new(pool, ports, 0..self.destinations as u32, deal, self.start)
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
                let mut tuples = case.tuples(shard);
                for _ in 0..tuples.count() {
                    let tuple = tuples.next();
                    prop_assert!((tuple.destination as usize) < case.destinations);
                    prop_assert!(case.ports.contains(&tuple.from.port()));
                    prop_assert!(seen.insert(tuple), "twice: {:?}", tuple);
                }
                prop_assert_eq!(tuples.count(), 0);
            }
            prop_assert_eq!(seen.len() as u64, case.capacity());
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
            let least = tuples.lanes.iter().map(|lane| lane.fresh).min().unwrap();
            let mut counts = vec![0u64; case.destinations];
            for _ in 0..least * case.destinations as u64 {
                counts[tuples.next().destination as usize] += 1;
                prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
            }
        }

        #[test]
        fn it_begins_again_with_its_own(case in cases(), shard: u32) {
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
                    Some(d) if tuples.lanes[d as usize].fresh == 0 => continue,
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
                prop_assert!(!tuples.shares_ports());
                let mut counts = vec![0u32; destinations];
                for _ in 0..500 {
                    let tuple = tuples.next();
                    counts[tuple.destination as usize] += 1;
                    prop_assert!(seen.insert(tuple.from), "twice: {:?}", tuple);
                    prop_assert!(seen.insert(tuples.next_to(tuple.destination)));
                }
                prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
            }
        }
    }

    /// One of so many equal shares.
    fn one(shard: u32, shards: u32) -> Deal {
        Deal { from: shard, width: 1, of: shards }
    }

    proptest! {
        #[test]
        fn unequal_deals_are_disjoint_and_cover_everything(case in cases(), widths in vec(1u32..5, 1..5)) {
            let of: u32 = widths.iter().sum();
            let (mut seen, mut from) = (HashSet::new(), 0);
            for width in widths {
                let mut tuples = case.dealt(Deal { from, width, of });
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
        // Where both come around at once, another diagonal follows.
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
        assert_eq!((tuples.count(), tuples.shares_ports()), (0, true));
        assert!(std::panic::catch_unwind(move || tuples.next()).is_err());
    }
}

//! 4-tuples: the source address and port for each dial, such that no two shards ever use the same 4-tuple.
//!
//! The kernel's automatic choice becomes slow once half of the local ports towards a destination are in use, so each source is chosen here.
//! Pure arithmetic: a shard counts through its share of all (address, port) pairs, and stores only its position.

use crate::{Network, Ports, TupleShare, part::greatest_common_divisor};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Blocks of 256 addresses in 127.0.0.0/8, without 127.0.0.0/24, which the host's services and their clients use.
const LOOPBACK_BLOCKS: u64 = (1 << 16) - 1;
/// Number of addresses used per block: without x.x.x.0 and x.x.x.255.
const PER_BLOCK: u64 = 254;
/// Maximum number of pairs, never reached (a million dials per second for twelve days); keeps all sums within 64 bits.
const MAX_PAIRS: u64 = 1 << 40;

/// The pool of local addresses to dial from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcePool {
    /// 127.0.0.0/8 without 127.0.0.0/24 and last bytes 0 and 255: 16,645,890 addresses. Enough that no (address, port) pair is used for two
    /// destinations.
    Loopback4,
    /// These networks; of one family, without duplicates.
    Listed(Vec<Network>),
}

impl SourcePool {
    /// Number of addresses.
    pub fn count(&self) -> u64 {
        match self {
            SourcePool::Loopback4 => LOOPBACK_BLOCKS * PER_BLOCK,
            SourcePool::Listed(networks) => networks.iter().map(Network::count).sum(),
        }
    }
}

impl FromIterator<IpAddr> for SourcePool {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(addresses: I) -> SourcePool {
        SourcePool::Listed(addresses.into_iter().map(Network::from).collect())
    }
}

/// The ends of one connection: the local one, and the target's destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Address to bind to.
    pub from: SocketAddr,
    /// Index of the destination to connect to.
    pub destination: u32,
}

/// The 4-tuples of one shard, an endless sequence that starts again after the last. Shards with the same pool, ports and `start`, and with
/// tuple shares of one split, never share a tuple, and together have all. On loopback, ports vary fastest, then addresses. In a listed pool
/// both vary together, so that even few connections use all addresses, and many addresses do not share one port (the kernel searches all
/// sockets bound to it).
///
/// The pairs of a destination are dealt to the shards in turn, like cards. Pairs left over from an uneven division go to the shards after
/// those that got them for the previous destination. Therefore the totals of equal shares differ by at most one, as the [`crate::Part`]s
/// do.
#[derive(Clone, Debug)]
pub struct Tuples {
    pool: Pool,
    ports: Vec<u16>,
    /// Number of ports at the end of the list that are inside the local range.
    inside: usize,
    /// Number of (address, port) pairs of this process.
    pairs: u64,
    /// Number of addresses; `cycle`: number of steps after which an (address, port) pair would repeat.
    addresses: u64,
    cycle: u64,
    /// Offset of the first pair.
    start: u64,
    tuple_share: TupleShare,
    destinations: u32,
    /// The destination whose turn it is.
    turn: u32,
    /// One per destination, or a single one if no pair is used for two destinations.
    cursors: Vec<Cursor>,
    /// Tuples not used yet, over all cursors.
    fresh: u64,
}

/// The shard's position among the pairs of one destination.
#[derive(Clone, Debug)]
struct Cursor {
    /// First pair of its share, extrapolated one turn back: the pattern repeats from here.
    first: u64,
    /// Next pair, counted from `start`; beyond all pairs if the shard has none.
    next: u64,
    /// Pairs not used yet.
    fresh: u64,
}

impl Tuples {
    /// The tuples of a shard with this share. `numbers`: numbers of its destinations; a destination must have the same number in all
    /// shards. `start`: a salt that shifts the first address and port. It must be the same for all shards, and come from the clock or the
    /// process, not from the run's seed, so that a run repeated immediately does not collide with its TIME_WAITs.
    pub fn new(
        pool: SourcePool,
        ports: Ports,
        numbers: impl IntoIterator<Item = u32>,
        tuple_share: TupleShare,
        start: u64,
    ) -> Tuples {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        let destinations = u32::try_from(numbers.len()).expect("a target has at most 65,536 destinations");
        let TupleShare { process, from, width, of } = tuple_share;
        assert!(
            width > 0 && from + width <= of && destinations > 0 && process.is_valid() && process.width > 0,
            "{tuple_share:?}, {destinations} destinations"
        );
        if pool == SourcePool::Loopback4 {
            numbers = vec![0];
        }
        let all = pool.count().saturating_mul(ports.list.len() as u64).min(MAX_PAIRS);
        let process = process.among(all);
        let tuple_share = TupleShare { process, ..tuple_share };
        let pairs = process.numbers_below(all);
        let mut tuples = Tuples {
            addresses: pool.count(),
            cycle: least_common_multiple(pool.count(), ports.list.len() as u64),
            pool: Pool::new(pool),
            inside: ports.inside.min(ports.list.len()),
            ports: ports.list,
            pairs,
            start: start.checked_rem(pairs).unwrap_or(0),
            tuple_share,
            destinations,
            turn: tuple_share.first_of(destinations.into()),
            cursors: Vec::new(),
            fresh: 0,
        };
        tuples.cursors = numbers.into_iter().map(|number| tuples.cursor(number)).collect();
        tuples.fresh = tuples.count();
        tuples
    }

    /// Number of distinct tuples that have not been used yet; for a new sequence, all of this shard's.
    pub fn count(&self) -> u64 {
        self.cursors.iter().map(|cursor| cursor.fresh).sum()
    }

    /// Whether there are unused tuples.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh > 0
    }

    /// Whether there is a tuple for this destination; `fresh`: an unused one.
    pub(crate) fn has(&self, destination: u32, fresh: bool) -> bool {
        let cursor = &self.cursors[self.cursor_of(destination)];
        if fresh { cursor.fresh > 0 } else { cursor.next < self.pairs }
    }

    /// The next tuple; destinations take turns. Unused tuples come first. Panics if this shard has no tuples, which the preflight prevents.
    #[expect(clippy::should_implement_trait, reason = "it never ends: an Option would only be unwrapped")]
    pub fn next(&mut self) -> Tuple {
        for _ in 0..self.destinations {
            let destination = self.turn;
            self.turn = if destination + 1 == self.destinations { 0 } else { destination + 1 };
            let cursor = &self.cursors[self.cursor_of(destination)];
            if cursor.fresh > 0 || self.fresh == 0 && cursor.next < self.pairs {
                return Tuple { from: self.next_to(destination), destination };
            }
        }
        panic!("{:?} dials, and has no tuple of {} pairs", self.tuple_share, self.pairs);
    }

    /// Another source for this destination: for a redial, or after EADDRINUSE or EADDRNOTAVAIL. Panics if this shard has no tuple for it;
    /// after [`Tuples::next`] returned one, it has.
    pub fn next_to(&mut self, destination: u32) -> SocketAddr {
        let index = self.cursor_of(destination);
        let TupleShare { width, of, .. } = self.tuple_share;
        let cursor = &mut self.cursors[index];
        assert!(cursor.next < self.pairs, "{:?} has no tuple to destination {destination}", self.tuple_share);
        let moved = cursor.next + self.start;
        let pair = if moved < self.pairs { moved } else { moved - self.pairs };
        let in_turn = cursor.place(cursor.next, of);
        cursor.next += if in_turn + 1 < u64::from(width) { 1 } else { u64::from(of - width) + 1 };
        if cursor.fresh > 0 {
            cursor.fresh -= 1;
            self.fresh -= 1;
        }
        if cursor.next >= self.pairs {
            cursor.next = cursor.beginning(self.tuple_share);
        }
        let (address, port) = self.split(self.tuple_share.process.number(pair));
        SocketAddr::new(self.pool.nth(address), self.ports[port as usize])
    }

    /// Indices of the address and port of a pair.
    fn split(&self, pair: u64) -> (u64, u64) {
        let ports = self.ports.len() as u64;
        match self.pool {
            Pool::Loopback4 => (pair / ports, pair % ports),
            // A diagonal through the table of addresses and ports; where it would close, the next diagonal.
            Pool::Listed(_) => (pair % self.addresses, (pair + pair / self.cycle) % ports),
        }
    }

    /// Whether this shard, of all that share the tuples, dials this destination from there.
    pub fn has_source(&self, from: SocketAddr, destination: u32) -> bool {
        let index = self.cursor_of(destination);
        let is_own = |pair: u64| {
            let next = if pair >= self.start { pair - self.start } else { pair + self.pairs - self.start };
            self.cursors[index].place(next, self.tuple_share.of) < u64::from(self.tuple_share.width)
        };
        self.pair(from).filter(|pair| *pair < self.pairs).is_some_and(is_own)
    }

    /// The index of an address and port among the pairs of this process: the inverse of [`Tuples::next_to`].
    fn pair(&self, from: SocketAddr) -> Option<u64> {
        let address = self.pool.place_of(from.ip())?;
        // Both parts are ascending.
        let (outside, inside) = self.ports.split_at(self.ports.len() - self.inside);
        let port = match outside.binary_search(&from.port()) {
            Ok(place) => place,
            Err(_) => outside.len() + inside.binary_search(&from.port()).ok()?,
        };
        self.tuple_share.process.place_of(self.joined(address, port as u64))
    }

    /// The pair with these indices of address and port: the inverse of [`Tuples::split`].
    fn joined(&self, address: u64, port: u64) -> u64 {
        let ports = self.ports.len() as u64;
        if let Pool::Loopback4 = self.pool {
            return address * ports + port;
        }
        // Selects the diagonal that has this port in the column of this address. The Chinese remainder theorem then gives the number of
        // times that the address has occurred on it before.
        let shared = greatest_common_divisor(self.addresses, ports);
        let diagonal = (port + shared - address % shared) % shared;
        let ahead = (port + ports - diagonal + ports - address % ports) % ports;
        let turns = ports / shared;
        let turn = ahead / shared * inverse(self.addresses / shared, turns) % turns;
        diagonal * self.cycle + address + self.addresses * turn
    }

    fn cursor_of(&self, destination: u32) -> usize {
        if self.cursors.len() == 1 { 0 } else { destination as usize }
    }

    /// The remainders of previous destinations determine which shard comes first.
    fn cursor(&self, number: u32) -> Cursor {
        let (of, from) = (u64::from(self.tuple_share.of), u64::from(self.tuple_share.from));
        let leftover = self.pairs % of;
        let first = (from + of - u64::from(number) * leftover % of) % of;
        let mut cursor = Cursor { first, next: 0, fresh: 0 };
        cursor.next = cursor.beginning(self.tuple_share);
        let width = u64::from(self.tuple_share.width);
        let of_last_turn =
            (0..self.pairs % of).filter(|pair| cursor.place(*pair, self.tuple_share.of) < width).count();
        cursor.fresh = self.pairs / of * width + of_last_turn as u64;
        cursor
    }
}

impl Cursor {
    /// Position of a pair in its turn, relative to the shard's first.
    fn place(&self, pair: u64, of: u32) -> u64 {
        (pair + u64::from(of) - self.first) % u64::from(of)
    }

    /// The shard's first pair; its turn may have begun before the first pair of all.
    fn beginning(&self, tuple_share: TupleShare) -> u64 {
        if self.place(0, tuple_share.of) < u64::from(tuple_share.width) { 0 } else { self.first }
    }
}

/// The inverse of `a` modulo `m`, which must be coprime (extended Euclidean algorithm); 0 for `m` = 1.
fn inverse(a: u64, m: u64) -> u64 {
    let (mut rest, mut factor) = ((m as i64, (a % m) as i64), (0_i64, 1_i64));
    while rest.1 > 0 {
        let times = rest.0 / rest.1;
        rest = (rest.1, rest.0 - times * rest.1);
        factor = (factor.1, factor.0 - times * factor.1);
    }
    factor.0.rem_euclid(m as i64) as u64
}

/// Saturates; 0 if one of the numbers is 0.
fn least_common_multiple(a: u64, b: u64) -> u64 {
    (a / greatest_common_divisor(a, b).max(1)).saturating_mul(b)
}

/// A [`SourcePool`] with fast access to its n-th address.
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

    /// The inverse of [`Pool::nth`].
    fn place_of(&self, address: IpAddr) -> Option<u64> {
        match (self, address) {
            (Pool::Loopback4, IpAddr::V4(address)) => {
                let bits = u64::from(address.to_bits());
                let (block, last) = (((bits >> 8) & 0xffff).checked_sub(1)?, (bits & 0xff).checked_sub(1)?);
                (bits >> 24 == 127 && last < PER_BLOCK).then_some(block * PER_BLOCK + last)
            }
            (Pool::Loopback4, IpAddr::V6(_)) => None,
            (Pool::Listed(networks), _) => {
                networks.iter().find_map(|(before, network)| Some(before + network.place_of(address)?))
            }
        }
    }
}

#[cfg(test)]
mod tests;

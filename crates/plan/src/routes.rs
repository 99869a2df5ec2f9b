//! The source addresses for each destination: the address that the kernel's route selects; on loopback also other addresses of 127.0.0.0/8,
//! if the ports of one address do not suffice.

use std::net::SocketAddr;

use crate::{Ports, SourcePool, Tuple, TupleShare, Tuples};

/// Destinations of a target that are dialled from the same source addresses.
#[derive(Clone, Debug)]
pub struct Route {
    /// Source addresses.
    pub pool: SourcePool,
    /// Source ports.
    pub ports: Ports,
    /// Indices into the target's destinations.
    pub destinations: Vec<u32>,
    /// Number of each of them among the destinations of the whole run.
    pub numbers: Vec<u32>,
    /// Further addresses with their ports, for when an address and port of `pool` are in use.
    pub further: Option<(SourcePool, Ports)>,
}

impl Route {
    /// The shard's 4-tuples: the regular and the further ones; see [`Tuples::new`].
    pub fn tuples(&self, share: TupleShare, start: u64) -> (Tuples, Option<Tuples>) {
        let of = |pool: &SourcePool, ports: &Ports| {
            Tuples::new(pool.clone(), ports.clone(), self.numbers.iter().copied(), share, start)
        };
        (of(&self.pool, &self.ports), self.further.as_ref().map(|(pool, ports)| of(pool, ports)))
    }
}

/// The 4-tuples of one shard towards all its destinations, which take turns: [`Tuples`] for each route.
#[derive(Clone, Debug)]
pub struct Dials {
    routes: Vec<Tuples>,
    /// The further tuples of each route.
    further: Vec<Option<Tuples>>,
    /// Route of each destination, and its index there.
    places: Vec<(u32, u32)>,
    /// Index of the next destination.
    turn: u32,
}

impl From<Tuples> for Dials {
    fn from(tuples: Tuples) -> Dials {
        Dials { routes: vec![tuples], further: vec![None], places: Vec::new(), turn: 0 }
    }
}

impl Dials {
    /// The tuples of a shard with this tuple share; see [`Tuples::new`]. Each destination belongs to exactly one route.
    pub fn new(routes: impl IntoIterator<Item = Route>, tuple_share: TupleShare, start: u64) -> Dials {
        let mut places = Vec::new();
        let (mut tuples, mut further) = (Vec::new(), Vec::new());
        for (number, route) in (0..).zip(routes) {
            for (nth, destination) in (0..).zip(&route.destinations) {
                let at = *destination as usize;
                places.resize(places.len().max(at + 1), (0, 0));
                places[at] = (number, nth);
            }
            let (first, more) = route.tuples(tuple_share, start);
            tuples.push(first);
            further.push(more);
        }
        let turn = tuple_share.first_of(places.len() as u64);
        Dials { routes: tuples, further, places, turn }
    }

    /// Number of tuples not yet given out.
    pub fn count(&self) -> u64 {
        self.routes.iter().map(Tuples::count).sum()
    }

    /// The next tuple; destinations take turns. Panics like [`Tuples::next`].
    #[expect(clippy::should_implement_trait, reason = "it never ends: an Option would only be unwrapped")]
    pub fn next(&mut self) -> Tuple {
        if let [only] = self.routes.as_mut_slice() {
            return only.next();
        }
        let any_fresh = self.routes.iter().any(Tuples::is_fresh);
        for _ in 0..self.places.len() {
            let destination = self.turn;
            self.turn = if destination as usize + 1 == self.places.len() { 0 } else { destination + 1 };
            let (route, nth) = self.places[destination as usize];
            if self.routes[route as usize].has(nth, any_fresh) {
                return Tuple { from: self.next_to(destination), destination };
            }
        }
        panic!("a shard dials, and has no tuple towards any of {} destinations", self.places.len());
    }

    /// Another source for this destination; see [`Tuples::next_to`].
    pub fn next_to(&mut self, destination: u32) -> SocketAddr {
        let (route, nth) = self.place(destination);
        self.routes[route].next_to(nth)
    }

    /// Picks another source after one was found in use: an additional one, if there are any.
    pub fn next_further_to(&mut self, destination: u32) -> SocketAddr {
        let (route, nth) = self.place(destination);
        self.further[route].as_mut().unwrap_or(&mut self.routes[route]).next_to(nth)
    }

    /// Route of a destination, and its index there.
    fn place(&self, destination: u32) -> (usize, u32) {
        match self.routes.len() {
            1 => (0, destination),
            _ => {
                let (route, nth) = self.places[destination as usize];
                (route as usize, nth)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::HashSet, net::IpAddr};

    fn route(pool: SourcePool, destinations: &[u32]) -> Route {
        let ports = Ports { list: (2_000..2_010).collect(), inside: 0 };
        let (destinations, numbers) = (destinations.to_vec(), destinations.to_vec());
        Route { pool, ports, destinations, numbers, further: None }
    }

    #[test]
    fn each_destination_is_dialled_from_its_own_addresses() {
        let here: IpAddr = [10, 0, 0, 5].into();
        let routes = || {
            let listed = [here].into_iter().collect();
            [route(SourcePool::Loopback4, &[1]), route(listed, &[0, 2])]
        };
        let mut seen = HashSet::new();
        for from in 0..2 {
            let mut dials = Dials::new(routes(), TupleShare { from, of: 2, ..TupleShare::ALL }, 7);
            let mut of_each = [0; 3];
            for _ in 0..15 {
                let tuple = dials.next();
                of_each[tuple.destination as usize] += 1;
                assert_eq!(tuple.from.ip().is_loopback(), tuple.destination == 1, "{tuple:?}");
                assert!(seen.insert(tuple), "twice: {tuple:?}");
                // Five of the ten ports towards each of two destinations are this shard's.
                assert!(!dials.next_to(1).ip().is_unspecified());
            }
            assert_eq!(of_each, [5, 5, 5], "they take turns");
            // What is fresh now is on loopback alone.
            assert!((0..20).all(|_| dials.next().destination == 1));
            assert_eq!(dials.next_to(2).ip(), here);
        }
        assert_eq!(seen.len(), 30);
    }

    #[test]
    fn further_addresses_are_for_what_is_in_use() {
        let here: IpAddr = [127, 0, 0, 1].into();
        let ports = Ports { list: vec![2_000, 2_001], inside: 0 };
        let further = Some((SourcePool::Loopback4, ports));
        let first = Route { further, ..route([here].into_iter().collect(), &[0, 2]) };
        let other: IpAddr = [10, 0, 0, 5].into();
        let mut dials = Dials::new([first, route([other].into_iter().collect(), &[1])], TupleShare::ALL, 7);
        assert_eq!(dials.count(), 30, "the first ones");
        for _ in 0..100 {
            let tuple = dials.next();
            assert_eq!(tuple.from.ip(), if tuple.destination == 1 { other } else { here });
            assert_eq!(dials.next_to(2).ip(), here);
        }
        let seen: HashSet<SocketAddr> = (0..100).map(|_| dials.next_further_to(2)).collect();
        assert!(seen.len() == 100 && seen.iter().all(|from| from.ip().is_loopback() && from.ip() != here));
        assert_eq!(dials.next_further_to(1).ip(), other);
    }
}

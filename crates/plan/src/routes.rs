//! From where which destinations are dialled: 127.0.0.0/8 only towards loopback, each other destination from the address
//! that its route gives.

use std::net::SocketAddr;

use crate::{Ports, SourcePool, Tuple, TupleShare, Tuples};

/// Destinations of a target that are dialled from the same addresses.
#[derive(Clone, Debug)]
pub struct Route {
    /// From these.
    pub pool: SourcePool,
    /// And these ports.
    pub ports: Ports,
    /// Which of the target's destinations.
    pub destinations: Vec<u32>,
    /// The number of each among the destinations of the whole run.
    pub numbers: Vec<u32>,
}

/// The 4-tuples of one shard towards all its destinations, which take turns: [`Tuples`] for each of its routes.
#[derive(Clone, Debug)]
pub struct Dials {
    routes: Vec<Tuples>,
    /// The route of each destination, and its number there.
    places: Vec<(u32, u32)>,
    /// Whose turn it is.
    turn: u32,
}

impl From<Tuples> for Dials {
    fn from(tuples: Tuples) -> Dials {
        Dials { routes: vec![tuples], places: Vec::new(), turn: 0 }
    }
}

impl Dials {
    /// The share of a shard with this tuple share; see [`Tuples::new`]. Each destination is in exactly one of the routes.
    pub fn new(routes: impl IntoIterator<Item = Route>, tuple_share: TupleShare, start: u64) -> Dials {
        let mut places = Vec::new();
        let mut tuples = Vec::new();
        for (number, Route { pool, ports, destinations, numbers }) in (0..).zip(routes) {
            for (nth, destination) in (0..).zip(&destinations) {
                let at = *destination as usize;
                places.resize(places.len().max(at + 1), (0, 0));
                places[at] = (number, nth);
            }
            tuples.push(Tuples::new(pool, ports, numbers, tuple_share, start));
        }
        let turn = tuple_share.first_of(places.len() as u64);
        Dials { routes: tuples, places, turn }
    }

    /// How many different tuples have not been given out yet.
    pub fn count(&self) -> u64 {
        self.routes.iter().map(Tuples::count).sum()
    }

    /// The next one; destinations take turns. Panics as [`Tuples::next`] does.
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
        if let [only] = self.routes.as_mut_slice() {
            return only.next_to(destination);
        }
        let (route, nth) = self.places[destination as usize];
        self.routes[route as usize].next_to(nth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::HashSet, net::IpAddr};

    fn route(pool: SourcePool, destinations: &[u32]) -> Route {
        let ports = Ports { list: (2_000..2_010).collect(), inside: 0 };
        Route { pool, ports, destinations: destinations.to_vec(), numbers: destinations.to_vec() }
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
}

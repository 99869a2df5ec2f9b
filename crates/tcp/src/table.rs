//! The connections of a shard, found by number or by their addresses and ports. The index is an open-addressing hash table with linear
//! probing and a keyed hash, which stores only connection numbers.

use std::collections::VecDeque;

use crate::connection::{Connection, State};
use crate::packet::Tuple;
use crate::path::Paths;

/// Slots per connection: three quarters are used when the table is full, and a search then takes two or three probes.
const SLOTS_NUMERATOR: usize = 13;
const SLOTS_DENOMINATOR: usize = 10;
const EMPTY: u32 = 0;

/// Connections by number: below `places` the program's connections, each at its place; from there on the lingering ones.
pub(crate) struct Table {
    places: u32,
    open: Vec<Connection>,
    lingering: Vec<Connection>,
    most_lingering: u32,
    /// Number of lingering connections in TIME-WAIT.
    pub(crate) in_time_wait: usize,
    /// Numbers of free entries of `lingering`.
    free: Vec<u32>,
    /// Numbers plus one, by hash of the tuple; linear probing, without tombstones.
    index: Box<[u32]>,
    key: [u64; 2],
    pub(crate) paths: Paths,
    /// Connections in a waiting state, ordered by when they end.
    pub(crate) waits: VecDeque<(units::Nanos, u32)>,
}

impl Table {
    pub(crate) fn new(places: u32, most_lingering: u32, key: [u64; 2], mtu: u16) -> Table {
        let slots = (places as usize + most_lingering as usize) * SLOTS_NUMERATOR / SLOTS_DENOMINATOR + 8;
        Table {
            places,
            open: Vec::with_capacity(places as usize),
            lingering: Vec::with_capacity(most_lingering as usize),
            most_lingering,
            in_time_wait: 0,
            free: Vec::with_capacity(most_lingering as usize),
            // The operating system zeroes these pages when they are first touched.
            index: vec![EMPTY; slots].into_boxed_slice(),
            key,
            paths: Paths::new(mtu),
            waits: VecDeque::new(),
        }
    }

    /// Whether the number is a place of the program.
    pub(crate) fn is_place(&self, id: u32) -> bool {
        id < self.places
    }

    pub(crate) fn get(&self, id: u32) -> &Connection {
        match id.checked_sub(self.places) {
            None => self.open.get(id as usize).unwrap_or(&Connection::FREE),
            Some(nth) => &self.lingering[nth as usize],
        }
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Connection {
        match id.checked_sub(self.places) {
            None => &mut self.open[id as usize],
            Some(nth) => &mut self.lingering[nth as usize],
        }
    }

    /// Number of lingering connections.
    pub(crate) fn lingering(&self) -> usize {
        self.lingering.len() - self.free.len()
    }

    pub(crate) fn find(&self, tuple: &Tuple) -> Option<u32> {
        let mut slot = self.home(tuple);
        loop {
            let id = self.index[slot].checked_sub(1)?;
            let connection = self.get(id);
            if connection.local == tuple.local as u32
                && connection.local_port == tuple.local_port
                && self.tuple(connection) == *tuple
            {
                return Some(id);
            }
            slot = self.after(slot);
        }
    }

    /// Puts a connection at a free place; its tuple must not be in the table.
    pub(crate) fn insert(&mut self, place: u32, connection: Connection) {
        assert!(place < self.places, "a place below the number of places: {place}");
        let at = place as usize;
        if self.open.len() <= at {
            self.open.resize(at + 1, Connection::FREE);
        }
        self.open[at] = connection;
        let mut slot = self.home(&self.tuple(&connection));
        while self.index[slot] != EMPTY {
            slot = self.after(slot);
        }
        self.index[slot] = place + 1;
    }

    /// Moves a connection from its place to the lingering ones, under a new number. `None`: there are too many.
    pub(crate) fn linger(&mut self, place: u32) -> Option<u32> {
        let nth = match self.free.pop() {
            Some(nth) => nth,
            None if self.lingering.len() < self.most_lingering as usize => {
                self.lingering.push(Connection::FREE);
                self.lingering.len() as u32 - 1
            }
            None => return None,
        };
        let connection = *self.get(place);
        let slot = self.slot(place);
        self.index[slot] = self.places + nth + 1;
        self.lingering[nth as usize] = connection;
        self.open[place as usize] = Connection::FREE;
        Some(self.places + nth)
    }

    /// Removes a connection from the index, which frees its tuple. A place keeps its record; the entry of a lingering connection is freed.
    pub(crate) fn unindex(&mut self, id: u32) {
        let mut hole = self.slot(id);
        // Later entries of the cluster move up, except those whose search begins after the hole.
        let mut slot = self.after(hole);
        while let Some(other) = self.index[slot].checked_sub(1) {
            let home = self.home(&self.tuple(self.get(other)));
            let from_home = self.distance(home, slot);
            if from_home >= self.distance(hole, slot) {
                self.index[hole] = self.index[slot];
                hole = slot;
            }
            slot = self.after(slot);
        }
        self.index[hole] = EMPTY;
        if let Some(nth) = id.checked_sub(self.places) {
            self.in_time_wait -= usize::from(self.get(id).state() == State::TimeWait);
            self.lingering[nth as usize] = Connection::FREE;
            self.free.push(nth);
        }
    }

    /// Removes a connection and frees its entry.
    pub(crate) fn remove(&mut self, id: u32) {
        if self.get(id).state() != State::Dead {
            self.unindex(id);
        }
        if self.is_place(id) {
            self.open[id as usize] = Connection::FREE;
        }
    }

    pub(crate) fn tuple(&self, connection: &Connection) -> Tuple {
        self.paths.get(connection.path).tuple(connection.local, connection.local_port)
    }

    /// The slot of the index that holds `id`.
    fn slot(&self, id: u32) -> usize {
        let mut slot = self.home(&self.tuple(self.get(id)));
        while self.index[slot] != id + 1 {
            assert!(self.index[slot] != EMPTY, "what is connected is in the index: {id}");
            slot = self.after(slot);
        }
        slot
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.index.len() { 0 } else { slot + 1 }
    }

    /// Number of steps from one slot to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.index.len() - from }
    }

    /// The slot at which the search for a tuple begins. The hash is keyed, so that peers cannot cause collisions.
    fn home(&self, tuple: &Tuple) -> usize {
        let network = (tuple.local >> 32) as u64 ^ (tuple.local >> 96) as u64;
        let remote =
            folded((tuple.remote >> 64) as u64 ^ network ^ self.key[0], tuple.remote as u64 ^ MIX[0]);
        let ends = u64::from(tuple.local as u32) << 32
            | u64::from(tuple.local_port) << 16
            | u64::from(tuple.remote_port);
        let hash = folded(folded(ends ^ remote, MIX[1]) ^ self.key[1], MIX[2]);
        ((u128::from(hash) * self.index.len() as u128) >> 64) as usize
    }
}

/// Odd constants without a pattern: digits of the golden ratio and of pi.
const MIX: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0x2438_6a88_85a3_08d3, 0x1319_8a2e_0370_7345];

/// Both halves of the product, XORed: each bit depends on all bits of both factors.
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::is_v4;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const PLACES: u32 = 12;
    const LINGERING: u32 = 4;

    fn tuple(nth: u16) -> Tuple {
        // IP versions, networks, destinations and ports, which differ in one component each.
        let local =
            [0xffff_c612_0001_u128, 0xffff_c612_0002, 0x2001_0002 << 96 | 1, 0x2001_0002 << 96 | 1 << 64 | 1];
        let local = local[usize::from(nth % 4)];
        let remote = if is_v4(local) { 0xffff_0a00_0001_u128 } else { 0xfd00 << 112 | 1 };
        Tuple { local, remote: remote + u128::from(nth / 4 % 2), local_port: 1000 + nth / 8, remote_port: 80 }
    }

    proptest! {
        /// Compares with a map: exactly the inserted connections are found.
        #[test]
        fn finds_what_is_in_it(acts in prop::collection::vec((0u32..PLACES, 0u16..40, 0u8..3), 0..200), key: [u64; 2]) {
            let mut table = Table::new(PLACES, LINGERING, key, 1500);
            let mut model: HashMap<u16, u32> = HashMap::new();
            for (place, nth, act) in acts {
                let taken = model.iter().find(|(_, id)| **id == place).map(|(nth, _)| *nth);
                match (act, taken) {
                    (0, None) if !model.contains_key(&nth) => {
                        let tuple = tuple(nth);
                        let mut connection = Connection::FREE;
                        connection.local = tuple.local as u32;
                        connection.local_port = tuple.local_port;
                        connection.path = table.paths.number(&tuple).expect("few");
                        connection.set_state(State::Established);
                        table.insert(place, connection);
                        model.insert(nth, place);
                    }
                    (1, Some(nth)) => match table.linger(place) {
                        Some(id) => drop(model.insert(nth, id)),
                        None => prop_assert_eq!(table.lingering(), LINGERING as usize),
                    },
                    (2, _) => {
                        if let Some(id) = model.remove(&nth) {
                            table.remove(id);
                        }
                    }
                    _ => {}
                }
                for nth in 0..40 {
                    prop_assert_eq!(table.find(&tuple(nth)), model.get(&nth).copied(), "{}", nth);
                }
                prop_assert_eq!(table.lingering(), model.values().filter(|id| **id >= PLACES).count());
            }
        }
    }

    /// Memory of an idle connection: its record and its share of the index.
    #[test]
    fn an_idle_connection_costs_less_than_32_bytes() {
        let table = Table::new(1_000_000, 0, [1, 2], 1500);
        let bytes = size_of_val(&*table.index) + table.open.capacity() * size_of::<Connection>();
        assert!(bytes <= 30 * 1_000_000, "{bytes}");
    }

    #[test]
    fn tuples_are_spread() {
        let mut table = Table::new(100_000, 0, [7, 9], 1500);
        let mut longest = 0;
        for nth in 0..100_000u32 {
            let tuple = Tuple {
                local: 0xffff_c612_0000 + u128::from(nth / 50_000),
                remote: 0xffff_0a00_0001,
                local_port: (1024 + nth % 50_000) as u16,
                remote_port: 80,
            };
            let mut connection = Connection::FREE;
            connection.local = tuple.local as u32;
            connection.local_port = tuple.local_port;
            connection.path = table.paths.number(&tuple).expect("one");
            table.insert(nth, connection);
            longest = longest.max(table.distance(table.home(&tuple), table.slot(nth)));
        }
        // With a good hash, and at this load factor, linear probing is expected to stay below this.
        assert!(longest < 200, "{longest}");
    }
}

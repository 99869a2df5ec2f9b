//! The table of a shard's connections. A [`Key`] is an index and a turn (a generation), so that a stale key is detected.

/// Identifies one connection of a shard. `turn` changes each time the index is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Index in the shard's tables, and in the rings' tables of direct descriptors.
    pub index: u32,
    /// How often the index was used before, modulo 256. One byte is enough to recognise an old completion, because completions are read
    /// within a turn or two of the loop.
    pub turn: u8,
}

/// The state of an entry of the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Free,
    /// Dialled, or waiting for a peer to accept; not connected yet.
    Opening,
    /// Connected.
    Open,
}

#[derive(Clone, Copy)]
struct Place {
    turn: u8,
    state: State,
    flags: u8,
}

const _: () = assert!(size_of::<Place>() <= 3, "the idle record is what a million connections cost");

/// Flag: the shard holds input that the program left unconsumed.
pub(crate) const LEFTOVER: u8 = 1;
/// Flag: to be closed once all output has left.
pub(crate) const FINISHING: u8 = 2;
/// Flag: ended by the peer while some of its input is unused.
pub(crate) const ENDING: u8 = 4;
/// Flag: the program has more to send, and is called when its output has left.
pub(crate) const SENDING: u8 = 8;

/// Allocates keys: the index given back last is reused first; without one, the lowest unused index is taken.
pub struct Slab {
    places: Vec<Place>,
    free: Vec<u32>,
    limit: u32,
    taken: u32,
}

impl Slab {
    /// Creates a slab for at most `limit` connections. Memory is reserved now, but touched only as connections open.
    pub fn new(limit: u32) -> Slab {
        Slab { places: Vec::with_capacity(limit as usize), free: Vec::new(), limit, taken: 0 }
    }

    /// A key for a connection that is about to open; `None` if the slab is full.
    pub fn take(&mut self) -> Option<Key> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.places.len() < self.limit as usize => {
                self.places.push(Place { turn: 0, state: State::Free, flags: 0 });
                (self.places.len() - 1) as u32
            }
            None => return None,
        };
        let place = &mut self.places[index as usize];
        assert!(place.state == State::Free, "a place handed out twice: {index}");
        place.state = State::Opening;
        self.taken += 1;
        Some(Key { index, turn: place.turn })
    }

    /// Frees a key, which is stale afterwards.
    pub fn give_back(&mut self, k: Key) {
        assert!(self.is_live(k), "freed slab key used: {k:?}");
        let place = &mut self.places[k.index as usize];
        *place = Place { turn: place.turn.wrapping_add(1), state: State::Free, flags: 0 };
        self.free.push(k.index);
        self.taken -= 1;
    }

    /// Whether the key belongs to a current connection.
    pub fn is_live(&self, k: Key) -> bool {
        self.places.get(k.index as usize).is_some_and(|p| p.turn == k.turn && p.state != State::Free)
    }

    /// Number of connections that are opening or open.
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// Whether [`Slab::take`] would return `None`.
    pub fn is_full(&self) -> bool {
        self.taken == self.limit
    }

    /// Whether the key belongs to a connected connection.
    pub fn is_open(&self, k: Key) -> bool {
        self.is_live(k) && self.places[k.index as usize].state == State::Open
    }

    /// The key of the connection at `index`, open or opening; `None` if the entry is free.
    pub fn at(&self, index: u32) -> Option<Key> {
        let place = self.places.get(index as usize)?;
        (place.state != State::Free).then_some(Key { index, turn: place.turn })
    }

    pub(crate) fn set_open(&mut self, k: Key) {
        self.places[k.index as usize].state = State::Open;
    }

    pub(crate) fn is(&self, k: Key, flag: u8) -> bool {
        self.places[k.index as usize].flags & flag != 0
    }

    pub(crate) fn set(&mut self, k: Key, flag: u8) {
        self.places[k.index as usize].flags |= flag;
    }

    pub(crate) fn unset(&mut self, k: Key, flag: u8) {
        self.places[k.index as usize].flags &= !flag;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Compares the slab with a `HashMap`: keys taken and not given back are live, all others are stale.
        #[test]
        fn agrees_with_a_hash_map(steps in proptest::collection::vec((any::<bool>(), any::<usize>()), 1..300)) {
            let mut slab = Slab::new(50);
            let (mut live, mut dead): (HashMap<u32, Key>, Vec<Key>) = Default::default();
            for (take, pick) in steps {
                if take {
                    match slab.take() {
                        Some(k) => { prop_assert!(live.insert(k.index, k).is_none()); }
                        None => prop_assert_eq!(live.len(), 50),
                    }
                } else if !live.is_empty() {
                    let index = *live.keys().nth(pick % live.len()).unwrap();
                    let k = live.remove(&index).unwrap();
                    slab.give_back(k);
                    dead.push(k);
                }
                prop_assert_eq!(slab.taken() as usize, live.len());
                prop_assert!(live.values().all(|&k| slab.is_live(k) && slab.at(k.index) == Some(k)));
                prop_assert!(dead.iter().rev().take(200).all(|&k| !slab.is_live(k)));
            }
        }
    }

    #[test]
    #[should_panic(expected = "freed slab key used")]
    fn a_freed_key_is_our_bug() {
        let mut slab = Slab::new(1);
        let k = slab.take().unwrap();
        slab.give_back(k);
        slab.give_back(k);
    }
}

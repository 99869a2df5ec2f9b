//! A cache of derived keys, for connections with recent records. Deriving a key takes about a microsecond, and keeping it half a kilobyte,
//! so busy connections keep theirs and idle ones do not.

use crate::keys::Keys;

/// Number of cache entries: a fraction of a megabyte per shard, and enough for the connections that most closed-loop runs keep busy.
const MAX_WARM: usize = 256;

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Out,
    In,
}

/// A direct-mapped cache: each connection index has one entry, which it shares with other indices.
#[derive(Default)]
pub(crate) struct Warm {
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    index: u32,
    keys: [Option<Keys>; 2],
}

impl Warm {
    /// The key of a direction of a connection, derived by `derive` if it is not cached.
    pub(crate) fn get(&mut self, index: u32, direction: Direction, derive: impl FnOnce() -> Keys) -> &Keys {
        let at = index as usize % MAX_WARM;
        if at >= self.places.len() {
            self.places.resize_with(at + 1, Place::default);
        }
        let place = &mut self.places[at];
        if place.index != index {
            *place = Place { index, keys: [None, None] };
        }
        place.keys[direction as usize].get_or_insert_with(derive)
    }

    /// Drops the cached key of a direction, which has changed.
    pub(crate) fn forget(&mut self, index: u32, direction: Direction) {
        let place = self.places.get_mut(index as usize % MAX_WARM).filter(|place| place.index == index);
        place.into_iter().for_each(|place| place.keys[direction as usize] = None);
    }
}

//! Keys that are ready for use, of connections that had records lately. Deriving a key costs about a microsecond and holding it half a
//! kilobyte: so the busy keep theirs, and the idle do not.

use crate::keys::Keys;

/// Connections whose keys are kept. It is a share of a megabyte for each shard, and enough for the connections that most
/// closed loops keep busy.
const MAX_WARM: usize = 256;

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Out,
    In,
}

/// The keys of some connections; each index has one place that it shares with others.
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
    /// The key of a direction of a connection, from `derive` where it is not kept.
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

    /// The key of a direction has changed.
    pub(crate) fn forget(&mut self, index: u32, direction: Direction) {
        let place = self.places.get_mut(index as usize % MAX_WARM).filter(|place| place.index == index);
        place.into_iter().for_each(|place| place.keys[direction as usize] = None);
    }
}

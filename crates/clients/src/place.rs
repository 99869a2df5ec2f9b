//! The place that a client occupies in its agent and its shard, until it is gone.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use fleet::Held;

/// A place in a shard, and among the connections that the agent may hold.
#[derive(Debug)]
pub(crate) struct Place {
    taken: Arc<AtomicU32>,
    _held: Held,
}

impl Place {
    /// Takes another place; `taken` counts those of the shard.
    pub(crate) fn new(taken: Arc<AtomicU32>, held: Held) -> Place {
        taken.fetch_add(1, Relaxed);
        Place { taken, _held: held }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Relaxed);
    }
}

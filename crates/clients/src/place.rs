//! What a client takes of its agent and of its shard, until it is gone.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use fleet::Held;

/// A client's place in its shard, and among the connections that the agent may hold.
#[derive(Debug)]
pub(crate) struct Place {
    taken: Arc<AtomicU32>,
    _held: Held,
}

impl Place {
    /// One more, of which `taken` is the count.
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

//! Where the values of a request begin, so that what follows a redirect has the same.

use units::Random;

/// In the randomness of a shard, and in its numbers.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) random: Random,
    pub(crate) written: u64,
}

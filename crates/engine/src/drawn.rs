//! The point at which a request's random values begin, so that the request after a redirect draws the same ones.

use units::Random;

/// The state of the shard's random generator, and its number of written requests.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) random: Random,
    pub(crate) written: u64,
}

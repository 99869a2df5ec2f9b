//! The checks of a response, compiled from the plan.

use plan::{Condition, Expectation};

use crate::{
    needle::Needle,
    watch::{Wanted, Watch},
};

/// The conditions that a response must meet in addition to correct framing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Check {
    pub(crate) expected: Expectation,
    /// Text that the content must contain.
    pub(crate) body: Option<Needle>,
    /// Values to capture from the response.
    pub(crate) wanted: Option<Box<Wanted>>,
    /// What must hold once its values are captured.
    pub(crate) until: Option<Condition>,
}

impl Check {
    pub(crate) fn new(expected: &Expectation) -> Check {
        Check {
            expected: expected.clone(),
            body: expected.body.as_deref().map(Needle::new),
            wanted: Wanted::new(expected, 0, (false, false)),
            until: None,
        }
    }

    /// The check of an HTTP request that follows up to `redirects` redirects, may set cookies, and has asked for content codings.
    pub(crate) fn of_request(
        expected: &Expectation,
        redirects: u8,
        (cookies, has_codings): (bool, bool),
    ) -> Check {
        Check { wanted: Wanted::new(expected, redirects, (cookies, has_codings)), ..Check::new(expected) }
    }

    /// Reads a piece of the content. `found` is the state of the text search so far; returns its new state.
    pub(crate) fn content(
        &self,
        found: u16,
        watch: &mut Option<&mut Watch>,
        bytes: impl Iterator<Item = u8> + Clone,
    ) -> u16 {
        if let (Some(wanted), Some(watch)) = (&self.wanted, watch) {
            if watch.keep_encoded(bytes.clone()) {
                return found;
            }
            watch.content(wanted, bytes.clone());
        }
        self.body.as_ref().map_or(found, |needle| needle.scan(found, bytes))
    }

    /// The check of a message that must be echoed unchanged.
    pub(crate) fn echo() -> Check {
        Check::new(&Expectation { echo: true, ..Expectation::default() })
    }

    /// Content length expected for a request with these random numbers, in octets; `u64::MAX` if any length is right.
    pub(crate) fn expected(&self, numbers: &[u64]) -> u64 {
        self.expected.length.map_or(u64::MAX, |length| length.of(numbers))
    }
}

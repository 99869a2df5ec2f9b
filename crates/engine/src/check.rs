//! The check of a response, compiled.

use plan::Expectation;

use crate::needle::Needle;

/// All of it must hold, over and above complete framing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Check {
    pub(crate) expected: Expectation,
    /// Its text that the content contains.
    pub(crate) body: Option<Needle>,
}

impl Check {
    pub(crate) fn new(expected: &Expectation) -> Check {
        Check { expected: expected.clone(), body: expected.body.as_deref().map(Needle::new) }
    }

    /// For a message that comes back as it was.
    pub(crate) fn echo() -> Check {
        Check::new(&Expectation { echo: true, ..Expectation::default() })
    }

    /// Content octets expected in the response to a request with these random numbers; `u64::MAX` if any number will do.
    pub(crate) fn expected(&self, numbers: &[u64]) -> u64 {
        self.expected.length.map_or(u64::MAX, |length| length.of(numbers))
    }
}

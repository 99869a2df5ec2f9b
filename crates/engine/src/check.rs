//! The check of a response, compiled.

use plan::Expectation;

use crate::{
    needle::Needle,
    watch::{Wanted, Watch},
};

/// All of it must hold, over and above complete framing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Check {
    pub(crate) expected: Expectation,
    /// Its text that the content contains.
    pub(crate) body: Option<Needle>,
    /// What is taken from the response.
    pub(crate) wanted: Option<Box<Wanted>>,
}

impl Check {
    pub(crate) fn new(expected: &Expectation) -> Check {
        Check {
            expected: expected.clone(),
            body: expected.body.as_deref().map(Needle::new),
            wanted: Wanted::new(expected, 0, false),
        }
    }

    /// Of a request, whose redirects are followed so often, and which may set cookies.
    pub(crate) fn of_request(expected: &Expectation, redirects: u8, cookies: bool) -> Check {
        Check { wanted: Wanted::new(expected, redirects, cookies), ..Check::new(expected) }
    }

    /// A piece of the content has come.
    pub(crate) fn content(
        &self,
        found: u16,
        watch: &mut Option<&mut Watch>,
        bytes: impl Iterator<Item = u8> + Clone,
    ) -> u16 {
        if let (Some(wanted), Some(watch)) = (&self.wanted, watch) {
            watch.content(wanted, bytes.clone());
        }
        self.body.as_ref().map_or(found, |needle| needle.scan(found, bytes))
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

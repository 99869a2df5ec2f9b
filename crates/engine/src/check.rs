//! The check of a response, compiled.

use plan::{Expectation, ExpectedLength};

use crate::needle::Needle;

/// All of it must hold, over and above complete framing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Check {
    /// HTTP; where none is given, any 2xx will do.
    pub(crate) status: Option<u16>,
    pub(crate) length: Option<ExpectedLength>,
    /// HTTP: fields, each with a text that its value contains.
    pub(crate) fields: Vec<(String, String)>,
    /// A text that the content contains.
    pub(crate) body: Option<Needle>,
    /// The very message that was sent.
    pub(crate) echo: bool,
}

impl Check {
    pub(crate) fn new(expected: &Expectation) -> Check {
        Check {
            status: expected.basic.status,
            length: expected.basic.length,
            fields: expected.headers.clone(),
            body: expected.body.as_deref().map(Needle::new),
            echo: expected.echo,
        }
    }

    /// For a message that comes back as it was.
    pub(crate) fn echo() -> Check {
        Check { echo: true, ..Check::default() }
    }

    /// Content octets expected in the response to a request with these random numbers; `u64::MAX` if any number will do.
    pub(crate) fn expected(&self, numbers: &[u64]) -> u64 {
        self.length.map_or(u64::MAX, |length| length.of(numbers))
    }
}

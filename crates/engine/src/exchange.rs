//! A dial or a request under way: what a connection needs only then.

use samples::Kind;
use units::Nanos;

use crate::protocol::{Awaited, Head};

/// Stands in for the bytes received of a message that began before ours was sent: no part of an answer.
pub(crate) const NOT_OURS: u64 = u64::MAX;

/// One dial, and then one request and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// When the dial, and then the request, was due.
    pub(crate) due: Nanos,
    /// When the dial was due, and then when the request was sent: connect time, and the timeout, count from here.
    pub(crate) started: Nanos,
    /// Length of the content that is expected; `u64::MAX` where none is. Of a control ping: what it says.
    pub(crate) expected: u64,
    /// Content received.
    pub(crate) content: u64,
    /// The number of the message that was sent.
    pub(crate) nth: u32,
    /// How much of the text that is looked for matches.
    pub(crate) found: u16,
    /// Something of the answer has come.
    pub(crate) begun: bool,
    /// The first dial and the first request of a connection belong to the ramp's window.
    pub(crate) first: bool,
    /// A request is due for this dial, and goes out when the connection stands.
    pub(crate) asks: bool,
    /// The answer lacks a field.
    pub(crate) lacks: bool,
    /// The echo is not what was sent.
    pub(crate) differs: bool,
    /// Sent again, since it met an announced close.
    pub(crate) again: bool,
}

impl Exchange {
    pub(crate) fn new(due: Nanos, started: Nanos) -> Exchange {
        Exchange {
            due,
            started,
            expected: u64::MAX,
            content: 0,
            nth: 0,
            found: 0,
            begun: false,
            first: false,
            asks: false,
            lacks: false,
            differs: false,
            again: false,
        }
    }

    /// A message is awaited from here on; `is_at_rest`: no other one has come in part.
    pub(crate) fn await_message(&mut self, is_at_rest: bool) {
        (self.found, self.differs) = (0, false);
        self.content = if is_at_rest { 0 } else { NOT_OURS };
    }

    /// Bytes of content that the answer had; a pong between the pieces of the server's own message has none.
    pub(crate) fn content(&self) -> u64 {
        if self.content == NOT_OURS { 0 } else { self.content }
    }

    /// What is wrong with a whole answer, with this head where it has one.
    pub(crate) fn wrong(&self, awaited: Awaited, head: Option<Head>) -> Option<Kind> {
        let check = match awaited {
            Awaited::Response(check) | Awaited::Message(check, _) => check,
            Awaited::Pong => return None,
        };
        let right_status = head.is_none_or(|head| match check.status {
            None => (200..300).contains(&head.status),
            Some(status) => status == head.status,
        });
        let right_length = self.expected == u64::MAX || self.expected == self.content;
        let right_body = check.body.as_ref().is_none_or(|needle| needle.is_found(self.found));
        let kinds = [
            (right_status, Kind::WrongStatus),
            (!self.lacks, Kind::WrongHeader),
            (!self.differs, Kind::WrongEcho),
            (right_length, Kind::WrongLength),
            (right_body, Kind::WrongBody),
        ];
        kinds.into_iter().find(|(right, _)| !right).map(|(_, kind)| kind)
    }
}

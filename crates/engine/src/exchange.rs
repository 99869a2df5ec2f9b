//! A dial or a request under way: what a connection needs only then.

use samples::breakdown;
use units::Nanos;

use crate::pool::NOTHING;

/// Marks the bytes of a message that began before ours was sent: no part of a response.
pub(crate) const NOT_OURS: u64 = u64::MAX;

/// One dial, and then one request and its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// When the dial, and then the request, was due.
    pub(crate) due: Nanos,
    /// When the dial was due, and then when the request was sent, or when the last message of its response came: connect time, and
    /// the timeout, count from here.
    pub(crate) started: Nanos,
    /// Length of the content that is expected; `u64::MAX` if any. Of a control ping: its payload.
    pub(crate) expected: u64,
    /// Content received.
    pub(crate) content: u64,
    /// The number of the message that was sent; of a call of gRPC, how many messages of its response have come; of another request, how
    /// many redirects were followed.
    pub(crate) nth: u32,
    /// The one that began next on the same session, where there is one.
    pub(crate) next: u32,
    /// The operation that it is.
    pub(crate) at: u16,
    /// How much of the text that is searched for has matched.
    pub(crate) found: u16,
    /// When the first part of the response arrived.
    pub(crate) begun: Begun,
    /// The first dial and the first request of a connection belong to the ramp's window.
    pub(crate) first: bool,
    /// The request that this dial is for, to be sent once connected.
    pub(crate) request: PendingRequest,
    /// The response lacks a field, or the echo is not what was sent.
    pub(crate) differs: bool,
}

const _: () = assert!(size_of::<Exchange>() <= 48, "each request under way has one");

/// Whether part of a response has arrived, and after how long: in a byte, to an octave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun(u8);

impl Begun {
    pub(crate) const NOT: Begun = Begun(0);

    /// The first byte came after this time.
    pub(crate) const fn after(time: Nanos) -> Begun {
        Begun(1 + breakdown::cell(time) as u8)
    }

    pub(crate) fn has(self) -> bool {
        self != Begun::NOT
    }

    /// The time of the first byte, as [`breakdown::cell`].
    pub(crate) fn cell(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }
}

/// Whether a dial is for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingRequest {
    No,
    /// For one that is due once the connection is open.
    OnceOpen,
    /// For one that is due.
    Due,
    /// For one that is due again, since it was withdrawn.
    Again,
}

impl PendingRequest {
    /// Whether the request is due, and in the books, before the connection is open.
    pub(crate) fn is_due(self) -> bool {
        matches!(self, PendingRequest::Due | PendingRequest::Again)
    }
}

impl Exchange {
    pub(crate) fn new(due: Nanos, started: Nanos) -> Exchange {
        Exchange {
            due,
            started,
            expected: u64::MAX,
            content: 0,
            nth: 0,
            next: NOTHING,
            at: 0,
            found: 0,
            begun: Begun::NOT,
            first: false,
            request: PendingRequest::No,
            differs: false,
        }
    }

    /// Whether a request is sent once this dial has a connection.
    pub(crate) fn has_request(&self) -> bool {
        self.request != PendingRequest::No
    }

    /// A message is awaited from here on; `is_between_messages`: no other one has come in part.
    pub(crate) fn await_message(&mut self, is_between_messages: bool) {
        (self.found, self.differs) = (0, false);
        self.content = if is_between_messages { 0 } else { NOT_OURS };
    }

    /// Content bytes of the response; a pong between the pieces of an unsolicited message has none.
    pub(crate) fn content(&self) -> u64 {
        if self.content == NOT_OURS { 0 } else { self.content }
    }
}

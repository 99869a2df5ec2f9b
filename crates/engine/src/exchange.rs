//! An exchange: a dial or a request under way, with what a connection needs only during it.

use samples::breakdown;
use units::Nanos;

use crate::pool::NOTHING;

/// Value of `content` in an [`Exchange`] for a message that began before throng's was sent: it is no part of a response.
pub(crate) const NOT_OURS: u64 = u64::MAX;

/// One dial, and then one request with its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// When the dial, and later the request, was due.
    pub(crate) due: Nanos,
    /// When the dial was due; later when the request was sent, or the last message of its response arrived. Connect time and the
    /// timeout run from here.
    pub(crate) started: Nanos,
    /// Expected content length, in octets; `u64::MAX`: any. For a control ping: its payload.
    pub(crate) expected: u64,
    /// Content received, in octets.
    pub(crate) content: u64,
    /// The number of the message sent; for a gRPC call, the number of response messages received; for another HTTP request, the
    /// number of redirects followed.
    pub(crate) nth: u32,
    /// Index of the exchange that began next on the same session; [`NOTHING`] if none.
    pub(crate) next: u32,
    /// Index of the operation.
    pub(crate) at: u16,
    /// State of the text search: octets matched.
    pub(crate) found: u16,
    /// Time to first byte.
    pub(crate) begun: Begun,
    /// Whether this is the first dial and first request of a connection: only those count for the ramp.
    pub(crate) first: bool,
    /// The request to send once this dial is connected.
    pub(crate) request: PendingRequest,
    /// The response lacks an expected field, or the echo differs from what was sent.
    pub(crate) differs: bool,
}

const _: () = assert!(size_of::<Exchange>() <= 48, "each request under way has one");

/// Whether part of a response has arrived, and its time to first byte, rounded to an octave: one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun(u8);

impl Begun {
    pub(crate) const NOT: Begun = Begun(0);

    /// The first byte arrived after this time.
    pub(crate) const fn after(time: Nanos) -> Begun {
        Begun(1 + breakdown::cell(time) as u8)
    }

    pub(crate) fn has(self) -> bool {
        self != Begun::NOT
    }

    /// The bucket of the time to first byte ([`breakdown::cell`]).
    pub(crate) fn cell(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }
}

/// Whether a dial is made for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingRequest {
    No,
    /// For a request that becomes due when the connection is open.
    OnceOpen,
    /// For a request that is due already.
    Due,
    /// For a withdrawn request, which is due again.
    Again,
}

impl PendingRequest {
    /// Whether the request is due, and counted as such, before the connection is open.
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

    /// Whether a request is sent once the dial is connected.
    pub(crate) fn has_request(&self) -> bool {
        self.request != PendingRequest::No
    }

    /// Begins to await a message; `is_between_messages`: no other message is incomplete.
    pub(crate) fn await_message(&mut self, is_between_messages: bool) {
        (self.found, self.differs) = (0, false);
        self.content = if is_between_messages { 0 } else { NOT_OURS };
    }

    /// Content octets of the response; 0 for a pong between the fragments of an unsolicited message.
    pub(crate) fn content(&self) -> u64 {
        if self.content == NOT_OURS { 0 } else { self.content }
    }
}

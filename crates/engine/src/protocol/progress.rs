//! What reading input brings.

use super::Reply;
use crate::failure::Failure;

/// The event that input brought, with the number of bytes used for it.
#[derive(Debug)]
pub(crate) enum Progress<'a> {
    /// Nothing: call again with more input.
    More(usize),
    /// The following input belongs to another stream, or to none: call again.
    Turned(usize),
    /// Part of the awaited response.
    Began(usize),
    /// gRPC: this number of messages of the awaited response is complete.
    Messages(usize, u32),
    /// The session is open.
    Opened(usize),
    /// The awaited response is complete.
    Responded(usize),
    /// The response will not come, and why; the connection continues.
    Failed(usize, Failure),
    /// The session was refused with this status.
    Refused(u16),
    /// The response will not come: the server announced the end of the session before acting on the request.
    Withdrawn(usize),
    /// An unsolicited message is complete.
    Pushed(usize),
    /// HTTP/2: the acknowledgement of the PING with this number, which no exchange awaits.
    Pong(usize, u64),
    /// The protocol itself has something to send.
    Reply(usize, Reply<'a>),
    /// The server announces the end of the session, with this text; the reply completes the closing handshake.
    Ending(Reply<'a>, &'a [u8]),
    /// The server ends an idle connection, as if by closing it.
    Left,
}

impl Progress<'_> {
    /// Number of bytes used of the `given` ones.
    pub(crate) fn used(&self, given: usize) -> usize {
        match self {
            Progress::More(n)
            | Progress::Turned(n)
            | Progress::Began(n)
            | Progress::Messages(n, _)
            | Progress::Opened(n)
            | Progress::Responded(n)
            | Progress::Failed(n, _)
            | Progress::Withdrawn(n)
            | Progress::Pushed(n)
            | Progress::Pong(n, _)
            | Progress::Reply(n, _) => *n,
            Progress::Refused(_) | Progress::Ending(..) | Progress::Left => given,
        }
    }

    /// Whether it is (part of) a response.
    pub(crate) fn is_of_response(&self) -> bool {
        matches!(self, Progress::Began(_) | Progress::Messages(..) | Progress::Responded(_))
    }
}

//! What came in.

use super::{Code, Head, Request, Stream, Trailers};

/// An input event. Those of a stream are about the one that [`reads`](super::Connection::reads) gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The peer's first SETTINGS: the connection is open. Reply with [`SETTINGS_ACK`](super::SETTINGS_ACK).
    Opened,
    /// Further SETTINGS. Reply with [`SETTINGS_ACK`](super::SETTINGS_ACK). Bodies that waited for a window may go on.
    Settings,
    /// The peer has acknowledged our SETTINGS: the [`Table`](super::Table) of this connection is not needed any more.
    SettingsAcked,
    /// Nothing was used: call again with a [`Table`](super::Table), and with the same one until [`Self::SettingsAcked`].
    TableNeeded,
    /// Client: an interim response, status 100 to 199; the final one is still to come.
    Interim(u16),
    /// Client: the head of the final response.
    Head(Head<'a>),
    /// Server: a request. Keep the stream if anything is to follow, on either side.
    Request(Request<'a>, Stream),
    /// A piece of a body.
    Data(Data<'a>),
    /// The fields behind a body, and the end of the message.
    Trailers(Trailers<'a>),
    /// The peer has reset the stream, which is closed. [`Code::REFUSED_STREAM`]: it has not been acted on.
    Reset(Code),
    /// The peer broke a rule of the stream with this number, or is refused it: reply with
    /// [`write_reset`](super::write_reset). The stream is closed.
    StreamError(u32, Code),
    /// More may be sent: on the stream with this number, or on all of them where it is 0.
    Window(u32),
    /// Reply with [`write_pong`](super::write_pong).
    Ping([u8; 8]),
    /// The reply to a ping.
    Pong([u8; 8]),
    /// The peer takes no new streams, and does not act on those above `last`; it closes the connection when the others have ended.
    Goaway {
        /// The highest stream that it may act on; 2^31-1 where it announces that it will say so later.
        last: u32,
        /// Why.
        code: Code,
        /// The same in words, as far as they have come.
        debug: &'a [u8],
    },
}

/// A piece of a body as it comes, wherever frames and reads have cut it. It is empty only where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// These bytes of the body.
    pub bytes: &'a [u8],
    /// The last piece; no trailers follow.
    pub ends: bool,
}

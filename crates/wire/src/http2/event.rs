//! Input events.

use super::{Code, Head, Request, Stream, Trailers};

/// An input event. Events of a stream concern the one that [`reads`](super::Connection::reads) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The peer's first SETTINGS: the connection is open. Reply with [`SETTINGS_ACK`](super::SETTINGS_ACK).
    Opened,
    /// Further SETTINGS. Reply with [`SETTINGS_ACK`](super::SETTINGS_ACK). Bodies that waited for a window may continue.
    Settings,
    /// The peer has acknowledged the SETTINGS of this end. A server does not need the [`Table`](super::Table) of the connection any more.
    SettingsAcked,
    /// Nothing was consumed: call again with a [`Table`](super::Table), and with the same one from then on, while
    /// [`has_table`](super::Connection::has_table) is true.
    TableNeeded,
    /// Client: an interim response, status 100 to 199; the final one is still expected.
    Interim(u16),
    /// Client: the head of the final response.
    Head(Head<'a>),
    /// Server: a request. Keep the stream if anything follows, in either direction.
    Request(Request<'a>, Stream),
    /// A part of a body.
    Data(Data<'a>),
    /// The trailers: the fields after a body, and the end of the message.
    Trailers(Trailers<'a>),
    /// The peer has reset the stream, which is closed. [`Code::REFUSED_STREAM`]: it was not processed.
    Reset(Code),
    /// The peer violated a rule of the stream with this number, or the stream is refused: reply with [`write_reset`](super::write_reset).
    /// The stream is closed.
    StreamError(u32, Code),
    /// More may be sent: on the stream with this number, or on all streams if it is 0.
    Window(u32),
    /// Reply with [`write_pong`](super::write_pong).
    Ping([u8; 8]),
    /// The peer's reply to a ping.
    Pong([u8; 8]),
    /// The peer accepts no new streams, and does not process those above `last`; it closes the connection when the others have ended.
    Goaway {
        /// The highest stream that it may process; 2^31-1 if it will announce the number later.
        last: u32,
        /// The reason.
        code: Code,
        /// The reason as text, as far as it has arrived.
        debug: &'a [u8],
    },
}

/// A part of a body as it arrives, cut at arbitrary positions by frames and reads. It is empty only if it ends the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether it is the last part, without trailers after it.
    pub ends: bool,
}

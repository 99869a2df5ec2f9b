//! HTTP/2 (RFC 9113), with WebSocket over it (RFC 8441): one machine for the client and the server role.
//!
//! A [`Connection`] is the state of a connection; a [`Stream`], kept by the caller, is the state of one request. Memory that is needed only
//! during a call is lent by the caller: a [`Scratch`] for all connections of a thread.
//!
//! # Input
//!
//! The loop of both roles: call [`reads`](Connection::reads) to learn which stream the input is for, find that stream, and call
//! [`handle_bytes`](Connection::handle_bytes) with it and all available bytes. It returns the number of bytes consumed and at most one
//! event. Call again with the remaining bytes until it returns `(0, None)`; keep the remaining bytes and pass them again with those that
//! follow. `(n, None)` with n > 0 is possible: call again. At most [`MAX_REST`] bytes remain: bodies are passed on as they arrive, while
//! heads and control frames must be complete.
//!
//! An error is a connection error: write a GOAWAY with its code and close. Errors of a single stream are events.
//!
//! # Client
//!
//! 1. Send [`CLIENT_PREFACE`]. [`Event::Opened`] is the server's reply; send [`SETTINGS_ACK`].
//! 2. Write a block of fields once with [`write_request_fields`] and [`write_field`] (and [`write_path`] for a part that differs
//!    each time). While [`has_place`](Connection::has_place),
//!    [`write_request`](Connection::write_request) writes the block as a request and returns the stream to keep;
//!    [`write_data`](Connection::write_data) writes its body, as far as the windows allow, again at [`Event::Window`].
//! 3. The response is [`Event::Head`], any number of [`Event::Data`], and [`Event::Trailers`] if the data did not end it.
//!    [`cancel`](Connection::cancel) resets the stream.
//! 4. After each call, [`take_stream_credit`](Connection::take_stream_credit) and [`take_credit`](Connection::take_credit) return
//!    whether a window update is due.
//!
//! # Server
//!
//! 1. [`starts`] distinguishes HTTP/2 from HTTP/1. Send [`SERVER_PREFACE`] at once and pass all input, including the client's preface.
//! 2. A request is [`Event::Request`], [`Event::Data`] and [`Event::Trailers`]; a client that uses the dynamic table before it
//!    has the server's SETTINGS costs a [`Table`] until [`Event::SettingsAcked`].
//! 3. [`write_response_fields`] and [`write_headers`](Connection::write_headers) write the head of the response,
//!    [`write_data`](Connection::write_data) its body.
//! 4. [`goaway`](Connection::goaway) begins the end: later requests are refused.
//!
//! # Limits
//!
//! Each limit is a constant here. Exceeding one leads to [`Code::ENHANCE_YOUR_CALM`] or [`Code::REFUSED_STREAM`], never to growth. A caller
//! that leaves input unconsumed while its output is blocked never queues replies.

mod code;
mod connection;
mod dissect;
mod event;
mod frame;
mod head;
mod hpack;
mod huffman;
mod preface;
mod settings;
mod stream;
mod write;

pub use code::Code;
pub use connection::{Connection, Context, Method, Scratch};
pub use dissect::{Dissector, Part};
pub use event::{Data, Event};
pub use frame::{SETTINGS_ACK, write_goaway, write_ping, write_pong, write_reset, write_window_update};
pub use head::{Grpc, Head, MAX_EXPECTED, Request, TakesFields, Trailers};
pub use hpack::{Table, write_field};
pub use preface::{CLIENT_PREFACE, SERVER_PREFACE, starts};
pub use stream::Stream;
pub use write::{
    RequestFields, Response, write_content_length, write_path, write_request_fields, write_response_fields,
};

/// The role of the end of the connection that this machine implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that connected and sends requests.
    Client,
    /// The end that accepted.
    Server,
}

/// Maximum payload of a frame that is accepted, in bytes: the value that applies without SETTINGS (section 6.5.2).
pub const MAX_FRAME: usize = 16 * 1024;

/// Maximum size of a field list in bytes, with 32 bytes of overhead per field (section 6.5.2). It is announced to the peer, and limits the
/// expansion of a block that refers to long fields. Twice [`http1::MAX_HEAD`](crate::http1::MAX_HEAD), so that the overhead does not make
/// it refuse a head that HTTP/1 accepts.
pub const MAX_LIST: usize = 32 * 1024;

/// Maximum length of an encoded field block in bytes, all its frames together. No reasonable encoding is longer than its list.
pub const MAX_BLOCK: usize = MAX_LIST;

/// Maximum number of CONTINUATION frames of a block. One is enough for any block that is accepted; the others allow for senders that write
/// small frames.
pub const MAX_CONTINUATIONS: usize = 16;

/// Maximum number of input bytes that remain unconsumed: a block, and the headers, padding and priority of its frames.
pub const MAX_REST: usize = MAX_BLOCK + 256 + 5 + (1 + MAX_CONTINUATIONS) * 9;

/// Maximum number of simultaneous streams per connection that a server accepts. RFC 9113 recommends at least 100; load tests need more.
pub const MAX_STREAMS: u32 = 256;

/// Maximum number of streams that a client opens before it knows the server's limit: the minimum that section 6.5.2 recommends to servers.
pub const INITIAL_STREAMS: u32 = 100;

/// Maximum number of streams that a client may open and reset, or make the server reset, per second ("rapid reset", CVE-2023-44487). That
/// is several times what a client does whose requests all time out at once; beyond it, the work for abandoned requests is an attack.
pub const MAX_RESETS: u16 = 1024;

/// Maximum number of frames per second that a server accepts from a client and that carry no message but cost the receiver more than the
/// sender: SETTINGS, PING, PRIORITY, unknown frames, empty DATA, fields of closed streams. A keep-alive or a latency measurement sends few.
/// Not applied by a client: servers reset each stream that they have responded to early (section 8.1), and may send frames that are
/// ignored with each response.
pub const MAX_CONTROLS: u16 = 2048;

/// A client's receive window per stream, in bytes. A client stores no body, so the window protects nothing: it exceeds the bandwidth-delay
/// product of 10 Gbit/s and 10 ms (12.5 MB), so that the server never waits for it.
pub const CLIENT_STREAM_WINDOW: u32 = 16 << 20;

/// A client's receive window for the connection, in bytes: 64 streams at full speed.
pub const CLIENT_WINDOW: u32 = 1 << 30;

/// A server's receive window per stream, in bytes, which limits what an echo stores for a client that does not read: the value that applies
/// without SETTINGS.
pub const SERVER_STREAM_WINDOW: u32 = 65_535;

/// A server's receive window for the connection, in bytes: the windows of all its streams.
pub const SERVER_WINDOW: u32 = MAX_STREAMS * SERVER_STREAM_WINDOW;

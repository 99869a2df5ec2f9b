//! HTTP/2 (RFC 9113), with WebSocket over it (RFC 8441): one machine for the client's and the server's role.
//!
//! A [`Connection`] is what is kept of a connection, a [`Stream`] what is kept of each request under way, by the caller.
//! Memory that only lasts for a call is lent: a [`Scratch`] for all connections of a thread.
//!
//! # Input
//!
//! The loop of both roles: ask [`reads`](Connection::reads) which stream the input is for, find it, and call
//! [`handle_bytes`](Connection::handle_bytes) with it and all available bytes. That returns how many it consumed and at most
//! one event. Call again with what is left until it returns `(0, None)`; keep the rest and pass it again with the bytes that
//! follow. `(n, None)` with n > 0 is possible: call again. The rest is never longer than [`MAX_REST`]: a body is passed on as it
//! comes, heads and control frames come whole.
//!
//! An error is the connection's: write a GOAWAY with its code and close. What only concerns a stream is an event.
//!
//! # Client
//!
//! 1. Send [`CLIENT_PREFACE`]. [`Event::Opened`] is the server's reply; send [`SETTINGS_ACK`].
//! 2. Write a block of fields once with [`write_request_fields`] and [`write_field`] (and [`write_path`] for a part that differs
//!    each time). While [`has_place`](Connection::has_place),
//!    [`write_request`](Connection::write_request) writes the block as a request and returns the stream to keep;
//!    [`write_data`](Connection::write_data) writes its body, as far as the windows allow, again at [`Event::Window`].
//! 3. The response is [`Event::Head`], any [`Event::Data`], and [`Event::Trailers`] if the data did not end it.
//!    [`cancel`](Connection::cancel) gives it up.
//! 4. After each call, [`take_stream_credit`](Connection::take_stream_credit) and [`take_credit`](Connection::take_credit) say
//!    whether a window update is due.
//!
//! # Server
//!
//! 1. [`starts`] tells HTTP/2 from HTTP/1. Send [`SERVER_PREFACE`] at once and pass all input, the client's preface included.
//! 2. A request is [`Event::Request`], [`Event::Data`] and [`Event::Trailers`]; a client that uses the dynamic table before it
//!    knows our SETTINGS costs a [`Table`] until [`Event::SettingsAcked`].
//! 3. [`write_response_fields`] and [`write_headers`](Connection::write_headers) write the head of the response,
//!    [`write_data`](Connection::write_data) its body.
//! 4. [`goaway`](Connection::goaway) at the end: requests that come after it are refused.
//!
//! # Limits
//!
//! Each is a constant here. Reaching one is [`Code::ENHANCE_YOUR_CALM`] or [`Code::REFUSED_STREAM`], never growth. A caller that
//! leaves input alone while its output is blocked never queues replies.

mod code;
mod connection;
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
pub use connection::{Connection, Context, Method, Scratch, TakesFields};
pub use event::{Data, Event};
pub use frame::{SETTINGS_ACK, write_goaway, write_ping, write_pong, write_reset, write_window_update};
pub use head::{Grpc, Head, MAX_EXPECTED, Request, Trailers};
pub use hpack::{Table, write_field};
pub use preface::{CLIENT_PREFACE, SERVER_PREFACE, starts};
pub use stream::Stream;
pub use write::{
    RequestFields, Response, write_content_length, write_path, write_request_fields, write_response_fields,
};

/// Which end of the connection reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that connected and sends requests.
    Client,
    /// The end that accepted.
    Server,
}

/// The longest payload of a frame that is accepted, in bytes: what holds without SETTINGS (section 6.5.2).
pub const MAX_FRAME: usize = 16 * 1024;

/// The longest list of fields in bytes, each with 32 bytes of overhead (section 6.5.2). This is announced, and it bounds what a block of
/// references to long fields can mean. Twice [`http1::MAX_HEAD`](crate::http1::MAX_HEAD), so that the overhead does not refuse a
/// head that HTTP/1 takes.
pub const MAX_LIST: usize = 32 * 1024;

/// The longest block of encoded fields in bytes, all its frames together: no encoding that a sender would choose is longer than
/// its list.
pub const MAX_BLOCK: usize = MAX_LIST;

/// The most CONTINUATION frames of a block. One would do for any block that is accepted; the others are for senders that
/// write small frames.
pub const MAX_CONTINUATIONS: usize = 16;

/// The longest rest of input in bytes that is left unconsumed: a block, and the headers, padding and priority of its frames.
pub const MAX_REST: usize = MAX_BLOCK + 256 + 5 + (1 + MAX_CONTINUATIONS) * 9;

/// Streams that a server has open at one time, per connection. 100 is the least that RFC 9113 recommends; a load test wants more.
pub const MAX_STREAMS: u32 = 256;

/// Streams that a client opens before it knows the server's limit: the least that section 6.5.2 recommends to servers.
pub const INITIAL_STREAMS: u32 = 100;

/// Streams that a client may open and reset in a second, or make the server reset ("rapid reset", CVE-2023-44487): several
/// times what a client does whose requests all time out at once. Past that the work for requests that nobody waits for is an
/// attack.
pub const MAX_RESETS: u16 = 1024;

/// Frames in a second that cost the sender less than the receiver and carry no message: SETTINGS, PING, PRIORITY, unknown ones,
/// DATA without a byte, fields and resets of streams that are closed. A keep-alive or a measurement of latency sends a
/// few. A client counts only those that it has to reply to: servers reset each stream that they have responded to
/// early (section 8.1), and may send frames that are ignored with each response.
pub const MAX_CONTROLS: u16 = 2048;

/// A client's window for each stream in bytes. A client stores no body, so that a window protects nothing: it is larger than the
/// bandwidth-delay product of 10 Gbit/s and 10 ms (12.5 MB), and the server never waits for it.
pub const CLIENT_STREAM_WINDOW: u32 = 16 << 20;

/// A client's window for all streams in bytes: as a stream's, for 64 of them at full speed.
pub const CLIENT_WINDOW: u32 = 1 << 30;

/// A server's window for each stream in bytes, and so the most that an echo stores for a client that reads nothing: what holds
/// without SETTINGS.
pub const SERVER_STREAM_WINDOW: u32 = 65_535;

/// A server's window for all streams in bytes: all of a client's streams at once.
pub const SERVER_WINDOW: u32 = MAX_STREAMS * SERVER_STREAM_WINDOW;

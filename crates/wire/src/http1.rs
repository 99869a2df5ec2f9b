//! HTTP/1.1 and 1.0 (RFC 9112), in the client and the server role.
//!
//! Both roles are driven in the same way. Call `handle_bytes` with all available bytes; it returns how many it consumed and at most one
//! event, which borrows them. Call again with the remaining bytes, even if there are none (`End` needs no byte), until it returns
//! `(0, None)`; keep the remaining bytes and pass them again with those that follow. `(n, None)` with n > 0 is possible (framing without
//! a body byte after it): call again.
//!
//! A head is parsed again each time it is passed, because nothing is stored; [`MAX_HEAD`] limits what a slow peer can cost in memory and
//! time.

mod body;
mod client;
mod event;
pub(crate) mod head;
mod server;
mod target;
mod write;

pub use client::{Client, Head};
pub use event::Event;
pub use head::each_field;
pub use server::{Request, Server};
pub use target::query;
pub(crate) use write::begin_request;
pub use write::{Response, write_request, write_response};

/// Maximum length of a head in bytes, including the start line and the final empty line; also that of a trailer section.
pub const MAX_HEAD: usize = 16 * 1024;

/// Maximum number of header fields in a head.
pub const MAX_FIELDS: usize = 256;

/// Maximum length of a chunk-size line in bytes, including extensions and the line end.
pub const MAX_CHUNK_LINE: usize = 1024;

/// The interim response to a client that waits for it before it sends the body (RFC 9110, section 10.1.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

//! HTTP/1.1 and 1.0 (RFC 9112): the client and the server role, side by side.
//!
//! Both roles are driven by the same loop. Call `handle_bytes` with all available bytes; it returns how many it consumed
//! and at most one event, which borrows them. Call again with what is left, even if that is nothing (`End` needs no byte of
//! its own), until it returns `(0, None)`; keep the rest and pass it again with the bytes that follow. `(n, None)` with n >
//! 0 is possible (framing without a body byte after it): call again.
//!
//! A head is parsed again each time it is passed, because nothing is stored; [`MAX_HEAD`] bounds what a slow peer can cost
//! in memory and time.

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

/// The longest head in bytes, start line and final empty line included; a trailer section may be as long.
pub const MAX_HEAD: usize = 16 * 1024;

/// The most header fields in one head.
pub const MAX_FIELDS: usize = 256;

/// The longest chunk-size line in bytes, extensions and line end included.
pub const MAX_CHUNK_LINE: usize = 1024;

/// What a server sends to a request that waits before it sends its body (RFC 9110 section 10.1.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

//! WebSocket (RFC 6455): the client and the server role, without extensions.
//!
//! The handshake is functions over whole heads: a client writes with [`write_upgrade`] and reads with [`read_response`], a
//! server finds an [`Offer`] in [`http1::Request`](crate::http1::Request) and responds with [`write_accept`].
//!
//! After it, [`Frames`] reads what the peer sends. It is driven like the machines of [`http1`](crate::http1): call
//! `handle_bytes` with all available bytes, and again with what is left, until it returns `(0, None)`; keep the rest and
//! pass it again with the bytes that follow. `(n, None)` with n > 0 is possible: call again. The rest is never longer than
//! a control frame.

mod frames;
mod handshake;
mod header;
mod payload;
mod utf8;
mod write;

pub use crate::offer::Offer;
pub use frames::{Closing, Data, Event, Frames};
pub use handshake::{Key, Response, accept_key, is_offered, read_response, write_accept, write_upgrade};
pub use header::{Header, Opcode, Role};
pub use payload::{Payload, mask};
pub use write::{write_close, write_frame, write_header};

/// The longest frame header in bytes: two, a length of eight, a mask of four (section 5.2).
pub const MAX_HEADER: usize = 14;

/// The longest payload of a control frame in bytes (section 5.5).
pub const MAX_CONTROL: usize = 125;

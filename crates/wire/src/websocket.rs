//! WebSocket (RFC 6455), in the client and the server role, without extensions.
//!
//! The handshake consists of functions on complete heads: a client uses [`write_upgrade`] and [`read_response`]; a server finds an
//! [`Offer`] in [`http1::Request`](crate::http1::Request) and responds with [`write_accept`].
//!
//! After it, [`Frames`] reads the peer's frames. It is driven like the machines of [`http1`](crate::http1): call `handle_bytes` with all
//! available bytes, and again with the remaining bytes, until it returns `(0, None)`; keep these and pass them again with the bytes that
//! follow. `(n, None)` with n > 0 is possible: call again. At most a control frame remains.

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

/// Maximum length of a frame header in bytes: 2, a length of 8, a mask of 4 (section 5.2).
pub const MAX_HEADER: usize = 14;

/// Maximum payload of a control frame in bytes (section 5.5).
pub const MAX_CONTROL: usize = 125;

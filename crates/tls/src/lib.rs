//! TLS 1.3 and 1.2 (RFC 8446, RFC 5246) as a [`net::Layer`]: rustls does the handshake, then its connection is given up. What is
//! kept of an open connection is its secrets and record numbers, 120 bytes; records are sealed and opened by [`record`].
//!
//! ```text
//!  open ─► Handshake (rustls, a few KB, in a slab of its own) ─► Held (secrets and numbers) ─► end
//!                                                                  │
//!                                                      Keys, derived when a record comes or goes, kept for a while
//! ```
//!
//! No socket and no file: bytes come in and go out, certificates come as PEM text.

mod certificate;
mod client;
mod error;
mod handshake;
mod keys;
mod layer;
mod messages;
mod pem;
mod provider;
mod record;
mod server;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod shares;
mod tickets;
mod verify;
mod warm;

pub use client::{Client, Versions};
pub use error::Error;
pub use layer::{Tls, trial};
pub use pem::Identity;
pub use server::Server;

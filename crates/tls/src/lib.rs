//! TLS 1.3 and 1.2 (RFC 8446, RFC 5246) as a [`net::Layer`]. rustls performs the handshake, and its connection object is then dropped. An
//! open connection keeps only its secrets and record numbers, 120 bytes; [`record`] seals and opens its records.
//!
//! ```text
//!  open ─► Handshake (rustls, a few KB, in a separate table) ─► Held (secrets and numbers) ─► end
//!                                                                 │
//!                                                     Keys, derived for each record that is sent or received, cached for busy connections
//! ```
//!
//! The crate opens no socket and no file: callers pass bytes, and certificates as PEM text.

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

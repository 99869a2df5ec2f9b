//! Samples of the target's host if it is another machine: `throng observe` serves them there, a run requests them from
//! here, once a second.
//!
//! Plain HTTP/1.1 on a kept connection, read only: the response to `GET /observe?port=8000` with `Authorization: Bearer
//! TOKEN` (RFC 6750 section 2.1) is a [`samples::Sample`] as JSON. The token can be read on the network: across an untrusted
//! one, use `ssh -L`.

mod client;
mod server;
mod tls;
mod token;

pub use client::{Poller, fetch, open_connections};
pub use server::{MAX_PORTS, Server};
pub use tls::speaks_tls;
pub use token::Token;

use units::Nanos;

/// Maximum time that one side waits for the other, excluding the connection setup.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// Idle timeout of a connection.
const KEPT: Nanos = Nanos::from_secs(60);

#[cfg(test)]
mod tests;

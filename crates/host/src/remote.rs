//! The target's host, when it is another one: `throng observe` answers there what a run asks from here, once a second.
//!
//! Plain HTTP/1.1 on a connection that is kept, read only: `GET /observe?port=8000` with `Authorization: Bearer TOKEN`
//! (RFC 6750 section 2.1) is answered with a [`samples::Look`] as JSON. Whoever can read the network can read the token:
//! across one that is not trusted, let `ssh -L` carry it.

mod client;
mod server;
mod tls;
mod token;

pub use client::{Poller, fetch, open_connections};
pub use server::Server;
pub use tls::speaks_tls;
pub use token::Token;

use units::Nanos;

/// The longest that one side waits for the other, connecting apart.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// A connection is kept this long after an answer for the next question.
const KEPT: Nanos = Nanos::from_secs(60);

#[cfg(test)]
mod tests;

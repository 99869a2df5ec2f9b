//! The target's host, when it is another one: `throng observe` answers there what a run asks from here, once a second.
//!
//! Plain HTTP/1.1, one request a connection, read only: `GET /observe?port=8000` with `Authorization: Bearer TOKEN`
//! (RFC 6750 section 2.1) is answered with a [`samples::Look`] as JSON. Whoever can read the network can read the token:
//! across one that is not trusted, let `ssh -L` carry it.

mod client;
mod server;
mod token;

pub use client::{Poller, fetch, open_connections};
pub use server::Server;
pub use token::Token;

use std::{
    io::{self, ErrorKind, Read},
    net::TcpStream,
    time::Duration,
};
use units::{Clock, Nanos};

/// The longest that one side waits for the other, connecting apart.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// Reads until `is_all` or the end of the stream, `most` bytes and [`PATIENCE`] at most.
fn read_until(
    stream: &mut TcpStream,
    most: usize,
    mut is_all: impl FnMut(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let clock = Clock::start();
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while !is_all(&bytes) {
        // A peer that dribbles has no more time than one that sends at once.
        let left = PATIENCE.since(clock.now());
        if left == Nanos::ZERO {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(Duration::from_nanos(left.0)))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(n) if bytes.len() + n > most => return Err(ErrorKind::FileTooLarge.into()),
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(e) => return Err(e),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;

//! TCP for connections that are dialled from here (RFC 9293): packets and the time in, packets and events out. No socket, no clock, no
//! file, and no randomness but the secret in [`Settings`].
//!
//! A connection on which nothing is under way costs a place of 24 bytes and its slot in an index. What is unacknowledged, out of order or
//! timed belongs to a flight, which exists only as long as there is something under way.

mod checksum;
mod connection;
mod event;
mod flight;
mod inbound;
mod link;
mod packet;
mod path;
mod send_queue;
mod seq;
mod table;
mod tcp;

pub use event::{Event, What, Why};
pub use link::{Link, Outgoing};
pub use tcp::{Close, Counts, Refusal, Settings, Stuck, Tcp};

//! TCP for connections that are dialled from here (RFC 9293), as a state machine: packets and the time go in, packets and events come
//! out. It has no socket, clock or file, and no randomness except the secret in [`Settings`].
//!
//! An idle connection costs a record of 24 bytes and its slots in an index. Unacknowledged data, data out of order and timers belong to
//! a *flight*, which exists only while something is in flight on the connection.

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

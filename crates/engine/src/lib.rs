//! The client side of the load: dials, holds and exercises connections, and counts what happens to them.
//!
//! [`Client`] is a [`net::Program`]; each shard runs a [`plan::Part`] of the load. [`pacer`] determines when something is due,
//! [`connections`] stores connections between events, [`op`] is what they do next, and [`Job`] what all of them share. Nothing
//! here does I/O or reads a clock.

mod captures;
mod check;
mod client;
mod coding;
mod connections;
mod cookies;
mod drawn;
mod exchange;
mod expects_tls;
mod failure;
mod full_load;
mod job;
mod json;
mod lateness;
mod link;
mod location;
mod memory;
mod needle;
mod op;
mod out;
pub mod pace;
mod pacer;
mod pool;
mod protocol;
mod pushes;
mod request;
mod secured;
mod transcriber;
mod watch;

pub use client::{Client, fault_of};
pub use failure::Failure;
pub use job::Job;
pub use link::{Arrivals, Control, Link, Remote, links};
pub use memory::Memory;
pub use out::Writer;
pub use pace::RateProfile;
pub use pacer::DialRate;
pub use protocol::{Came, SessionState, Sessions, TargetProtocol};
pub use secured::{secured, tls_fault};
pub use transcriber::Transcriber;

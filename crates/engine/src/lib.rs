//! The client: dials, holds and exercises connections, and counts what happens to them.
//!
//! [`Client`] is a [`net::Program`]; a shard of it takes a [`plan::Part`] of the load. [`pace`] says when to
//! dial, [`conn`] what a connection is between events, [`Job`] what is the same for all of them.

mod client;
mod conn;
mod exchange;
mod job;
mod link;
pub mod pace;
mod protocol;
mod ramp;
mod rotation;
mod slots;

pub use client::Client;
pub use job::Job;
pub use link::{Arrivals, Control, Link, Remote, links};

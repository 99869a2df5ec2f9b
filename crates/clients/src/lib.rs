//! Individually controlled WebSocket clients, for curl: an HTTP API of an agent opens them, sends texts on them and closes them.
//!
//! ```text
//! curl ─► api ─► Clients ─► order ─► ClientShard (a net::Program, on the one loop)
//!               allow list,          dial, upgrade, a text ping each 30 s, silence
//!               caps, names   ◄───── View, Tick
//! ```
//!
//! The clients of a run follow one plan and are only counted; these are resources, each with a number and its last texts. They
//! share the loop, the sessions ([`engine::Sessions`]) and the local addresses with the engine, but neither its schedules nor its
//! 16-byte records.

mod api;
mod client;
mod clients;
mod form;
mod history;
mod order;
mod place;
mod shard;
mod target;
mod threads;

pub use api::Api;
pub use clients::{Clients, Limits, Resolve};

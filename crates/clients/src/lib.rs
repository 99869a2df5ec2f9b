//! WebSocket clients that are held one by one, for curl: an HTTP API on an agent opens them, sends texts on them and closes them.
//!
//! ```text
//! curl ─► api ─► Clients ─► order ─► ClientShard (a net::Program, on the one loop)
//!               allow list,          dial, upgrade, a text ping each 30 s, silence
//!               caps, names   ◄───── View, Tick
//! ```
//!
//! A run's clients follow a plan together and are counted; these are resources, each with a number and its last texts. They share
//! the loop, the protocol and the local addresses with the engine, not its records of 16 bytes.

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

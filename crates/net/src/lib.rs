//! Sockets, and only sockets: keys, timers and **the one loop** that drives a [`Program`] over an [`Io`].
//!
//! ```text
//!        ┌────────────── Shard::turn ──────────────┐
//!  Io ──►│ wait ─► timers due ─► what is done ─► pace │──► Program
//!        └──────────────────────────────────────────┘
//! ```
//! Two programs exist, the client (`engine`) and the reference server (`serve`); two fills of [`Io`] exist,
//! the kernel's io_uring and an in-memory network with virtual time.

pub mod io;
mod listeners;
mod machine;
mod shard;
mod slab;
mod wheel;

pub use io::{Close, Done, Gone, Io, Scratch, What};
pub use listeners::{Listening, listening};
pub use machine::{raise_open_files, route_source, sharpen_timers};
pub use shard::{Cx, Program, Shard};
pub use slab::{Key, Slab};
pub use wheel::Wheel;

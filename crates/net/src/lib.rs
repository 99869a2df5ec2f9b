//! Sockets, timers and **the one loop**, which drives a [`Program`] over a transport ([`Io`]). This crate knows no protocol.
//!
//! ```text
//!        ┌────────────── Shard::turn ──────────────┐
//!  Io ──►│ wait ─► timers due ─► what is done ─► pace │──► Program
//!        └──────────────────────────────────────────┘
//! ```
//! There are three programs, the client (`engine`), the clients of the control API (`clients`) and the reference server (`serve`), and
//! four implementations of [`Io`]: io_uring, epoll for machines where io_uring is not allowed, throng's TCP over a TUN device, and an
//! in-memory network in virtual time.

mod diag;
mod echo;
mod icmp;
pub mod io;
mod layer;
mod listeners;
mod machine;
mod segments;
mod shard;
mod slab;
mod tap;
mod trial;
mod wheel;

pub use echo::echo_ttl;
pub use icmp::Icmp;
pub use io::{Backend, Close, Done, Gone, Io, Scratch, What, socket::check_free};
pub use layer::{Inner, Layer, Layered, Opening, Unsealed, send, send_deferred, send_static};
pub use listeners::{
    End, Listening, dialled, established, established_at, listening, refuses, unaccepted_at,
};
pub use machine::{SharedListener, block_signals, own_open_files, probe_own_open_files};
pub use machine::{raise_open_files, route_source, sharpen_timers};
pub use segments::{Segments, segments_to};
pub use shard::{Cx, PIECE, Program, Shard};
pub use slab::{Key, Slab};
pub use tap::{Control, Tap};
pub use trial::{DialOutcome, try_dial};

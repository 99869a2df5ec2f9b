//! The reference servers, built on the same `net` and `wire` as the client: throng measures itself against them.

mod acceptor;
mod counters;
mod delay;
mod http;
mod http2;
mod knobs;
mod layered;
mod out;
mod push;
mod routes;
mod shard;
mod threads;
mod websocket;

pub use counters::{Counters, Stats};
pub use delay::Delay;
pub use http::Http;
pub use knobs::Knobs;
pub use shard::{Handler, ServerShard};
pub use threads::{Server, Service, Settings};

//! The reference servers, on the same `net` and `wire` as the client: what throng measures itself against.

mod counters;
mod http;
mod threads;

pub use counters::{Counters, Stats};
pub use http::Http;
pub use threads::{Server, Settings};

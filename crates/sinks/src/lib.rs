//! Where a run goes: one file for each kind of consumer.

mod cost;
mod line;
mod summary;

pub use line::{Classic, Line};
pub use summary::{json, text};

//! Where a run goes: one file for each kind of consumer.

mod cost;
pub mod format;
mod hlog;
mod line;
mod summary;

pub use hlog::{Hlog, HlogFile};
pub use line::{Classic, Line};
pub use summary::{json, text, verdict};

//! Where a run goes: one file for each kind of consumer.

mod cost;
mod find;
pub mod format;
mod hlog;
mod line;
mod populations;
mod summary;

pub use find::{find_json, find_line, find_text};
pub use hlog::{Hlog, HlogFile};
pub use line::{Classic, Line};
pub use summary::{json, text, verdict};

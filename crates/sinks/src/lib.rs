//! Where a run goes: one file for each kind of consumer.

mod calibration;
mod cost;
mod exporters;
mod find;
pub mod format;
mod hlog;
mod line;
mod metrics;
mod populations;
mod rows;
mod store;
mod summary;
mod terminal;

pub use calibration::{calibration_json, calibration_text};
pub use exporters::{Behind, Exporters, InfluxServer, Remains};
pub use find::{find_json, find_line, find_text};
pub use hlog::{Hlog, HlogFile};
pub use line::{Classic, Line};
pub use store::{Keeper, Kept, Store, StoreTrouble, StoredRun, Tell, runs_json, runs_text};
pub use summary::{json, text, verdict};
pub use terminal::{Terminal, keep_for_later, restore_terminal};

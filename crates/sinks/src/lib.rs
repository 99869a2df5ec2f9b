//! Where a run goes: one file for each kind of consumer.

mod background;
mod calibration;
pub mod compare;
mod cost;
mod dashboard;
mod exporters;
mod find;
pub mod format;
mod history;
mod hlog;
mod line;
mod messages;
mod metrics;
mod populations;
mod report;
mod rows;
mod store;
mod summary;
mod terminal;
mod web;

pub use background::BackgroundFile;
pub use calibration::{calibration_json, calibration_text};
pub use dashboard::{Dashboard, Opens};
pub use exporters::{Behind, Exporters, Form, PushServer, Remains};
pub use find::{find_json, find_line, find_text};
pub use hlog::{Hlog, HlogFile};
pub use line::{Classic, Line};
pub use messages::{Messages, flush_messages, message};
pub use report::{Report, report_html, report_json};
pub use store::{Keeper, Kept, Store, StoreTrouble, StoredRun, Tell, runs_json, runs_text};
pub use summary::{json, text, verdict};
pub use terminal::{Terminal, keep_for_later, restore_terminal};

//! Presentation of runs: the live view, web pages, reports, text and JSON.

mod agents;
mod calibration;
pub mod compare;
mod cost;
mod dashboard;
mod differences;
mod find;
pub mod format;
mod har;
mod history;
mod junit;
mod line;
mod messages;
mod report;
mod runs;
mod summary;
mod table;
mod terminal;
mod transcript;
mod ui;

pub use calibration::{calibration_json, calibration_text};
pub use dashboard::{Change, Dashboard, Feed, Followed, LIVE_PAGE, Opens, page_headers};
pub use differences::Responses;
pub use find::{find_junit, find_line, find_next, find_text};
pub use har::Har;
pub use junit::junit;
pub use line::{Classic, Line};
pub use messages::{Messages, flush_messages, message};
pub use report::{
    Report, ReportFormat, job_summary, report_html, report_json, search_report_html, search_report_json,
};
pub use runs::{examples_text, runs_json, runs_text};
pub use summary::{json, text, verdict};
pub use table::aligned;
pub use terminal::{Terminal, keep_for_later, restore_terminal};
pub use transcript::coloured;
pub use ui::{LoadArgs, Ui};

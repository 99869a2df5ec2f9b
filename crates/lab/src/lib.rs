//! Labs: real servers, and the published experiments against them. A lab is a folder with a `lab.toml`. The crate runs its servers
//! and the clients as processes, stores the results, and compares them with the published figures.

mod across;
mod agents;
mod case;
mod clients;
mod combined;
mod curve;
mod document;
mod drift;
mod error;
mod experiment;
mod figure;
mod file;
mod group;
mod load;
mod log;
mod needs;
mod outcome;
mod pauses;
mod picture;
mod process;
mod report;
mod side_by_side;
mod soak;
mod source;
mod table;
mod template;
mod trial;
mod workspace;

pub use case::Case;
pub use document::Page;
pub use error::Error;
pub use experiment::{Experiment, is_scale};
pub use file::{Lab, Server, Source, labs};
pub use needs::missing;
pub use outcome::{Outcome, Subject};
pub use process::Running;
pub use report::{compare_json, compare_text, trial_text};
pub use soak::Soak;
pub use source::to_clone;
pub use template::Environment;
pub use trial::{Elsewhere, REPEATS, Runner};
pub use workspace::throng;

//! Real servers and the experiments of the source texts: what a lab's folder says, its server as processes, and then
//! against now.

mod across;
mod curve;
mod document;
mod drift;
mod experiment;
mod figure;
mod file;
mod log;
mod needs;
mod outcome;
mod pauses;
mod picture;
mod process;
mod source;
mod table;
mod template;

pub use across::{HEAD as ACROSS_HEAD, across};
pub use curve::{Second, Stretch, stretches};
pub use document::{Group, Page, groups};
pub use drift::{DRIFT_HEAD, Drift, drifts};
pub use experiment::{Experiment, SCENARIO, Then, Trial};
pub use figure::micros;
pub use file::{Lab, Plot, Server, Source, labs};
pub use needs::missing;
pub use outcome::{Machine, Outcome, SCHEMA, Subject};
pub use pauses::{Pause, pauses};
pub use process::{Folders, Running, Stopped};
pub use source::{source_folder, to_clone};
pub use table::{Spread, figures, now_head, then_and_now, wide};
pub use template::{Times, Values};

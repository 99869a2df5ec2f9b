//! Real servers and the experiments of the source texts: what a lab's folder says, its server as processes, and then
//! against now.

mod experiment;
mod file;
mod needs;
mod process;
mod table;
mod template;

pub use experiment::{Experiment, SCENARIO, Trial};
pub use file::{Lab, Server, labs};
pub use needs::missing;
pub use process::{Running, Stopped};
pub use table::{then_and_now, wide};
pub use template::Values;

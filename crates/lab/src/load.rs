//! What loads the server in a trial.

use std::{path::Path, sync::atomic::AtomicBool};

use serde_json::Value;

use crate::{curve::Second, error::Error};

/// A load in progress, of other processes.
pub(crate) trait Load {
    /// What the processes were given, without outputs.
    fn args(&self) -> Vec<String>;

    /// Waits for the end. `meanwhile` is called between two looks at it.
    fn wait(&mut self, stop: &AtomicBool, meanwhile: &mut dyn FnMut(&mut dyn Load));

    /// Seconds so far, from this one on.
    fn seconds(&mut self, from: usize) -> Vec<Second>;

    /// The summary and the seconds, once it has ended. `store`: the run store that has its runs.
    fn results(&mut self, store: Option<&Path>) -> Result<(Value, Vec<Second>), Error>;
}

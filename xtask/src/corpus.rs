//! `cargo xtask corpus`: judges the stored runs of the corpus by the rules of this version.

use crate::command::cargo;
use anyhow::Result;

/// Runs the test that judges all stored runs and prints the table.
pub(crate) fn run(_: &[String]) -> Result<()> {
    cargo(&["test", "--quiet", "-p", "judge", "--test", "corpus", "--", "--nocapture"])
}

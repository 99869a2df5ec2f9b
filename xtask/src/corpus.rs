//! `cargo xtask corpus`

use crate::command::cargo;
use anyhow::Result;

/// Judges all stored runs; the table is the test's.
pub(crate) fn run(_: &[String]) -> Result<()> {
    cargo(&["test", "--quiet", "-p", "judge", "--test", "corpus", "--", "--nocapture"])
}

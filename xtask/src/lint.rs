//! `cargo xtask lint`

use crate::command::{cargo, no_words};
use anyhow::Result;

pub(crate) fn run(words: &[String]) -> Result<()> {
    no_words(words)?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

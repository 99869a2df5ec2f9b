//! `cargo xtask sim`

use crate::command::{cargo, no_words};
use anyhow::Result;

pub(crate) fn run(words: &[String]) -> Result<()> {
    no_words(words)?;
    cargo(&["test", "--release", "-p", "run", "--test", "million", "--", "--ignored", "--nocapture"])
}

//! `cargo xtask deny`: not part of `test`, because building cargo-deny takes longer than all the rest.

use crate::command::{cargo, command, no_words, output};
use anyhow::{Context, Result};

pub(crate) fn run(words: &[String]) -> Result<()> {
    no_words(words)?;
    output(command("cargo", &["deny", "--version"])?)
        .context("cargo-deny is missing: cargo install --locked cargo-deny")?;
    cargo(&["deny", "check"])
}

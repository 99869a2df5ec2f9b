//! `cargo xtask lint deny`: not part of `test`, because building cargo-deny takes longer than all the rest.

use crate::command::{cargo, command, output};
use anyhow::{Context, Result};

pub(crate) fn run() -> Result<()> {
    output(command("cargo", &["deny", "--version"])?)
        .context("cargo-deny is missing: cargo install --locked cargo-deny")?;
    cargo(&["deny", "check"])
}

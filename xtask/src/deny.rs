//! `cargo xtask lint deny`: checks licences and advisories of dependencies. Not part of `test`, because building cargo-deny takes
//! longer than everything else.

use crate::command::{cargo, command, output};
use anyhow::{Context, Result};

pub(crate) fn run() -> Result<()> {
    output(command("cargo", &["deny", "--version"])?)
        .context("cargo-deny is missing: cargo install --locked cargo-deny")?;
    cargo(&["deny", "check"])
}

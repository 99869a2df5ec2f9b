//! `cargo xtask test sim`

use crate::command::cargo;
use anyhow::Result;

pub(crate) fn run() -> Result<()> {
    cargo(&["test", "--release", "-p", "run", "--test", "million", "--", "--ignored", "--nocapture"])
}

//! `cargo xtask test sim`

use crate::command::cargo;
use anyhow::Result;

pub(crate) fn run() -> Result<()> {
    let tests = ["--test", "million", "--test", "ten_million"];
    cargo(&[&["test", "--release", "-p", "run"], &tests[..], &["--", "--ignored", "--nocapture"]].concat())
}

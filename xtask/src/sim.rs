//! `cargo xtask test sim`

use crate::command::cargo;
use anyhow::Result;

/// Test executables with ignored tests, by package.
const LONG: [(&str, &str); 5] = [
    ("run", "million"),
    ("run", "ten_million"),
    ("run", "hundred_million"),
    ("run", "drawn"),
    ("tcp", "machine"),
];

pub(crate) fn run() -> Result<()> {
    for (package, test) in LONG {
        cargo(&["test", "--release", "-p", package, "--test", test, "--", "--ignored", "--nocapture"])?;
    }
    Ok(())
}

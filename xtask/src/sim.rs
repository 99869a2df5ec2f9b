//! `cargo xtask test sim`: runs the long simulations, which ordinary tests ignore.

use crate::command::cargo;
use anyhow::Result;

/// Packages, and their test executables with ignored tests.
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

//! `cargo xtask fmt [--fix]`: checks the formatting, or formats the code.

use crate::command::cargo;
use anyhow::{Result, bail};

pub(crate) fn run(words: &[String]) -> Result<()> {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => cargo(&["fmt", "--all", "--check"]),
        ["--fix"] => cargo(&["fmt", "--all"]),
        _ => bail!("takes --fix or nothing: {}", words.join(" ")),
    }
}

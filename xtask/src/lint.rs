//! `cargo xtask lint [deny]`: runs clippy, or checks licences and advisories of dependencies.

use crate::{command::cargo, deny};
use anyhow::{Result, bail};

pub(crate) fn run(words: &[String]) -> Result<()> {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        ["deny"] => deny::run(),
        _ => bail!("takes deny or nothing: {}", words.join(" ")),
    }
}

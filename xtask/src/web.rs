//! `cargo xtask web`: checks the report and the live page: types, tests, that the committed build is current, and both pages in a
//! real browser.

use crate::command::{command, finish, no_words, throng};
use crate::fetched;
use anyhow::Result;

pub(crate) fn run(words: &[String]) -> Result<()> {
    no_words(words)?;
    fetched::WEB.get()?;
    npm("check")?;
    npm("test")?;
    npm("browser")
}

fn npm(script: &str) -> Result<()> {
    let mut npm = command("npm", &["run", "--silent", script, "--prefix", fetched::WEB.folder])?;
    npm.env("THRONG_BIN", throng()?);
    finish(npm)
}

//! `cargo xtask web`: the report and the live page: types, tests, the build held against the committed one, and both in a
//! real browser.

use crate::command::{command, finish, no_words, root};
use crate::packages;
use crate::test::throng;
use anyhow::{Result, bail};
use std::fs;

/// What `cargo build` embeds, so that it needs no Node.
const BUILT: &[&str] = &["web/dist/report.html", "web/dist/live.html", "web/dist/ui.html"];

pub(crate) fn run(words: &[String]) -> Result<()> {
    no_words(words)?;
    packages::npm(packages::WEB)?;
    npm("check")?;
    npm("test")?;
    let read = || BUILT.iter().map(|path| Ok(fs::read(root()?.join(path))?)).collect::<Result<Vec<_>>>();
    let committed = read()?;
    npm("build")?;
    if read()? != committed {
        bail!("not what was committed, commit what the build made: {}", BUILT.join(" "));
    }
    npm("browser")
}

fn npm(script: &str) -> Result<()> {
    let mut npm = command("npm", &["run", "--silent", script, "--prefix", packages::WEB])?;
    npm.env("THRONG_BIN", throng()?);
    finish(npm)
}

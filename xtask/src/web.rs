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
    is_built()?;
    npm("browser")
}

/// Builds what is committed once more, and leaves it as it was: what fails fails in the next attempt, too.
fn is_built() -> Result<()> {
    let root = root()?;
    let read = || BUILT.iter().map(|path| Ok(fs::read(root.join(path))?)).collect::<Result<Vec<_>>>();
    let committed = read()?;
    let is_made = npm("build");
    let built = read();
    for (path, page) in BUILT.iter().zip(&committed) {
        fs::write(root.join(path), page)?;
    }
    is_made?;
    if built? != committed {
        bail!(
            "not what the build makes: {}; run `npm run build --prefix web`, and commit them",
            BUILT.join(" ")
        );
    }
    Ok(())
}

fn npm(script: &str) -> Result<()> {
    let mut npm = command("npm", &["run", "--silent", script, "--prefix", packages::WEB])?;
    npm.env("THRONG_BIN", throng()?);
    finish(npm)
}

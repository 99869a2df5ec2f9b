//! Builds the Python wheel and the npm package that contain the binary.

use super::{ABOUT, Dist, NAME};
use crate::command::{command, finish, output, root};
use anyhow::Result;
use serde_json::json;
use std::fs;

/// A wheel (PEP 427): `uvx throng-cli`, `pipx install throng-cli`.
pub(super) fn wheel(dist: &Dist) -> Result<()> {
    let mut python =
        command("python3", &["-B", "deploy/pypi/wheel.py", NAME, &dist.version, dist.platform.wheel, ABOUT])?;
    python.arg(&dist.throng).arg(&dist.folder);
    finish(python)
}

/// An npm package: `npx throng-cli` runs its only command.
pub(super) fn npm(dist: &Dist) -> Result<()> {
    let folder = dist.work("npm")?;
    dist.install(&folder.join("bin/throng"))?;
    fs::copy(root()?.join("README.md"), folder.join("README.md"))?;
    let package = json!({
        "name": NAME,
        "version": dist.version,
        "description": ABOUT,
        "license": "MIT OR Apache-2.0",
        "bin": { "throng": "bin/throng" },
        "files": ["bin/throng"],
        "os": ["linux"],
        "cpu": [dist.platform.npm],
    });
    fs::write(folder.join("package.json"), format!("{package:#}\n"))?;
    let mut npm = command("npm", &["pack", "--silent", "--pack-destination"])?;
    npm.arg(&dist.folder).current_dir(&folder);
    let packed = output(npm)?;
    // The file name has the architecture, since a release has one package per architecture.
    let name = format!("{NAME}-{}-{}-npm.tgz", dist.version, dist.platform.arch);
    Ok(fs::rename(dist.folder.join(packed.trim()), dist.folder.join(name))?)
}

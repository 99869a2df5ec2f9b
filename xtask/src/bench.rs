//! `cargo xtask bench [NAME]`: runs the measurement `bench/NAME` or `bench/NAME.sh` with the release build of `throng`, whose path
//! the script gets in `THRONG_BIN`. Not part of `test`, because a measurement needs an otherwise idle machine.

use crate::command::{cargo, command, finish, output, root, throng};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) fn run(words: &[String]) -> Result<()> {
    let scripts = scripts(&root()?.join("bench"))?;
    let Some((name, rest)) = words.split_first() else {
        for (name, _) in &scripts {
            println!("{name:<18}{}", measured(name).unwrap_or_default());
        }
        return Ok(());
    };
    let (_, script) = scripts
        .iter()
        .find(|(known, _)| known == name)
        .with_context(|| format!("no such measurement, `cargo xtask bench` lists them: {name}"))?;
    cargo(&["build", "--release", "--package", "throng-cli", "--package", "throng-lab"])?;
    let mut bench = command(script, &[])?;
    bench.args(rest).env("THRONG_BIN", throng()?);
    finish(bench)
}

/// Crates on the hot path of a closed loop, an open loop and a held connection: a result older than a commit to them may be
/// outdated.
const HOT: [&str; 8] = ["engine", "net", "wire", "tcp", "tls", "serve", "samples", "units"];

/// Date and commit of the stored result, with the number of later commits to the hot path; `None` without a result or without git.
fn measured(name: &str) -> Option<String> {
    let file = root().ok()?.join("bench/results").join(format!("{name}.json"));
    let result: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
    let (when, commit) = (result["when"].as_str()?.get(..10)?, result["commit"].as_str()?.get(..8)?);
    let hot = HOT.map(|name| format!("crates/{name}/src"));
    let range = format!("{commit}..HEAD");
    let words: Vec<&str> =
        ["rev-list", "--count", &range, "--"].into_iter().chain(hot.iter().map(String::as_str)).collect();
    let changes = output(command("git", &words).ok()?).ok()?;
    let old = match changes.trim() {
        "0" => String::new(),
        changes => format!(" (old: {changes} commits since have changed what it runs through)"),
    };
    Some(format!("{when} at {commit}{old}"))
}

/// Executable files of the folder, named without `.sh`, sorted.
fn scripts(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let Ok(entries) = fs::read_dir(folder) else { bail!("there is no folder {}", folder.display()) };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let metadata = fs::metadata(&path)?;
        if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
            let name = path.file_name().expect("an entry of a folder has a name").to_string_lossy();
            found.push((name.strip_suffix(".sh").unwrap_or(&name).to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_files_are_measurements() {
        let folder = std::env::temp_dir().join(format!("xtask-bench-{}", std::process::id()));
        fs::create_dir_all(folder.join("a-folder")).unwrap();
        for (name, mode) in [("wrk.sh", 0o755), ("hold", 0o755), ("notes.md", 0o644)] {
            fs::write(folder.join(name), "").unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let found = scripts(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            found,
            [("hold".to_owned(), folder.join("hold")), ("wrk".to_owned(), folder.join("wrk.sh"))]
        );
        assert!(scripts(&folder).is_err());
    }
}

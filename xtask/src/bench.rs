//! `cargo xtask bench [NAME]`: runs `bench/NAME` or `bench/NAME.sh`, the release build of `throng`
//! under the name that `THRONG_BIN` has. A measurement needs a quiet machine, so it is no part of `test`.

use crate::command::{cargo, command, finish, root, throng};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) fn run(words: &[String]) -> Result<()> {
    let scripts = scripts(&root()?.join("bench"))?;
    let Some((name, rest)) = words.split_first() else {
        scripts.iter().for_each(|(name, _)| println!("{name}"));
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

/// Executable files of the folder by name, without `.sh`; ascending.
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

//! `cargo xtask tidy`: rules of the house that no lint knows. Each breach is a line with its place and cure.

mod arrows;
mod code;
mod rules;

use crate::command::{metadata, no_words, root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn run(words: &[String]) -> Result<()> {
    no_words(words)?;
    let root = root()?;
    let mut breaches = arrows::breaches(&metadata()?)?;
    for path in files(&root)? {
        // What is no text is no source either.
        let Ok(text) = fs::read_to_string(root.join(&path)) else { continue };
        breaches.extend(rules::breaches(&path.to_string_lossy(), &text));
    }
    breaches.iter().for_each(|breach| println!("{breach}"));
    match breaches.len() {
        0 => Ok(()),
        n => bail!("breaches: {n}"),
    }
}

/// Folders that hold nothing that people wrote.
const GENERATED: &[&str] = &["target", ".git", "node_modules", "corpus", "artifacts"];

/// All files below, by their path from there; ascending.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && !GENERATED.iter().any(|name| entry.file_name() == *name) {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(
                    entry.path().strip_prefix(root).expect("an entry lies below its folder").to_owned(),
                );
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_folders_are_left_out() {
        let root = std::env::temp_dir().join(format!("xtask-tidy-{}", std::process::id()));
        for folder in ["a/b", "target/debug", "a/corpus", ".ci"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("file"), "").unwrap();
        }
        let found = files(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, [Path::new(".ci/file"), Path::new("a/b/file")]);
    }
}

//! `cargo xtask tidy`: checks project rules that no lint covers. Prints a line for each violation, with its place and fix.

mod arrows;
mod circles;
mod code;
mod documents;
mod rules;

use crate::command::{command, metadata, no_words, output, root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn run(words: &[String]) -> Result<()> {
    no_words(words)?;
    let root = root()?;
    let mut breaches = arrows::breaches(&metadata()?)?;
    // Files that are not UTF-8 are no sources, and are skipped.
    let text = |path: PathBuf| {
        Some((path.to_string_lossy().into_owned(), fs::read_to_string(root.join(&path)).ok()?))
    };
    let sources: Vec<(String, String)> = files(&root)?.into_iter().filter_map(text).collect();
    breaches.extend(sources.iter().flat_map(|(path, text)| rules::breaches(path, text)));
    breaches.extend(circles::breaches(sources.iter().map(|(path, text)| (path.as_str(), text.as_str()))));
    breaches.extend(documents::breaches(&sources));
    // Without a git repository there are no subjects to check.
    let words = ["log", "--no-merges", SUBJECTS_SINCE, "--format=%h %s"];
    breaches.extend(long_subjects(&output(command("git", &words)?).unwrap_or_default()));
    breaches.iter().for_each(|breach| println!("{breach}"));
    match breaches.len() {
        0 => Ok(()),
        n => bail!("breaches: {n}"),
    }
}

/// Earlier commits are exempt: they were made before this rule.
const SUBJECTS_SINCE: &str = "--since=2026-11-22T18:00:00Z";
/// Maximum length of a commit's subject that `git log --oneline` and mail clients show in full.
const SUBJECT: usize = 72;

/// Violations in a log with lines of the form `hash subject`.
fn long_subjects(log: &str) -> Vec<String> {
    let commits = log.lines().filter_map(|line| line.split_once(' '));
    let long = commits.filter(|(_, subject)| subject.chars().count() > SUBJECT);
    long.map(|(hash, subject)| {
        format!(
            "commit {hash}: a subject of more than {SUBJECT} characters, say the rest in the body: {subject}"
        )
    })
    .collect()
}

/// Folders with generated files or downloads, which are not checked.
const GENERATED: &[&str] = &["target", ".git", "node_modules", "packages", "corpus", "artifacts"];

/// The paths of all files below `root`, relative to it, sorted.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let kind = entry.file_type()?;
            // In a git worktree, `.git` is a file.
            if GENERATED.iter().any(|name| entry.file_name() == *name) {
                continue;
            } else if kind.is_dir() {
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
    fn a_subject_has_one_line_of_a_mail() {
        let of = |length: usize| long_subjects(&format!("abc1234 {}\n", "ü".repeat(length))).len();
        assert_eq!((of(72), of(73)), (0, 1));
    }

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

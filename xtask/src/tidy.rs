//! `cargo xtask tidy`: rules of the house that no lint knows. Each breach is a line with its place and fix.

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
    // What is no text is no source either.
    let text = |path: PathBuf| {
        Some((path.to_string_lossy().into_owned(), fs::read_to_string(root.join(&path)).ok()?))
    };
    let sources: Vec<(String, String)> = files(&root)?.into_iter().filter_map(text).collect();
    breaches.extend(sources.iter().flat_map(|(path, text)| rules::breaches(path, text)));
    breaches.extend(circles::breaches(sources.iter().map(|(path, text)| (path.as_str(), text.as_str()))));
    breaches.extend(documents::breaches(&sources));
    // A tree without git has no subjects either.
    let words = ["log", "--no-merges", SUBJECTS_SINCE, "--format=%h %s"];
    breaches.extend(long_subjects(&output(command("git", &words)?).unwrap_or_default()));
    breaches.iter().for_each(|breach| println!("{breach}"));
    match breaches.len() {
        0 => Ok(()),
        n => bail!("breaches: {n}"),
    }
}

/// Older commits have longer ones.
const SUBJECTS_SINCE: &str = "--since=2026-11-22T18:00:00Z";
/// What `git log --oneline` and a mail show of a commit.
const SUBJECT: usize = 72;

/// Lines of `hash subject`.
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

/// Folders that hold nothing that people wrote.
const GENERATED: &[&str] = &["target", ".git", "node_modules", "packages", "corpus", "artifacts"];

/// All files below, by their path from there; ascending.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let kind = entry.file_type()?;
            // In a worktree of git's, `.git` is a file.
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

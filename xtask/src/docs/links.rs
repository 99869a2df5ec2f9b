//! Links in Markdown documents: finds them, and reports those that are broken.

use std::collections::BTreeMap;
use std::path::Path;

/// The texts of documents, by their path from the root.
pub(super) type Texts = BTreeMap<String, String>;

/// What exists at a path.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Entry {
    File,
    Folder,
    Nothing,
}

impl Entry {
    pub(super) fn of(path: &Path) -> Entry {
        match std::fs::metadata(path) {
            Ok(about) if about.is_dir() => Entry::Folder,
            Ok(_) => Entry::File,
            Err(_) => Entry::Nothing,
        }
    }
}

/// A link within the repository.
pub(super) struct Link {
    /// The document that contains the link.
    from: String,
    /// The link as written.
    written: String,
    /// The path it refers to, from the root.
    pub(super) path: String,
    /// The part after `#`; empty if there is none.
    anchor: String,
}

/// All links within the repository.
pub(super) fn all(texts: &Texts) -> impl Iterator<Item = Link> {
    texts.iter().flat_map(|(from, text)| {
        written(text).into_iter().map(move |written| {
            let (path, anchor) = written.split_once('#').unwrap_or((&written, ""));
            let path = if path.is_empty() { from.clone() } else { joined(from, path) };
            Link { from: from.clone(), path, anchor: anchor.to_owned(), written: written.clone() }
        })
    })
}

/// One line for each link that is broken on the site.
pub(super) fn breaches(texts: &Texts, entry: &dyn Fn(&str) -> Entry) -> Vec<String> {
    let why = |link: &Link| match (texts.get(&link.path), entry(&link.path)) {
        (Some(text), _) if !link.anchor.is_empty() && !anchors(text).contains(&link.anchor) => {
            Some("no such heading")
        }
        (Some(_), _) => None,
        // The site generates a page for the table of contents.
        (None, Entry::File) if link.path == super::SUMMARY => None,
        (None, Entry::Nothing) => Some("no such file"),
        (None, Entry::Folder) => Some("a folder has no page, link to a file of it"),
        (None, Entry::File) if link.path.ends_with(".md") => Some("no chapter, add it to docs/SUMMARY.md"),
        (None, Entry::File) => None,
    };
    let breach = |link: Link| Some(format!("{}: {}: {}", link.from, why(&link)?, link.written));
    all(texts).filter_map(breach).collect()
}

/// Resolves `path`, relative to the document `from`, to a path from the root.
pub(super) fn joined(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Targets of links and pictures as written, without those that have a URL scheme.
fn written(text: &str) -> Vec<String> {
    let lines = prose(text);
    let after = lines.iter().flat_map(|line| line.split("](").skip(1));
    let targets = after.filter_map(|rest| rest.split([')', ' ']).next());
    let sources = lines.iter().flat_map(|line| line.split("src=\"").skip(1));
    let targets = targets.chain(sources.filter_map(|rest| rest.split('"').next()));
    targets.filter(|target| !target.contains(':')).map(str::to_owned).collect()
}

/// Links in an HTML page to files that do not exist.
pub(super) fn dead(page: &Path, html: &str) -> Vec<String> {
    let targets = ["href=\"", "src=\""].map(|attribute| html.split(attribute).skip(1));
    let targets = targets.into_iter().flatten().filter_map(|rest| rest.split(['"', '#']).next());
    let local = targets.filter(|target| !target.is_empty() && !target.contains(':'));
    let folder = page.parent().unwrap_or(Path::new(""));
    local.filter(|target| !folder.join(target).exists()).map(str::to_owned).collect()
}

/// The lines of a Markdown text without code blocks and inline code.
fn prose(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push(line.split('`').step_by(2).collect::<Vec<_>>().join("`"));
        }
    }
    lines
}

/// The anchors of the headings, as used in links.
fn anchors(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut anchors: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let title = line.trim_start_matches('#');
        if is_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let anchor = title.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-");
        anchors.push(anchor);
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::root;

    fn check(text: &str, expected: &[&str]) {
        let other = ("docs/other.md".to_owned(), "# Other\n\n## What `it` is, in 2 words\n".to_owned());
        let texts = [("docs/guide/a.md".to_owned(), text.to_owned()), other].into();
        let entry = |path: &str| match path {
            "deploy/x.yaml" | "labs/README.md" => Entry::File,
            "deploy" => Entry::Folder,
            _ => Entry::Nothing,
        };
        let expected: Vec<String> =
            expected.iter().map(|breach| format!("docs/guide/a.md: {breach}")).collect();
        assert_eq!(breaches(&texts, &entry), expected, "{text}");
    }

    #[test]
    fn a_page_has_dead_links_where_no_file_is() {
        let page = root().unwrap().join("docs/page.html");
        let html = r##"<a href="claims.md#x"> <a href="#x"> <img src="none.png"> <a href="https://example.org/"> <a href="../xtask">"##;
        assert_eq!(dead(&page, html), ["none.png"]);
    }

    #[test]
    fn a_link_leads_to_a_chapter_a_heading_or_a_file() {
        check("[a](../other.md), [b](../other.md#what-it-is-in-2-words) ![c](../../deploy/x.yaml)", &[]);
        check("[a](https://example.org/), `[a](nowhere.md)`\n```\n[a](nowhere.md)\n```\n", &[]);
        check("# Title\n[a](#title)", &[]);
        check("[a](nowhere.md)", &["no such file: nowhere.md"]);
        check("[a](../other.md#nowhere)", &["no such heading: ../other.md#nowhere"]);
        check("[a](#nowhere)", &["no such heading: #nowhere"]);
        check("[a](../../deploy)", &["a folder has no page, link to a file of it: ../../deploy"]);
        check("[a](../../labs/README.md)", &["no chapter, add it to docs/SUMMARY.md: ../../labs/README.md"]);
        check("<img src=\"nowhere.svg\">", &["no such file: nowhere.svg"]);
    }
}

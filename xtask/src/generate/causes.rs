//! The table of causes in the reference, generated from the sources of the causes: the docstring of each is its evidence.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- causes: `cargo xtask gen` -->\n";
const END: &str = "<!-- end of causes -->\n";

/// The page with a current table; `folder` contains the sources of the causes.
///
/// # Errors
/// The page has no markers for the table, or a cause has no docstring or no name.
pub(super) fn with_causes(page: &str, folder: &Path) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("no mark where the causes begin")?;
    let (_, after) = rest.split_once(END).context("no mark where the causes end")?;
    let mut rows = Vec::new();
    for file in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = file?.path();
        let text = fs::read_to_string(&path)?;
        if text.contains("impl Cause for ") {
            rows.push(row(&text, folder).with_context(|| path.display().to_string())?);
        }
    }
    rows.sort();
    let head = "| name | `cause` | side | evidence | follows from |\n|---|---|---|---|---|\n";
    Ok(format!("{before}{BEGIN}{head}{}{END}{after}", rows.concat()))
}

/// The table row of one cause.
fn row(source: &str, folder: &Path) -> Result<String> {
    let name = between(source, "const ID: &'static str = \"", "\"").context("no ID")?;
    let of = between(source, "const OF: (Side, Name) = (Side::", ")").context("no OF")?;
    let (side, cause) = of.split_once(", Name::").context("no name in OF")?;
    let docs: Vec<&str> = source
        .lines()
        .skip_while(|line| !line.starts_with("/// "))
        .map_while(|line| line.strip_prefix("/// "))
        .collect();
    anyhow::ensure!(!docs.is_empty(), "no docstring");
    let own = between(source, "YIELDS_TO: &'static str =", ";").unwrap_or_default();
    // A constant that several causes share is defined in another file.
    let shared = match own {
        own if own.contains("paced::") => fs::read_to_string(folder.join("../paced.rs"))?,
        own if own.contains("queue_overflowed::") => fs::read_to_string(folder.join("queue_overflowed.rs"))?,
        own => format!("YIELDS_TO = {own};"),
    };
    let yields_to = shared.split_once("YIELDS_TO").and_then(|(_, rest)| between(rest, "=", ";"));
    let ids = yields_to.unwrap_or_default().split(|c: char| !c.is_alphanumeric() && c != '-');
    let others = ids.filter(|id| !id.is_empty()).map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    let (side, cause, evidence) = (kebab(side), kebab(cause), docs.join(" "));
    Ok(format!("| `{name}` | `{cause}` | {side} | {evidence} | {others} |\n"))
}

fn between<'a>(text: &'a str, from: &str, until: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(from)?;
    rest.split_once(until).map(|(inner, _)| inner)
}

/// Converts `OpenFiles` to `open-files`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(c.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_of_the_source() {
        let source = "use super::*;\n\n/// Seen\n/// by all.\nstruct A;\nimpl Cause for A {\n    const ID: &'static str = \"a-b\";\n    const OF: \
            (Side, Name) = (Side::Target, Name::OpenFiles);\n    const YIELDS_TO: &'static str = \"c \\\n        d\";\n";
        let expected = "| `a-b` | `open-files` | target | Seen by all. | `c`, `d` |\n";
        assert_eq!(row(source, Path::new("")).unwrap(), expected);
        assert!(row("", Path::new("")).is_err());
    }
}

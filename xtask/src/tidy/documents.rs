//! Checks what ARCHITECTURE.md and CONTRIBUTING.md say about files: each path exists, and a row of CONTRIBUTING lists all files of
//! its example.

use super::code::{code_only, has_word, without_tests};

/// Documents whose paths in backticks must exist.
const DOCUMENTS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Header of the table in [`DOCUMENTS`] whose rows are checked: addition, its files, an example. In the files, `X` stands for the
/// example's name; after the name, the example may give code by which its uses are found.
const ADDITIONS: &str = "| addition | files | example |";

/// All violations; `sources` are paths from the root with their texts.
pub(crate) fn breaches(sources: &[(String, String)]) -> Vec<String> {
    let mut breaches = Vec::new();
    for (document, text) in sources.iter().filter(|(path, _)| DOCUMENTS.contains(&path.as_str())) {
        let rows = text
            .lines()
            .skip_while(|line| *line != ADDITIONS)
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        let rows: Vec<&str> = rows.collect();
        for row in &rows {
            breaches.extend(follow(row, sources).into_iter().map(|breach| format!("{document}: {breach}")));
        }
        let lines = text.lines().filter(|line| !rows.contains(line));
        let missing = lines.flat_map(paths).filter(|path| !exists(path, sources));
        breaches.extend(missing.map(|path| format!("{document}: no such file: {path}")));
    }
    breaches
}

/// The violations of one row of [`ADDITIONS`].
fn follow(row: &str, sources: &[(String, String)]) -> Vec<String> {
    let [_, addition, files, example, _] = row.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
        return vec![format!("a row of three cells: {row}")];
    };
    let mut example = backticked(example);
    let name = example.next().unwrap_or_default();
    let files: Vec<String> = paths(files).iter().map(|path| path.replace('X', name)).collect();
    let missing = files.iter().filter(|path| !exists(path, sources));
    let mut breaches: Vec<String> =
        missing.map(|path| format!("{addition}: no such file for {name}: {path}")).collect();
    for code in example {
        let used = sources.iter().filter(|(path, text)| is_source(path) && uses(text, code));
        let (listed, other): (Vec<_>, Vec<_>) = used
            .map(|(path, _)| path)
            .partition(|path| files.iter().any(|file| path.starts_with(file.as_str())));
        if listed.is_empty() {
            breaches.push(format!("{addition}: in none of its files: {code}"));
        }
        breaches.extend(
            other.iter().map(|path| format!("{addition}: {code} is also in {path}, which its row lacks")),
        );
    }
    breaches
}

fn uses(text: &str, code: &str) -> bool {
    text.contains(code) && without_tests(&code_only(text)).lines().any(|line| has_word(line, code))
}

fn is_source(path: &str) -> bool {
    path.ends_with(".rs") && !path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// Whether the path is a file, or a folder that contains one.
fn exists(path: &str, sources: &[(String, String)]) -> bool {
    let path = path.trim_end_matches('/');
    sources
        .iter()
        .any(|(file, _)| file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// The paths in backticks, with `{a,b}` expanded.
fn paths(line: &str) -> Vec<String> {
    let is_path = |text: &&str| {
        text.split_once('/').is_some_and(|(folder, _)| {
            ["crates", "docs", "labs", "web", "xtask", "bench", "fuzz"].contains(&folder)
        })
    };
    backticked(line).filter(is_path).flat_map(expand).collect()
}

fn expand(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((names, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    names.split(',').map(|name| format!("{before}{name}{after}")).collect()
}

fn backticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(row: &str, expected: &[&str]) {
        let text = format!("See `crates/a/src/new.rs`, and `a/b`.\n\n{ADDITIONS}\n|---|---|---|\n{row}\n");
        let sources = [
            ("CONTRIBUTING.md", text.as_str()),
            ("crates/a/src/new.rs", "fn f() { Kind::New; } // Kind::Old"),
            ("crates/b/src/new.rs", "fn f() { Kind::New; }"),
            ("crates/b/src/new/tests.rs", "fn f() { Kind::New; }"),
        ];
        let sources = sources.map(|(path, text)| (path.to_owned(), text.to_owned()));
        assert_eq!(breaches(&sources), expected);
    }

    #[test]
    fn a_row_lists_all_files_of_its_example() {
        check("| kind | `crates/{a,b}/src/X.rs`, a test | `new`: `Kind::New` |", &[]);
        check("| kind | `crates/b/`, `crates/a/src/X.rs` | `new`: `Kind::New` |", &[]);
        check(
            "| kind | `crates/a/src/X.rs` | `new`: `Kind::New`, `Kind::Old` |",
            &[
                "CONTRIBUTING.md: kind: Kind::New is also in crates/b/src/new.rs, which its row lacks",
                "CONTRIBUTING.md: kind: in none of its files: Kind::Old",
            ],
        );
        check(
            "| kind | `crates/a/src/X.rs` | `old` |",
            &["CONTRIBUTING.md: kind: no such file for old: crates/a/src/old.rs"],
        );
        check("See `docs/new`.", &["CONTRIBUTING.md: no such file: docs/new"]);
        check("|||", &["CONTRIBUTING.md: a row of three cells: |||"]);
    }
}

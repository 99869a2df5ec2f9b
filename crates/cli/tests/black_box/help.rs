//! The help texts, word for word: users see every change of them. The reference in `docs/` is generated from them.
//! `UPDATE_GOLDEN=1` rewrites both.

use std::{fmt::Write, fs, path::Path};

use crate::program::Program;

/// Compares a text with a file of the repository.
fn check(text: &str, file: &Path) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(file, text).unwrap();
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    assert_eq!(text, expected, "not what {} has: UPDATE_GOLDEN=1 writes it", file.display());
}

const VERBS: &[&str] = &[
    "",
    "run",
    "find",
    "calibrate",
    "runs",
    "replay",
    "report",
    "compare",
    "ui",
    "serve",
    "lab",
    "lab list",
    "lab up",
    "lab run",
    "lab soak",
    "lab compare",
    "doctor",
    "agent",
    "fleet",
    "fleet ls",
    "fleet doctor",
    "fleet calibrate",
    "fleet drain",
    "fleet set",
    "fleet pause",
    "fleet resume",
    "fleet serve",
    "fleet broker",
    "observe",
    "demo",
];

#[test]
fn help_is_as_it_was() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut reference = "# The command line\n\nWhat `--help` says; made by the tests.\n".to_owned();
    for verb in VERBS {
        let args: Vec<&str> = verb.split(' ').chain(["--help"]).filter(|word| !word.is_empty()).collect();
        let ended = Program::start(&args).end();
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{args:?}");
        let name = if verb.is_empty() { "throng".to_owned() } else { verb.replace(' ', "-") };
        check(&ended.stdout, &crate_folder.join(format!("tests/golden/{name}.txt")));
        let title = format!("throng {verb}");
        write!(reference, "\n## `{}`\n\n```\n{}```\n", title.trim_end(), ended.stdout).unwrap();
    }
    check(&reference, &crate_folder.join("../../docs/reference/cli.md"));
}

#[test]
fn version_is_the_packages() {
    let ended = Program::start(&["--version"]).end();
    assert_eq!((ended.status, ended.stdout), (Some(0), format!("throng {}\n", env!("CARGO_PKG_VERSION"))));
}

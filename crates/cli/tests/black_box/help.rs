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
    "completions",
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

/// What fits on one screen: the options that most people need, each in a line, under the headings of `--help`.
#[test]
fn short_help_is_one_screen() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for verb in ["run", "find"] {
        let ended = Program::start(&[verb, "-h"]).end();
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{verb}");
        check(&ended.stdout, &crate_folder.join(format!("tests/golden/{verb}-short.txt")));
        assert!(ended.stdout.lines().count() <= 40, "{verb}: {} lines", ended.stdout.lines().count());
        let widest = ended.stdout.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= 80, "{verb}: {widest:?}");
        let full = Program::start(&[verb, "--help"]).end().stdout;
        let headings = |text: &str| -> Vec<String> {
            let is_heading = |line: &&str| line.ends_with(':') && !line.starts_with(' ');
            text.lines().filter(is_heading).map(str::to_owned).collect()
        };
        let (short, full) = (headings(&ended.stdout), headings(&full));
        for heading in ["Load:", "Request:", "Output:", "Thresholds:"] {
            assert!(short.iter().any(|own| own == heading), "{verb}: no {heading} in {short:?}");
        }
        assert!(short.iter().all(|heading| full.contains(heading)), "{verb}: {short:?} {full:?}");
        assert!(!full.contains(&"Options:".to_owned()), "{verb}: each has a heading: {full:?}");
    }
}

/// What each shell is given is made of the table of flags, and bash reads it.
#[test]
fn completions_are_of_this_program() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = Program::start(&["completions", shell]).end();
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{shell}");
        for name in ["connect-to", "fleet", "completions"] {
            assert!(ended.stdout.contains(name), "{shell}: no {name}");
        }
    }
    // What bash offers after these letters.
    let script = "eval \"$($0 completions bash)\"; COMP_WORDS=(throng run --conn); COMP_CWORD=2; \
        _throng throng --conn run; echo ${COMPREPLY[@]}";
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", script]).arg(crate::program::throng(&[]).get_program());
    let ended = Program::from(bash).end();
    assert_eq!(ended.stdout.trim(), "--connections --connect-to", "{ended:?}");
}

#[test]
fn version_is_the_packages() {
    let ended = Program::start(&["--version"]).end();
    assert_eq!((ended.status, ended.stdout), (Some(0), format!("throng {}\n", env!("CARGO_PKG_VERSION"))));
}

//! `cargo xtask COMMAND`: the developer commands, one file each. CI uses nothing else.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line speaks to its user")]

mod bench;
mod command;
mod corpus;
mod deny;
mod dist;
mod docs;
mod fetched;
mod fmt;
mod fuzz;
mod generate;
mod kubernetes;
mod labs;
mod lint;
mod packages;
mod sim;
mod suite;
mod test;
mod tidy;
mod web;

use std::process::ExitCode;

/// A command: name, arguments, description, function.
type Command = (&'static str, &'static str, &'static str, fn(&[String]) -> anyhow::Result<()>);

const COMMANDS: &[Command] = &[
    (
        "test",
        "[rest|all|packages|sim|kubernetes]",
        "what needs Rust and nothing else: fmt, tidy, lint, unit tests, simulations, corpus, black-box runs; rest: what that leaves out, with \
        third-party programs, which it installs as root; all: both; packages: only fetch and build what the rest needs; sim: a million \
        and a hundred million simulated connections, ten million requests, TCP from 100,000 seeds; kubernetes [schema]: run --fleet k8s against \
        a real control plane, which it builds first (needs root, go, nats-server, python3-yaml)",
        test::run,
    ),
    ("fmt", "[--fix]", "is the code formatted? with --fix: format it", fmt::run),
    (
        "lint",
        "[deny]",
        "clippy over everything, warnings are errors; deny: licences and advisories (needs cargo-deny)",
        lint::run,
    ),
    ("tidy", "", "the rules of the house: arrows, names, sizes, unsafe, clock, sockets, paths", tidy::run),
    ("web", "", "the report and the live page: types, tests, build, in a real browser", web::run),
    (
        "fuzz",
        "[TARGET] [SECONDS]",
        "fuzz one target, or each for a minute (needs nightly, cargo-fuzz)",
        fuzz::run,
    ),
    (
        "gen",
        "",
        "what is made from tables: Grafana's dashboards and their panels in the guide",
        generate::run,
    ),
    ("bench", "[NAME]", "a side-by-side measurement; without a name: which there are", bench::run),
    (
        "labs",
        "[all]",
        "an experiment of each lab, small and short; all: each at its own size three times, and docs/experiments.md",
        labs::run,
    ),
    (
        "corpus",
        "",
        "judge the stored runs of corpus/: what is right, what stays unknown, what is wrong",
        corpus::run,
    ),
    (
        "docs",
        "[picture]",
        "the documents as a site (needs mdbook); picture: the README's, of a new run",
        docs::run,
    ),
    (
        "dist",
        "[--check]",
        "static binary, .deb, container image, wheel, npm package, checksums, SBOM; --check: install each and run its demo",
        dist::run,
    ),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let asked = words.first().map(String::as_str).unwrap_or_default();
    let Some((name, _, _, run)) = COMMANDS.iter().find(|(name, ..)| *name == asked) else {
        eprintln!("{}", usage(asked));
        return ExitCode::from(2);
    };
    match run(&words[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage(asked: &str) -> String {
    let mut text = match asked {
        "" => String::from("cargo xtask COMMAND\n"),
        _ => format!("no such command: {asked}\n"),
    };
    for (name, words, what, _) in COMMANDS {
        text.push_str(&format!("\n  {:<26}{what}", format!("{name} {words}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_at_most_twelve_commands_each_named_once() {
        let names: std::collections::BTreeSet<&str> = COMMANDS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names.len(), COMMANDS.len());
        assert!(COMMANDS.len() <= 12, "{names:?}");
    }

    #[test]
    fn usage_names_the_wrong_word_and_all_right_ones() {
        let text = usage("tset");
        assert!(text.starts_with("no such command: tset\n"), "{text}");
        assert!(COMMANDS.iter().all(|(name, ..)| text.contains(&format!("\n  {name} "))), "{text}");
    }
}

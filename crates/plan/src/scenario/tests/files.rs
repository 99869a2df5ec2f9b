//! The files in `scenarios/`: each can be read, and describes its experiment.

use super::written::operations;
use super::*;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The texts of all scenario files by name, ascending.
pub(super) fn texts() -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join("scenarios")).expect("scenarios/ is there");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut texts: Vec<_> =
        files.map(|path| (name(&path), fs::read_to_string(&path).expect("readable"))).collect();
    texts.sort();
    texts
}

fn file(name: &str) -> Plan {
    let (_, text) = texts().into_iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("{name}"));
    with_files(name, &text)
}

fn with_files(name: &str, text: &str) -> Plan {
    let resolve = |name: &str| Err(format!("a scenario of the project names no host: {name}"));
    let around = Environment { cores: 2, seed: 1, resolve: &resolve };
    let open = |file: &str| {
        let text = fs::read_to_string(root().join("scenarios").join(file));
        text.map(Source::Text).map_err(|e| e.to_string())
    };
    read(name, text, &Flags::default(), &around, &open)
        .unwrap_or_else(|mistakes| panic!("{}", listed(&mistakes).join("\n")))
}

#[test]
fn every_file_is_valid_and_names_its_source() {
    let texts = texts();
    assert!(texts.len() >= 9, "{}", texts.len());
    for (name, text) in texts {
        let scenario = with_files(&name, &text);
        assert_eq!(with_files(&name, &scenario.to_string()), scenario, "{name}");
        let comment = text.lines().take_while(|line| line.starts_with('#')).count();
        assert!(comment >= 2, "{name}: its source and its figures belong into a comment on top");
    }
}

/// File, load, number of destinations, and the operations of its first population.
fn check(name: &str, load: Load, destinations: usize, ops: &str) {
    let scenario = file(name);
    let population = &scenario.populations[0];
    assert_eq!((population.load, population.target.destinations.len()), (load, destinations), "{name}");
    let found: Vec<String> = operations(&scenario).into_iter().take(population.operations()).collect();
    assert_eq!(found.join("; "), ops, "{name}");
}

#[test]
fn the_source_experiments_are_as_they_were() {
    let held = |connections| Load::Held { connections };
    let length = |most, think| {
        format!("request GET /?length={{rand {most}}} -> status 200, length $1; wait {think}; goto 0")
    };
    check("http-kit-400k", held(400_000), 20, &length("1024 10240", "10s..1m30s"));
    check("http-kit-600k", held(600_000), 30, &length("1 4096", "5s..45s"));
    check("http-kit-400k-code", held(400_000), 20, &length("1 10239", "10s..1m39s"));
    check("http-kit-600k-code", held(600_000), 30, &length("1 4095", "10s..1m40s"));
    check("http-kit-600k-ab", held(600_000), 30, &length("1 4096", "5s..45s"));
    check("express-wrk", held(400), 1, "request GET / -> status 200, length 12; goto 0");
    check("express-fortio", held(12), 1, "request GET / -> status 200, length 12; goto 0");
    check("play-c100k", held(100_000), 1, "ping \"ping\" each 30s");
    let arrivals = Load::Arrivals { rate: Rate::per_s(6_000), total: Some(40_000) };
    check("cl-async", arrivals, 1, "request GET / -> any; goto 0");
    assert_eq!(file("cl-async").populations[0].calls, Some(10));
    let probe = file("http-kit-600k").probe.expect("ab was run while they were held");
    assert_eq!(probe.target().path.to_string(), "/");
    assert_eq!(file("http-kit-400k").stages[0].ramp, Ramp::Rate(Rate::per_s(5_000)));
    assert_eq!(file("http-kit-600k").stages[0].ramp, Ramp::Rate(Rate::per_s(4_000)));
}

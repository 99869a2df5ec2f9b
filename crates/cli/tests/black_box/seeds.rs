//! `--seed` reproduces the random choices of a run.

use crate::{
    scripted::{Scripted, ok},
    summary::run,
};

const REQUESTS: usize = 40;

/// The targets that one connection requested in turn, and the summary's seed.
fn drawn(seed: Option<&str>) -> (Vec<String>, String) {
    let server = Scripted::responding(ok("x"));
    let requests = REQUESTS.to_string();
    let args = ["-c", "1", "-n", &requests, "--think", "1ms..3ms"];
    let seed: Vec<&str> = seed.map(|seed| ["--seed", seed]).into_iter().flatten().collect();
    let (ended, s) = run(&server.url("/?length={rand 1 4096}&x={rand 1 9}"), &[&args[..], &seed].concat());
    let seed = s.count("seed").to_string();
    assert!(ended.stderr.contains(&format!("seed {seed}\n")), "a run prints its seed: {}", ended.stderr);
    let targets = server.log.targets();
    assert_eq!(targets.len(), REQUESTS, "{}", ended.stderr);
    (targets, seed)
}

#[test]
fn a_seed_repeats_the_random_values() {
    let (first, again, other) = (drawn(Some("42")), drawn(Some("42")), drawn(Some("43")));
    assert_eq!(first.1, "42");
    assert_eq!(first, again);
    assert_ne!(first.0, other.0, "another seed draws other numbers");
    assert!(first.0.iter().collect::<std::collections::HashSet<_>>().len() > 30, "numbers differ: {first:?}");
}

#[test]
fn a_seed_that_was_printed_repeats_its_run() {
    let (first, second) = (drawn(None), drawn(None));
    assert_ne!(first.1, second.1, "each run has a seed of its own");
    assert_eq!(first, drawn(Some(&first.1)));
}

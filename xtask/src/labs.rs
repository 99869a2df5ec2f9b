//! `cargo xtask labs`: runs an experiment of each lab, small and short, as part of the tests. `cargo xtask labs all`: runs every
//! experiment of every lab three times at full size, stores the results in `labs/results.jsonl`, and generates the page of
//! experiments.

use crate::command::{command, finish, root, throng};
use crate::packages;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Labs, and the variants that `cargo xtask labs` runs: each server is built, started, loaded, observed and stopped.
const QUICK: &[(&str, &[&str])] = &[
    ("cl-async", &["40k", "stand-in"]),
    ("express-cluster", &["wrk", "express"]),
    ("express-cluster", &["wrk", "express-behind-nginx"]),
    ("http-kit", &["600k-ab", "stand-in"]),
    ("nginx", &["files"]),
    ("nginx", &["http2"]),
    ("play", &["engines", "play30-netty"]),
    ("play", &["agents", "play30-netty"]),
    ("play", &["wrk", "play30-netty-tls"]),
    ("python", &["hold"]),
    ("throng-serve", &["websockets"]),
];
/// Labs that `labs all` also soaks, one after the other.
const SOAKED: &[&str] = &["throng-serve", "nginx", "play"];
const QUICK_RESULTS: &str = "target/labs.jsonl";
/// Results of `labs all` while it runs; they replace [`RESULTS`] once it has completed.
const ALL_RESULTS: &str = "target/labs-all.jsonl";
const RESULTS: &str = "labs/results.jsonl";
const PAGE: &str = "docs/experiments.md";
/// Exit code of `throng lab run` if the lab cannot run on this machine.
const CANNOT: i32 = 3;

pub(crate) fn run(words: &[String]) -> Result<()> {
    match words {
        [] => quick(),
        [all] if all == "all" => everything(),
        _ => bail!("no such word, write `cargo xtask labs` or `cargo xtask labs all`: {}", words.join(" ")),
    }
}

/// Without the optimising compiler (C2), JVMs, Maven's included, need half the CPU time in runs of a few seconds.
const SOON_WARM: (&str, &str) = ("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1");

/// A target may miss its thresholds on a busy machine; a broken lab fails in each attempt.
const ATTEMPTS: usize = 3;

/// Builds the servers of the quick labs and downloads their dependencies, since the tests run in a network without a route.
///
/// # Errors
/// A server cannot be built.
pub(crate) fn build(throng: &Path) -> Result<()> {
    for (lab, variants) in QUICK {
        let mut words = vec!["lab", "build", lab];
        words.extend(variants.iter().flat_map(|variant| ["--variant", variant]));
        run_lab(throng, lab, &words, fine(), &[SOON_WARM])?;
    }
    Ok(())
}

/// Exit codes that count as success: as root everything a lab needs is installed, so it must be able to run.
fn fine() -> &'static [i32] {
    if packages::is_root() { &[0] } else { &[0, CANNOT] }
}

/// Runs the quick labs: about three minutes on two cores.
fn quick() -> Result<()> {
    let throng = throng()?;
    for (lab, variants) in QUICK {
        let mut words = vec![
            "lab",
            "run",
            lab,
            "--scale",
            "0.02",
            "--for",
            "3s",
            "--repeats",
            "0",
            "--results",
            QUICK_RESULTS,
        ];
        words.extend(variants.iter().flat_map(|variant| ["--variant", variant]));
        for attempt in 1.. {
            let before = trials()?.len();
            match run_lab(&throng, lab, &words, fine(), &[SOON_WARM]) {
                Ok(()) => break,
                Err(_) if is_invalid(&trials()?[before..]) => {
                    eprintln!("skipped: {lab}: this machine is too busy to judge it");
                    break;
                }
                Err(error) if attempt == ATTEMPTS => return Err(error),
                Err(_) => {}
            }
        }
    }
    Ok(())
}

/// All results of quick labs in the results file, those of earlier runs included.
fn trials() -> Result<Vec<Value>> {
    let path = root()?.join(QUICK_RESULTS);
    let text =
        if path.exists() { std::fs::read_to_string(path).context(QUICK_RESULTS)? } else { String::new() };
    text.lines().map(|line| serde_json::from_str(line).context(QUICK_RESULTS)).collect()
}

/// Whether all failed trials were invalid, which means that throng was the limit: the servers were started, loaded and stopped, but
/// nothing is known about their performance.
fn is_invalid(trials: &[Value]) -> bool {
    let is_one = |trial: &Value| trial["summary"]["verdict"] == "invalid";
    trials.iter().any(is_one) && trials.iter().all(|trial| trial["expected"] == true || is_one(trial))
}

/// Runs every experiment: about three hours on two cores. Unexpected results do not end it; they are reported and stored.
fn everything() -> Result<()> {
    let (root, throng) = (root()?, throng()?);
    std::fs::remove_file(root.join(ALL_RESULTS)).ok();
    // Each lab once, even if several of its variants are in the list.
    let labs: BTreeSet<&str> = QUICK.iter().map(|(lab, _)| *lab).collect();
    for lab in labs {
        run_lab(
            &throng,
            lab,
            &["lab", "run", lab, "--times", "3", "--results", ALL_RESULTS],
            &[0, 1, CANNOT],
            &[],
        )?;
    }
    for lab in SOAKED {
        run_lab(
            &throng,
            lab,
            &["lab", "soak", lab, "--for", "20m", "--results", ALL_RESULTS],
            &[0, 1, CANNOT],
            &[],
        )?;
    }
    std::fs::copy(root.join(ALL_RESULTS), root.join(RESULTS)).context(RESULTS)?;
    finish(command(&throng, &["lab", "compare", "--results", RESULTS, "--markdown", PAGE])?)
}

/// Runs `throng` with these arguments; `fine`: exit codes that count as success; `variables`: additional environment variables.
fn run_lab(throng: &Path, lab: &str, words: &[&str], fine: &[i32], variables: &[(&str, &str)]) -> Result<()> {
    let mut command = command(throng, words)?;
    let status = command.envs(variables.iter().copied()).status().context("cannot start throng")?;
    if !status.code().is_some_and(|code| fine.contains(&code)) {
        bail!("{status}: throng {}", words.join(" "));
    }
    if status.code() == Some(CANNOT) {
        // The suite reads skipped tests from standard error, even of jobs that pass.
        eprintln!("skipped: {lab} cannot run here");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_lab_is_excused_only_if_throng_was_the_limit_of_each_trial_that_failed() {
        let trial = |expected: bool, verdict: &str| json!({ "expected": expected, "summary": { "verdict": verdict } });
        assert!(is_invalid(&[trial(true, "pass"), trial(false, "invalid")]));
        assert!(!is_invalid(&[trial(false, "fail"), trial(false, "invalid")]));
        // No trial: the server did not even start.
        assert!(!is_invalid(&[]));
    }
}

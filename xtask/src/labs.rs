//! `cargo xtask labs`: an experiment of each lab, small and short, as part of the tests; `cargo xtask labs all`: every experiment
//! of every lab three times at its own size, kept in `labs/results.jsonl`, and the page that is made of them.

use crate::command::{command, finish};
use crate::test::release_binary;
use anyhow::{Context, Result, bail};

/// Lab, and what of it is quick: the server is built, started, loaded, watched and stopped.
const QUICK: &[(&str, &[&str])] = &[
    ("cl-async", &["40k", "stand-in"]),
    ("express-cluster", &["wrk"]),
    ("http-kit", &["600k-ab", "stand-in"]),
    ("nginx", &["files"]),
    ("play", &["engines", "play30-netty"]),
    ("python", &["hold"]),
    ("throng-serve", &["websockets"]),
];
const QUICK_RESULTS: &str = "target/labs.jsonl";
const RESULTS: &str = "labs/results.jsonl";
const PAGE: &str = "docs/experiments.md";
/// `throng lab run`: it cannot run here.
const CANNOT: i32 = 3;

pub(crate) fn run(words: &[String]) -> Result<()> {
    match words {
        [] => quick(),
        [all] if all == "all" => everything(),
        _ => bail!("no such word, write `cargo xtask labs` or `cargo xtask labs all`: {}", words.join(" ")),
    }
}

/// Three minutes on two cores, Play's build included.
fn quick() -> Result<()> {
    for (lab, variants) in QUICK {
        let mut words = vec!["lab", "run", lab, "--scale", "0.02", "--for", "3s", "--results", QUICK_RESULTS];
        words.extend(variants.iter().flat_map(|variant| ["--variant", variant]));
        finish(command(release_binary()?, &words)?)?;
    }
    Ok(())
}

/// About two hours on two cores. What is not as expected is told, and kept too.
fn everything() -> Result<()> {
    for (lab, _) in QUICK {
        let words = ["lab", "run", lab, "--times", "3", "--results", RESULTS];
        let status = command(release_binary()?, &words)?.status().context("cannot start throng")?;
        match status.code() {
            Some(0 | 1) => {}
            Some(CANNOT) => println!("== {lab} cannot run here"),
            _ => bail!("{status}: throng {}", words.join(" ")),
        }
    }
    finish(command(release_binary()?, &["lab", "compare", "--results", RESULTS, "--markdown", PAGE])?)
}

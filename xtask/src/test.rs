//! `cargo xtask test`: the tests, in two gates. Gate one needs only Rust: formatting, `tidy`, clippy, unit tests, properties,
//! simulations, the corpus, and black-box runs against our own servers. Gate two adds third-party servers and clients, labs, a
//! browser, a fleet with a real broker, and tests that need root; it installs and fetches what they need before the first of them
//! starts.

use crate::{fetched, fmt, kubernetes, labs, lint, packages, sim, suite, tidy};
use anyhow::{Context, Result, bail};
use std::time::Instant;

pub(crate) fn run(words: &[String]) -> Result<()> {
    let begin = Instant::now();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => gate_one()?,
        ["rest"] => gate_two()?,
        ["all"] => gate_one().and_then(|()| gate_two())?,
        ["sim"] => return sim::run(),
        ["packages"] => return packages(),
        ["kubernetes", ..] => return kubernetes::run(&words[1..]),
        _ => bail!("takes rest, all, packages, sim, kubernetes or nothing: {}", words.join(" ")),
    }
    println!("== all passed in {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// The cheapest step first; ends at the first step that fails.
fn gate_one() -> Result<()> {
    step("fmt", || fmt::run(&[]))?;
    step("tidy", || tidy::run(&[]))?;
    step("lint", || lint::run(&[]))?;
    let built = step("build", suite::build_first)?;
    step("tests", || suite::run_first(built))
}

fn gate_two() -> Result<()> {
    // Downloads and compilation run in parallel: one needs the network, the other the processors.
    let missing = packages::missing()?;
    let (installed, built) = std::thread::scope(|scope| {
        let installed = scope.spawn(|| step("packages", || fetch(&missing)));
        let built = step("build", suite::build_rest);
        (installed.join().expect("no installation panics"), built)
    });
    let (built, ()) = (built?, installed?);
    step("servers of labs", || labs::build(&built.throng))?;
    step("tests", || suite::run_rest(built))
}

/// Fetches and builds everything that the tests of gate two need, without running any test.
fn packages() -> Result<()> {
    let missing = packages::missing()?;
    step("packages", || fetch(&missing))?;
    let throng = step("build of throng", suite::build_throng)?;
    step("servers of labs", || labs::build(&throng))
}

fn fetch(missing: &[&str]) -> Result<()> {
    packages::install(missing)?;
    fetched::all()
}

fn step<T>(name: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("== {name}");
    let begin = Instant::now();
    let made = step().with_context(|| format!("step {name}"))?;
    println!("== {name}: passed in {:.1} s", begin.elapsed().as_secs_f64());
    Ok(made)
}

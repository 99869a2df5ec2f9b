//! `cargo xtask test`: the tests, in two gates. The first needs Rust and nothing else: formatting, the rules of the house, clippy, unit tests,
//! properties, simulations, the corpus, and black-box runs against servers of our own. The second adds third-party servers and clients, labs,
//! a browser, a fleet with a real broker, and what needs root; it installs and fetches what they need before the first of them starts.

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

/// Cheapest first; ends at the first step that fails.
fn gate_one() -> Result<()> {
    step("fmt", || fmt::run(&[]))?;
    step("tidy", || tidy::run(&[]))?;
    step("lint", || lint::run(&[]))?;
    let built = step("build", suite::build_first)?;
    step("tests", || suite::run_first(built))
}

fn gate_two() -> Result<()> {
    // Packages come by the network while the compilers have the processors.
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

/// Everything that the tests need and the network has, and no test.
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

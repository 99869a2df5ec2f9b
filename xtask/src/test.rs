//! `cargo xtask test`: all that a change must pass, cheapest first; ends at the first step that fails. `--quick`: the part that
//! takes under a minute where most is built. `packages`: only what the tests need of the network. `sim`: a million simulated connections, TCP from 100,000
//! seeds, and nothing else.

use crate::{fetched, fmt, kubernetes, labs, packages, sim, suite, tidy};
use anyhow::{Context, Result, bail};
use std::time::Instant;

pub(crate) fn run(words: &[String]) -> Result<()> {
    let is_quick = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--quick"] => true,
        ["sim"] => return sim::run(),
        ["packages"] => return packages(),
        ["kubernetes", ..] => return kubernetes::run(&words[1..]),
        _ => bail!("takes --quick, packages, sim, kubernetes or nothing: {}", words.join(" ")),
    };
    let begin = Instant::now();
    // Packages come by the network while the compilers have the processors.
    let missing = if is_quick { vec![] } else { packages::missing()? };
    let (installed, built) = std::thread::scope(|scope| {
        let install = || if is_quick { Ok(()) } else { step("packages", || fetch(&missing)) };
        let installed = scope.spawn(install);
        let built = checked_build(is_quick);
        (installed.join().expect("no installation panics"), built)
    });
    let (built, ()) = (built?, installed?);
    if let Some(throng) = &built.throng {
        step("servers of labs", || labs::build(throng))?;
    }
    step("tests", || if is_quick { suite::run_quick(built) } else { suite::run(built) })?;
    println!("== all passed in {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
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

/// Cheapest first.
fn checked_build(is_quick: bool) -> Result<suite::Built> {
    step("fmt", || fmt::run(&[]))?;
    step("tidy", || tidy::run(&[]))?;
    step("build and lint", if is_quick { suite::build_quick } else { suite::build })
}

fn step<T>(name: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("== {name}");
    let begin = Instant::now();
    let made = step().with_context(|| format!("step {name}"))?;
    println!("== {name}: passed in {:.1} s", begin.elapsed().as_secs_f64());
    Ok(made)
}

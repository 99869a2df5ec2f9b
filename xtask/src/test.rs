//! `cargo xtask test`: all that a change must pass, cheapest first; ends at the first step that fails.

use crate::command::{cargo, command, finish, metadata, no_words};
use crate::{fmt, labs, lint, packages, tidy, web};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Instant;

type Step = (&'static str, fn() -> Result<()>);

const STEPS: &[Step] = &[
    ("packages", packages::install),
    ("fmt", || fmt::run(&[])),
    ("tidy", || tidy::run(&[])),
    ("lint", || lint::run(&[])),
    ("build", || cargo(&["build", "--release"])),
    ("web", || web::run(&[])),
    ("parquet", || {
        cargo(&[
            "test",
            "-p",
            "exporters",
            "-p",
            "cli",
            "--lib",
            "--bins",
            "--features",
            "cli/parquet",
            "parquet",
        ])
    }),
    ("tests", tests),
    ("labs", || labs::run(&[])),
];

pub(crate) fn run(words: &[String]) -> Result<()> {
    no_words(words)?;
    let begin = Instant::now();
    for (name, step) in STEPS {
        println!("== {name}");
        let begin = Instant::now();
        step().with_context(|| format!("step {name}"))?;
        println!("== {name}: passed in {:.1} s", begin.elapsed().as_secs_f64());
    }
    println!("== all passed in {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// The black-box tests start the release build, the one that users have.
fn tests() -> Result<()> {
    let mut tests = command("cargo", &["test", "--workspace", "--no-fail-fast"])?;
    tests.env("THRONG_BIN", release_binary()?);
    finish(tests)
}

/// The `throng` of the release build, wherever cargo was told to put it.
pub(crate) fn release_binary() -> Result<PathBuf> {
    let metadata = metadata()?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(folder).join("release/throng"))
}

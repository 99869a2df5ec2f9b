//! throng: how many connections can a server hold, what does each cost, and what stops it?

mod args;
mod demo;
mod run;
mod serve;
mod signals;

use std::process::ExitCode;

use args::Verb;
use clap::Parser;

/// The user's words were wrong.
const EXIT_WORDS: u8 = 2;
/// This machine cannot do it.
const EXIT_MACHINE: u8 = 3;

fn main() -> ExitCode {
    let result = match args::Args::parse().verb {
        Verb::Demo => demo::demo(),
        Verb::Run(args) => run::run(&args),
        Verb::Serve(args) => serve::serve(&args),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            for line in &failure.lines {
                say(&format!("throng: {line}"));
            }
            ExitCode::from(failure.status)
        }
    }
}

/// Why a verb did not do its work, and the exit status that says so.
struct Failure {
    status: u8,
    lines: Vec<String>,
}

impl Failure {
    fn words(lines: impl IntoIterator<Item = impl ToString>) -> Failure {
        Failure { status: EXIT_WORDS, lines: lines.into_iter().map(|l| l.to_string()).collect() }
    }

    fn machine(what: impl ToString) -> Failure {
        Failure { status: EXIT_MACHINE, lines: what.to_string().lines().map(str::to_owned).collect() }
    }
}

/// To the person, on standard error.
#[expect(clippy::print_stderr, reason = "this is where the program speaks")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// The result, on standard output.
#[expect(clippy::print_stdout, reason = "this is where the program answers")]
fn answer(text: &str) {
    print!("{text}");
}

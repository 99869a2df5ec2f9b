//! The command line of throng. Each command is a module; this file dispatches, and prints results and messages.

mod again;
mod agent;
mod apply;
mod args;
mod bundle;
mod calibrate;
mod cluster;
mod compare;
mod completions;
mod contents;
mod control;
mod demo;
mod doctor;
mod extension;
mod files;
mod find;
mod fleet;
mod import;
mod init;
mod job;
mod judged;
mod listening;
mod metrics;
mod mistakes;
mod nats;
mod number;
mod observe;
mod output;
mod own_server;
mod plans;
mod replay;
mod report;
mod run;
mod runs;
mod search;
mod serve;
mod signals;
mod try_one;
mod ui;

use std::{
    env,
    io::{self, ErrorKind, Write, stdout},
    process::{self, ExitCode},
    sync::Once,
};

use ::run::Interrupt;
use args::{Refused, Verb};
use output::STDOUT;
use plan::Flags;
use store::StoredAs;

/// Exit status: usage error.
const EXIT_USAGE: u8 = 2;
/// Exit status: this machine cannot do what was requested.
const EXIT_MACHINE: u8 = 3;
/// Exit status: internal error of throng. The verdict of a run is then `invalid`.
const EXIT_FAILED: u8 = 4;
/// Exit status: ended by a signal.
const EXIT_INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    units::Failure::watch(report_failure, || {
        view::restore_terminal();
        process::exit(EXIT_FAILED.into());
    });
    let read = || {
        let args: Vec<_> = env::args_os().skip(1).collect();
        let command = args::command_for(&args);
        extension::execute(&args, &command)?;
        args::read(&command, &args).map_err(|refused| usage(*refused))
    };
    let result = units::caught(|| read().and_then(|(verb, flags)| carry_out(verb, flags)));
    let status = result.unwrap_or(Ok(EXIT_FAILED)).unwrap_or_else(|failure| {
        for line in &failure.lines {
            message(line);
        }
        failure.status
    });
    view::restore_terminal();
    let failure = units::Failure::first();
    failure.iter().for_each(|failure| report_failure(failure));
    view::flush_messages();
    ExitCode::from(if failure.is_some() { EXIT_FAILED } else { status })
}

/// Reports an internal error of throng once, with what to include in a bug report.
fn report_failure(failure: &units::Failure) {
    static IS_SAID: Once = Once::new();
    IS_SAID.call_once(|| {
        let (version, failed) = (env!("CARGO_PKG_VERSION"), samples::FAILED);
        let args =
            plan::args_without_secrets(env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()));
        let command: Vec<String> = args.iter().map(|arg| units::shell_word(arg)).collect();
        message(&format!("{failed}: {failure}"));
        message(&format!(
            "report it with the line above and this one: throng {version}: throng {}",
            command.join(" ")
        ));
    });
}

/// Executes the command line; returns the exit status.
fn carry_out(verb: Verb, flags: Flags) -> Result<u8, Failure> {
    match verb {
        Verb::Demo => demo::demo(),
        Verb::Run => observe::over_nats::resolved(&flags)
            .and_then(|(flags, _asking)| run::run(&flags))
            .map_err(|failure| failure.with_flags(&flags)),
        Verb::Init(args) => init::init(&args, &flags),
        Verb::Import(args) => import::import(&args),
        Verb::Try(args) => try_one::try_one(&args, &flags),
        Verb::Runs(args) => runs::runs(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Replay(args) => replay::replay(&args, flags),
        Verb::Compare(args) => compare::compare(&args),
        Verb::Ui(args) => ui::ui(&args),
        Verb::Serve(args) => serve::serve(&args),
        Verb::Find(args) => {
            observe::over_nats::resolved(&flags).and_then(|(flags, _asking)| find::find(&args, flags))
        }
        Verb::Calibrate(args) => calibrate::calibrate(&args),
        Verb::Doctor(args) => doctor::doctor(&args, flags),
        Verb::Agent(args) => agent::agent(&args, &flags),
        Verb::Fleet(args) => fleet::fleet(&args, &flags),
        Verb::Observe(args) => observe::observe(&args, &flags),
        Verb::Completions(args) => completions::completions(&args),
    }
}

/// The usage error for a command line that clap refuses; it also contains mistakes in the arguments that clap accepted.
fn usage(Refused { mistakes, rest, help }: Refused) -> Failure {
    let others = match &rest {
        Some((Verb::Run, flags)) => plans::mistakes(flags),
        Some((Verb::Find(args), flags)) => find::mistakes(args, flags),
        Some((Verb::Serve(args), _)) => serve::mistakes(args),
        _ => Vec::new(),
    };
    Failure::usage(mistakes.into_iter().chain(others).chain([help]))
}

/// Why a command failed, with its exit status.
struct Failure {
    status: u8,
    lines: Vec<String>,
}

impl Failure {
    fn usage(lines: impl IntoIterator<Item = impl ToString>) -> Failure {
        Failure { status: EXIT_USAGE, lines: lines.into_iter().map(|l| l.to_string()).collect() }
    }

    fn machine(what: impl ToString) -> Failure {
        Failure { status: EXIT_MACHINE, lines: what.to_string().lines().map(str::to_owned).collect() }
    }

    /// A failure while waiting; if a signal ended the wait, with the status for that.
    fn waiting(what: impl ToString, interrupt: &Interrupt) -> Failure {
        let status = if interrupt.is_set() { EXIT_INTERRUPTED } else { EXIT_MACHINE };
        Failure { status, ..Failure::machine(what) }
    }

    /// Adds how to write missing outputs later, if the run is stored.
    fn of_stored(mut self, stored: Option<StoredAs>) -> Failure {
        let later = |id: &str| {
            format!(
                "the run is stored: write them later with throng replay {id} (--json, --csv, --hlog, --junit), or throng report {id}"
            )
        };
        self.lines.extend(stored.map(|stored| later(&stored.id)));
        self
    }

    /// A failure because a signal came before the run began; `state` is how far the preparation was.
    fn interrupted(place: &str, state: impl std::fmt::Display) -> Failure {
        let why = format!("{place}: interrupted before the run began: {state}");
        Failure { status: EXIT_INTERRUPTED, ..Failure::machine(why) }
    }
}

/// Prints a message for the user.
fn message(line: &str) {
    print_stderr(&format!("throng: {line}"));
}

/// Prints to standard error, or to the live view while that uses the terminal. Never waits for a reader.
fn print_stderr(text: &str) {
    let text = &*units::printable(text);
    if !view::keep_for_later(text) {
        view::message(text);
    }
}

/// Prints the result as text to standard output, and writes it as JSON to the file of `--json`. With `--json -`, the JSON goes to
/// standard output and the text to standard error. Both are attempted, even if one fails.
///
/// # Errors
/// An output could not be written, because the disk is full or a pipe is closed.
fn print_result(text: &str, json_to: Option<&str>, json: impl FnOnce() -> String) -> Result<(), Failure> {
    let is_taken = json_to == Some(STDOUT);
    let mut missing = files::Refused::default();
    // The file first, because it does not depend on a reader of standard output.
    if let Some(file) = json_to.filter(|_| !is_taken) {
        missing.note(output::write("--json", file, &json()));
        missing.note(print_text(text, false));
    } else {
        missing.note(print_text(text, is_taken));
        missing.note(if is_taken { write_stdout(&json()).map_err(unwritten) } else { Ok(()) });
    }
    missing.end(Some(()))
}

/// Prints the result as text; to standard error, if another output goes to standard output.
///
/// # Errors
/// As [`print_result`].
fn print_text(text: &str, is_taken: bool) -> Result<(), Failure> {
    if is_taken {
        print_stderr(text.trim_end());
        return Ok(());
    }
    write_stdout(text).map_err(unwritten)
}

/// Prints to standard output. A closed pipe is not an error: readers such as `head` stop early.
///
/// # Errors
/// The text could not be written, because the disk is full.
fn print_stdout(text: &str) -> Result<(), Failure> {
    match write_stdout(text) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(unwritten),
    }
}

fn write_stdout(text: &str) -> io::Result<()> {
    // Keeps the order of messages and output on the same terminal.
    view::flush_messages();
    let mut out = stdout();
    // Names and reasons may come from other machines, so control characters are replaced.
    out.write_all(units::printable(text).as_bytes())?;
    out.flush()
}

fn unwritten(e: io::Error) -> Failure {
    Failure::machine(format!("standard output: {e}"))
}

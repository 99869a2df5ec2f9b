//! `throng-lab`, which `throng lab` starts: runs real servers and the published experiments against them.

mod args;

use std::{
    env, fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use clap::Parser;
use lab::{Case, Elsewhere, Environment, Error, Experiment, Lab, Outcome, Page, Runner, Soak};
use signal_hook::consts::{SIGINT, SIGTERM};
use store::folders;
use units::Nanos;

use args::{LabArgs, LabCompareArgs, LabRunArgs, LabSoakArgs, LabVerb};

/// Exit status after a signal.
const EXIT_INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let status = lab(&LabArgs::parse()).unwrap_or_else(|error| {
        let (status, lines) = match error {
            Error::Usage(lines) => (2, lines),
            Error::Machine(what) => (3, what.lines().map(str::to_owned).collect()),
            Error::Interrupted => (EXIT_INTERRUPTED, Vec::new()),
        };
        lines.iter().for_each(|line| message(line));
        status
    });
    ExitCode::from(status)
}

/// Executes the command and returns the exit status.
fn lab(args: &LabArgs) -> Result<u8, Error> {
    let labs = labs()?;
    match &args.verb {
        LabVerb::List => list(&labs),
        LabVerb::Up { name, server, env, scale } => up(find(&labs, name)?, server.as_deref(), env, *scale),
        LabVerb::Build { name, variant } => build(find(&labs, name)?, variant),
        LabVerb::Run(args) => run(find(&labs, &args.name)?, args),
        LabVerb::Soak(args) => soak(find(&labs, &args.name)?, args),
        LabVerb::Compare(args) => compare(&labs, args),
    }
}

/// All labs in the folder `THRONG_LABS`, or else in `labs` in the current folder.
fn labs() -> Result<Vec<Lab>, Error> {
    let folder = env::var_os("THRONG_LABS").map_or_else(|| PathBuf::from("labs"), PathBuf::from);
    let folder = folder.canonicalize().map_err(|e| {
        let fix = "change to throng's source folder, or set THRONG_LABS to the folder with the labs";
        Error::usage(format!("no labs found; {fix}: {}: {e}", folder.display()))
    })?;
    lab::labs(&folder)
}

fn find<'a>(labs: &'a [Lab], name: &str) -> Result<&'a Lab, Error> {
    let names = || labs.iter().map(|lab| lab.name.as_str()).collect::<Vec<_>>().join(", ");
    let none = || Error::usage(format!("no such lab; use {}: {name}", names()));
    labs.iter().find(|lab| lab.name == name).ok_or_else(none)
}

/// The folder that contains a folder for each lab, with its builds and logs.
fn folder() -> Result<PathBuf, Error> {
    let none = "no folder to build in; set HOME or XDG_CACHE_HOME";
    Ok(folders::cache().ok_or_else(|| Error::Machine(none.to_owned()))?.join("labs"))
}

/// A runner with the defaults: each experiment at its own scale.
fn runner(stop: &AtomicBool) -> Result<Runner<'_>, Error> {
    let throng = lab::throng().map_err(|e| Error::Machine(e.to_string()))?;
    if !throng.is_file() {
        return Err(Error::Machine(format!(
            "no such program: {}; start this one as `throng lab`",
            throng.display()
        )));
    }
    let store = folders::runs().ok();
    let (folder, repeats) = (folder()?, lab::REPEATS);
    Ok(Runner { folder, store, scale: None, time: None, at: None, repeats, stop, progress: &message })
}

/// Prints the labs, and what is missing for each server.
fn list(labs: &[Lab]) -> Result<u8, Error> {
    let mut text = String::new();
    let folder = folder()?;
    for lab in labs {
        text += &format!("{}  ({})\n", lab.name, lab.title);
        for server in &lab.servers {
            let missing = lab::missing(server);
            let clones = lab::to_clone(server, &folder.join(&lab.name));
            let clones = clones.iter().map(|own| format!("{}: {} at {}", own.folder, own.git, own.at));
            let (standing, needs) = match (missing.is_empty(), clones.len()) {
                (false, _) => ("cannot run here", missing),
                (true, 0) => ("ready", missing),
                (true, _) => ("cloned first", clones.collect()),
            };
            let tls = if server.is_secured() { ", TLS" } else { "" };
            text += &format!("  server       {:<20} {standing}{tls}\n", server.name);
            text.extend(needs.iter().map(|what| format!("                 {what}\n")));
        }
        let mut one = |what: &str, experiment: &Experiment| {
            text += &format!("  {what:<12} {:<20} {}\n", experiment.name, experiment.title);
        };
        lab.experiments.iter().for_each(|experiment| one("experiment", experiment));
        lab.soak.iter().for_each(|soak| one("soak", soak));
    }
    print_stdout(&text)?;
    Ok(0)
}

/// Starts a server, prints its address, and stops it on a signal.
fn up(lab: &Lab, server: Option<&str>, env: &[String], scale: f64) -> Result<u8, Error> {
    let server = match server {
        None => &lab.servers[0],
        Some(name) => lab
            .server(name)
            .ok_or_else(|| Error::usage(format!("--server: {} has no server {name}", lab.name)))?,
    };
    let variable = |text: &String| {
        let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = pair.ok_or_else(|| format!("--env: {text} is not NAME=VALUE"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    let variant = env.iter().map(variable).collect::<Result<Environment, String>>();
    let variant = variant.map_err(Error::usage)?;
    let stop = order_to_stop()?;
    let runner = Runner { scale: Some(scale), ..runner(&stop)? };
    let mut running = runner.start(lab, server, &variant)?;
    let scheme = if running.is_secured { "https" } else { "http" };
    print_stdout(&format!("{} listens at {scheme}://{}/\n", server.name, running.addresses[0]))?;
    while !stop.load(Relaxed) {
        if let Some(ended) = running.ended() {
            return Err(Error::Machine(ended));
        }
        thread::sleep(Duration::from_millis(100));
    }
    drop(running);
    message(&format!("{} stopped", server.name));
    Ok(0)
}

/// Builds the servers of the selected experiments that can run here.
fn build(lab: &Lab, variant: &[String]) -> Result<u8, Error> {
    let stop = order_to_stop()?;
    let runner = runner(&stop)?;
    for case in runnable(lab, &runner, Case::select(lab, &lab.experiments, variant)?)? {
        runner.build(&case)?;
        if stop.load(Relaxed) {
            return Ok(EXIT_INTERRUPTED);
        }
    }
    Ok(0)
}

/// Runs the selected experiments; the exit status is 0 if all went as expected.
fn run(lab: &Lab, args: &LabRunArgs) -> Result<u8, Error> {
    let mut cases = Case::select(lab, &lab.experiments, &args.variant)?;
    if args.at.is_some() {
        // With `--at`, there is only one server, whose environment cannot be changed.
        cases.dedup_by(|later, first| later.experiment.name == first.experiment.name);
    }
    let time = args.time.as_deref().map(time).transpose()?;
    let results = results(args.results.as_deref())?;
    let stop = order_to_stop()?;
    let at = args.at.as_deref().map(elsewhere).transpose()?;
    let runner = Runner { scale: args.scale, time, at, repeats: args.repeats, ..runner(&stop)? };
    let cases = runnable(lab, &runner, cases)?;
    let mut status = 0;
    for case in (0..args.times).flat_map(|_| &cases) {
        let outcome = runner.run(case)?;
        print_stdout(&lab::trial_text(lab, &outcome))?;
        if stop.load(Relaxed) {
            return Ok(EXIT_INTERRUPTED);
        }
        store(&outcome, &results)?;
        status = status.max(u8::from(!outcome.expected));
    }
    Ok(status)
}

/// The cases that can run on this machine; prints what the others lack.
///
/// # Errors
/// No case can run.
fn runnable<'a>(lab: &Lab, runner: &Runner, mut cases: Vec<Case<'a>>) -> Result<Vec<Case<'a>>, Error> {
    cases.retain(|case| {
        let missing = runner.missing(case);
        if !missing.is_empty() {
            let (experiment, server) = (&case.experiment.name, &case.server.name);
            let why = missing.join("; ");
            message(&format!("{} · {experiment} · {server}: not run: {why}", lab.name));
        }
        missing.is_empty()
    });
    if cases.is_empty() {
        return Err(Error::Machine(format!("no experiment of {} can run here", lab.name)));
    }
    Ok(cases)
}

/// Runs a lab's soak; the exit status is 0 if the result is as expected and nothing drifts.
fn soak(lab: &Lab, args: &LabSoakArgs) -> Result<u8, Error> {
    let time = time(&args.time)?;
    let experiment = lab.soak.as_ref().ok_or_else(|| {
        Error::usage(format!("{} has no [soak] in its lab.toml: {}", lab.name, lab.folder.display()))
    })?;
    let results = results(args.results.as_deref())?;
    let case = Case::select(lab, [experiment], &args.variant)?[0];
    let stop = order_to_stop()?;
    let at = args.at.as_deref().map(elsewhere).transpose()?;
    let runner = Runner { scale: args.scale, at, ..runner(&stop)? };
    let Soak { outcome, text, drifts } = Soak::run(runner, &case, time)?;
    print_stdout(&text)?;
    if stop.load(Relaxed) {
        return Ok(EXIT_INTERRUPTED);
    }
    store(&outcome, &results)?;
    Ok(u8::from(!outcome.expected || drifts))
}

/// Compares stored results with the published ones, and lists all servers in one table.
fn compare(labs: &[Lab], args: &LabCompareArgs) -> Result<u8, Error> {
    let one = args.name.as_ref().map(|name| find(labs, name)).transpose()?;
    let labs = one.map_or(labs, std::slice::from_ref);
    let file = results_file(args.results.as_deref())?;
    if !file.exists() {
        let fix = "run `throng lab run`, or select a file with --results";
        return Err(Error::usage(format!("no results yet; {fix}: {}", file.display())));
    }
    let mut outcomes = Outcome::all(&file)?;
    outcomes.retain(|outcome| labs.iter().any(|lab| lab.name == outcome.subject.lab));
    if outcomes.is_empty() {
        return Err(Error::usage(format!("no results of this lab yet: {}", file.display())));
    }
    let text = lab::compare_text(labs, &outcomes);
    if let Some(file) = &args.markdown {
        let written = Page::of(labs, &outcomes)?.write(file);
        written.map_err(|e| Error::Machine(format!("--markdown {}: {e}", file.display())))?;
    }
    match args.json.as_deref() {
        Some("-") => {
            message(&text);
            print_stdout(&lab::compare_json(&outcomes))?;
        }
        file => {
            if let Some(file) = file {
                let written = fs::write(file, lab::compare_json(&outcomes));
                written.map_err(|e| Error::Machine(format!("--json {file}: not written: {e}")))?;
            }
            print_stdout(&text)?;
        }
    }
    Ok(0)
}

/// Parses the value of `--at`.
fn elsewhere(url: &str) -> Result<Elsewhere, Error> {
    let part = |scheme: &str| url.strip_prefix(scheme).map(|host| host.trim_end_matches('/'));
    let (host, is_secured) = (part("http://").or(part("https://")), url.starts_with("https:"));
    let host = host.filter(|host| !host.is_empty() && !host.contains('/'));
    let why = "use http://HOST:PORT, or https://, without a path, which comes from the experiment";
    let none = || Error::usage(format!("--at: {why}: {url}"));
    host.map(|host| Elsewhere { host: host.to_owned(), is_secured }).ok_or_else(none)
}

/// Parses the value of `--for`.
fn time(text: &str) -> Result<Nanos, Error> {
    Nanos::parse_or_seconds(text).map_err(|e| Error::usage(format!("--for: {e}")))
}

/// The file to which outcomes are appended; checked before a trial, so that its result is not lost.
fn results(file: Option<&Path>) -> Result<PathBuf, Error> {
    let file = results_file(file)?;
    Outcome::open(&file).map_err(|e| Error::usage(format!("--results {}: {e}", file.display())))?;
    Ok(file)
}

fn results_file(file: Option<&Path>) -> Result<PathBuf, Error> {
    let none = "no folder for the results; use --results FILE, or set HOME or XDG_DATA_HOME";
    let own = || folders::data().map(|folder| folder.join("labs.jsonl"));
    file.map(Path::to_owned).or_else(own).ok_or_else(|| Error::Machine(none.to_owned()))
}

fn store(outcome: &Outcome, results: &Path) -> Result<(), Error> {
    outcome.store(results).map_err(|e| Error::Machine(format!("--results {}: {e}", results.display())))
}

/// Becomes true on the first SIGINT or SIGTERM; the second ends the process.
fn order_to_stop() -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED.into(), stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .map_err(|e| Error::Machine(e.to_string()))?;
    }
    Ok(stop)
}

/// Prints a message for the user.
fn message(line: &str) {
    let _ = writeln!(io::stderr(), "throng: {}", units::printable(line));
}

/// Prints to standard output. A closed pipe is not an error: readers such as `head` stop early.
fn print_stdout(text: &str) -> Result<(), Error> {
    let mut out = io::stdout();
    match out.write_all(units::printable(text).as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::Machine(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

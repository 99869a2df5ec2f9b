//! Defines the command line for clap. Values stay strings here; `plan` parses them and reports all mistakes at once.

mod conflicts;
mod control;
mod fleet;
#[cfg(test)]
mod manual;
mod shared;
mod trying;
mod typos;
mod ui;

use std::ffi::OsString;

use clap::{ArgMatches, Args as Group, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use plan::Flags;

use self::shared::Help;

pub(crate) use control::ControlArgs;
pub(crate) use shared::refused_by_find;

pub(crate) use fleet::{AtRun, AtServer, BrokerArgs, CALIBRATION, FleetArgs, FleetServeArgs, FleetVerb};
pub(crate) use trying::{ImportArgs, InitArgs, TryArgs};
pub(crate) use ui::UiArgs;

/// Connection-load tester: opens, holds and exercises a large number of connections, and reports what they cost and
/// what limits them.
///
/// Numbers take units: 100k, 1m, 1e6, 20k/s, 30s, 5min, 5s..45s.
#[derive(Parser)]
#[command(
    name = "throng",
    version,
    max_term_width = 110,
    after_help = "`throng NAME` of another name is the program throng-NAME, beside this one or on PATH: throng lab repeats \
    published experiments against real servers (cargo build --release -p throng-lab)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// A command line of which clap has refused some arguments.
pub(crate) struct Refused {
    /// The mistakes, one line each.
    pub(crate) mistakes: Vec<String>,
    /// The parsed command line without the refused arguments; `None` if it cannot be determined.
    pub(crate) rest: Option<(Verb, Flags)>,
    /// The hint where the options are listed.
    pub(crate) help: String,
}

/// Parses the command line into the verb and those of its flags that belong to a plan. Ends the process if help or the version was
/// requested.
///
/// # Errors
/// Clap refuses an argument.
pub(crate) fn read(command: &clap::Command, args: &[OsString]) -> Result<(Verb, Flags), Box<Refused>> {
    let typos::Read { matches, mistakes } = typos::read(command, args).unwrap_or_else(|error| error.exit());
    match matches.map(|matches| of_matches(&matches)) {
        Some(read) if mistakes.is_empty() => Ok(read),
        rest => Err(Box::new(Refused { mistakes, rest, help: typos::help_of(command, args) })),
    }
}

/// All verbs with all flags, with the help that these arguments request: the short one for `-h`, otherwise the full one.
pub(crate) fn command_for(args: &[OsString]) -> clap::Command {
    let is_brief = args.iter().any(|arg| arg == "-h");
    command_with(if is_brief { Help::Brief } else { Help::Full })
}

/// The flags of a stored command line; `None` if this version cannot parse it.
pub(crate) fn flags_of(words: &[String]) -> Option<Flags> {
    let args: Vec<OsString> = words.iter().map(OsString::from).collect();
    typos::read(&command(), &args).ok()?.matches.map(|matches| of_matches(&matches).1)
}

fn of_matches(matches: &ArgMatches) -> (Verb, Flags) {
    let (_, mut of_verb) = matches.subcommand().expect("a verb is required");
    while let Some((_, of_inner)) = of_verb.subcommand() {
        of_verb = of_inner;
    }
    let flags = shared::typed(of_verb);
    (Args::from_arg_matches(matches).unwrap_or_else(|e| e.exit()).verb, flags)
}

/// All verbs with all flags.
pub(crate) fn command() -> clap::Command {
    command_with(Help::Full)
}

fn command_with(help: Help) -> clap::Command {
    Args::command()
        .mut_subcommand("run", |run| {
            with_brief_end(run, help, STATUS_OF_RUN).disable_help_flag(true).args(shared::of_run(help))
        })
        .mut_subcommand("find", |find| {
            let find = if help == Help::Brief { briefly(find) } else { find };
            with_brief_end(find, help, STATUS_OF_FIND).disable_help_flag(true).args(shared::of_find(help))
        })
        .mut_subcommand("try", |one| one.args(shared::of_try()))
        .mut_subcommand("init", |init| init.args(shared::of_init()))
        .mut_subcommand("doctor", |doctor| doctor.args(shared::of_doctor()))
        .mut_subcommand("replay", |replay| replay.args(shared::of_replay()))
        .mut_subcommand("agent", |agent| agent.args(shared::of_nats()))
        .mut_subcommand("observe", |observe| observe.args(shared::of_nats()))
        .mut_subcommand("fleet", |fleet| {
            let verbs = ["ls", "doctor", "calibrate", "drain", "set", "pause", "resume", "serve"];
            verbs
                .iter()
                .fold(fleet, |fleet, verb| fleet.mut_subcommand(verb, |verb| verb.args(shared::of_nats())))
        })
}

/// Replaces the text after the help by `status` in the short help, which has no room for more.
fn with_brief_end(verb: clap::Command, help: Help, status: &'static str) -> clap::Command {
    if help == Help::Full { verb } else { verb.after_help(status) }
}

/// Shortens the descriptions of the options that only `throng find` has, for the short help.
fn briefly(find: clap::Command) -> clap::Command {
    find.mut_arg("by", |by| by.help("Maximise connections (default), arrival, burst or rate"))
        .mut_arg("max_time", |time| time.hide_short_help(true))
        .mut_arg("max", |max| max.help("Largest load to try"))
}

const STATUS_OF_RUN: &str = "Exit status: 0 pass, 1 fail, 2 usage, 3 this machine, 4 invalid, 130 signal.\n\
    --help prints all options, among them those of exports, TLS and fleets.";
const STATUS_OF_FIND: &str = "Exit status: 0 found or not reached, 1 no result, 4 throng was the limit.";

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Serve and run on loopback, sized to this machine, in about 30 s
    Demo,
    /// Load a target, and judge the result: pass, fail with the cause, or invalid
    #[command(
        after_help = "Exit status: 0 pass, 1 fail, 2 usage error, 3 this machine cannot do it, or the \
run passed and an output could not be written, 4 invalid (throng was the limit, or has failed), 130 interrupted."
    )]
    Run,
    /// Take the steps of one user, and show what is sent and received
    Try(TryArgs),
    /// Write a commented scenario for a running service
    Init(InitArgs),
    /// Make a scenario of an HTTP archive, commands of curl, a Postman collection or an OpenAPI document
    Import(ImportArgs),
    /// Find the largest load that the target sustains, and name the limit
    Find(FindArgs),
    /// Measure what this machine can do, using the built-in server, as a reference for later runs
    Calibrate(CalibrateArgs),
    /// List stored runs, oldest first
    Runs(RunsArgs),
    /// Write the report of a stored run: HTML, Markdown or JSON
    Report(ReportArgs),
    /// Replay a stored run: print its lines and write its files again
    Replay(ReplayArgs),
    /// Compare stored runs: what differs, and whether by more than the noise
    Compare(CompareArgs),
    /// Show stored runs in a browser: list, report, comparison, trend
    Ui(UiArgs),
    /// Run a reference server
    Serve(Box<ServeArgs>),
    /// Check the limits of this machine against a run, with fixes
    Doctor(DoctorArgs),
    /// Join a fleet, or hold clients controlled with curl
    Agent(AgentArgs),
    /// List, check and steer the agents of a fleet, and the run in progress on it; or run its NATS server
    Fleet(FleetArgs),
    /// Serve samples of the target and its host to a run on another machine
    Observe(ObserveArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
}

/// `throng agent`.
#[derive(Group)]
#[command(
    after_help = "It loads only targets on its allow list, whatever a coordinator requests; it resolves their \
    names itself. A server that is not on loopback requires credentials: in the URL, \
    nats://USER:PASSWORD@HOST:4222, in a file, in NATS_USER and NATS_PASSWORD, or a client certificate. It \
    retries while the server is unreachable. The control API: `curl ADDR/clients --data \
    'ws=ws://HOST:PORT/PATH&count=5'` connects clients, `curl ADDR/` lists all requests. Exit status: 0 \
    stopped by a signal or idle, 2 usage error, 3 the server refuses, or the address of the API is taken."
)]
pub(crate) struct AgentArgs {
    /// Join the fleet at this NATS server: nats://HOST:PORT, or tls://; several servers of a cluster with commas
    /// between them [env: NATS_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    /// The agent's name in the fleet, up to 64 letters, digits, - and _ [default: of the host, kept in
    /// $XDG_STATE_HOME/throng/agents]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Allow this target; repeatable: HOST, HOST:PORT or a network [default: loopback]
    #[arg(long, value_name = "TARGET")]
    pub(crate) allow: Vec<String>,
    /// Exit when no run has needed this agent for TIME; until then, keep retrying the server
    #[arg(long, value_name = "TIME")]
    pub(crate) idle_exit: Option<String>,
}

/// `throng find`.
#[derive(Group)]
#[command(
    after_help = "Each step is judged like a run, with the options of `throng run`; --duration is the time \
    at full load of a step [default: 2s]. --probe is 20/s by default; scenarios, and tcp:// and tls:// \
    without --message, have none. A step passes if at least 98 % of its load is reached (held, opened, \
    answered) and the thresholds are met; without --threshold, if there was no fault and the probe's p99 is \
    at most five times the lowest so far, or 20 ms above it if that is more, and half of --timeout at most. A step of --by arrival or \
    --by rate whose backlog keeps growing fails, whatever the thresholds. The \
    loads of --by rate include the probe's requests. Exit status: 0 found or not reached, 1 impossible or unsettled, 2 \
    usage error, 3 this machine cannot do it, 4 throng itself or its \
    number of connections (-c) was the limit, 130 interrupted."
)]
pub(crate) struct FindArgs {
    /// What to maximise: connections (held), arrival (connections/s), burst (simultaneous dials) or rate
    /// (requests/s, the probe's included); or, with --max, streams (per HTTP/2 connection) or the path of a number
    /// in the scenario file, e.g. population.chat.connections [default: connections]
    #[arg(long, value_name = "WHAT", help_heading = "Search")]
    pub(crate) by: Option<String>,
    /// Largest load to try [default: what this machine, or the fleet, can do]
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(crate) max: Option<String>,
    /// Longest time of the whole search; what is known by then is the result [default: 3m]
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    pub(crate) max_time: Option<String>,
}

/// `throng calibrate`.
#[derive(Group)]
#[command(
    after_help = "Both ends share this machine; with a target on another machine it may achieve more. \
    Later runs on it (same kernel, processors, memory and --io) report their share of these figures: row \
    `calibration`, `rig` in the JSON. Exit status: 0 measured and stored, 2 usage error, 3 not possible, \
    4 invalid (throng's lag was too large), 130 interrupted."
)]
pub(crate) struct CalibrateArgs {
    /// Approximate time of each of the two measurements; the first opens 40,000 connections per second of it
    #[arg(short, long, value_name = "TIME", default_value = "8s")]
    pub(crate) duration: String,
    /// auto, uring or epoll, at both ends; tun, at the dialling end
    #[arg(long, value_name = "IO", default_value = "auto")]
    pub(crate) io: String,
    /// Write the figures as JSON (throng.calibration/1); `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
}

/// `throng runs`.
#[derive(Group)]
#[command(after_help = "Every `throng run` and `throng demo` is stored while it runs, in \
    $XDG_DATA_HOME/throng/runs.db [default: below ~/.local/share]. A run that was killed is listed as \
    `unfinished`.")]
pub(crate) struct RunsArgs {
    /// Show only this run: its id, or `latest`
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Only runs whose target contains TEXT
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    pub(crate) target: Option<String>,
    /// Only runs with this verdict: pass, fail, invalid, interrupted or unfinished
    #[arg(long, value_name = "WORD", conflicts_with = "run")]
    pub(crate) verdict: Option<String>,
    /// Only runs started since DATE (2026-11-20, UTC), or within the last TIME (12h)
    #[arg(long, value_name = "DATE|TIME", conflicts_with = "run")]
    pub(crate) since: Option<String>,
    /// Only runs with this tag
    #[arg(long, value_name = "TAG", conflicts_with = "run")]
    pub(crate) tagged: Option<String>,
    /// Add this tag to RUN
    #[arg(long, value_name = "TAG", requires = "run")]
    pub(crate) tag: Option<String>,
    /// Remove this tag from RUN
    #[arg(long, value_name = "TAG", requires = "run")]
    pub(crate) untag: Option<String>,
    /// Delete RUN
    #[arg(long, requires = "run", conflicts_with_all = ["tag", "untag", "json"])]
    pub(crate) delete: bool,
    /// Print the runs as a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throng report`.
#[derive(Group)]
#[command(
    after_help = "The HTML file is self-contained and needs no network. A run that was killed, or is still \
    in progress, is reported as far as it is stored. Exit status: 0 written, 2 usage error or no such run, \
    3 it could not be written."
)]
pub(crate) struct ReportArgs {
    /// The run's id, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,
    /// Write the report to FILE; `-` is standard output [default: throng-RUN.html]
    #[arg(short = 'o', long = "report", value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// Format: html, md or json (throng.report/1) [default: by the file's extension]
    #[arg(long, value_name = "FORM")]
    pub(crate) format: Option<String>,
    /// Judge the run again, by the rules of this version, and print the verdict; a report is written only with --report
    #[arg(long)]
    pub(crate) rejudge: bool,
    /// With --rejudge: write the summary as JSON; `-` is standard output
    #[arg(long, value_name = "FILE", requires = "rejudge")]
    pub(crate) json: Option<String>,
}

/// `throng replay`.
#[derive(Group)]
#[command(
    after_help = "The lines and files are identical to those of the run itself; points that InfluxDB has already are \
    overwritten. Exit status: 0 replayed, 2 usage error or no such run, 3 it could not be replayed."
)]
pub(crate) struct ReplayArgs {
    /// The run's id, or `latest`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

/// `throng compare`.
#[derive(Group)]
#[command(
    after_help = "Repetitions are needed to estimate the noise: alternate `throng run … --tag before` and \
    the same with --tag after, five times each, then `throng compare tag:before tag:after`. A difference \
    is larger than the noise if the 95 % confidence interval of the ratio excludes 1 (Welch's t-test on \
    logarithms). p99 at equal load covers the seconds with the largest number of open connections that \
    every run held. Exit status: 0 compared, 1 a --fail-if failed, 2 usage error or no such run, 3 the \
    store cannot be read, 4 a --fail-if had no valid run on one side."
)]
pub(crate) struct CompareArgs {
    /// Two or more groups, the first is the base: a run's id, `latest`, or tag:TAG for all runs with a tag, as
    /// repetitions
    #[arg(value_name = "RUN", num_args = 2.., required = true)]
    pub(crate) runs: Vec<String>,
    /// Fail if a figure grew (latency.p99 +10%) or fell (per_s -5%) by more than this over the base, and by more
    /// than the noise if that is known; repeatable. Names as in --threshold, and equal_load.p99
    #[arg(long, value_name = "CHANGE")]
    pub(crate) fail_if: Vec<String>,
    /// Print the tables as GitHub Markdown
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Write the comparison as JSON (throng.compare/1); `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
    /// Write an HTML page that overlays the curves of all runs
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
}

/// `throng serve`.
#[derive(Group)]
pub(crate) struct ServeArgs {
    /// What to serve: http (HTTP/1.1, and HTTP/2 with prior knowledge or by ALPN: /, /?length=N, /delay?for=5s&length=N, /ws/echo,
    /// /ws/push?every=1s&length=N, /stats; N from 1 to 10,240; gRPC: throng.Echo), or delay (raw TCP: after any bytes, wait,
    /// respond once and close)
    #[arg(default_value = "http")]
    pub(crate) what: String,
    /// Address and port to listen on; a port alone is on loopback, 0 takes a free port; 0.0.0.0 includes all of 127.0.0.0/8
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    pub(crate) listen: String,
    /// Number of shards; with epoll, the initial number [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<String>,
    /// auto: io_uring if permitted, otherwise epoll; uring; epoll: more threads as their open-file limits are
    /// reached
    #[arg(long, value_name = "IO", default_value = "auto")]
    pub(crate) io: String,
    /// delay: time from the first bytes to the response [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,
    /// For testing clients: accept and close connections beyond N open ones
    #[arg(long, value_name = "N")]
    pub(crate) max_open: Option<String>,
    /// For testing clients: close a connection without notice after TIME of inactivity
    #[arg(long, value_name = "TIME")]
    pub(crate) idle_cut: Option<String>,
    /// For testing clients: reset a connection TIME after it was accepted
    #[arg(long, value_name = "TIME")]
    pub(crate) reset_after: Option<String>,
    /// For testing clients: never respond to this share of the requests, as 0.01 or 1%
    #[arg(long, value_name = "SHARE")]
    pub(crate) stall: Option<String>,
    /// For testing clients: accept at RATE (2k/s)
    #[arg(long, value_name = "RATE")]
    pub(crate) slow_accept: Option<String>,
    /// Secure connections with TLS, by a certificate made at start for localhost and the loopback addresses
    #[arg(long)]
    pub(crate) tls: bool,
    /// Secure connections with TLS, by the certificate chain in FILE (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<String>,
    /// Private key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<String>,
    /// Exit when standard input is closed, so that the process does not outlive its parent
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// `throng observe`.
#[derive(Group)]
#[command(after_help = "Try it with `curl -H \"Authorization: Bearer $(cat FILE)\" \
    'http://ADDR/observe?port=8000'`. The interface is read-only. The token is sent in clear text: across \
    an untrusted network, use `ssh -L`.")]
pub(crate) struct ObserveArgs {
    /// Address and port to listen on; port 0 takes a free port. Without a token, loopback only [default:
    /// 127.0.0.1:9100]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Instead of listening, join this NATS server, nats://HOST:PORT or tls://, where runs request samples
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// With --nats, its name there [default: the host's]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Require the token in FILE, which only its owner may read
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<String>,
    /// Sample only the processes that listen on port P [default: the port in the request]
    #[arg(long, value_name = "P")]
    pub(crate) port: Option<String>,
    /// Exit when standard input is closed, so that the process does not outlive its parent
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// `throng completions`.
#[derive(Group)]
#[command(
    after_help = "bash: throng completions bash >~/.local/share/bash-completion/completions/throng. zsh: throng completions \
    zsh >\"${fpath[1]}/_throng\". fish: throng completions fish >~/.config/fish/completions/throng.fish."
)]
pub(crate) struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// `throng doctor`.
#[derive(Group)]
#[command(
    after_help = "Exit status: 0 the run is possible (without -c: perhaps with fewer connections), 2 usage \
    error, 3 it is not possible, or a fix failed. Without --fix nothing is changed."
)]
pub(crate) struct DoctorArgs {
    /// URL as for `throng run`, or a scenario file. If the target runs on this machine, its limits are checked too [default: this
    /// machine, both ends on loopback]
    pub(crate) target: Option<String>,
    /// Raise kernel settings that are too low, and add missing --sources. Requires root; lasts until the next boot,
    /// or --undo
    #[arg(long, display_order = AFTER_PLAN)]
    pub(crate) fix: bool,
    /// Undo the changes made by --fix
    #[arg(
        long,
        display_order = AFTER_PLAN + 1,
        conflicts_with_all = ["target", "connections", "sources", "ramp", "http2", "io", "fix", "json"]
    )]
    pub(crate) undo: bool,
    /// Print the findings as JSON (throng.doctor/1)
    #[arg(long, display_order = AFTER_PLAN + 2)]
    pub(crate) json: bool,
}

/// Display order of the options that only `throng doctor` has: after all flags of a plan, which are added later.
const AFTER_PLAN: usize = 900;

//! The command line, as clap reads it. Values stay strings here: `plan` reads them and reports all mistakes at once.

mod lab;

use clap::{Args as Group, Parser, Subcommand};
use plan::{Flags, Scheme};

pub(crate) use lab::{LabArgs, LabCompareArgs, LabRunArgs, LabSoakArgs, LabVerb};

/// Connection-load tester: opens, holds and exercises a large number of connections, and reports what they cost and
/// what limits them.
///
/// Numbers take units: 100k, 1m, 20k/s, 5s..45s.
#[derive(Parser)]
#[command(name = "throng", version, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Serve and run on loopback, sized to this machine, in about 30 s
    Demo,
    /// Apply a load to a target and judge it
    Run(Box<RunArgs>),
    /// Find the largest load that the target sustains, and name the limit
    Find(Box<FindArgs>),
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
    /// Run a reference server
    Serve(Box<ServeArgs>),
    /// Run experiments from the source texts against real servers
    Lab(LabArgs),
    /// Check the limits of this machine against a run, with fixes
    Doctor(DoctorArgs),
    /// Serve samples of the target and its host to a run on another machine
    Observe(ObserveArgs),
}

/// `throng run`.
#[derive(Group)]
#[command(after_help = "Exit status: 0 pass, 1 fail, 2 usage error, 3 this machine cannot do it, 4 invalid \
(throng was the limit), 130 interrupted.")]
pub(crate) struct RunArgs {
    /// http://HOST[:PORT]/PATH, ws://HOST[:PORT]/PATH or tcp://HOST:PORT. Several destinations:
    /// http://127.0.0.{1..30}:8000/, ports {9000..9010}. `{rand A B}` in the path is a random number per request.
    /// Or a scenario file, X.toml; -c, --ramp, -d, --rate, --arrive and --total override its load
    target: Option<String>,
    /// Hold N connections at once [default: 50]
    #[arg(short, long, value_name = "N")]
    connections: Option<String>,
    /// Dial at RATE (20k/s), or reach N within TIME [default: adaptive, as fast as the target accepts connections]
    #[arg(long, value_name = "RATE|TIME")]
    ramp: Option<String>,
    /// Time at full load, after the ramp; `forever` until SIGINT [default: 10s]
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,
    /// Open loop: R requests/s in total over the held connections, latency from when each was due [default: each
    /// connection sends at its own pace]
    #[arg(long, value_name = "R")]
    rate: Option<String>,
    /// Open loop of connections: R new connections/s, --total in total, --calls requests each, then close. -d
    /// limits the duration
    #[arg(long, value_name = "R")]
    arrive: Option<String>,
    /// --arrive: total number of connections
    #[arg(long, value_name = "N")]
    total: Option<String>,
    /// --arrive: requests per connection [default: 1]
    #[arg(long, value_name = "K")]
    calls: Option<String>,
    /// Send R requests/s independently of the load, half on fresh and half on kept connections, to measure what an
    /// independent user sees [default: off; without R: 10/s]
    #[arg(long, value_name = "R", num_args = 0..=1, default_missing_value = "10/s")]
    probe: Option<String>,
    /// Idle time between a response and the next request: uniform in A..B, or fixed [default: 0, closed loop]
    #[arg(long, value_name = "TIME|A..B")]
    think: Option<String>,
    /// ws:// and tcp://: interval between messages on each connection [default: 30s; 0: closed loop]
    #[arg(long, value_name = "TIME")]
    ping: Option<String>,
    /// Text of the message, whose echo is checked and timed. ws:// with '': a control ping, whose pong is timed
    /// [default: ping; tcp://: none, open and hold only]
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// Timeout of a dial, a handshake and a response, each [default: 10s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Check each response: status=200,length=$1 ($1: the first random number) [default: any 2xx]
    #[arg(long, value_name = "WORDS")]
    expect: Option<String>,
    /// When to dial a connection again. `planned`: after a close announced by the server; `never`: not even then; a
    /// back-off (1s..30s): also after a loss or a failed dial, after a random share of a delay that doubles with
    /// each failure [default: planned]
    #[arg(long, value_name = "HOW")]
    reconnect: Option<String>,
    /// Local addresses to dial from: a list, or CIDR [default: automatic]
    #[arg(long, value_name = "LIST|CIDR")]
    sources: Option<String>,
    /// Number of shards; with epoll, the minimum [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<String>,
    /// Seed of the random numbers, to repeat a run [default: random, printed]
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// auto: io_uring if permitted, otherwise epoll; uring; epoll: as many threads as the open-file limit requires
    /// [default: auto]
    #[arg(long, value_name = "IO")]
    io: Option<String>,
    /// Progress on standard error. tui: full screen, with keys; line: one line a second; classic: the http-kit
    /// client's line; off; auto: tui if standard error and standard input are a terminal, otherwise line [default:
    /// auto]
    #[arg(long, value_name = "HOW")]
    pub(crate) live: Option<String>,
    /// Print the summary in another tool's format: wrk, fortio, ab, httperf; TOOL:POPULATION covers only that
    /// population of a scenario [default: throng]
    #[arg(long, value_name = "TOOL")]
    pub(crate) format: Option<String>,
    /// Write the histograms of each second in HdrHistogram's log format
    #[arg(long, value_name = "FILE")]
    pub(crate) hlog: Option<String>,
    /// Write the metrics of each second as a line of CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<String>,
    /// Write the metrics of each second as JSON, one object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) jsonl: Option<String>,
    /// Write the metrics of each second as Parquet, with the columns of --csv; requires a build with --features
    /// parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<String>,
    /// Serve the metrics for Prometheus at http://ADDR/metrics during the run; a port alone is on loopback, 0 takes
    /// a free port
    #[arg(long, value_name = "ADDR")]
    pub(crate) prometheus: Option<String>,
    /// Serve a web page at ADDR that shows the run and can pause it, change its load and stop it; a port alone is
    /// on loopback, 0 takes a free port [default: off; without ADDR: 127.0.0.1:9909]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:9909")]
    pub(crate) dashboard: Option<String>,
    /// Read the token for the page from FILE: http://ADDR/#token=… Without a token the page is on loopback only
    #[arg(long, value_name = "FILE")]
    pub(crate) dashboard_token_file: Option<String>,
    /// Push the metrics to InfluxDB every second: http://HOST:8086/write?db=DB, or for version 2
    /// http://HOST:8086/api/v2/write?org=O&bucket=B
    #[arg(long, value_name = "URL")]
    pub(crate) influx: Option<String>,
    /// Read InfluxDB's token from FILE [default: the environment variable INFLUX_TOKEN, if set]
    #[arg(long, value_name = "FILE")]
    pub(crate) influx_token_file: Option<String>,
    /// Push the metrics to an OpenTelemetry collector every second, as JSON over HTTP: http://HOST:4318
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Pass or fail on this condition instead of on load and faults; repeatable: latency.p99 < 200ms, faults == 0,
    /// held >= 99.9%, or any number in the summary by its path
    #[arg(long = "threshold", value_name = "EXPR")]
    thresholds: Vec<String>,
    /// Tag the stored run; repeatable. `throng compare tag:TAG` treats runs with the same tag as repetitions
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Write the summary as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
    /// Write all outputs of the run to a new folder: summary, report, metrics, histograms
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<String>,
    /// Write a report of the run: HTML (.html), Markdown (.md) or JSON (.json), by the file's extension
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
    /// Measure the live heap of the target's JVM with full collections (jcmd PID GC.run) before the first dial,
    /// during the ramp and at full load; their pauses affect the other figures
    #[arg(long)]
    pub(crate) target_gc: bool,
    /// Sample the target's host through `throng observe` there: http://HOST:PORT
    #[arg(long, value_name = "URL")]
    observe: Option<String>,
    /// Read the token for --observe from FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) observe_token_file: Option<String>,
}

impl RunArgs {
    /// Whether the target is asked for something, and not told.
    pub(crate) fn has_requests(&self) -> bool {
        let scheme = self.target.as_deref().and_then(Scheme::of_target);
        scheme.is_some_and(Scheme::has_requests)
    }

    /// The words that make a plan.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            target: self.target.clone(),
            connections: self.connections.clone(),
            ramp: self.ramp.clone(),
            duration: self.duration.clone(),
            rate: self.rate.clone(),
            arrive: self.arrive.clone(),
            total: self.total.clone(),
            calls: self.calls.clone(),
            probe: self.probe.clone(),
            think: self.think.clone(),
            ping: self.ping.clone(),
            message: self.message.clone(),
            timeout: self.timeout.clone(),
            expect: self.expect.clone(),
            reconnect: self.reconnect.clone(),
            sources: self.sources.clone(),
            threads: self.threads.clone(),
            seed: self.seed.clone(),
            io: self.io.clone(),
            live: self.live.clone(),
            format: self.format.clone(),
            thresholds: self.thresholds.clone(),
            target_gc: self.target_gc,
            observe: self.observe.clone(),
            observe_token_file: self.observe_token_file.clone(),
            prometheus: self.prometheus.clone(),
            dashboard: self.dashboard.clone(),
            dashboard_token_file: self.dashboard_token_file.clone(),
            influx: self.influx.clone(),
            influx_token_file: self.influx_token_file.clone(),
            otlp: self.otlp.clone(),
            tags: self.tags.clone(),
        }
    }
}

/// `throng find`.
#[derive(Group)]
#[command(
    after_help = "Each step is judged like a run, with the options of `throng run`; --duration is the time \
    at full load of a step [default: 5s], --probe is on [default: 20/s]. A step passes if at least 98 % of \
    its load is reached (held, opened, answered) and the thresholds are met; without --threshold, if there \
    was no fault and the probe takes at most five times, and 20 ms, longer than at the first step. Exit \
    status: 0 found or not reached, 1 impossible."
)]
pub(crate) struct FindArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// What to maximise: connections (held), arrival (connections/s), burst (simultaneous dials) or rate
    /// (requests/s) [default: connections]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<String>,
    /// Largest load to try [default: what this machine can do]
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<String>,
}

/// `throng calibrate`.
#[derive(Group)]
#[command(
    after_help = "Both ends share this machine; with a target on another machine it may achieve more. \
    Later runs on it (same kernel, processors, memory and --io) report their share of these figures as \
    `rig`. Exit status: 0 measured and stored, 2 usage error, 3 not possible, 4 invalid (throng's lag was \
    too large), 130 interrupted."
)]
pub(crate) struct CalibrateArgs {
    /// Approximate time of each of the two measurements; the first opens 40,000 connections per second of it
    #[arg(short, long, value_name = "TIME", default_value = "8s")]
    pub(crate) duration: String,
    /// auto, uring or epoll, at both ends
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
}

/// `throng replay`.
#[derive(Group)]
#[command(
    after_help = "The output is identical to that of the run itself. Exit status: 0 replayed, 2 usage \
    error or no such run, 3 it could not be replayed."
)]
pub(crate) struct ReplayArgs {
    /// The run's id, or `latest`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Progress output: line, classic or off
    #[arg(long, value_name = "HOW", default_value = "line")]
    pub(crate) live: String,
    /// Write the histograms, as `throng run --hlog` does
    #[arg(long, value_name = "FILE")]
    pub(crate) hlog: Option<String>,
    /// Write the metrics of each second as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<String>,
    /// Write the metrics of each second as JSON, one object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) jsonl: Option<String>,
    /// Write the metrics of each second as Parquet; requires a build with --features parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<String>,
    /// Send the metrics to InfluxDB, as `throng run --influx` does; existing points are overwritten
    #[arg(long, value_name = "URL")]
    pub(crate) influx: Option<String>,
    /// Read InfluxDB's token from FILE [default: the environment variable INFLUX_TOKEN, if set]
    #[arg(long, value_name = "FILE", requires = "influx")]
    pub(crate) influx_token_file: Option<String>,
    /// Send the metrics to an OpenTelemetry collector, as `throng run --otlp` does
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Write the summary as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
}

/// `throng compare`.
#[derive(Group)]
#[command(
    after_help = "Repetitions are needed to estimate the noise: alternate `throng run … --tag before` and \
    the same with --tag after, five times each, then `throng compare tag:before tag:after`. A difference \
    is larger than the noise if the 95 % confidence interval of the ratio excludes 1 (Welch's t-test on \
    logarithms). p99 at equal load covers the seconds with the largest number of open connections that \
    every run held. Exit status: 0 compared, 1 a --fail-if failed, 2 usage error or no such run, 3 the \
    store cannot be read."
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
    /// What to serve: http (/, /?length=N, /delay?for=5s&length=N, /ws/echo, /stats), or delay (raw TCP: after any
    /// bytes, wait, respond once and close)
    #[arg(default_value = "http")]
    pub(crate) what: String,
    /// Address and port to listen on; port 0 takes a free port; 0.0.0.0 includes all of 127.0.0.0/8
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
    /// Address and port to listen on; port 0 takes a free port. Without a token, loopback only
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9100")]
    pub(crate) listen: String,
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

/// `throng doctor`.
#[derive(Group)]
#[command(after_help = "Exit status: 0 the run is possible, 2 usage error, 3 it is not possible, or a fix \
    failed. Without --fix nothing is changed.")]
pub(crate) struct DoctorArgs {
    /// As for `throng run`; a target on this machine is also checked [default: this machine, both ends on loopback]
    pub(crate) target: Option<String>,
    /// Number of connections to hold [default: the largest that fits, printed in the last line]
    #[arg(short, long, value_name = "N")]
    pub(crate) connections: Option<String>,
    /// Local addresses to dial from: a list, or CIDR [default: automatic]
    #[arg(long, value_name = "LIST|CIDR")]
    pub(crate) sources: Option<String>,
    /// Raise kernel settings that are too low, and add missing --sources. Requires root; lasts until the next boot,
    /// or --undo
    #[arg(long)]
    pub(crate) fix: bool,
    /// Undo the changes made by --fix
    #[arg(long, conflicts_with_all = ["target", "connections", "sources", "fix", "json"])]
    pub(crate) undo: bool,
    /// Print the findings as JSON (throng.doctor/1)
    #[arg(long)]
    pub(crate) json: bool,
}

impl DoctorArgs {
    /// The words that make a plan.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            target: self.target.clone(),
            connections: self.connections.clone(),
            sources: self.sources.clone(),
            ..Flags::default()
        }
    }
}

//! The command line, as clap reads it. Values stay strings here: `plan` reads them and reports all mistakes at once.

mod lab;

use clap::{Args as Group, Parser, Subcommand};
use plan::{Flags, Scheme};

pub(crate) use lab::{LabArgs, LabCompareArgs, LabRunArgs, LabSoakArgs, LabVerb};

/// Opens, holds and exercises very many connections, and tells what they cost and what stops them.
///
/// Numbers are written as people do: 100k, 1m, 20k/s, 5s..45s.
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
    /// Search the largest load that the target bears, and name what stops it
    Find(Box<FindArgs>),
    /// Measure this machine against the built-in server, for later runs to be held against
    Calibrate(CalibrateArgs),
    /// The runs that are kept, the oldest first
    Runs(RunsArgs),
    /// One file that explains a kept run: a page, Markdown or JSON
    Report(ReportArgs),
    /// Show a kept run again, and write its files anew
    Replay(ReplayArgs),
    /// Kept runs against each other: what differs, and whether by more than repetitions do
    Compare(CompareArgs),
    /// The reference servers
    Serve(Box<ServeArgs>),
    /// Real servers, and the experiments of the source texts against them
    Lab(LabArgs),
    /// Can this machine do it? Its limits against a run, with cures
    Doctor(DoctorArgs),
    /// Tell a run elsewhere how the target and its host fare here
    Observe(ObserveArgs),
}

/// `throng run`.
#[derive(Group)]
#[command(after_help = "Exit status: 0 pass, 1 fail, 2 wrong words, 3 this machine cannot do it, 4 invalid \
(throng was the limit), 130 interrupted.")]
pub(crate) struct RunArgs {
    /// http://HOST[:PORT]/PATH, ws://HOST[:PORT]/PATH or tcp://HOST:PORT. Several destinations:
    /// http://127.0.0.{1..30}:8000/, ports {9000..9010}. `{rand A B}` in the path is a number drawn for each request. Or
    /// a scenario file, X.toml; -c, --ramp, -d, --rate, --arrive and --total change its load
    target: Option<String>,
    /// Hold N connections at once [default: 50]
    #[arg(short, long, value_name = "N")]
    connections: Option<String>,
    /// Dial at RATE (20k/s), or reach N within TIME [default: as fast as the target takes them]
    #[arg(long, value_name = "RATE|TIME")]
    ramp: Option<String>,
    /// Time at full load, after the ramp; `forever` until SIGINT [default: 10s]
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,
    /// Open loop: R requests/s in all over the connections held, latency from when each was due [default: each
    /// connection goes by its own time]
    #[arg(long, value_name = "R")]
    rate: Option<String>,
    /// Open loop of connections: R new ones/s, --total in all, --calls requests each, then closed. -d limits the whole
    #[arg(long, value_name = "R")]
    arrive: Option<String>,
    /// --arrive: connections in all
    #[arg(long, value_name = "N")]
    total: Option<String>,
    /// --arrive: requests of each connection [default: 1]
    #[arg(long, value_name = "K")]
    calls: Option<String>,
    /// Beside the load, R requests/s on a clock of their own, half on fresh connections, half on kept ones: what a
    /// further user would see [default: off; without R: 10/s]
    #[arg(long, value_name = "R", num_args = 0..=1, default_missing_value = "10/s")]
    probe: Option<String>,
    /// Idle between a response and the next request: A..B uniform, or fixed [default: 0, closed loop]
    #[arg(long, value_name = "TIME|A..B")]
    think: Option<String>,
    /// ws:// and tcp://: from one message to the next on each connection [default: 30s; 0: closed loop]
    #[arg(long, value_name = "TIME")]
    ping: Option<String>,
    /// The message; its echo is checked and timed. ws:// with '': a control ping, its pong timed [default: ping;
    /// tcp://: none, open and hold only]
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// Dial, handshake and response limit [default: 10s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// What a right answer is: status=200,length=$1 ($1: the first number drawn) [default: any 2xx]
    #[arg(long, value_name = "WORDS")]
    expect: Option<String>,
    /// `planned`: dial again what the server closed by announcement; `never`: not even that; a back-off (1s..30s): also
    /// what was lost or not reached, after a random part of a time that doubles with each failure [default: planned]
    #[arg(long, value_name = "HOW")]
    reconnect: Option<String>,
    /// Local addresses to dial from: a list, or CIDR [default: chosen by throng]
    #[arg(long, value_name = "LIST|CIDR")]
    sources: Option<String>,
    /// Shards; over epoll, at least [default: one a core]
    #[arg(long, value_name = "N")]
    threads: Option<String>,
    /// Repeats a run's random choices [default: random, printed]
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// auto: io_uring where it is allowed, else epoll; uring; epoll: as many threads as the open-file limit asks for
    /// [default: auto]
    #[arg(long, value_name = "IO")]
    io: Option<String>,
    /// tui: fills the terminal, and takes keys; line: one line a second; classic: the http-kit client's line; off; auto:
    /// tui where standard error and input are a terminal, else line [default: auto]
    #[arg(long, value_name = "HOW")]
    pub(crate) live: Option<String>,
    /// The summary in another tool's form: wrk, fortio, ab, httperf; TOOL:POPULATION speaks of that population of a
    /// scenario alone [default: throng]
    #[arg(long, value_name = "TOOL")]
    pub(crate) format: Option<String>,
    /// Write the histograms of each second, as HdrHistogram's log tools read them
    #[arg(long, value_name = "FILE")]
    pub(crate) hlog: Option<String>,
    /// Write the metrics of each second as a line of CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<String>,
    /// The same as JSON, an object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) jsonl: Option<String>,
    /// The same as Parquet, with the columns of CSV; only where throng was built with it (--features parquet)
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<String>,
    /// Serve the metrics at http://ADDR/metrics for Prometheus while the run lasts; a port alone is on loopback, and 0
    /// takes a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) prometheus: Option<String>,
    /// Serve a page at ADDR that follows the run and can pause it, change its load and end it; a port alone is on loopback,
    /// and 0 takes a free one [default: off; without ADDR: 127.0.0.1:9909]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:9909")]
    pub(crate) dashboard: Option<String>,
    /// Holds what has to be shown to see the page: http://ADDR/#token=… Without it the page is on loopback only
    #[arg(long, value_name = "FILE")]
    pub(crate) dashboard_token_file: Option<String>,
    /// Push the metrics to InfluxDB each second: http://HOST:8086/write?db=DB, or of version 2
    /// http://HOST:8086/api/v2/write?org=O&bucket=B
    #[arg(long, value_name = "URL")]
    pub(crate) influx: Option<String>,
    /// Holds the token that it wants [default: INFLUX_TOKEN in the environment, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) influx_token_file: Option<String>,
    /// Push the metrics to a collector of OpenTelemetry each second, as JSON over HTTP: http://HOST:4318
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// What to judge the run by instead of load and faults, as often as needed: latency.p99 < 200ms, faults == 0,
    /// held >= 99.9%, or any number of the summary by its path
    #[arg(long = "threshold", value_name = "EXPR")]
    thresholds: Vec<String>,
    /// What to call the kept run, as often as needed: `throng compare tag:TAG` takes all runs of one tag as repetitions
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Write the summary as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
    /// Write all that there is of the run into a new folder: summary, report, metrics, histograms
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<String>,
    /// Write a report of the run: a page (.html), Markdown (.md) or JSON (.json), by the file's ending
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
    /// Ask the target's JVM for full collections before the first dial, during the ramp and at full load
    /// (jcmd PID GC.run), to measure its live heap; their pauses are in the figures
    #[arg(long)]
    pub(crate) target_gc: bool,
    /// A `throng observe` on the target's host, asked once a second: http://HOST:PORT
    #[arg(long, value_name = "URL")]
    observe: Option<String>,
    /// Holds the token that it wants
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
    after_help = "Each step is a run of its own with the words of `throng run`; --duration is the time at full load of \
each [default: 5s], --probe is on [default: 20/s]. A step passes when at least 98 % of its load is there (held, \
opened, answered) and the thresholds are met; without --threshold when nothing went wrong and the probe takes no more than \
five times, and 20 ms, longer than at the first step. Exit status: 0 found or not reached, 1 impossible."
)]
pub(crate) struct FindArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// connections (held), arrival (connections/s), burst (dialled at once) or rate (requests/s) [default: connections]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<String>,
    /// Not beyond this load [default: what this machine can do]
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<String>,
}

/// `throng calibrate`.
#[derive(Group)]
#[command(
    after_help = "Both ends share this machine, so that what it does alone, against a target elsewhere, may be more. \
Later runs on it (same kernel, processors, memory and --io) show their share of these figures as `rig`. Exit status: 0 \
measured and stored, 2 wrong words, 3 it could not be, 4 throng was too late to tell, 130 interrupted."
)]
pub(crate) struct CalibrateArgs {
    /// Time of each of the two measurements, about; the first opens 40,000 connections for each second of it
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
#[command(
    after_help = "Every `throng run` and `throng demo` is kept, in $XDG_DATA_HOME/throng/runs.db [default: below \
~/.local/share], while it happens: one that was killed is there as `unfinished`."
)]
pub(crate) struct RunsArgs {
    /// Only this one: its id, or `latest`
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Those whose target has this text in it
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    pub(crate) target: Option<String>,
    /// Those with this verdict: pass, fail, invalid, interrupted or unfinished
    #[arg(long, value_name = "WORD", conflicts_with = "run")]
    pub(crate) verdict: Option<String>,
    /// Those that began since: a date (2026-11-20, UTC), or so long ago (12h)
    #[arg(long, value_name = "DATE|TIME", conflicts_with = "run")]
    pub(crate) since: Option<String>,
    /// Those with this tag
    #[arg(long, value_name = "TAG", conflicts_with = "run")]
    pub(crate) tagged: Option<String>,
    /// Give RUN this tag
    #[arg(long, value_name = "TAG", requires = "run")]
    pub(crate) tag: Option<String>,
    /// Take this tag from RUN
    #[arg(long, value_name = "TAG", requires = "run")]
    pub(crate) untag: Option<String>,
    /// Delete RUN
    #[arg(long, requires = "run", conflicts_with_all = ["tag", "untag", "json"])]
    pub(crate) delete: bool,
    /// Print them as a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throng report`.
#[derive(Group)]
#[command(
    after_help = "The page needs nothing but a browser: no network, no further file. A run that was killed, or is still \
under way, is shown as far as it is kept. Exit status: 0 written, 2 wrong words or no such run, 3 it could not be."
)]
pub(crate) struct ReportArgs {
    /// Its id, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,
    /// Write it there; `-` is standard output [default: throng-RUN.html]
    #[arg(short = 'o', long = "report", value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// html, md or json (throng.report/1) [default: by the file's ending]
    #[arg(long, value_name = "FORM")]
    pub(crate) format: Option<String>,
}

/// `throng replay`.
#[derive(Group)]
#[command(
    after_help = "What it shows and writes is what the run showed and wrote, or would have. Exit status: 0 replayed, \
2 wrong words or no such run, 3 it could not be."
)]
pub(crate) struct ReplayArgs {
    /// Its id, or `latest`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// line, classic or off
    #[arg(long, value_name = "HOW", default_value = "line")]
    pub(crate) live: String,
    /// Write its histograms, as `throng run --hlog` does
    #[arg(long, value_name = "FILE")]
    pub(crate) hlog: Option<String>,
    /// Write its metrics of each second as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<String>,
    /// The same as JSON, an object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) jsonl: Option<String>,
    /// The same as Parquet, where throng was built with it
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<String>,
    /// Send its metrics to InfluxDB, as `throng run --influx` does: what is there already is written again
    #[arg(long, value_name = "URL")]
    pub(crate) influx: Option<String>,
    /// Holds the token that it wants [default: INFLUX_TOKEN in the environment, if it is there]
    #[arg(long, value_name = "FILE", requires = "influx")]
    pub(crate) influx_token_file: Option<String>,
    /// Send its metrics to a collector of OpenTelemetry, as `throng run --otlp` does
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Write the summary as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
}

/// `throng compare`.
#[derive(Group)]
#[command(
    after_help = "Repetitions tell the noise: `throng run … --tag before` five times, the same with --tag after, the two in \
turn, and `throng compare tag:before tag:after`. A difference is larger than the noise where the 95 % confidence interval of \
the ratio excludes 1 (Welch's t-test on logarithms). p99 at equal load is of the seconds in which as many connections were \
open as every run held. Exit status: 0 compared, 1 --fail-if, 2 wrong words or no such run, 3 it could not be."
)]
pub(crate) struct CompareArgs {
    /// Two or more, the first is the base: a run's id, `latest`, or tag:TAG for all runs of a tag, as repetitions
    #[arg(value_name = "RUN", num_args = 2.., required = true)]
    pub(crate) runs: Vec<String>,
    /// Fail where a figure grew by more (latency.p99 +10%) or fell by more (per_s -5%) than the base's, and by more
    /// than the noise where that is known; as often as needed. Names as of --threshold, and equal_load.p99
    #[arg(long, value_name = "CHANGE")]
    pub(crate) fail_if: Vec<String>,
    /// The tables in GitHub's Markdown
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Write the comparison as JSON (throng.compare/1); `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
    /// Write a page with the curves of all runs over one another
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
}

/// `throng serve`.
#[derive(Group)]
pub(crate) struct ServeArgs {
    /// What to serve: http (/, /?length=N, /delay?for=5s&length=N, /ws/echo, /stats), or delay (raw TCP: after any
    /// bytes it waits, answers once and closes)
    #[arg(default_value = "http")]
    pub(crate) what: String,
    /// Address and port; port 0 takes a free one; 0.0.0.0 serves all of 127.0.0.0/8 too
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    pub(crate) listen: String,
    /// Shards; over epoll, to begin with [default: one a core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<String>,
    /// auto: io_uring where it is allowed, else epoll; uring; epoll: more threads as their open-file limits are reached
    #[arg(long, value_name = "IO", default_value = "auto")]
    pub(crate) io: String,
    /// delay: time from the first bytes to the answer [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,
    /// To test a tester: accept and close all connections beyond N open ones
    #[arg(long, value_name = "N")]
    pub(crate) max_open: Option<String>,
    /// To test a tester: close a connection without notice after so much silence
    #[arg(long, value_name = "TIME")]
    pub(crate) idle_cut: Option<String>,
    /// To test a tester: reset a connection so long after it was accepted
    #[arg(long, value_name = "TIME")]
    pub(crate) reset_after: Option<String>,
    /// To test a tester: never answer this share of the requests, as 0.01 or 1%
    #[arg(long, value_name = "SHARE")]
    pub(crate) stall: Option<String>,
    /// To test a tester: accept at RATE (2k/s)
    #[arg(long, value_name = "RATE")]
    pub(crate) slow_accept: Option<String>,
    /// End when standard input ends: a child that its parent's death must not leave behind
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// `throng observe`.
#[derive(Group)]
#[command(
    after_help = "Asked as `curl -H \"Authorization: Bearer $(cat FILE)\" 'http://ADDR/observe?port=8000'`. Nothing \
can be changed through it. The token goes over the network as it is: across one that is not trusted, let `ssh -L` carry it."
)]
pub(crate) struct ObserveArgs {
    /// Address and port to answer at; port 0 takes a free one. Without a token, on loopback only
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9100")]
    pub(crate) listen: String,
    /// A file that only its owner may read; who asks must show what is in it
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<String>,
    /// Tell of who listens at this port, and of no other [default: the one that is asked for]
    #[arg(long, value_name = "P")]
    pub(crate) port: Option<String>,
    /// End when standard input ends: a child that its parent's death must not leave behind
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// `throng doctor`.
#[derive(Group)]
#[command(
    after_help = "Exit status: 0 it can, 2 wrong words, 3 it cannot, or could not be changed. Without --fix \
nothing is written anywhere."
)]
pub(crate) struct DoctorArgs {
    /// As of `throng run`; a target on this machine is looked at too [default: this machine, both ends on loopback]
    pub(crate) target: Option<String>,
    /// Connections to hold at once [default: the most that fit, printed as the last line]
    #[arg(short, long, value_name = "N")]
    pub(crate) connections: Option<String>,
    /// Local addresses to dial from: a list, or CIDR [default: chosen by throng]
    #[arg(long, value_name = "LIST|CIDR")]
    pub(crate) sources: Option<String>,
    /// Raise the kernel's settings that are too low, and add the --sources that are missing. Needs root; ends with
    /// the next boot, or with --undo
    #[arg(long)]
    pub(crate) fix: bool,
    /// Take back what --fix did
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

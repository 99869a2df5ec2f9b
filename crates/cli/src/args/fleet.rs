//! The arguments of `throng fleet`.

use clap::{Args as Group, Subcommand};

/// Default time of each of the two measurements of a calibration.
pub(crate) const CALIBRATION: &str = "8s";

/// `throng fleet`.
#[derive(Group)]
#[command(
    after_help = "Exit status: 0 done, 1 some agents could not (doctor: are unfit), 2 usage error, 3 no connection to the server, \
    or no such agent or run."
)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) verb: FleetVerb,
}

/// What to do with a fleet.
#[derive(Subcommand)]
pub(crate) enum FleetVerb {
    /// List the agents: what each is, does and can do
    Ls {
        #[command(flatten)]
        at: AtServer,
        /// Print the agents as JSON (throng.fleet/1)
        #[arg(long)]
        json: bool,
    },
    /// Check the limits of each agent's machine, worst first, with fixes
    Doctor {
        /// Only these agents
        #[arg(value_name = "AGENT")]
        names: Vec<String>,
        #[command(flatten)]
        at: AtServer,
        /// Print the findings as JSON (throng.fleet/1)
        #[arg(long)]
        json: bool,
    },
    /// Calibrate the machines of all free agents, all at the same time
    Calibrate {
        /// Only these agents
        #[arg(value_name = "AGENT")]
        names: Vec<String>,
        #[command(flatten)]
        at: AtServer,
        /// Approximate time of each of the two measurements
        #[arg(short, long, value_name = "TIME", default_value = CALIBRATION)]
        duration: String,
    },
    /// Make agents refuse new runs until undrained or restarted; current runs continue
    Drain {
        /// These agents
        #[arg(value_name = "AGENT", required_unless_present = "all")]
        names: Vec<String>,
        /// All agents
        #[arg(long, conflicts_with = "names")]
        all: bool,
        #[command(flatten)]
        at: AtServer,
        /// Let them take runs again
        #[arg(long)]
        undo: bool,
    },
    /// Set the load of the run in progress, up to the plan's: connections=200k, or load=50%
    Set {
        /// connections=N or load=SHARE
        #[arg(value_name = "LOAD")]
        load: String,
        #[command(flatten)]
        at: AtRun,
    },
    /// Pause the run in progress: connections stay open, nothing new starts
    Pause {
        #[command(flatten)]
        at: AtRun,
    },
    /// Continue after a pause
    Resume {
        #[command(flatten)]
        at: AtRun,
    },
    /// Serve an HTTP API for runs, and their live pages, on the fleet or, without one, on this machine
    Serve(FleetServeArgs),
    /// Run a NATS server for a fleet, with its own token, until stopped
    Broker(BrokerArgs),
}

/// Where the fleet is.
#[derive(Group)]
pub(crate) struct AtServer {
    /// The fleet's NATS server: nats://HOST:PORT, or tls:// [env: NATS_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
}

/// Which run.
#[derive(Group)]
pub(crate) struct AtRun {
    #[command(flatten)]
    pub(crate) server: AtServer,
    /// The run's id, as printed at its start [default: the one in progress]
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
}

/// Where runs are served, and where they take place.
#[derive(Group)]
#[command(
    after_help = "Start a run with `curl ADDR/runs --data-binary @load.toml`; `curl ADDR/` lists what else there is, and \
    ADDR/openapi.json describes it. Runs are stored, as those of `throng run`. The token is sent in clear text: across an \
    untrusted network, use `ssh -L`. Exit status: 0 stopped by a signal, 2 usage error, 3 the address is taken."
)]
pub(crate) struct FleetServeArgs {
    /// Address and port to listen on; port 0 takes a free port. Without a token, loopback only
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9910")]
    pub(crate) listen: String,
    /// Require the token in FILE (readable only by its owner) in each request
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<String>,
    #[command(flatten)]
    pub(crate) at: AtServer,
    /// Without a fleet, allow runs to this target; repeatable: HOST, HOST:PORT or a network [default: loopback]
    #[arg(long, value_name = "TARGET")]
    pub(crate) allow: Vec<String>,
    /// Exit when standard input is closed, so that the process does not outlive its parent
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// `throng fleet broker`.
#[derive(Group)]
#[command(after_help = "It starts nats-server with JetStream. Its token and JetStream's data are kept \
    in $XDG_STATE_HOME/throng/broker [default: below ~/.local/state], and reused the next time. The server exits with this \
    command, even if the command is killed. Exit status: 0 stopped by a signal, 2 usage error, 3 it cannot be started.")]
pub(crate) struct BrokerArgs {
    /// Address and port to listen on; port 0 takes a free port
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:4222")]
    pub(crate) listen: String,
    /// Keep token and streams in DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<String>,
    /// The server to start, on the path or by its file
    #[arg(long, value_name = "PROGRAM", default_value = "nats-server")]
    pub(crate) nats_server: String,
    /// Use TLS, with the certificate in FILE (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<String>,
    /// The private key of --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<String>,
    /// Exit when standard input is closed, so that the process does not outlive its parent
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

//! `throng fleet serve`.

use clap::Args as Group;

use super::AtServer;

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

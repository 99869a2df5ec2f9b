//! The control API of `throng agent`, and its caps.

use clap::Args as Group;

/// What an agent serves, and how much it may load.
#[derive(Group)]
pub(crate) struct ControlArgs {
    /// Serve the control API for curl at this address; port 0 takes a free port. Without a token, loopback only
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Require the token in FILE (readable only by its owner) in each request to the control API
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) token_file: Option<String>,
    /// Hold at most N connections at once, of runs and of the control API together [default: what this machine can hold]
    #[arg(long, value_name = "N")]
    pub(crate) max_connections: Option<String>,
    /// Dial and send at most RATE (1k/s): refuse plans that could exceed it, pace dials of clients of the control API
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate: Option<String>,
}

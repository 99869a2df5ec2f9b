//! `throng ui`.

use clap::Args as Group;

/// Where the stored runs are served.
#[derive(Group)]
#[command(after_help = "Open the address that it prints. With --token-file, append #token=TOKEN. \
    The store is not modified. The token is sent in clear text: across an untrusted network, use `ssh -L`. \
    Exit status: 0 stopped by a signal, 2 usage error or no stored run, 3 the address is taken or the store cannot be read.")]
pub(crate) struct UiArgs {
    /// Address and port to listen on; port 0 takes a free port. Without a token, loopback only
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9920")]
    pub(crate) listen: String,
    /// Require the token in FILE (readable only by its owner) in each request
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<String>,
    /// Exit when standard input is closed, so that the process does not outlive its parent
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

//! The words of `throng lab`.

use clap::{Args as Group, Subcommand};

/// `throng lab`.
#[derive(Group)]
#[command(
    after_help = "Labs are folders with a lab.toml: in `labs` of the folder one is in, or in the one that THRONG_LABS names. What is \
built goes to $XDG_CACHE_HOME/throng/labs [default: below ~/.cache]. No process is left behind."
)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) verb: LabVerb,
}

/// What to do with labs.
#[derive(Subcommand)]
pub(crate) enum LabVerb {
    /// All labs, their servers, what is missing for them, their experiments
    List,
    /// Start a lab's server, say where it is, and stop it on SIGINT
    Up {
        /// The lab
        name: String,
        /// Which of its servers [default: the first]
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
    },
    /// Run a lab's experiments: server up, load, server down; what the text saw beside what it is now
    Run(LabRunArgs),
}

/// `throng lab run`.
#[derive(Group)]
#[command(
    after_help = "Exit status: 0 all as expected, 1 something was not, 2 wrong words, 3 it cannot run here, 130 interrupted."
)]
pub(crate) struct LabRunArgs {
    /// The lab
    pub(crate) name: String,
    /// Of the text's size: 0.1 is a tenth [default: what each experiment says for a small machine]
    #[arg(long, value_name = "X")]
    pub(crate) scale: Option<f64>,
    /// Only these: the name of an experiment, of a server or of a variant; several narrow it down
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Vec<String>,
    /// A server that runs already, instead of the lab's own: http://HOST:PORT
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
}

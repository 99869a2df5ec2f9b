//! The command line of `throng lab`.

use std::path::PathBuf;

use clap::{Args as Group, Parser, Subcommand};

/// Repeat published experiments against real servers.
#[derive(Parser)]
#[command(
    name = "throng-lab",
    bin_name = "throng lab",
    version,
    max_term_width = 110,
    after_help = "Labs are folders with a lab.toml, in `labs` in the current folder or in the folder named \
    by THRONG_LABS. Builds go to $XDG_CACHE_HOME/throng/labs [default: below ~/.cache]. No process is left \
    behind."
)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) verb: LabVerb,
}

/// What to do with labs.
#[derive(Subcommand)]
pub(crate) enum LabVerb {
    /// List all labs: their servers, what each still needs, and their experiments
    List,
    /// Start a lab's server, print its address, and stop it on SIGINT
    Up {
        /// The lab
        name: String,
        /// Server to start [default: the first]
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Set an environment variable of the server; repeatable
        #[arg(long, value_name = "NAME=VALUE")]
        env: Vec<String>,
        /// Scale of the heap and everything else proportional to it
        #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = scale)]
        scale: f64,
    },
    /// Build the servers of a lab's experiments, without starting them; what a build downloads is then present
    Build {
        /// The lab
        name: String,
        /// Build only for this experiment, server or variant; repeatable, to narrow it down
        #[arg(long, value_name = "NAME")]
        variant: Vec<String>,
    },
    /// Run a lab's experiments: start the server, apply the load, stop the server; print the published results
    /// beside the current ones
    Run(LabRunArgs),
    /// Hold a lab's load for hours; report what drifts, and when the server paused
    Soak(LabSoakArgs),
    /// Show all results, then and now, with the spread of repetitions, and all servers in one table
    Compare(LabCompareArgs),
}

/// Of `--scale`.
fn scale(text: &str) -> Result<f64, String> {
    let scale: Option<f64> = text.parse().ok().filter(|scale| lab::is_scale(*scale));
    scale.ok_or_else(|| "must be greater than 0 and at most 100; 0.1 is a tenth".to_owned())
}

/// `throng lab run`.
#[derive(Group)]
#[command(
    after_help = "Exit status: 0 all as expected, 1 something was not, 2 usage error, 3 it cannot run \
    here, 130 interrupted."
)]
pub(crate) struct LabRunArgs {
    /// The lab
    pub(crate) name: String,
    /// Fraction of the published size: 0.1 is a tenth [default: each experiment's own for a small machine]
    #[arg(long, value_name = "X", value_parser = scale)]
    pub(crate) scale: Option<f64>,
    /// Run only this experiment, server or variant; repeatable, to narrow it down
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Vec<String>,
    /// Time at full load [default: each experiment's own; shorter below its scale]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Repeat everything N times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) times: u32,
    /// Repeat a run up to N times if throng itself was the limit
    #[arg(long, value_name = "N", default_value_t = lab::REPEATS)]
    pub(crate) repeats: u32,
    /// Use a running server instead of the lab's own: http://HOST:PORT, or https://
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
    /// Append the results to FILE, one line of JSON each [default: labs.jsonl beside the run store]
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,
}

/// `throng lab soak`.
#[derive(Group)]
#[command(
    after_help = "Prints the status twenty times. At the end, each figure is tested for drift: a trend \
    (Kendall's test, less than 0.1 % by chance) of more than 1 % of its median over the whole run, without \
    the first tenth. Exit status: as for `throng lab run`; also 1 if something drifts."
)]
pub(crate) struct LabSoakArgs {
    /// The lab
    pub(crate) name: String,
    /// Duration: 20m, 8h
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: String,
    /// Fraction of the published size [default: the lab's own for a small machine]
    #[arg(long, value_name = "X", value_parser = scale)]
    pub(crate) scale: Option<f64>,
    /// Server, or variant of it [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Vec<String>,
    /// Use a running server instead of the lab's own: http://HOST:PORT, or https://
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
    /// As for `throng lab run`
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,
}

/// `throng lab compare`.
#[derive(Group)]
pub(crate) struct LabCompareArgs {
    /// Show only this lab
    pub(crate) name: Option<String>,
    /// Read the results from FILE, as for `throng lab run`
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,
    /// Write a page of Markdown; its charts go to the folder `experiments` beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the medians as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
}

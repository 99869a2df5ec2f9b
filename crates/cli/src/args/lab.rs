//! The words of `throng lab`.

use std::path::PathBuf;

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
        /// With this in its environment, as an experiment's variant may have it; as often as needed
        #[arg(long, value_name = "NAME=VALUE")]
        env: Vec<String>,
        /// Heap and all else that goes with the scale
        #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = scale)]
        scale: f64,
    },
    /// Run a lab's experiments: server up, load, server down; what the text saw beside what it is now
    Run(LabRunArgs),
    /// Hold a lab's load for hours: what drifts, and when the server paused
    Soak(LabSoakArgs),
    /// What was run, then and now, with the spread of its repetitions; and all servers in one table
    Compare(LabCompareArgs),
}

/// Of `--scale`.
fn scale(text: &str) -> Result<f64, String> {
    let scale: Option<f64> = text.parse().ok().filter(|scale| *scale > 0.0 && *scale <= 100.0);
    scale.ok_or_else(|| "more than 0 and at most 100: 0.1 is a tenth".to_owned())
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
    #[arg(long, value_name = "X", value_parser = scale)]
    pub(crate) scale: Option<f64>,
    /// Only these: the name of an experiment, of a server or of a variant; several narrow it down
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Vec<String>,
    /// Time at full load, instead of what each experiment says [default: that, shortened where the scale is smaller than
    /// its own]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Everything so many times, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) times: u32,
    /// A server that runs already, instead of the lab's own: http://HOST:PORT
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
    /// Where what came of it is kept, a line of JSON each [default: labs.jsonl beside the run store]
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,
}

/// `throng lab soak`.
#[derive(Group)]
#[command(
    after_help = "Tells how things stand twenty times. At its end each figure is held against time: it drifts where it has a \
trend (Kendall's test, less than 0.1 % by chance) of more than 1 % of its median over the whole; the first tenth is not looked at. Exit status: as \
of `throng lab run`; 1 also where something drifts."
)]
pub(crate) struct LabSoakArgs {
    /// The lab
    pub(crate) name: String,
    /// For how long: 20m, 8h
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: String,
    /// Of the text's size [default: what the lab says for a small machine]
    #[arg(long, value_name = "X", value_parser = scale)]
    pub(crate) scale: Option<f64>,
    /// Which server, or which variant of it [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Vec<String>,
    /// A server that runs already, instead of the lab's own: http://HOST:PORT
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
    /// As of `throng lab run`
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,
}

/// `throng lab compare`.
#[derive(Group)]
pub(crate) struct LabCompareArgs {
    /// Of this lab only
    pub(crate) name: Option<String>,
    /// What is kept, as of `throng lab run`
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,
    /// Write a page of Markdown about all of it; its pictures go to the folder `experiments` beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the medians as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
}

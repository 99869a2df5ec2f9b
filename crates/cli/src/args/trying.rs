//! The arguments of the verbs that prepare a load: `throng try`, `init` and `import`.

use clap::Args as Group;

/// `throng try`.
#[derive(Group)]
#[command(
    after_help = "It takes the options of `throng run` for requests and TLS; those for the load are accepted and have no effect. \
    Of steps with a weight each is taken once, and a pause lasts at most 1 s. Secrets are masked with *: values of Authorization and \
    other fields, captured values and cookies. Exit status: 0 every response was right, 1 one was not, or --diff found a difference, or the connection was \
    lost, 2 usage error, 3 this machine cannot do it, 130 interrupted."
)]
pub(crate) struct TryArgs {
    /// Take the steps N times, as one user does: again from where the loop begins [default: 1]
    #[arg(short = 'n', long, value_name = "N", help_heading = "Try")]
    pub(crate) rounds: Option<String>,
    /// Only this population of a scenario [default: each in turn]
    #[arg(long, value_name = "NAME", help_heading = "Try")]
    pub(crate) population: Option<String>,
    /// Print content as long as it is, and not only its first 40 lines
    #[arg(long, help_heading = "Try")]
    pub(crate) full: bool,
    /// Send the same to this target, too: its scheme, host and port; and print what its responses differ in
    #[arg(long, value_name = "URL", help_heading = "Try")]
    pub(crate) diff: Option<String>,
    /// Print secrets
    #[arg(long, help_heading = "Try")]
    pub(crate) show_secrets: bool,
    /// Write the requests and responses as an HTTP archive (HAR 1.2), for the developer tools of a browser
    #[arg(long, value_name = "FILE", help_heading = "Try")]
    pub(crate) har: Option<String>,
}

/// `throng init`.
#[derive(Group)]
#[command(
    after_help = "It requests the target's path and the usual places of an OpenAPI document, once each. With a document, each of its \
    operations is a step; those that change data are comments. Exit status: 0 written, 2 usage error, 3 no response, or the file \
    could not be written, 130 interrupted."
)]
pub(crate) struct InitArgs {
    /// Write the scenario to FILE [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<String>,
}

/// `throng import`.
#[derive(Group)]
#[command(
    after_help = "Requests to one origin are carried over: that of most requests of an archive, otherwise the first. A value that an \
    earlier response of an archive has is captured there. Secrets become variables of the environment. What is not in the scenario is \
    listed on standard error and in its comments. Exit status: 0 written, 2 usage error, or nothing could be carried over, 3 the file \
    could not be written."
)]
pub(crate) struct ImportArgs {
    /// An HTTP archive (HAR), a Postman collection or an OpenAPI document, as JSON, or a file with commands of curl; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Write the scenario to FILE [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<String>,
}

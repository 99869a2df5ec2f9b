//! `throng completions`: prints a script with which a shell completes command lines. It is generated from the same table as the help.

use clap_complete::generate;

use crate::{
    Failure,
    args::{self, CompletionsArgs},
    print_stdout,
};

/// Prints the script to standard output.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut args::command(), "throng", &mut script);
    print_stdout(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

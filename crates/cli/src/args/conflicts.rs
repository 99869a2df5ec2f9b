//! Reports options that exclude each other. Clap would report only the first pair; this module reports all of them.

use clap::{Arg, ArgMatches, Command, Id, builder::Resettable, parser::ValueSource};

/// The command without its rules about exclusive options, so that clap parses a command line that has several of them.
pub(super) fn allowed(command: Command) -> Command {
    let alone = |arg: Arg| arg.conflicts_with(Resettable::<Id>::Reset);
    command.mut_args(alone).mut_subcommands(allowed)
}

/// A message for each pair of given options that exclude each other by the rules of `command`. `matches`: parsed with the [command
/// without these rules](allowed).
pub(super) fn mistakes(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let (mut verb, mut of_verb) = (command, matches);
    while let Some((name, inner)) = of_verb.subcommand() {
        let Some(own) = verb.find_subcommand(name) else { break };
        (verb, of_verb) = (own, inner);
    }
    let is_given = |arg: &&Arg| of_verb.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let mut mistakes = Vec::new();
    for arg in verb.get_arguments().filter(is_given) {
        for other in verb.get_arg_conflicts_with(arg).into_iter().filter(is_given) {
            let (arg, other) = (place(arg), place(other));
            mistakes.push(format!("{arg}: cannot be used with {other}; remove one of them"));
        }
    }
    mistakes
}

/// `--delete`, or the value's name, such as `RUN`, for a positional argument.
fn place(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_value_names()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some([name, ..])) => name.to_string(),
        (None, _) => arg.get_id().to_string(),
    }
}

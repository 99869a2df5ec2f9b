//! Options that exclude each other: clap names the first that it meets, here all are.

use clap::{Arg, ArgMatches, Command, Id, builder::Resettable, parser::ValueSource};

/// The same command, which takes them together.
pub(super) fn allowed(command: Command) -> Command {
    let alone = |arg: Arg| arg.conflicts_with(Resettable::<Id>::Reset);
    command.mut_args(alone).mut_subcommands(allowed)
}

/// A line for each two that were given and exclude each other; `matches` are of the command that [takes](allowed) them together.
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

/// `--delete`, or `RUN` for one without a flag.
fn place(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_value_names()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some([name, ..])) => name.to_string(),
        (None, _) => arg.get_id().to_string(),
    }
}

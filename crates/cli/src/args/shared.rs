//! The flags that `run` shares with other verbs: converts the rows of plan's table of flags to clap's arguments.

use clap::{Arg, ArgAction, ArgMatches};
use plan::Flags;
use plan::flag::{self, FLAGS, Flag, Group, Role, Takes};

/// The level of detail of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Help {
    /// `-h`: one line for each flag that most users need.
    Brief,
    /// `--help`: all flags with their full descriptions.
    Full,
}

/// The arguments of `throng run`: all flags.
pub(super) fn of_run(help: Help) -> impl Iterator<Item = Arg> {
    FLAGS.iter().map(move |flag| grouped(flag, help)).chain([own_help()])
}

/// The arguments of `throng find`: all flags; those that a search refuses are hidden from its help.
pub(super) fn of_find(help: Help) -> impl Iterator<Item = Arg> {
    let shown = move |flag: &'static Flag| {
        let arg = grouped(flag, help);
        let own = OF_SEARCH.iter().find(|(name, _)| *name == flag.name);
        let arg = own.into_iter().fold(arg, |arg, (_, text)| arg.help(*text));
        // `-h` has room for only one of the outputs.
        let is_hidden = help == Help::Brief && flag.name == "report";
        if is_hidden || refused_by_find(flag, "line").is_some() { arg.hide(true) } else { arg }
    };
    FLAGS.iter().map(move |flag| shown(flag)).chain([own_help()])
}

/// Flags with another meaning or default in a search than in a run, with their descriptions.
const OF_SEARCH: [(&str, &str); 6] = [
    ("connections", "--by rate: number of connections [default: 50]"),
    ("duration", "Time at full load of each step [default: 2s]"),
    ("think", "Pause after a response [default: 30s..90s]"),
    ("probe", "An independent user's requests [default: 20/s]"),
    ("junit", "Write the result and each step as a test case of JUnit's XML, for CI"),
    (
        "report",
        "Write a report of the search, its curve and its steps: HTML (.html) or JSON (.json), by the file's extension",
    ),
];

/// The arguments of `throng doctor`: all flags of a run, so that the command line of a run can be checked unchanged, except that
/// its `--json` has no file. Its help lists only those that the checks depend on.
pub(super) fn of_doctor() -> impl Iterator<Item = Arg> {
    let is_own = |flag: &Flag| OF_DOCTOR.iter().any(|(own, _)| own.name == flag.name);
    let is_other = move |flag: &&&'static Flag| !is_own(flag) && !matches!(flag.name, "target" | "json");
    let others = FLAGS.iter().filter(is_other).map(|flag| arg(flag).hide(true));
    OF_DOCTOR.into_iter().map(|(flag, text)| arg(flag).help(text)).chain(others)
}

/// The arguments of `throng try`: the flags of a run that determine what is sent; those that determine how much are hidden.
pub(super) fn of_try() -> impl Iterator<Item = Arg> {
    let is_taken = |flag: &&&'static Flag| {
        let of_plan = matches!(flag.role, Role::Load | Role::Work | Role::Machine);
        of_plan && !["requests", "target-gc"].contains(&flag.name) || flag.name == flag::SEED.name
    };
    FLAGS.iter().filter(is_taken).map(|flag| {
        let is_shown =
            flag.group == Group::Request || flag.name == flag::TARGET.name || flag.name == flag::TIMEOUT.name;
        grouped(flag, Help::Full).hide(!is_shown)
    })
}

/// The arguments of `throng init`: the target, and how to reach it.
pub(super) fn of_init() -> impl Iterator<Item = Arg> {
    let is_taken = |flag: &&&'static Flag| OF_INIT.iter().any(|own| own.name == flag.name);
    FLAGS.iter().filter(is_taken).map(|flag| arg(flag))
}

/// Flags that determine how a service is reached.
const OF_INIT: [&Flag; 6] =
    [&flag::TARGET, &flag::CONNECT_TO, &flag::HTTP2, &flag::INSECURE, &flag::CACERT, &flag::SNI];

/// Flags that the checks of this machine depend on, with their descriptions.
const OF_DOCTOR: [(&Flag, &str); 5] = [
    (
        &flag::CONNECTIONS,
        "Number of connections to hold [default: the largest that fits with the fixes, printed in the last line]",
    ),
    (&flag::SOURCES, "Local addresses to dial from: a list, or CIDR [default: automatic]"),
    (
        &flag::RAMP,
        "Dial at this rate, or all within this time [default: as fast as the target accepts connections]",
    ),
    (&flag::HTTP2, "Connections use HTTP/2"),
    (&flag::IO, "I/O backend, as for `throng run`; tun checks what a TUN device needs [default: auto]"),
];

/// The argument for a flag, under the heading of its group in the help.
fn grouped(flag: &'static Flag, help: Help) -> Arg {
    let arg = arg(flag);
    // The target is listed before all headings.
    let arg = if flag.name == flag::TARGET.name { arg } else { arg.help_heading(flag.group.title()) };
    match (help, flag.brief) {
        (Help::Full, _) => arg,
        (Help::Brief, Some(brief)) => arg.help(brief),
        (Help::Brief, None) => arg.hide(true),
    }
}

/// The argument for `-h` and `--help`, under a heading like all others.
fn own_help() -> Arg {
    let arg = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    arg.help("Print the most used options; --help prints all").help_heading(Group::Output.title())
}

/// The arguments of `throng replay`: the outputs that can be produced from a stored run.
pub(super) fn of_replay() -> impl Iterator<Item = Arg> {
    let live = arg(&flag::LIVE).help("Progress output: line, classic or off [default: line]");
    let exports = FLAGS.iter().filter(|flag| flag.role == Role::Export);
    std::iter::once(live).chain(exports.map(|flag| arg(flag)))
}

/// The arguments with credentials for NATS, for verbs that have their own argument for its URL.
pub(super) fn of_nats() -> impl Iterator<Item = Arg> {
    FLAGS.iter().filter(|flag| flag.name.starts_with("nats-")).map(|flag| arg(flag))
}

/// The reason if a search, whose only output is its result, does not accept this flag with this value.
pub(crate) fn refused_by_find(flag: &Flag, value: &str) -> Option<&'static str> {
    match flag.name {
        "json" | "junit" | "report" => None,
        "live" if ["auto", "line", "off"].contains(&value) => None,
        "live" => Some("not supported by `throng find`, which prints a line per step; remove it"),
        "format" => Some("not supported by `throng find`; remove it or use --json FILE"),
        "tag" => Some("a search is not stored; use it with `throng run` at the load found"),
        "target-gc" => Some(
            "not supported by `throng find`, whose steps would fail on the pauses; use it with `throng run` at \
            the load found",
        ),
        "requests" => Some("not supported by `throng find`, whose steps last for --duration; remove it"),
        // A step that loses an agent fails, and the next one runs without it.
        "on-lost" => Some("not supported by `throng find`; use it with `throng run`"),
        _ if flag.role.is_output() => {
            Some("not supported by `throng find`; use it with `throng run` at the load found")
        }
        _ => None,
    }
}

fn arg(flag: &'static Flag) -> Arg {
    let arg = Arg::new(flag.name).help(flag.help);
    if flag.takes == Takes::Nothing {
        return named(arg, flag).action(ArgAction::SetTrue);
    }
    let arg = arg.value_name(flag.value);
    if flag.name == flag::TARGET.name {
        return arg;
    }
    // The parser of the value decides whether it may be negative.
    let arg = named(arg, flag).allow_negative_numbers(true);
    match flag.takes {
        Takes::Nothing | Takes::One => arg,
        Takes::OneOr(value) => arg.num_args(0..=1).default_missing_value(value),
        Takes::Many => arg.action(ArgAction::Append),
    }
}

/// Adds the flag's name, and its one-letter form if there is one.
fn named(arg: Arg, flag: &Flag) -> Arg {
    flag.short.into_iter().fold(arg.long(flag.name), Arg::short)
}

/// The flags of a plan that the arguments of a verb contain, as typed.
pub(super) fn typed(of_verb: &ArgMatches) -> Flags {
    let mut flags = Flags::default();
    for flag in FLAGS {
        // The verb may have an argument of this name with another type, or none.
        let is_set = matches!(of_verb.try_get_one(flag.name), Ok(Some(true)));
        let values = of_verb.try_get_many::<String>(flag.name).ok().flatten().into_iter().flatten();
        let values = is_set.then(String::new).into_iter().chain(values.cloned());
        flags = values.fold(flags, |flags, value| flags.with(flag, value));
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command_with;
    use std::fs;

    /// The section about a verb in the reference.
    fn reference(verb: &str) -> String {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
        let text = fs::read_to_string(file).unwrap();
        let (_, section) =
            text.split_once(&format!("\n## `throng {verb}`\n")).expect("the verb has a section");
        section.split("\n## ").next().unwrap().to_owned()
    }

    #[test]
    fn the_reference_has_every_flag_where_it_is_taken_and_only_there() {
        let (run, find, replay) = (reference("run"), reference("find"), reference("replay"));
        for flag in FLAGS.iter().filter(|flag| flag.name != "target") {
            let is_in = |text: &str| text.split([' ', '\n']).any(|word| word == flag.place());
            let in_replay = flag.role == Role::Export || flag.name == "live";
            let expected = (true, refused_by_find(flag, "line").is_none(), in_replay);
            assert_eq!((is_in(&run), is_in(&find), is_in(&replay)), expected, "{}", flag.name);
        }
    }

    #[test]
    fn the_help_of_a_search_has_its_own_defaults() {
        for help in [Help::Brief, Help::Full] {
            for (name, text) in OF_SEARCH {
                let arg = of_find(help).find(|arg| arg.get_id() == name).expect("a search takes it");
                assert_eq!(arg.get_help().map(ToString::to_string).as_deref(), Some(text), "{name}");
                let is_shown = help == Help::Full || !["junit", "report"].contains(&name);
                assert_eq!(!arg.is_hide_set(), is_shown, "{name}");
            }
        }
        assert!(of_run(Help::Brief).all(|arg| {
            OF_SEARCH
                .iter()
                .all(|(_, text)| arg.get_help().map(ToString::to_string).as_deref() != Some(*text))
        }));
    }

    #[test]
    fn typed_text_arrives_unchanged() {
        let line = "throng run http://h/ -c 5 --probe --tag a --tag=b --target-gc";
        let matches = command_with(Help::Full).try_get_matches_from(line.split(' ')).unwrap();
        let flags = typed(matches.subcommand().unwrap().1);
        let expected = Flags::new("http://h/")
            .with(&flag::CONNECTIONS, 5)
            .with(&flag::PROBE, "10/s")
            .with(&flag::TAG, "a")
            .with(&flag::TAG, "b")
            .with(&flag::TARGET_GC, "");
        assert_eq!(flags, expected);
    }

    #[test]
    fn doctor_takes_the_line_of_a_run() {
        let line = "throng doctor https://h/ -c 5 -k --connect-to 127.0.0.1:9 --http2 --live off --json";
        let matches = command_with(Help::Full).try_get_matches_from(line.split(' ')).unwrap();
        let flags = typed(matches.subcommand().unwrap().1);
        assert!(flags.get(&flag::INSECURE).is_some() && flags.get(&flag::HTTP2).is_some());
        assert_eq!(flags.get(&flag::CONNECTIONS), Some("5"));
        assert_eq!(flags.get(&flag::CONNECT_TO), Some("127.0.0.1:9"));
        let shown: Vec<_> = of_doctor().filter(|arg| !arg.is_hide_set()).collect();
        assert_eq!(shown.len(), OF_DOCTOR.len());
    }

    #[test]
    fn a_search_takes_a_plan_and_refuses_outputs() {
        let taken = |flag: &&&Flag| refused_by_find(flag, "line").is_none();
        let outputs: Vec<&str> =
            FLAGS.iter().filter(taken).filter(|flag| flag.role.is_output()).map(|flag| flag.name).collect();
        assert_eq!(outputs, ["live", "json", "junit", "report"]);
        let refused = FLAGS.iter().filter(|flag| !taken(flag) && !flag.role.is_output());
        let refused: Vec<_> =
            refused.filter(|flag| !flag.name.starts_with("nats-")).map(|flag| flag.name).collect();
        assert_eq!(refused, ["requests", "on-lost", "target-gc"]);
    }
}

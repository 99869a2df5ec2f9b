//! Arguments that clap refuses: all of them at once, each with what was probably meant, the nearest flag or verb, or what another tool
//! calls it.

use std::{ffi::OsString, iter::once};

use clap::{
    Arg, ArgMatches, Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use plan::flag::Flag;

/// Arguments that are put right, or left out, to read the others; beyond these no more are looked for.
const MOST: usize = 20;

/// Flags of curl, wrk, oha, hey, ab and k6, and what they are here.
const SYNONYMS: [(&str, &str); 30] = [
    ("--clients", "--connections"),
    ("--concurrency", "--connections"),
    ("--users", "--connections"),
    ("--vus", "--connections"),
    ("--cookie", "--header"),
    ("--user-agent", "--header"),
    ("--content-type", "--header"),
    ("--data", "--body"),
    ("--data-raw", "--body"),
    ("--data-binary", "--body-file"),
    ("--form", "--body-file"),
    ("--json-body", "--body"),
    ("--request", "--method"),
    ("--hostname", "--host"),
    ("--resolve", "--connect-to"),
    ("--max-time", "--timeout"),
    ("--connect-timeout", "--timeout"),
    ("--iterations", "--requests"),
    ("--number", "--requests"),
    ("--count", "--requests"),
    ("--qps", "--rate"),
    ("--rps", "--rate"),
    ("--time", "--duration"),
    ("--output", "--out"),
    ("--port", "--listen"),
    ("-i", "--requests"),
    ("-t", "--threads"),
    ("-q", "--rate"),
    ("-z", "--duration"),
    ("-m", "--method"),
];

/// Flags of these tools that need none here, or have no counterpart that is a flag.
const INSTEAD: [(&str, &str); 26] = [
    ("--latency", "percentiles are always printed"),
    ("--url", "the target needs no flag: throng run URL"),
    ("-u", "the user is in the URL: http://USER:PASSWORD@HOST/"),
    ("--user", "the user is in the URL: http://USER:PASSWORD@HOST/"),
    ("-a", "the user is in the URL: http://USER:PASSWORD@HOST/"),
    ("-T", "the content type is a header: -H 'Content-Type: TYPE'"),
    ("-A", "the user agent is a header: -H 'User-Agent: NAME'"),
    ("-b", "cookies are a header: -H 'Cookie: NAME=VALUE'"),
    ("-o", "--json FILE, --csv FILE, --report FILE.html, or --out DIR for all of them"),
    ("-L", REDIRECTS),
    ("--location", REDIRECTS),
    ("--follow", REDIRECTS),
    ("--redirect", REDIRECTS),
    ("-s", SCRIPT),
    ("--script", SCRIPT),
    ("--stage", SCRIPT),
    ("--stages", SCRIPT),
    ("-v", "what throng knows is in the summary; --json - prints all of it"),
    ("--verbose", "what throng knows is in the summary; --json - prints all of it"),
    ("--http3", "throng speaks HTTP/1.1 and, with --http2, HTTP/2"),
    ("--disable-keepalive", "--arrive RATE opens a connection for each request"),
    ("-x", "throng does not use proxies; --connect-to HOST:PORT dials another host"),
    ("--proxy", "throng does not use proxies; --connect-to HOST:PORT dials another host"),
    ("--quiet", "--live off shows no progress"),
    ("--no-tui", "--live line prints a line per second"),
    ("-p", "the port is in the target, http://HOST:PORT/; of `throng serve` it is --listen PORT"),
];
const REDIRECTS: &str = "redirects are followed by a scenario file's key: redirects = 5";
const SCRIPT: &str = "steps and stages are in a scenario file: throng run FILE.toml";

/// What clap makes of a command line.
#[derive(Default)]
pub(super) struct Read {
    /// Of all that is no mistake; none where it is not known what that is.
    pub(super) matches: Option<ArgMatches>,
    /// A line for each.
    pub(super) mistakes: Vec<String>,
}

/// Reads the arguments after the program's name: clap stops at the first that it does not know, which is then put right or left out.
///
/// # Errors
/// Help or the version is to be printed instead.
pub(super) fn read(command: &Command, args: &[OsString]) -> Result<Read, Error> {
    let (mut read, mut args, mut is_sure) = (Read::default(), args.to_vec(), true);
    for _ in 0..MOST {
        let all = once(OsString::from("throng")).chain(args.iter().cloned());
        let error = match command.clone().try_get_matches_from(all) {
            Ok(matches) => {
                read.matches = Some(matches).filter(|_| is_sure);
                break;
            }
            Err(error) if is_help(&error) && read.mistakes.is_empty() => return Err(error),
            Err(error) if is_help(&error) => break,
            Err(error) => error,
        };
        let texts: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let (mistake, fix) = explained(&error, command, &texts);
        // What a flag that nobody knows would have taken is in nobody's place, and another's is empty.
        let follows = matches!(fix, Fix::LeaveOut(at) if !texts[at].starts_with('-'))
            || error.kind() == ErrorKind::MissingRequiredArgument;
        if is_sure || !follows {
            read.mistakes.push(mistake);
        }
        match fix {
            Fix::Replace(at, with) => args[at] = with.into(),
            Fix::LeaveOut(at) => drop(args.remove(at)),
            Fix::LeaveOutWithValue(at) => {
                is_sure = false;
                let has_value =
                    texts.get(at + 1).is_some_and(|next| !next.starts_with('-') && !is_target(next));
                args.drain(at..=at + usize::from(has_value));
            }
            Fix::None => break,
        }
    }
    Ok(read)
}

/// Where the options of the command of these arguments are listed.
pub(super) fn help_of(command: &Command, args: &[OsString]) -> String {
    let args: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let names: Vec<&str> = verbs_of(command, &args).iter().map(|verb| verb.get_name()).collect();
    format!("`{} --help` lists all options", names.join(" "))
}

fn is_help(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::MissingSubcommand
    )
}

/// What to do with the argument at a place, to read those after it.
enum Fix {
    /// What was meant.
    Replace(usize, String),
    LeaveOut(usize),
    /// The next one may be its value.
    LeaveOutWithValue(usize),
    /// The others cannot be read.
    None,
}

/// The mistake in a line.
fn explained(error: &Error, command: &Command, args: &[String]) -> (String, Fix) {
    let wrong = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let explained = match error.kind() {
        ErrorKind::UnknownArgument => {
            wrong(ContextKind::InvalidArg).and_then(|arg| unknown_argument(arg, command, args))
        }
        // One that is there is not judged here.
        ErrorKind::InvalidValue if wrong(ContextKind::InvalidValue).is_none_or(str::is_empty) => {
            wrong(ContextKind::InvalidArg).and_then(|flag| without_value(flag, command, args))
        }
        ErrorKind::InvalidSubcommand => {
            wrong(ContextKind::InvalidSubcommand).and_then(|word| unknown_command(word, command, args))
        }
        _ => None,
    };
    explained.unwrap_or_else(|| (first_paragraph(error), Fix::None))
}

/// A flag that is the last one, or followed by another: `--rate <RATE>`, as clap has it. None if it is not among them.
fn without_value(flag: &str, command: &Command, args: &[String]) -> Option<(String, Fix)> {
    let (name, value) = flag.split_once(' ')?;
    let long = name.strip_prefix("--")?;
    let verb = verb_of(command, args);
    let known = verb.get_arguments().find(|arg| arg.get_long() == Some(long));
    let letter = known.and_then(Arg::get_short).map(|letter| format!("-{letter}"));
    let is_it = |own: &String| own == name || Some(own) == letter.as_ref();
    let is_last = |at: usize| args.get(at + 1).is_none_or(|next| next.starts_with('-'));
    let at = (0..args.len()).find(|at| is_it(&args[*at]) && is_last(*at))?;
    let example = Flag::named(name).filter(|_| is_of_load(verb)).and_then(Flag::example);
    let value = example.unwrap_or(value.trim_matches(['<', '>']));
    Some((format!("{name}: requires a value; use {name} {value}"), Fix::LeaveOut(at)))
}

/// None if it is not among them.
fn unknown_argument(arg: &str, command: &Command, args: &[String]) -> Option<(String, Fix)> {
    let verb = verb_of(command, args);
    if !arg.starts_with('-') {
        // One of the same text before it may be the one that is taken.
        let at = args.iter().rposition(|own| own == arg)?;
        let fix = if is_of_load(verb) { "; give one target, or a range: http://10.0.0.{1..3}/" } else { "" };
        return Some((
            format!("unexpected argument {:?}{fix}", units::without_login(arg)),
            Fix::LeaveOut(at),
        ));
    }
    let name = arg.split('=').next().unwrap_or_default();
    let at = args.iter().position(|own| has_name(own, name))?;
    let value = args[at].strip_prefix(name);
    let left_out = match value {
        Some(value) if !value.is_empty() => Fix::LeaveOut(at),
        _ => Fix::LeaveOutWithValue(at),
    };
    // Of curl it is a login, of k6 a number.
    let given = value.filter(|value| !value.is_empty()).or(args.get(at + 1).map(String::as_str));
    let is_number = given.is_some_and(|given| given.parse::<u64>().is_ok());
    let known_as = if name == "-u" && is_number { "--vus" } else { name };
    if let Some((_, instead)) = INSTEAD.iter().find(|(other, _)| *other == known_as && is_of_load(verb)) {
        return Some((format!("{name}: unknown option; {instead}"), left_out));
    }
    let Some(meant) = flag(known_as, verb).filter(|meant| meant != name) else {
        return Some((format!("{name}: unknown option"), left_out));
    };
    let fix = match value {
        None => left_out,
        Some("") => Fix::Replace(at, meant.clone()),
        Some(value) => Fix::Replace(at, format!("{meant}={}", value.trim_start_matches('='))),
    };
    Some((format!("{name}: unknown option; use {meant}"), fix))
}

/// Whether an argument is the flag of this name, alone, with its value, or among other letters.
fn has_name(arg: &str, name: &str) -> bool {
    match (arg.strip_prefix(name), name.strip_prefix("--")) {
        (Some(rest), Some(_)) => rest.is_empty() || rest.starts_with('='),
        (None, Some(_)) => false,
        (Some(_), None) => true,
        (None, None) => !arg.starts_with("--") && arg.starts_with('-') && arg.contains(&name[1..]),
    }
}

fn unknown_command(word: &str, command: &Command, args: &[String]) -> Option<(String, Fix)> {
    if is_target(word) {
        let word = units::shell_word(word);
        return Some((format!("{word}: unknown command; to load it: throng run {word}"), Fix::None));
    }
    let at = args.iter().position(|own| own == word)?;
    let verbs: Vec<&str> = verb_of(command, args).get_subcommands().map(Command::get_name).collect();
    Some(match plan::nearest(word, verbs.iter().copied()) {
        Some(meant) => (format!("{word}: unknown command; use {meant}"), Fix::Replace(at, meant.to_owned())),
        None => (format!("{word}: unknown command"), Fix::None),
    })
}

/// What clap says without its usage and tips.
fn first_paragraph(error: &Error) -> String {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let lines: Vec<&str> = first.lines().map(str::trim).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).trim_end().to_owned()
}

/// Whether a verb takes what the tools do that are known here.
fn is_of_load(verb: &Command) -> bool {
    ["run", "find"].contains(&verb.get_name())
}

/// The flag that was meant by this name, of this verb's.
fn flag(name: &str, verb: &Command) -> Option<String> {
    let long: Vec<&str> = verb.get_arguments().filter_map(|arg| arg.get_long()).collect();
    let is_there = |flag: &&str| long.iter().any(|own| flag.strip_prefix("--") == Some(own));
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == name).map(|(_, ours)| *ours).filter(is_there);
    let near = || plan::nearest(name.strip_prefix("--")?, long.iter().copied()).map(|own| format!("--{own}"));
    synonym.map(str::to_owned).or_else(near)
}

/// The command of these arguments, after those that it belongs to.
fn verbs_of<'c>(command: &'c Command, args: &[String]) -> Vec<&'c Command> {
    let mut verbs = vec![command];
    for arg in args.iter().filter(|arg| !arg.starts_with('-')) {
        match verbs[verbs.len() - 1].find_subcommand(arg) {
            Some(inner) => verbs.push(inner),
            None => break,
        }
    }
    verbs
}

fn verb_of<'c>(command: &'c Command, args: &[String]) -> &'c Command {
    verbs_of(command, args).pop().unwrap_or(command)
}

/// Whether a word where a verb should be is a target: a URL, a host with its port, or a scenario file.
fn is_target(word: &str) -> bool {
    word.contains("://") || word.contains(':') || word.contains('/') || word.ends_with(".toml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{command_with, shared::Help};

    fn mistakes(line: &str) -> (Vec<String>, bool) {
        let args: Vec<OsString> = line.split(' ').skip(1).map(OsString::from).collect();
        let read = read(&command_with(Help::Full), &args).expect("no help");
        (read.mistakes, read.matches.is_some())
    }

    /// The only mistake, with what was meant.
    fn check(line: &str, expected: Option<&str>) {
        let (mistakes, _) = mistakes(line);
        let [mistake] = &mistakes[..] else { panic!("{line}: {mistakes:?}") };
        let (what, meant) =
            mistake.split_once("; ").map_or((mistake.as_str(), None), |(what, meant)| (what, Some(meant)));
        assert!(
            what.ends_with(": unknown option") || what.ends_with(": unknown command"),
            "{line}: {mistake}"
        );
        match (meant, expected) {
            (Some(meant), Some(expected)) => assert!(meant.contains(expected), "{line}: {mistake}"),
            (meant, expected) => assert_eq!(meant, expected, "{line}"),
        }
    }

    #[test]
    fn the_near_one_is_suggested() {
        check("throng run h --conections 5", Some("use --connections"));
        check("throng run h --connection=5", Some("use --connections"));
        check("throng run h --hots x", Some("use --host"));
        check("throng run h --thresold x", Some("use --threshold"));
        check("throng run h --headers x", Some("use --header"));
        check("throng run h --body_file x", Some("use --body-file"));
        check("throng run h --conn 5", Some("use --connections"));
        check("throng run h --colour x", None);
        check("throng serve --port 5", Some("use --listen"));
        check("throng serve --lisen x", Some("use --listen"));
        check("throng serve --conections 5", None);
    }

    #[test]
    fn what_other_tools_call_it_is_known() {
        check("throng run h --concurrency 5", Some("use --connections"));
        check("throng run h --data x", Some("use --body"));
        check("throng run h --request PUT", Some("use --method"));
        check("throng run h -z 5s", Some("use --duration"));
        check("throng run h -z5s", Some("use --duration"));
        check("throng serve --data x", None);
        check("throng run h -L", Some("redirects = 5"));
        check("throng find h --latency", Some("always printed"));
        check("throng run -u a:b h", Some("http://USER:PASSWORD@HOST/"));
        check("throng run h -u 10", Some("use --connections"));
        check("throng run h -u10", Some("use --connections"));
        check("throng run h -i 100", Some("use --requests"));
        check("throng run h -T text/html", Some("-H 'Content-Type: TYPE'"));
        check("throng serve -v", None);
        for (_, ours) in SYNONYMS.iter().filter(|(_, ours)| *ours != "--listen") {
            let name = ours.trim_start_matches("--");
            assert!(plan::flag::FLAGS.iter().any(|flag| flag.name == name), "{ours}");
        }
        for (other, _) in INSTEAD {
            let is_ours = plan::flag::Flag::named(other).is_some();
            assert!(!is_ours && SYNONYMS.iter().all(|(known, _)| *known != other), "{other}");
        }
    }

    #[test]
    fn the_near_verb_is_suggested() {
        check("throng rnu http://h/", Some("use run"));
        check("throng compair a b", Some("use compare"));
        check("throng fleet drian a", Some("use drain"));
        check("throng xyz", None);
        check("throng localhost:8000 -c 5", Some("throng run localhost:8000"));
        check("throng http://h/?a=b", Some("throng run 'http://h/?a=b'"));
    }

    #[test]
    fn all_that_are_unknown_are_mistakes_and_the_rest_is_read() {
        let check = |line: &str, expected: &[&str], is_read: bool| {
            let (mistakes, has_rest) = mistakes(line);
            assert_eq!(mistakes, expected, "{line}");
            assert_eq!(has_rest, is_read, "{line}");
        };
        let connections = "--conections: unknown option; use --connections";
        check("throng run h -c 5", &[], true);
        check(
            "throng run --conections 5 h --thnik 1s",
            &[connections, "--thnik: unknown option; use --think"],
            true,
        );
        check("throng rnu --conections=5 h", &["rnu: unknown command; use run", connections], true);
        // Nobody knows whether the next one is its value: no more is said of what may follow from it.
        check("throng run --colour red h --conections 5", &["--colour: unknown option", connections], false);
        check("throng run --colour h:1 h --conections 5", &["--colour: unknown option", connections], false);
        check("throng run h --colour=red", &["--colour: unknown option"], true);
        check("throng report --colour", &["--colour: unknown option"], false);
        let second =
            "unexpected argument \"http://…@h/\"; give one target, or a range: http://10.0.0.{1..3}/";
        check("throng run h http://u:p@h/ --conections 5", &[second, connections], true);
        let missing = "--connections: requires a value; use --connections 500k";
        check("throng run h --thnik 1s -c", &["--thnik: unknown option; use --think", missing], true);
        check(
            "throng run h --connections --thnik 1s",
            &["--thnik: unknown option; use --think", missing],
            true,
        );
        let rate = "--rate: requires a value; use --rate 20k/s";
        check("throng run -c --rate", &[missing, rate], true);
        let file = "--json: requires a value; use --json FILE";
        check("throng run h --json", &[file], true);
        let many: String = (0..100).map(|n| format!(" --colour-{n}=x")).collect();
        assert_eq!(mistakes(&format!("throng run h{many}")).0.len(), MOST);
    }

    #[test]
    fn a_negative_number_is_a_value_and_no_option() {
        let args = ["run", "h", "-c", "-5"].map(OsString::from);
        let read = read(&command_with(Help::Full), &args).expect("no help");
        assert!(read.mistakes.is_empty() && read.matches.is_some(), "{:?}", read.mistakes);
    }

    #[test]
    fn help_is_that_of_the_command() {
        let help = |line: &str| {
            let args: Vec<OsString> = line.split(' ').skip(1).map(OsString::from).collect();
            help_of(&command_with(Help::Full), &args)
        };
        assert_eq!(help("throng run h --colour"), "`throng run --help` lists all options");
        assert_eq!(help("throng fleet set --colour"), "`throng fleet set --help` lists all options");
        assert_eq!(help("throng xyz"), "`throng --help` lists all options");
    }

    #[test]
    fn help_and_version_are_no_mistakes() {
        for line in ["--help", "run --help", "--version", "fleet"] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert!(read(&command_with(Help::Full), &args).is_err(), "{line}");
        }
    }
}

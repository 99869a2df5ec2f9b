//! Explains arguments that clap refuses: all of them at once, each with what was probably meant: the nearest flag or command, or
//! the equivalent of another tool's option.

use std::{ffi::OsString, iter::once, ops::Range};

use clap::{
    Arg, ArgMatches, Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use plan::flag::Flag;
use units::{Bytes, Nanos, Rate, Spans};

use super::conflicts;

/// Maximum number of refused arguments that are corrected or removed so that the remaining ones can be parsed.
const MOST: usize = 20;

/// Options of curl, wrk, wrk2, oha, hey, ab and k6, with the equivalent flag of throng.
const SYNONYMS: [(&str, &str); 32] = [
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
    ("-R", "--rate"),
    ("-z", "--duration"),
    ("-m", "--method"),
    ("-a", "--user"),
];

/// Options of these tools without an equivalent flag, with what to do instead.
const INSTEAD: [(&str, &str); 27] = [
    ("--latency", "percentiles are always printed"),
    ("--url", "the target needs no flag: throng run URL"),
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
    ("-v", VERBOSE),
    ("-vv", VERBOSE),
    ("--verbose", VERBOSE),
    ("--nats", "the NATS server of a fleet is --fleet nats://HOST:PORT"),
    ("--http1.1", "HTTP/1.1 is the default; --http2 is HTTP/2"),
    ("--http1", "HTTP/1.1 is the default; --http2 is HTTP/2"),
    ("--http3", "throng speaks HTTP/1.1 and, with --http2, HTTP/2"),
    ("--disable-keepalive", "--arrive RATE opens a connection for each request"),
    ("-x", "throng does not use proxies; --connect-to HOST:PORT dials another host"),
    ("--proxy", "throng does not use proxies; --connect-to HOST:PORT dials another host"),
    ("--quiet", "--live off shows no progress"),
    ("--no-tui", "--live line prints a line per second"),
    ("-p", "the port is in the target, http://HOST:PORT/; of `throng serve` it is --listen PORT"),
];
const REDIRECTS: &str = "redirects are followed by a scenario file's key: redirects = 5";
const VERBOSE: &str = "throng try shows a request and its response; --json - prints every figure of a run";
const SCRIPT: &str = "steps and stages are in a scenario file: throng run FILE.toml";

/// The result of parsing a command line.
#[derive(Default)]
pub(super) struct Read {
    /// The arguments without the refused ones; `None` if these cannot be determined.
    pub(super) matches: Option<ArgMatches>,
    /// The mistakes, one line each.
    pub(super) mistakes: Vec<String>,
}

/// Parses the arguments after the program's name. Clap stops at the first argument that it refuses: that one is corrected or
/// removed, and the rest is parsed again.
///
/// # Errors
/// Help or the version was requested, and is to be printed instead.
pub(super) fn read(command: &Command, args: &[OsString]) -> Result<Read, Error> {
    let (mut read, mut args, mut is_sure) = (Read::default(), args.to_vec(), true);
    let lenient = conflicts::allowed(command.clone());
    for _ in 0..MOST {
        let all = || once(OsString::from("throng")).chain(args.iter().cloned());
        let error = match lenient.clone().try_get_matches_from(all()) {
            Ok(matches) => {
                if is_sure {
                    read.mistakes.extend(conflicts::mistakes(command, &matches));
                    read.matches = Some(matches);
                }
                break;
            }
            Err(error) if is_help(&error) && read.mistakes.is_empty() => return Err(error),
            Err(error) if is_help(&error) => break,
            Err(error) => error,
        };
        let texts: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let (mistake, fix) = explained(&error, command, &texts);
        // After an unknown flag it is unclear whether the next word is its value. So an unexpected or missing positional argument
        // may only be a consequence, and is not reported.
        let follows = matches!(fix, Fix::LeaveOut(at) if !texts[at].starts_with('-'))
            || error.kind() == ErrorKind::MissingRequiredArgument;
        if (is_sure || !follows) && !read.mistakes.contains(&mistake) {
            read.mistakes.push(mistake);
        }
        if is_sure
            && error.kind() == ErrorKind::MissingRequiredArgument
            && let Ok(matches) = lenient.clone().ignore_errors(true).try_get_matches_from(all())
        {
            read.mistakes.extend(conflicts::mistakes(command, &matches));
        }
        match fix {
            Fix::Replace(at, with) => args[at] = with.into(),
            Fix::LeaveOut(at) => drop(args.remove(at)),
            Fix::LeaveOutAll(all) => drop(args.drain(all)),
            Fix::LeaveOutWithValue(at) => {
                let next = texts.get(at + 1).filter(|next| !next.starts_with('-'));
                // Without a following word the flag has no value, and the other arguments remain clear.
                is_sure &= next.is_none();
                let has_value = next.is_some_and(|next| !is_target(next));
                args.drain(at..=at + usize::from(has_value));
            }
            Fix::None => break,
        }
    }
    Ok(read)
}

/// The hint where the options of the command in these arguments are listed.
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

/// What to do with a refused argument, given by its position, so that the arguments after it can be parsed.
enum Fix {
    /// Replace it with what was meant.
    Replace(usize, String),
    LeaveOut(usize),
    LeaveOutAll(Range<usize>),
    /// Remove it, and the next argument too if that may be its value.
    LeaveOutWithValue(usize),
    /// The remaining arguments cannot be parsed.
    None,
}

/// The message for an error of clap, in one line, and how to continue.
fn explained(error: &Error, command: &Command, args: &[String]) -> (String, Fix) {
    let wrong = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let explained = match error.kind() {
        ErrorKind::UnknownArgument => {
            wrong(ContextKind::InvalidArg).and_then(|arg| unknown_argument(arg, command, args))
        }
        // Only a missing value is explained here; for an invalid one, clap's message is used.
        ErrorKind::InvalidValue if wrong(ContextKind::InvalidValue).is_none_or(str::is_empty) => {
            wrong(ContextKind::InvalidArg).and_then(|flag| without_value(flag, command, args))
        }
        // Exclusive options are allowed here and reported by `conflicts`, so the remaining conflict is a flag that was given twice.
        ErrorKind::ArgumentConflict => {
            wrong(ContextKind::InvalidArg).and_then(|flag| given_again(flag, command, args))
        }
        ErrorKind::InvalidSubcommand => {
            wrong(ContextKind::InvalidSubcommand).and_then(|word| unknown_command(word, command, args))
        }
        _ => None,
    };
    explained.unwrap_or_else(|| (first_paragraph(error), Fix::None))
}

/// A flag without its value, because it is the last argument or another flag follows. `flag` is clap's text, such as `--rate
/// <RATE>`. `None` if the arguments do not contain it.
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

/// A flag that was given more than once. `flag` is clap's text, such as `--rate <RATE>`. `None` if the arguments do not contain it.
fn given_again(flag: &str, command: &Command, args: &[String]) -> Option<(String, Fix)> {
    let name = flag.split([' ', '[', '=']).next()?;
    let long = name.strip_prefix("--")?;
    let known = verb_of(command, args).get_arguments().find(|arg| arg.get_long() == Some(long))?;
    let letter = known.get_short().map(|letter| format!("-{letter}"));
    let is_letter = |own: &str| letter.as_deref().is_some_and(|letter| own.starts_with(letter));
    let at = args.iter().rposition(|own| has_name(own, name) || is_letter(own))?;
    let is_alone = args[at] == name || Some(&args[at]) == letter.as_ref();
    let needs_value = known.get_num_args().is_none_or(|values| values.min_values() > 0);
    let has_value = args.get(at + 1).is_some_and(|next| needs_value || !next.starts_with('-'));
    let is_value = is_alone && known.get_action().takes_values() && has_value;
    let fix = Fix::LeaveOutAll(at..at + 1 + usize::from(is_value));
    Some((format!("{name}: given more than once; remove all but one"), fix))
}

/// An argument that the verb does not have. `None` if the arguments do not contain it.
fn unknown_argument(arg: &str, command: &Command, args: &[String]) -> Option<(String, Fix)> {
    let verb = verb_of(command, args);
    if !arg.starts_with('-') {
        if let Some((mistake, at)) = apart(args) {
            return Some((mistake, Fix::LeaveOut(at)));
        }
        // The last one: an earlier argument with the same text may have been accepted.
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
    if let Some((_, instead)) = INSTEAD.iter().find(|(other, _)| *other == name && is_of_load(verb)) {
        return Some((format!("{name}: unknown option; {instead}"), left_out));
    }
    let Some(meant) = flag(name, verb).filter(|meant| meant != name) else {
        return Some((format!("{name}: unknown option"), left_out));
    };
    let fix = match value {
        None => left_out,
        Some("") => Fix::Replace(at, meant.clone()),
        Some(value) => Fix::Replace(at, format!("{meant}={}", value.trim_start_matches('='))),
    };
    Some((format!("{name}: unknown option; use {meant}"), fix))
}

/// A value that is separated from its unit, as in `-d 10 s`, where no further argument is expected. Returns the message, and the
/// position of the unit.
fn apart(args: &[String]) -> Option<(String, usize)> {
    let is_value = |text: &str| {
        Nanos::parse(text).is_ok()
            || Rate::parse(text).is_ok()
            || Spans::parse(text).is_ok()
            || Bytes::parse(text).is_ok()
    };
    args.windows(3).enumerate().find_map(|(at, three)| {
        let [flag, number, unit] = three else { return None };
        let joined = format!("{number}{unit}");
        let is_unit = unit.starts_with(|c: char| c.is_alphabetic() || c == '/')
            && number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let mistake =
            || format!("{flag} {number} {unit}: a number and its unit are one argument; use {flag} {joined}");
        (flag.starts_with('-') && is_unit && is_value(&joined)).then(|| (mistake(), at + 2))
    })
}

/// Whether an argument is the flag with this name: alone, with its value, or as one of several letters.
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

/// Clap's message without its usage and tips, in one line.
fn first_paragraph(error: &Error) -> String {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let lines: Vec<&str> = first.lines().map(str::trim).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).trim_end().to_owned()
}

/// Whether a verb generates load, so that the options of the known tools have equivalents.
fn is_of_load(verb: &Command) -> bool {
    ["run", "try", "find"].contains(&verb.get_name())
}

/// The flag of this verb that was probably meant by this name.
fn flag(name: &str, verb: &Command) -> Option<String> {
    let long: Vec<&str> = verb.get_arguments().filter_map(|arg| arg.get_long()).collect();
    let is_there = |flag: &&str| long.iter().any(|own| flag.strip_prefix("--") == Some(own));
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == name).map(|(_, ours)| *ours).filter(is_there);
    let near = || plan::nearest(name.strip_prefix("--")?, long.iter().copied()).map(|own| format!("--{own}"));
    synonym.map(str::to_owned).or_else(near)
}

/// The command that these arguments name, preceded by its parent commands.
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

/// Whether a word in the place of a command is a target: a URL, a host with its port, or a scenario file.
fn is_target(word: &str) -> bool {
    word.contains("://") || word.contains(':') || word.contains('/') || word.ends_with(".toml")
}

#[cfg(test)]
mod tests;

//! What was probably meant: the nearest flag or verb, or what another tool calls it.

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

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
    ("--no-tui", "--live"),
    ("-t", "--threads"),
    ("-q", "--rate"),
    ("-z", "--duration"),
    ("-m", "--method"),
];

/// Flags of these tools that need none here, or have no counterpart that is a flag.
const INSTEAD: [(&str, &str); 24] = [
    ("--latency", "percentiles are always printed"),
    ("--url", "the target needs no flag: throng run URL"),
    ("-u", "the user is in the URL: http://USER:PASSWORD@HOST/"),
    ("--user", "the user is in the URL: http://USER:PASSWORD@HOST/"),
    ("-a", "the user is in the URL: http://USER:PASSWORD@HOST/"),
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
    ("-p", "the port is in the target, http://HOST:PORT/; of `throng serve` it is --listen PORT"),
];
const REDIRECTS: &str = "redirects are followed by a scenario file's key: redirects = 5";
const SCRIPT: &str = "steps and stages are in a scenario file: throng run FILE.toml";

/// The error with a suggestion that fits, where there is one.
pub(super) fn explained(error: Error, command: &Command) -> Error {
    let args: Vec<String> = std::env::args().skip(1).collect();
    explained_for(error, command, &args)
}

fn explained_for(mut error: Error, command: &Command, args: &[String]) -> Error {
    let wrong = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let Some(arg) = wrong(ContextKind::InvalidArg) else { return error };
            let verb = of(command, args);
            let name = arg.split('=').next().unwrap_or_default();
            // clap's own is that `-- --flag` is a value, which no argument of throng has.
            error.remove(ContextKind::Suggested);
            error.remove(ContextKind::SuggestedArg);
            if let Some((_, instead)) = INSTEAD.iter().find(|(other, _)| *other == name && is_of_load(verb)) {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*instead).into()]));
            } else {
                suggest(&mut error, ContextKind::SuggestedArg, flag(&arg, verb));
            }
        }
        ErrorKind::InvalidSubcommand => {
            let Some(word) = wrong(ContextKind::InvalidSubcommand) else { return error };
            if is_target(&word) {
                error.remove(ContextKind::SuggestedSubcommand);
                let fix = format!("to load it: throng run {}", units::shell_word(&word));
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![fix.into()]));
                return error;
            }
            let of = verb_of(command, args).0;
            let verbs: Vec<&str> = of.get_subcommands().map(Command::get_name).collect();
            suggest(
                &mut error,
                ContextKind::SuggestedSubcommand,
                plan::nearest(&word, verbs.iter().copied()).map(str::to_owned),
            );
        }
        _ => {}
    }
    error
}

/// Whether a verb takes what the tools do that are known here.
fn is_of_load(verb: &Command) -> bool {
    ["run", "find"].contains(&verb.get_name())
}

/// Replaces clap's suggestion, which is the first that begins alike.
fn suggest(error: &mut Error, kind: ContextKind, meant: Option<String>) {
    error.remove(kind);
    if let Some(meant) = meant {
        error.remove(ContextKind::Suggested);
        error.insert(kind, ContextValue::String(meant));
    }
}

/// The flag that was meant by `arg`, of this verb's.
fn flag(arg: &str, verb: &Command) -> Option<String> {
    let name = arg.split('=').next().unwrap_or_default();
    let long: Vec<&str> = verb.get_arguments().filter_map(|arg| arg.get_long()).collect();
    let is_there = |flag: &&str| long.iter().any(|own| flag.strip_prefix("--") == Some(own));
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == name).map(|(_, ours)| *ours).filter(is_there);
    let near = || plan::nearest(name.strip_prefix("--")?, long.iter().copied()).map(|own| format!("--{own}"));
    synonym.map(str::to_owned).or_else(near)
}

/// The command of these arguments, and the word that is none of its own.
fn verb_of<'c, 'a>(command: &'c Command, args: &'a [String]) -> (&'c Command, Option<&'a str>) {
    let mut verb = command;
    for arg in args.iter().filter(|arg| !arg.starts_with('-')) {
        match verb.find_subcommand(arg) {
            Some(inner) => verb = inner,
            None => return (verb, Some(arg)),
        }
    }
    (verb, None)
}

fn of<'c>(command: &'c Command, args: &[String]) -> &'c Command {
    verb_of(command, args).0
}

/// Whether a word where a verb should be is a target: a URL, a host with its port, or a scenario file.
fn is_target(word: &str) -> bool {
    word.contains("://") || word.contains(':') || word.contains('/') || word.ends_with(".toml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{command_with, shared::Help};

    fn check(line: &str, expected: Option<&str>) {
        let command = command_with(Help::Full);
        let args: Vec<String> = line.split(' ').skip(1).map(str::to_owned).collect();
        let error = command.clone().try_get_matches_from(line.split(' ')).expect_err("it is wrong");
        let text = explained_for(error, &command, &args).to_string();
        let tips: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("tip: ")).collect();
        match expected {
            Some(expected) => assert!(matches!(tips[..], [tip] if tip.contains(expected)), "{line}: {text}"),
            None => assert!(tips.is_empty(), "{line}: {text}"),
        }
    }

    #[test]
    fn the_near_one_is_suggested() {
        check("throng run h --conections 5", Some("'--connections'"));
        check("throng run h --connection=5", Some("'--connections'"));
        check("throng run h --hots x", Some("'--host'"));
        check("throng run h --thresold x", Some("'--threshold'"));
        check("throng run h --headers x", Some("'--header'"));
        check("throng run h --body_file x", Some("'--body-file'"));
        check("throng run h --conn 5", Some("'--connections'"));
        check("throng run h --colour x", None);
        check("throng serve --port 5", Some("'--listen'"));
        check("throng serve --lisen x", Some("'--listen'"));
        check("throng serve --conections 5", None);
    }

    #[test]
    fn what_other_tools_call_it_is_known() {
        check("throng run h --concurrency 5", Some("'--connections'"));
        check("throng run h --data x", Some("'--body'"));
        check("throng run h --request PUT", Some("'--method'"));
        check("throng run h -z 5s", Some("'--duration'"));
        check("throng serve --data x", None);
        check("throng run h -L", Some("redirects = 5"));
        check("throng find h --latency", Some("always printed"));
        check("throng run -u a:b h", Some("http://USER:PASSWORD@HOST/"));
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
        check("throng rnu http://h/", Some("'run'"));
        check("throng compair a b", Some("'compare'"));
        check("throng fleet drian", Some("'drain'"));
        check("throng xyz", None);
        check("throng localhost:8000 -c 5", Some("throng run localhost:8000"));
        check("throng http://h/?a=b", Some("throng run 'http://h/?a=b'"));
    }
}

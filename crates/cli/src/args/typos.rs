//! What was probably meant: the nearest flag or verb, or what another tool calls it.

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Flags of curl, wrk, oha, hey, ab and k6, and what they are here.
const SYNONYMS: [(&str, &str); 29] = [
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
    ("--no-tui", "--live"),
    ("-t", "--threads"),
    ("-q", "--rate"),
    ("-z", "--duration"),
    ("-m", "--method"),
];

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
            suggest(&mut error, ContextKind::SuggestedArg, flag(&arg, of(command, args)));
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
            None => assert!(!text.contains("similar"), "{line}: {text}"),
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
        for (_, ours) in SYNONYMS {
            let name = ours.trim_start_matches("--");
            assert!(plan::flag::FLAGS.iter().any(|flag| flag.name == name), "{ours}");
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

//! Hides what must never be stored or shown: header values that may be secret, and users in targets.

use crate::flag::{self, Flag, Takes};
use crate::header;

/// Headers that are not secret and describe how a run's requests are made; in lower case.
const PUBLIC: [&str; 16] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "grpc-timeout",
    "connection",
    "content-length",
    "content-type",
    "host",
    "origin",
    "sec-websocket-key",
    "sec-websocket-protocol",
    "sec-websocket-version",
    "te",
    "upgrade",
    "user-agent",
];

/// Stands for a secret.
const HIDDEN: &str = "***";

/// Whether the value of this header may be shown.
pub fn is_public(name: &str) -> bool {
    PUBLIC.iter().any(|public| name.eq_ignore_ascii_case(public))
}

/// The value of a header as shown: `***` unless the header is public, like `Content-Type`.
fn shown_header<'v>(name: &str, value: &'v str) -> &'v str {
    if is_public(name) { value } else { HIDDEN }
}

/// Command-line arguments with `***` for header values that may be secret and for values of secret flags, and `…` for a user before
/// a host.
pub fn args_without_secrets(args: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut before: Option<&Flag> = None;
    let shown = |arg: String| {
        if let Some(flag) = before.take() {
            return shown_value(flag, &arg);
        }
        match flag_of(&arg) {
            Some((flag, end)) if end == arg.len() => before = Some(flag),
            Some((flag, end)) => return format!("{}{}", &arg[..end], shown_value(flag, &arg[end..])),
            None => {}
        }
        without_user(&arg)
    };
    args.into_iter().map(shown).collect()
}

/// The flag in an argument whose value is not simply shown, and where the value begins: `--user=…`, `-u…`, `-ku…`; at the end of the
/// argument if the next one is the value.
fn flag_of(arg: &str) -> Option<(&'static Flag, usize)> {
    let hides = |flag: &Flag| flag.name == flag::HEADER.name || flag::is_secret(flag.name);
    if arg.starts_with("--") {
        let end = arg.find('=').unwrap_or(arg.len());
        return Some((Flag::named(&arg[..end]).filter(|flag| hides(flag))?, (end + 1).min(arg.len())));
    }
    let short = |c| Flag::named(&format!("-{c}"));
    let mut letters = arg.strip_prefix('-')?.char_indices().map(|(at, c)| (short(c), 1 + at + c.len_utf8()));
    // Letters of flags without a value may precede it.
    let (flag, end) = letters.find(|(flag, _)| flag.is_none_or(|flag| flag.takes != Takes::Nothing))?;
    Some((flag.filter(|flag| hides(flag))?, end))
}

fn shown_value(flag: &Flag, value: &str) -> String {
    if flag.name == flag::HEADER.name { shown_field(value) } else { HIDDEN.to_owned() }
}

fn shown_field(field: &str) -> String {
    match header::split(field) {
        Ok((name, value)) => format!("{name}: {}", shown_header(name, value)),
        // A malformed field may contain anything.
        Err(_) => HIDDEN.to_owned(),
    }
}

/// A URL, or a target without a scheme, with `…` for user and password.
pub fn without_user(arg: &str) -> String {
    let end = arg.find(['/', '?', '#']).unwrap_or(arg.len());
    match arg[..end].rsplit_once('@') {
        Some((user, host)) if !arg.contains("://") && !user.contains(char::is_whitespace) => {
            format!("…@{host}{}", &arg[end..])
        }
        _ => units::without_login(arg),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_stored_without_its_secrets() {
        for (line, expected) in [
            ("run|h|-H|Authorization: Bearer x|-c|5", "run|h|-H|Authorization: ***|-c|5"),
            ("-H|Content-Type: a/b", "-H|Content-Type: a/b"),
            ("--header=Cookie: a=b|--header|X-Key:k", "--header=Cookie: ***|--header|X-Key: ***"),
            ("-HX-Key: k|-H|secret", "-HX-Key: ***|-H|***"),
            ("--user|me:s|-u|me:s|--user=me:s|-ume:s", "--user|***|-u|***|--user=***|-u***"),
            ("-kume:s|-ku|me:s|-k|-c|5|-é", "-ku***|-ku|***|-k|-c|5|-é"),
            ("http://u:p@h/a|u:p@h:81/a@b", "http://…@h/a|…@h:81/a@b"),
            ("--message|hello @ you", "--message|hello @ you"),
        ] {
            let args = line.split('|').map(str::to_owned);
            assert_eq!(args_without_secrets(args).join("|"), expected, "{line}");
        }
    }
}

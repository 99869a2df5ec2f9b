//! Hides what must never be stored or shown: header values that may be secret, and users in targets.

use crate::header;

/// Headers that are not secret and describe how a run's requests are made; in lower case.
const PUBLIC: [&str; 10] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-type",
    "host",
    "origin",
    "sec-websocket-protocol",
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

/// Command-line arguments with `***` for header values that may be secret, and `…` for a user before a host.
pub fn args_without_secrets(args: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut is_header = false;
    let shown = |arg: String| match std::mem::take(&mut is_header) {
        true => shown_field(&arg),
        false if arg == "-H" || arg == "--header" => {
            is_header = true;
            arg
        }
        false => match arg.split_at_checked("--header=".len()) {
            Some((flag @ "--header=", field)) => format!("{flag}{}", shown_field(field)),
            _ => match arg.strip_prefix("-H") {
                Some(field) => format!("-H{}", shown_field(field)),
                None => without_user(&arg),
            },
        },
    };
    args.into_iter().map(shown).collect()
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
            ("http://u:p@h/a|u:p@h:81/a@b", "http://…@h/a|…@h:81/a@b"),
            ("--message|hello @ you", "--message|hello @ you"),
        ] {
            let args = line.split('|').map(str::to_owned);
            assert_eq!(args_without_secrets(args).join("|"), expected, "{line}");
        }
    }
}

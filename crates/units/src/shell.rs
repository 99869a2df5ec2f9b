//! Quoting for shells.

/// An argument of a command line, quoted if a shell would interpret it otherwise.
pub fn shell_word(arg: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(is_plain) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_is_quoted() {
        for (word, expected) in [
            ("", "''"),
            ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/"),
            ("http://[::1]:80/", "'http://[::1]:80/'"),
            ("http://127.0.0.{1..3}/?length={rand 1 9}", "'http://127.0.0.{1..3}/?length={rand 1 9}'"),
            ("http://x/it's", r"'http://x/it'\''s'"),
        ] {
            assert_eq!(shell_word(word), expected);
        }
    }
}

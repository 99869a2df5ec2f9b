//! URLs without user and password.

/// Replaces user and password of URLs in a text by `…`: `nats://…@10.0.0.1:4222`.
pub fn without_login(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // RFC 3986 section 3.2: the authority ends here, and its user information at the last @.
        let authority = part.find(['/', '?', '#', ' ', '\n', '"']).map_or(part, |end| &part[..end]);
        let login = authority.rfind('@').unwrap_or(0);
        shown += "://";
        shown += if login > 0 { "…" } else { "" };
        shown += &part[login..];
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_not_shown() {
        for (text, expected) in [
            ("nats://u:secret@10.0.0.1:4222", "nats://…@10.0.0.1:4222"),
            ("--fleet=tls://secret@h", "--fleet=tls://…@h"),
            ("nats://u:s@a:1,nats://u:s,@b:2", "nats://…@a:1,nats://…@b:2"),
            ("nats://u:s@t@a", "nats://…@a"),
            ("http://h/?mail=a@b.c", "http://h/?mail=a@b.c"),
            ("http://[::1]:80/", "http://[::1]:80/"),
            ("a@b", "a@b"),
            ("", ""),
        ] {
            assert_eq!(without_login(text), expected);
        }
    }
}

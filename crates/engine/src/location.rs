//! Resolves URLs from a server, in Location or as a captured link (the URL Standard, <https://url.spec.whatwg.org>).

use url::{Position, Url};

/// Why the connection cannot request a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// It cannot be parsed.
    Unreadable,
    /// It has another scheme, host or port.
    Origin,
}

/// The path and query of a URL, resolved against the request's: `base` is its path and query, with scheme (http or https) and
/// host (which may have a port). An empty URL leads nowhere.
///
/// # Errors
/// The URL cannot be parsed, or is of another origin.
pub(crate) fn path_of(
    reference: &[u8],
    base: &[u8],
    (scheme, host): (&str, &str),
) -> Result<String, Elsewhere> {
    let resolve = || {
        let base = Url::parse(&format!("{scheme}://{host}{}", encoded(base)))?;
        base.join(&encoded(reference)).map(|to| (base, to))
    };
    match resolve() {
        _ if reference.trim_ascii().is_empty() => Err(Elsewhere::Unreadable),
        Err(_) => Err(Elsewhere::Unreadable),
        Ok((base, to)) if origin(&base) != origin(&to) => Err(Elsewhere::Origin),
        Ok((_, to)) => Ok(to[Position::BeforePath..Position::AfterQuery].to_owned()),
    }
}

/// Security, host and port of a URL. A WebSocket URL has the origin of the request that opens it.
fn origin(url: &Url) -> Option<(bool, &str, u16)> {
    let is_secure = match url.scheme() {
        "http" | "ws" => false,
        "https" | "wss" => true,
        _ => return None,
    };
    Some((is_secure, url.host_str()?, url.port_or_known_default()?))
}

/// The octets as text: non-ASCII ones are percent-encoded, whatever their encoding.
fn encoded(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len());
    for octet in octets {
        match octet.is_ascii() {
            true => text.push(char::from(*octet)),
            false => text.push_str(&format!("%{octet:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(location: impl AsRef<[u8]>, expected: Result<&str, Elsewhere>) {
        let location = location.as_ref();
        let path = path_of(location, b"/a/b/c?d", ("http", "h:81"));
        assert_eq!(path, expected.map(str::to_owned), "{:?}", location.escape_ascii().to_string());
    }

    #[test]
    fn urls_are_resolved_as_by_a_browser() {
        check("/x?y#z", Ok("/x?y"));
        check("x/y", Ok("/a/b/x/y"));
        check("?d", Ok("/a/b/c?d"));
        check("../x", Ok("/a/x"));
        check("../../../x/./y/..", Ok("/x/"));
        check("./", Ok("/a/b/"));
        check("/é", Ok("/%C3%A9"));
        check(b"/\xe9?\xe9", Ok("/%E9?%E9"));
        check(" /a b\t?c d ", Ok("/a%20b?c%20d"));
        check("/%7Ea%2fb", Ok("/%7Ea%2fb"));
        check("\\x", Ok("/x"));
        check("http://h:81/x", Ok("/x"));
        check("HTTP://H:81?y", Ok("/?y"));
        check("http:x", Ok("/a/b/x"));
        check("ws://h:81/x", Ok("/x"));
        check("//h:81/x", Ok("/x"));
        check("http://user@h:81", Ok("/"));
        check("/to?url=http://other/", Ok("/to?url=http://other/"));
        for elsewhere in
            ["http://h:82/x", "http://h/x", "https://h:81/x", "//other/x", "mailto:a@h", "h:81/x"]
        {
            check(elsewhere, Err(Elsewhere::Origin));
        }
        for unreadable in ["", " ", "http://", "http://h:x/", "//[::1"] {
            check(unreadable, Err(Elsewhere::Unreadable));
        }
    }

    #[test]
    fn an_origin_has_a_port_that_need_not_be_named() {
        let check = |location: &str, origin: (&str, &str)| {
            assert_eq!(path_of(location.as_bytes(), b"//a", origin).as_deref(), Ok("/x"), "{location}");
        };
        check("http://h:80/x", ("http", "h"));
        check("https://h/x", ("https", "H:443"));
        check("//[::1]:81/x", ("http", "[::1]:81"));
        check("/x", ("http", "h"));
    }
}

//! Header fields as typed, and the fields that throng sets itself.

use crate::Scheme;

/// The error message for an invalid field name.
pub(crate) fn not_a_field(name: &str) -> String {
    format!("{name:?} is not a header name; use Content-Type")
}

/// Whether it is a token (RFC 9110 section 5.6.2), as methods and field names are.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Fields that frame a request.
const OF_REQUESTS: [&str; 4] = ["content-length", "transfer-encoding", "upgrade", "expect"];

/// Checks the name of a field for a target with this scheme.
///
/// # Errors
/// It is no field name, or throng sets the field.
pub(crate) fn check_name(name: &str, scheme: Scheme) -> Result<(), String> {
    if !is_token(name) {
        return Err(not_a_field(name));
    }
    match OF_REQUESTS.iter().chain(scheme.own_fields()).any(|own| name.eq_ignore_ascii_case(own)) {
        true => Err(format!("throng sets this header itself; remove it: {name}")),
        false => Ok(()),
    }
}

/// Splits a field as typed: `Name: value`; `Name;` has an empty value, as with curl.
///
/// # Errors
/// The text is neither.
pub(crate) fn split(text: &str) -> Result<(&str, &str), String> {
    match text.split_once(':') {
        Some((name, value)) if !value.trim().is_empty() => Ok((name.trim_end(), value.trim())),
        Some((name, _)) => Err(format!("no value; use '{name}: value', or '{name};' for an empty one")),
        None => match text.strip_suffix(';') {
            Some(name) => Ok((name, "")),
            None => Err(format!("{text:?} is not a header; use 'Name: value'")),
        },
    }
}

/// Checks the value of a Host field (RFC 9112 section 3.2): a host with or without a port.
///
/// # Errors
/// It is not one.
pub(crate) fn host(text: &str) -> Result<String, String> {
    let is_right = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    match text {
        "" => Err("no name; use example.org".to_owned()),
        _ if text.chars().all(is_right) => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is not a host; use example.org or example.org:8000")),
    }
}

/// Checks a method (RFC 9110 section 9.1), which must be in upper case because methods are case-sensitive.
///
/// # Errors
/// It is no method, or CONNECT, which another protocol follows.
pub(crate) fn method(text: &str) -> Result<String, String> {
    if is_token(text) && !text.bytes().any(|b| b.is_ascii_lowercase()) && text != "CONNECT" {
        return Ok(text.to_owned());
    }
    let upper = text.to_ascii_uppercase();
    let fix = if is_token(&upper) && upper != "CONNECT" { &upper } else { "GET" };
    Err(format!("{text:?} is not a method; use {fix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_for_curl() {
        for (text, expected) in [
            ("X-A: b", Ok(("X-A", "b"))),
            ("X-A:b:c ", Ok(("X-A", "b:c"))),
            ("X-A;", Ok(("X-A", ""))),
            ("X-A:", Err("no value; use 'X-A: value', or 'X-A;' for an empty one")),
            ("X-A", Err("\"X-A\" is not a header; use 'Name: value'")),
            ("", Err("\"\" is not a header; use 'Name: value'")),
        ] {
            assert_eq!(split(text), expected.map_err(str::to_owned), "{text:?}");
        }
    }

    #[test]
    fn a_field_is_set_by_one_of_the_two() {
        let ours = |name, scheme| check_name(name, scheme).is_err_and(|why| why.contains("itself"));
        let schemes = ["http://h", "ws://h", "grpc://h"].map(|target| Scheme::of_target(target).unwrap());
        for scheme in schemes {
            assert!(ours("Content-LENGTH", scheme) && ours("upgrade", scheme), "{scheme}");
            assert_eq!(check_name("Authorization", scheme), Ok(()));
            assert_eq!(check_name("Sec-WebSocket-Protocol", scheme), Ok(()));
        }
        for (name, expected) in [
            ("Connection", [false, true, false]),
            ("Content-Type", [false, false, true]),
            ("Cookie", [false; 3]),
        ] {
            assert_eq!(schemes.map(|scheme| ours(name, scheme)), expected);
        }
        assert_eq!(check_name("a b", Scheme::Http), Err(not_a_field("a b")));
    }

    #[test]
    fn hosts_and_methods_are_read() {
        for (text, is_right) in [
            ("example.org", true),
            ("example.org:81", true),
            ("[::1]:81", true),
            ("", false),
            ("a b", false),
            ("a/b", false),
        ] {
            assert_eq!(host(text).is_ok(), is_right, "{text:?}");
        }
        for (text, expected) in [
            ("PUT", Ok("PUT")),
            ("M-SEARCH", Ok("M-SEARCH")),
            ("post", Err("\"post\" is not a method; use POST")),
            ("CONNECT", Err("\"CONNECT\" is not a method; use GET")),
            ("", Err("\"\" is not a method; use GET")),
        ] {
            assert_eq!(method(text), expected.map(str::to_owned).map_err(str::to_owned), "{text:?}");
        }
    }
}

//! User and password, in a URL or by themselves: basic authentication (RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Splits an authority into user, if any, and host (RFC 3986, section 3.2).
pub(crate) fn split(authority: &str) -> (Option<&str>, &str) {
    match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    }
}

/// The value of the Authorization field for `user:password`, which may be percent-encoded.
///
/// # Errors
/// An invalid escape, or a control character. The message does not contain the text, because it is secret.
pub(crate) fn authorization(user: &str) -> Result<String, String> {
    let bytes =
        decoded(user).ok_or("the user or the password has a % without two hexadecimal digits; use %25")?;
    // An encoded colon belongs to the user.
    basic(&bytes, user.contains(':'))
}

/// The value of the Authorization field for `user:password`, taken literally.
///
/// # Errors
/// No password, as in `-u 100`, with which users of k6 mean a number of connections; or a control character. The message does not
/// contain the text, because it is secret.
pub(crate) fn literal(user: &str) -> Result<String, String> {
    if !user.contains(':') {
        return Err("has no password; use USER:PASSWORD, or for a number of connections -c".to_owned());
    }
    basic(user.as_bytes(), true)
}

fn basic(user: &[u8], has_password: bool) -> Result<String, String> {
    if user.iter().any(u8::is_ascii_control) {
        return Err("the user or the password has a control character; remove it".to_owned());
    }
    // RFC 7617 section 2: an absent password is an empty one.
    let colon: &[u8] = if has_password { b"" } else { b":" };
    Ok(format!("Basic {}", base64([user, colon].concat())))
}

fn base64(bytes: Vec<u8>) -> String {
    let mut out = vec![0; bytes.len().div_ceil(3) * 4];
    let length = STANDARD.encode_slice(bytes, &mut out).expect("four letters for three octets");
    out.truncate(length);
    String::from_utf8(out).expect("base64 is ASCII")
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    let digit = |byte: u8| char::from(byte).to_digit(16);
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => (digit(rest.next()?)? * 16 + digit(rest.next()?)?) as u8,
            byte => byte,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_a_field() {
        for (user, expected) in [
            // RFC 7617 section 2.
            ("Aladdin:open%20sesame", Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")),
            ("me", Some("Basic bWU6")),
            ("a:b:c", Some("Basic YTpiOmM=")),
            ("me:50%", None),
            ("me:%0a", None),
        ] {
            assert_eq!(authorization(user).ok().as_deref(), expected, "{user}");
        }
        assert_eq!(literal("me:50%").as_deref(), Ok("Basic bWU6NTAl"));
        assert_eq!(["me", "100", "me:\n"].map(|user| literal(user).ok()), [None, None, None]);
        assert_eq!(literal("me:"), authorization("me"));
        assert!(!authorization("me:geheim%").unwrap_err().contains("geheim"));
        assert_eq!(split("u:p@q@h:80"), (Some("u:p@q"), "h:80"));
        assert_eq!(split("h:80"), (None, "h:80"));
    }
}

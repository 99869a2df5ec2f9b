//! Secrets in what a server sent are masked before anything is stored: values of fields whose names suggest a secret, and values known to
//! be secret because a request carried them. The list of request headers that are not secret is `plan::is_public`, and nothing else.

/// A field whose lower-case name contains one of these holds a secret.
const NAMES: [&[u8]; 11] = [
    b"authorization",
    b"cookie",
    b"token",
    b"secret",
    b"password",
    b"passwd",
    b"api-key",
    b"api_key",
    b"apikey",
    b"session",
    b"credential",
];
/// Whether a field with this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.as_bytes();
    NAMES.iter().any(|secret| name.windows(secret.len()).any(|part| part.eq_ignore_ascii_case(secret)))
}

/// A value that may be secret, and the words in it.
pub fn secret_words(value: &[u8]) -> Vec<Box<[u8]>> {
    value.split(|b| b" ;=".contains(b)).chain([value]).map(Box::from).collect()
}

/// Header fields whose whole value, up to the end of the line, is secret.
const FIELDS: [&[u8]; 2] = [b"authorization", b"cookie"];
/// Authentication schemes, which precede a secret without a separator (RFC 6750, RFC 7617).
const SCHEMES: [&[u8]; 2] = [b"bearer ", b"basic "];
/// Shortest value that is masked: shorter ones are words that occur anywhere.
const SHORTEST: usize = 4;
const MASK: u8 = b'*';

/// Masks all secrets, byte by byte. The part of a value that is left at a cut end is masked, too.
pub(crate) fn mask(bytes: &mut [u8], values: &[Box<[u8]>]) {
    for value in values {
        mask_value(bytes, value);
    }
    let mut at = 0;
    while at < bytes.len() {
        at = match secret(&bytes[at..]) {
            Some((from, until)) => {
                bytes[at + from..at + until].fill(MASK);
                at + until.max(1)
            }
            None => at + 1,
        };
    }
}

fn mask_value(bytes: &mut [u8], value: &[u8]) {
    if value.len() < SHORTEST {
        return;
    }
    for at in 0..bytes.len() {
        let there = (bytes.len() - at).min(value.len());
        if there >= SHORTEST && bytes[at..at + there] == value[..there] {
            bytes[at..at + there].fill(MASK);
        }
    }
}

/// Start and end of the secret whose name or scheme begins at the start of `text`.
fn secret(text: &[u8]) -> Option<(usize, usize)> {
    let begins = |name: &&&[u8]| text.len() >= name.len() && text[..name.len()].eq_ignore_ascii_case(name);
    if let Some(scheme) = SCHEMES.iter().find(begins) {
        let from = scheme.len();
        return Some((from, from + word(&text[from..])));
    }
    let name = NAMES.iter().find(begins)?;
    let rest =
        text[name.len()..].iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let mut at = name.len() + rest.count();
    at += text[at..].iter().take_while(|b| matches!(b, b'"' | b'\'' | b'\\' | b' ')).count();
    if !matches!(text.get(at), Some(b':' | b'=')) {
        return None;
    }
    at += 1;
    at += text[at..].iter().take_while(|b| matches!(b, b'"' | b'\'' | b'\\' | b' ')).count();
    let before = text[at - 1];
    let length = if matches!(before, b'"' | b'\'') {
        text[at..].iter().take_while(|b| **b != before).count()
    } else if FIELDS.contains(name) {
        text[at..].iter().take_while(|b| !matches!(b, b'\r' | b'\n')).count()
    } else {
        word(&text[at..])
    };
    Some((at, at + length))
}

/// Length of an unquoted value: it ends where the surrounding text continues.
fn word(text: &[u8]) -> usize {
    let ends = |b: &u8| {
        b.is_ascii_whitespace() || matches!(b, b'&' | b',' | b';' | b'"' | b'\'' | b'<' | b'}' | b')')
    };
    text.iter().position(ends).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, values: &[&str], expected: &str) {
        let mut bytes = text.as_bytes().to_vec();
        let values: Vec<Box<[u8]>> = values.iter().map(|value| value.as_bytes().into()).collect();
        mask(&mut bytes, &values);
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[test]
    fn secrets_are_masked_by_their_names() {
        let head = "HTTP/1.1 401 No\r\nSet-Cookie: id=abc; Path=/\r\nX: 1\r\n";
        check(head, &[], "HTTP/1.1 401 No\r\nSet-Cookie: **************\r\nX: 1\r\n");
        check("Authorization: Basic dTpw\r\n", &[], "Authorization: **********\r\n");
        check(r#"{"access_token": "ey.J x","n":1}"#, &[], r#"{"access_token": "******","n":1}"#);
        check(r#"{"Authorization":"Bearer abc","n":1}"#, &[], r#"{"Authorization":"**********","n":1}"#);
        check("token=abc&x=1", &[], "token=***&x=1");
        check("invalid Bearer abc.def, sorry", &[], "invalid Bearer *******, sorry");
        check("PHPSESSIONID=77; x", &[], "PHPSESSIONID=**; x");
        check("api_key = 'k'", &[], "api_key = '*'");
        check("password=cut o", &[], "password=*** o");
    }

    #[test]
    fn words_that_name_no_value_stay() {
        for text in [
            "unexpected token < in JSON",
            "no such session",
            "503 Service Unavailable",
            "",
            "token=",
            "cookies",
        ] {
            check(text, &[], text);
        }
    }

    #[test]
    fn known_values_are_masked_wherever_they_are() {
        check("echo s3cr3t and s3cr3t", &["s3cr3t"], "echo ****** and ******");
        check("cut off s3cr", &["s3cr3t"], "cut off ****");
        check("a b", &["a"], "a b");
    }
}

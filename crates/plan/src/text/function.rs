//! The functions of texts: `{base64 …}`, `{hmac-sha256 KEY …}`. Each is a row of one table, and computes a text from octets.

use super::encoding::Encoding;
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{digest, hmac};

/// A function of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// With padding (RFC 4648, section 4).
    Base64,
    /// Without padding (RFC 4648, section 5).
    Base64Url,
    /// Percent-encoding of all but the unreserved characters (RFC 3986, section 2.3).
    Url,
    /// A hash: octets, as text in hexadecimal.
    Hash(Hash),
    /// A keyed hash (RFC 2104): octets, as text in hexadecimal.
    Hmac(Hash),
    /// A JSON Web Token with these claims, signed by HS256 (RFC 7519, RFC 7515).
    Jwt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
    Sha512,
}

/// The functions, by name.
const FUNCTIONS: [(&str, Function); 10] = [
    ("base64", Function::Base64),
    ("base64url", Function::Base64Url),
    ("url", Function::Url),
    ("sha1", Function::Hash(Hash::Sha1)),
    ("sha256", Function::Hash(Hash::Sha256)),
    ("sha512", Function::Hash(Hash::Sha512)),
    ("hmac-sha1", Function::Hmac(Hash::Sha1)),
    ("hmac-sha256", Function::Hmac(Hash::Sha256)),
    ("hmac-sha512", Function::Hmac(Hash::Sha512)),
    ("jwt", Function::Jwt),
];

/// The encoded header of a token: `{"alg":"HS256","typ":"JWT"}`.
const JWT_HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";

/// Length of the encoded signature of a token.
const JWT_SIGNATURE: usize = 43;

/// Maximum depth of braces in a function: texts are parsed recursively.
const DEEPEST: usize = 31;

/// The end of the function that begins here, after its closing brace; `None` if no function begins here.
pub(super) fn end(text: &str) -> Option<Result<usize, String>> {
    let name = text[1..].trim_start().split(|c: char| c.is_whitespace() || c == '}').next()?;
    Function::named(name).map(|_| {
        let (mut depth, mut bytes) = (0, text.bytes().enumerate());
        while let Some((at, byte)) = bytes.next() {
            match byte {
                // Of two braces before a letter, which stand for one, the second is skipped.
                b'{' => {
                    depth += 1;
                    if text[at..].starts_with("{{") && super::starts_variable(&text[at + 1..]) {
                        bytes.next();
                    }
                }
                b'}' => depth -= 1,
                _ => {}
            }
            match depth {
                0 => return Ok(at + 1),
                1..=DEEPEST => {}
                _ => return Err(format!("braces may nest {DEEPEST} deep: {:?}", super::excerpt(text))),
            }
        }
        Err(format!("unclosed brace; each {{ needs a }}: {:?}", super::excerpt(text)))
    })
}

impl Function {
    pub(super) fn named(name: &str) -> Option<Function> {
        FUNCTIONS.iter().find(|(own, _)| *own == name).map(|(_, function)| *function)
    }

    pub(super) fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }

    /// The names of the functions, each with an example.
    pub(super) fn examples() -> impl Iterator<Item = (&'static str, String)> {
        FUNCTIONS.iter().map(|(name, function)| (*name, function.example()))
    }

    pub(super) fn example(self) -> String {
        match (self, self.takes_key()) {
            (Function::Jwt, _) => r#"{jwt {env KEY} {"sub": "{seq}", "exp": {now s +5m}}}"#.to_owned(),
            (_, true) => format!("{{{} {{env KEY}} {{body}}}}", self.name()),
            (_, false) => format!("{{{} {{csv users.id}}}}", self.name()),
        }
    }

    /// Whether a key precedes its text.
    pub(super) fn takes_key(self) -> bool {
        matches!(self, Function::Hmac(_) | Function::Jwt)
    }

    /// Whether its result is octets, of which the text is the hexadecimal form.
    pub(super) fn is_digest(self) -> bool {
        matches!(self, Function::Hash(_) | Function::Hmac(_))
    }

    /// Whether its result is percent-encoded already.
    pub(super) fn is_encoded(self) -> bool {
        self == Function::Url
    }

    /// Maximum length in bytes of the result for a text of `octets`.
    pub(super) fn max_len(self, octets: usize) -> usize {
        match self {
            Function::Base64 => octets.div_ceil(3) * 4,
            Function::Base64Url => (octets * 4).div_ceil(3),
            Function::Url => octets * Encoding::Parameter.most(),
            Function::Hash(hash) | Function::Hmac(hash) => 2 * hash.algorithm().output_len(),
            Function::Jwt => JWT_HEADER.len() + (octets * 4).div_ceil(3) + "..".len() + JWT_SIGNATURE,
        }
    }

    /// The octets of the result.
    pub(super) fn octets(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        let sign = |algorithm, text: &[u8]| hmac::sign(&hmac::Key::new(algorithm, key), text);
        match self {
            Function::Base64 => STANDARD.encode(text).into_bytes(),
            Function::Base64Url => URL_SAFE_NO_PAD.encode(text).into_bytes(),
            Function::Url => Encoding::Parameter.encoded(text),
            Function::Hash(hash) => digest::digest(hash.algorithm(), text).as_ref().to_vec(),
            Function::Hmac(hash) => sign(hash.keyed(), text).as_ref().to_vec(),
            Function::Jwt => {
                let signed = format!("{JWT_HEADER}.{}", URL_SAFE_NO_PAD.encode(text));
                let tag = sign(hmac::HMAC_SHA256, signed.as_bytes());
                format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag)).into_bytes()
            }
        }
    }
}

impl Hash {
    fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Hash::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Hash::Sha256 => &digest::SHA256,
            Hash::Sha512 => &digest::SHA512,
        }
    }

    fn keyed(self) -> hmac::Algorithm {
        match self {
            Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Hash::Sha256 => hmac::HMAC_SHA256,
            Hash::Sha512 => hmac::HMAC_SHA512,
        }
    }
}

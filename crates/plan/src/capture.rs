//! Captures: values of a response that a connection stores for later requests and messages: `{ token = { json = "/access_token" } }`.

use regex::bytes::{Regex, RegexBuilder};
use std::fmt;

/// Maximum length of a captured value in bytes, which is that of a cookie (RFC 6265 section 6.1).
pub const LONGEST_VALUE: usize = 4_096;

/// Maximum length of all cookies of a connection in bytes, including attributes.
pub const LONGEST_JAR: usize = 8_192;

/// Maximum number of variables of a population: each has a 16-bit index, and takes two bytes per connection.
pub(crate) const MOST_VARIABLES: usize = 64;

/// Maximum length of a pointer or expression in bytes.
pub(crate) const LONGEST_PLACE: usize = 1_024;

/// Maximum number of tokens in a pointer.
const DEEPEST: usize = 32;

/// A value that a step captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Name of its variable.
    pub name: String,
    /// Index among the variables of the population.
    pub nth: u16,
    /// Its location in the response.
    pub from: From,
    /// Whether a later path begins with it: then it is a URL, stored as path and query after resolving it against the request's URL.
    pub is_link: bool,
    /// The value if the response has none; `None`: that is a fault.
    pub default: Option<String>,
}

/// The location of a value in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// At this JSON pointer of the content (RFC 6901).
    Json(String),
    /// In this header field, the first of its name.
    Header(String),
    /// In the cookie with this name, as set by Set-Cookie.
    Cookie(String),
    /// The first group of this expression (or the whole match), at its first match in the content.
    Regex(String),
}

impl From {
    /// Key and value in a scenario file.
    pub fn written(&self) -> (&'static str, &str) {
        match self {
            From::Json(pointer) => ("json", pointer),
            From::Header(name) => ("header", name),
            From::Cookie(name) => ("cookie", name),
            From::Regex(expression) => ("regex", expression),
        }
    }

    /// Whether it is in the head of a response, which messages do not have.
    pub(crate) fn is_of_head(&self) -> bool {
        matches!(self, From::Header(_) | From::Cookie(_))
    }
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, text) = self.written();
        write!(f, "{key} {text}")
    }
}

/// Checks a JSON pointer (RFC 6901 section 3).
pub(crate) fn pointer(text: &str) -> Result<String, String> {
    let is_escaped = |(at, _): (usize, &str)| matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1'));
    let tokens = text.matches('/').count();
    match text {
        _ if !text.is_empty() && !text.starts_with('/') => {
            Err(format!("a JSON pointer starts with /; use /{text}: {text:?}"))
        }
        _ if !text.match_indices('~').all(is_escaped) => {
            Err(format!("~ is written ~0, and / in a name ~1 (RFC 6901): {text:?}"))
        }
        _ if text.len() > LONGEST_PLACE || tokens > DEEPEST => {
            Err(format!("a pointer may have at most {LONGEST_PLACE} octets and {DEEPEST} names: {text:?}"))
        }
        _ => Ok(text.to_owned()),
    }
}

/// Compiles a regular expression over bytes, limited to one mebibyte when compiled.
///
/// # Errors
/// Why it is invalid, in one line.
pub fn compile(expression: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(expression).unicode(false).size_limit(1 << 20).build();
    built.map_err(|why| {
        why.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// The values that a connection has captured, concatenated: 24 bytes plus the values.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// The lengths of the values (two bytes each), followed by the values.
    bytes: Vec<u8>,
}

impl Captured {
    /// The value of a variable; empty if it has none. `variables`: number of variables of the population.
    pub fn value(&self, nth: u16, variables: usize) -> &str {
        if self.bytes.is_empty() {
            return "";
        }
        let from = 2 * variables + (0..nth).map(|before| self.length(before)).sum::<usize>();
        let bytes = &self.bytes[from..from + self.length(nth)];
        str::from_utf8(bytes).expect("only texts are set")
    }

    /// Sets a value. Allocates only if all values together exceed their previous maximum length.
    ///
    /// # Panics
    /// The value is longer than [`LONGEST_VALUE`].
    pub fn set(&mut self, nth: u16, variables: usize, value: &str) {
        assert!(value.len() <= LONGEST_VALUE, "a captured value: {} octets", value.len());
        if self.bytes.is_empty() {
            self.bytes.reserve_exact(2 * variables + value.len());
            self.bytes.resize(2 * variables, 0);
        }
        let from = 2 * variables + (0..nth).map(|before| self.length(before)).sum::<usize>();
        let old = self.length(nth);
        self.bytes.reserve_exact(value.len().saturating_sub(old));
        self.bytes.splice(from..from + old, value.bytes());
        let at = 2 * usize::from(nth);
        self.bytes[at..at + 2].copy_from_slice(&(value.len() as u16).to_le_bytes());
    }

    fn length(&self, nth: u16) -> usize {
        let at = 2 * usize::from(nth);
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]).into()
    }

    /// Number of bytes allocated for the values.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_the_last_that_were_set(sets in proptest::collection::vec((0u16..5, "[a-zé]{0,9}"), 0..30)) {
            let (mut captured, mut expected) = (Captured::default(), vec![String::new(); 5]);
            for (nth, value) in sets {
                captured.set(nth, 5, &value);
                expected[usize::from(nth)] = value;
            }
            let got: Vec<&str> = (0..5).map(|nth| captured.value(nth, 5)).collect();
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_shorter_value_takes_no_new_memory() {
        let mut captured = Captured::default();
        captured.set(0, 1, &"x".repeat(1_000));
        let capacity = captured.capacity();
        captured.set(0, 1, &"y".repeat(900));
        captured.set(0, 1, &"z".repeat(1_000));
        assert_eq!((captured.capacity(), capacity), (capacity, 1_002));
    }
}

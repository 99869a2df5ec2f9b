//! The error of `parse` functions.

use std::fmt;

/// A text that cannot be parsed, and how to write it. Prints `"30" is not a rate; use 30/s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The text as typed.
    pub text: String,
    /// What was expected, with its article: `a rate`.
    pub wanted: &'static str,
    /// A valid text: `30/s`.
    pub fix: String,
}

impl ParseError {
    /// `text` is not `wanted`; use `fix`.
    pub fn new(text: &str, wanted: &'static str, fix: impl Into<String>) -> ParseError {
        ParseError { text: text.to_owned(), wanted, fix: fix.into() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Debug quotes the text, and escapes control characters.
        write!(f, "{:?} is not {}; use {}", self.text, self.wanted, self.fix)
    }
}

impl std::error::Error for ParseError {}

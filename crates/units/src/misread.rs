//! What `parse` says about a text that it cannot read.

use std::fmt;

/// A text that is not what it should be, and how to write it. Prints `"30" is not a rate: write 30/s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    /// The text as typed.
    pub text: String,
    /// What it should have been, with its article: `a rate`.
    pub wanted: &'static str,
    /// What to write instead: `30/s`.
    pub cure: String,
}

impl Misread {
    /// `text` is not `wanted`: write `cure`.
    pub fn new(text: &str, wanted: &'static str, cure: impl Into<String>) -> Misread {
        Misread { text: text.to_owned(), wanted, cure: cure.into() }
    }
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Debug quotes the text and escapes what would move the cursor of a terminal.
        write!(f, "{:?} is not {}; use {}", self.text, self.wanted, self.cure)
    }
}

impl std::error::Error for Misread {}

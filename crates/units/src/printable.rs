//! Foreign text for output on a terminal.

use std::borrow::Cow;

/// Replaces control characters, which a terminal would execute, by `�`; keeps line ends and tabs.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| c.is_control() && !"\n\r\t".contains(c);
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_orders() {
        for (text, expected) in [
            ("two\nlines\tµ\r\n", "two\nlines\tµ\r\n"),
            ("\u{1b}[2J\u{1b}]0;owned\u{7}", "�[2J�]0;owned�"),
            ("\u{9b}31m\u{7f}\0", "�31m��"),
            ("", ""),
        ] {
            assert_eq!(printable(text), expected);
        }
    }
}

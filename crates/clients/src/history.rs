//! The last texts of a client, newest first.

use std::sync::Arc;

/// Number of texts kept.
const KEPT: usize = 5;
/// Maximum bytes kept of a text: a target must not fill the memory.
pub(crate) const LONGEST: usize = 4 * 1024;

/// Texts sent or received, newest first. Most are the ping, which all clients share.
#[derive(Clone, Debug, Default)]
pub(crate) struct History([Option<Arc<str>>; KEPT]);

impl History {
    /// Adds a text and drops the oldest.
    pub(crate) fn add(&mut self, text: Arc<str>) {
        self.0.rotate_right(1);
        self.0[0] = Some(text);
    }

    /// The texts, newest first.
    pub(crate) fn texts(&self) -> Vec<Arc<str>> {
        self.0.iter().flatten().cloned().collect()
    }
}

/// A message that arrives in pieces; its beginning is kept.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    bytes: Vec<u8>,
    /// Total number of bytes so far.
    length: usize,
}

impl Partial {
    /// Adds a piece.
    pub(crate) fn add(&mut self, length: usize, piece: impl Iterator<Item = u8>) {
        self.bytes.extend(piece.take(LONGEST - self.bytes.len()));
        self.length += length;
    }

    /// The message as the API shows it.
    pub(crate) fn text(&self, is_text: bool) -> String {
        if !is_text {
            return format!("({} bytes, binary)", self.length);
        }
        shown(&self.bytes, self.length)
    }

    /// Whether the message is exactly this text.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.length == text.len() && self.bytes == text.as_bytes()
    }
}

/// The beginning of a text of `length` bytes, followed by its length if cut.
pub(crate) fn shown(bytes: &[u8], length: usize) -> String {
    let kept = &bytes[..bytes.len().min(LONGEST)];
    // The cut may split a character.
    let text = match std::str::from_utf8(kept) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&kept[..e.valid_up_to()]).expect("it is valid up to there"),
    };
    if length > kept.len() { format!("{text}… ({length} bytes)") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_five_are_kept_the_newest_first() {
        let mut history = History::default();
        assert!(history.texts().is_empty());
        for n in 1..=7 {
            history.add(n.to_string().into());
        }
        assert_eq!(history.texts(), ["7", "6", "5", "4", "3"].map(Arc::from));
    }

    #[test]
    fn a_long_message_is_cut_at_a_character_and_says_so() {
        let check = |text: &str, pieces: usize, expected: &str| {
            let mut partial = Partial::default();
            text.as_bytes().chunks(pieces).for_each(|piece| partial.add(piece.len(), piece.iter().copied()));
            assert_eq!(partial.text(true), expected);
            assert!(partial.bytes.len() <= LONGEST);
            assert_eq!(partial.is(text), text.len() <= LONGEST);
            assert!(!partial.is("another"));
        };
        check("hello", 2, "hello");
        check("", 1, "");
        let whole = "x".repeat(LONGEST);
        check(&whole, 1000, &whole);
        check(&"x".repeat(LONGEST + 1), 1000, &format!("{whole}… (4097 bytes)"));
        let umlauts = "ü".repeat(LONGEST);
        check(&format!("x{umlauts}"), 999, &format!("x{}… (8193 bytes)", "ü".repeat(LONGEST / 2 - 1)));
        let mut binary = Partial::default();
        binary.add(3, [0, 255, 1].into_iter());
        assert_eq!(binary.text(false), "(3 bytes, binary)");
    }
}

//! Validates UTF-8 that arrives in parts, and fails at the first byte that cannot be valid (RFC 3629, section 4).

use super::Payload;

/// The state of the validation between two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Utf8 {
    /// Between two characters.
    Between,
    /// One more byte of a character is expected.
    One,
    /// Two more bytes are expected.
    Two,
    /// Three more bytes are expected.
    Three,
    /// Two more, the next one A0 to BF: a lower one would be an overlong encoding.
    TwoFromA0,
    /// Two more, the next one 80 to 9F: a higher one would be a surrogate.
    TwoTo9F,
    /// Three more, the next one 90 to BF: a lower one would be an overlong encoding.
    ThreeFrom90,
    /// Three more, the next one 80 to 8F: a higher one would be beyond U+10FFFF.
    ThreeTo8F,
}

/// Number of bytes unmasked at a time, on the stack: few enough to stay in the L1 cache, and enough for efficient steps.
const BLOCK: usize = 256;

impl Utf8 {
    /// Reads a part of the text; returns whether it can still be valid.
    pub(super) fn read(&mut self, payload: Payload<'_>) -> bool {
        if let Some(plain) = payload.plain() {
            return self.read_plain(plain);
        }
        let mut block = [0; BLOCK];
        let mut rest = payload;
        while !rest.is_empty() {
            let (front, behind) = rest.split_at(rest.len().min(BLOCK));
            front.copy_to(&mut block);
            if !self.read_plain(&block[..front.len()]) {
                return false;
            }
            rest = behind;
        }
        true
    }

    /// Whether the text may end here.
    pub(super) fn is_between(self) -> bool {
        self == Self::Between
    }

    /// Reads unmasked bytes. The standard library validates complete characters, and reads ASCII word by word; only the rest of a split
    /// character, and invalid text, are read byte by byte.
    fn read_plain(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while let ([first, behind @ ..], false) = (rest, self.is_between()) {
            if !self.step(*first) {
                return false;
            }
            rest = behind;
        }
        match str::from_utf8(rest) {
            Ok(_) => true,
            Err(error) => rest[error.valid_up_to()..].iter().all(|byte| self.step(*byte)),
        }
    }

    /// Reads one byte, according to the table of well-formed byte sequences (Unicode, table 3-7).
    fn step(&mut self, byte: u8) -> bool {
        *self = match (*self, byte) {
            (Self::Between, 0x00..=0x7F) | (Self::One, 0x80..=0xBF) => Self::Between,
            (Self::Between, 0xC2..=0xDF)
            | (Self::Two, 0x80..=0xBF)
            | (Self::TwoFromA0, 0xA0..=0xBF)
            | (Self::TwoTo9F, 0x80..=0x9F) => Self::One,
            (Self::Between, 0xE1..=0xEC | 0xEE..=0xEF)
            | (Self::Three, 0x80..=0xBF)
            | (Self::ThreeFrom90, 0x90..=0xBF)
            | (Self::ThreeTo8F, 0x80..=0x8F) => Self::Two,
            (Self::Between, 0xF1..=0xF3) => Self::Three,
            (Self::Between, 0xE0) => Self::TwoFromA0,
            (Self::Between, 0xED) => Self::TwoTo9F,
            (Self::Between, 0xF0) => Self::ThreeFrom90,
            (Self::Between, 0xF4) => Self::ThreeTo8F,
            _ => return false,
        };
        true
    }
}

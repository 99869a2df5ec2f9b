//! UTF-8 that comes in pieces, judged at the first byte that cannot be right (RFC 3629 section 4).

use super::Payload;

/// The state of the validation between two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Utf8 {
    /// Between two characters.
    Between,
    /// One more byte of a character is to come.
    One,
    /// Two more are.
    Two,
    /// Three more are.
    Three,
    /// Two more are, the next one A0 to BF: less would be a longer form of a shorter character.
    TwoFromA0,
    /// Two more are, the next one 80 to 9F: more would be half of a UTF-16 pair.
    TwoTo9F,
    /// Three more are, the next one 90 to BF: less would be a longer form of a shorter character.
    ThreeFrom90,
    /// Three more are, the next one 80 to 8F: more would be beyond U+10FFFF.
    ThreeTo8F,
}

/// The bytes that are unmasked at a time, on the stack: few enough to stay in the first cache, enough to go
/// in large steps.
const BLOCK: usize = 256;

impl Utf8 {
    /// Reads on: whether the text can still be right.
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

    /// Whole characters are for the standard library, which reads ASCII by the word. Byte by byte goes what a
    /// cut leaves of a character, and what is wrong.
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

    /// Reads one byte, after the table of well-formed sequences (Unicode, table 3-7).
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

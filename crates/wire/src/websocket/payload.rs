//! Payload bytes and their mask (RFC 6455, section 5.3).

use std::fmt;

/// Payload bytes, still masked if the peer masks, with the mask rotated to their position. They are unmasked when they are copied, so that
/// no buffer is needed here.
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    bytes: &'a [u8],
    /// Zeros, which change nothing, if the peer does not mask.
    mask: [u8; 4],
}

impl<'a> Payload<'a> {
    /// `bytes` as received; the first is masked with the first byte of `mask`.
    pub(super) fn new(bytes: &'a [u8], mask: [u8; 4]) -> Self {
        Self { bytes, mask }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes the unmasked bytes to the beginning of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than [`len`](Self::len).
    pub fn copy_to(&self, out: &mut [u8]) {
        let out = &mut out[..self.bytes.len()];
        out.copy_from_slice(self.bytes);
        mask(out, self.mask);
    }

    /// Whether the unmasked bytes equal `plain`.
    pub fn matches(&self, plain: &[u8]) -> bool {
        match self.plain() {
            Some(bytes) => bytes == plain,
            None => self.bytes().eq(plain.iter().copied()),
        }
    }

    /// The unmasked bytes, one by one.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + Clone {
        self.bytes.iter().zip(self.mask.iter().cycle()).map(|(byte, mask)| byte ^ mask)
    }

    /// The bytes without copying; `None` if they are masked.
    pub fn plain(&self) -> Option<&'a [u8]> {
        (self.mask == [0; 4]).then_some(self.bytes)
    }

    /// Splits the payload after `n` bytes.
    pub(super) fn split_at(self, n: usize) -> (Self, Self) {
        let (front, back) = self.bytes.split_at(n);
        (Self { bytes: front, ..self }, Self { bytes: back, mask: turned(self.mask, n) })
    }
}

/// Shows the unmasked bytes.
impl fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("b\"")?;
        for byte in self.bytes() {
            write!(f, "{}", byte.escape_ascii())?;
        }
        f.write_str("\"")
    }
}

/// The mask for the bytes that follow `n` bytes later.
pub(super) fn turned(mut mask: [u8; 4], n: usize) -> [u8; 4] {
    mask.rotate_left(n % 4);
    mask
}

/// Masks or unmasks in place (section 5.3): the first byte with the first byte of the mask.
pub fn mask(bytes: &mut [u8], mask: [u8; 4]) {
    if mask == [0; 4] {
        return;
    }
    // By words, because the compiler vectorises this loop, but not one over bytes.
    let word_mask = u32::from_ne_bytes(mask);
    let (words, rest) = bytes.as_chunks_mut();
    for word in words {
        *word = (u32::from_ne_bytes(*word) ^ word_mask).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

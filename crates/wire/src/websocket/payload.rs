//! Payload bytes, and the mask that lies over them (RFC 6455 section 5.3).

use std::fmt;

/// Payload bytes, still masked if the peer masks, with the mask turned to their place: unmasked while copied,
/// so that no buffer is needed here.
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    bytes: &'a [u8],
    /// Zeros, which change nothing, where the peer does not mask.
    mask: [u8; 4],
}

impl<'a> Payload<'a> {
    /// `bytes` as received, the first one masked with the first byte of `mask`.
    pub(super) fn new(bytes: &'a [u8], mask: [u8; 4]) -> Self {
        Self { bytes, mask }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes the plain bytes to the beginning of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than [`len`](Self::len).
    pub fn copy_to(&self, out: &mut [u8]) {
        let out = &mut out[..self.bytes.len()];
        out.copy_from_slice(self.bytes);
        mask(out, self.mask);
    }

    /// Whether the plain bytes are these.
    pub fn matches(&self, plain: &[u8]) -> bool {
        match self.plain() {
            Some(bytes) => bytes == plain,
            None => self.bytes().eq(plain.iter().copied()),
        }
    }

    /// The plain bytes, one by one.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + Clone {
        self.bytes.iter().zip(self.mask.iter().cycle()).map(|(byte, mask)| byte ^ mask)
    }

    /// The bytes as they are, where no mask lies over them.
    pub fn plain(&self) -> Option<&'a [u8]> {
        (self.mask == [0; 4]).then_some(self.bytes)
    }

    /// The first `n` bytes and those after them.
    pub(super) fn split_at(self, n: usize) -> (Self, Self) {
        let (front, back) = self.bytes.split_at(n);
        (Self { bytes: front, ..self }, Self { bytes: back, mask: turned(self.mask, n) })
    }
}

/// Shows the plain bytes.
impl fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("b\"")?;
        for byte in self.bytes() {
            write!(f, "{}", byte.escape_ascii())?;
        }
        f.write_str("\"")
    }
}

/// The mask as it lies over what comes `n` bytes later.
pub(super) fn turned(mut mask: [u8; 4], n: usize) -> [u8; 4] {
    mask.rotate_left(n % 4);
    mask
}

/// Masks or unmasks in place (section 5.3): the first byte with the first of the mask.
pub fn mask(bytes: &mut [u8], mask: [u8; 4]) {
    if mask == [0; 4] {
        return;
    }
    // By the word: of this loop the compiler makes vectors, of one over bytes it does not.
    let word_mask = u32::from_ne_bytes(mask);
    let (words, rest) = bytes.as_chunks_mut();
    for word in words {
        *word = (u32::from_ne_bytes(*word) ^ word_mask).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

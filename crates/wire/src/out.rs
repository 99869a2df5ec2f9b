//! Writes text and bytes into a caller's buffer of limited length.

/// A buffer and the number of bytes written to it.
pub(crate) struct Out<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Out<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// Number of bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.at
    }

    /// Writes all of `bytes`; `None` if they do not fit.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.get_mut(self.at..)?.get_mut(..bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    /// Writes `n` in decimal digits.
    pub(crate) fn number(&mut self, n: u64) -> Option<()> {
        self.put(itoa::Buffer::new().format(n).as_bytes())
    }
}

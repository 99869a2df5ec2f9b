//! Text and bytes written into a caller's buffer, as far as it goes.

/// A buffer, and how far it is filled.
pub(crate) struct Out<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Out<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// The bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.at
    }

    /// Writes all of `bytes`, or `None` where they do not fit.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.get_mut(self.at..)?.get_mut(..bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    /// Writes `n` as decimal digits.
    pub(crate) fn number(&mut self, mut n: u64) -> Option<()> {
        let mut digits = [0; 20]; // u64::MAX has 20
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                return self.put(&digits[at..]);
            }
        }
    }
}

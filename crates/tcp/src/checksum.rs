//! The Internet checksum (RFC 1071).

/// A ones' complement sum of 16-bit words in the machine's byte order. Byte order only swaps the bytes of the sum (RFC 1071, section 2),
/// which is corrected once, at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Adds bytes that begin at an even offset. An odd number of bytes is padded, so nothing may be added after them.
    pub(crate) fn add(mut self, bytes: &[u8]) -> Sum {
        // 32 bits at a time: 2^32 of them fit in the sum, far more than a packet has.
        let words = bytes.chunks_exact(4);
        let rest = words.remainder();
        for word in words {
            self.0 += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.0 += u64::from(u32::from_ne_bytes(last));
        self
    }

    /// The sum, folded to 16 bits.
    pub(crate) fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        u16::from_be(sum as u16)
    }

    /// The checksum: the complement of the sum.
    pub(crate) fn checksum(self) -> u16 {
        !self.folded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sum as RFC 1071 defines it: words of two bytes, with end-around carry.
    fn slow(bytes: &[u8]) -> u16 {
        let sum = bytes.chunks(2).fold(0u32, |sum, pair| {
            let word = u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            let sum = sum + word;
            (sum & 0xffff) + (sum >> 16)
        });
        sum as u16
    }

    #[test]
    fn is_that_of_the_rfc() {
        // The example of RFC 1071, section 3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().add(&bytes).folded(), 0xddf2);
        assert_eq!(Sum::default().add(&bytes).checksum(), !0xddf2);
    }

    proptest! {
        #[test]
        fn is_that_of_the_words(head in prop::collection::vec(any::<[u8; 2]>(), 0..40), tail: Vec<u8>) {
            let head: Vec<u8> = head.concat();
            let whole = [&head[..], &tail].concat();
            // Zero has two representations in ones' complement.
            let (fast, slow) = (Sum::default().add(&head).add(&tail).folded(), slow(&whole));
            prop_assert!(fast == slow || (fast % 0xffff == 0 && slow % 0xffff == 0), "{fast:x} {slow:x}");
        }
    }
}

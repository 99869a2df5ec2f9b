//! Searches for a text in bytes that arrive in pieces (Knuth, Morris, Pratt, "Fast pattern matching in strings", 1977).

/// The text with its failure function. The state of a search is one number, kept by the caller: how many octets of the text
/// match; all, once found.
#[derive(Clone, Debug)]
pub(crate) struct Needle {
    text: Vec<u8>,
    /// For each number of matching octets, how many still match after a mismatch of the next one.
    back: Vec<u16>,
}

impl Needle {
    /// Texts of less than 64 KiB.
    pub(crate) fn new(text: &str) -> Needle {
        let text = text.as_bytes().to_vec();
        assert!(text.len() < usize::from(u16::MAX), "longer texts are refused where they are read");
        let mut back = vec![0; text.len().max(1)];
        let mut matching = 0u16;
        for at in 1..text.len() {
            back[at] = matching;
            while matching > 0 && text[usize::from(matching)] != text[at] {
                matching = back[usize::from(matching)];
            }
            matching += u16::from(text[usize::from(matching)] == text[at]);
        }
        Needle { text, back }
    }

    /// Continues the search; `seen` is the previous result, 0 at the beginning.
    pub(crate) fn scan(&self, mut seen: u16, bytes: impl Iterator<Item = u8>) -> u16 {
        for byte in bytes {
            if self.is_found(seen) {
                break;
            }
            while seen > 0 && self.text[usize::from(seen)] != byte {
                seen = self.back[usize::from(seen)];
            }
            seen += u16::from(self.text[usize::from(seen)] == byte);
        }
        seen
    }

    pub(crate) fn is_found(&self, seen: u16) -> bool {
        usize::from(seen) == self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Agrees with a search of the whole, however it is cut.
        #[test]
        fn finds_what_is_there(text in "[ab]{0,6}", hay in "[ab]{0,40}", cuts in proptest::collection::vec(0usize..40, 0..4)) {
            let needle = Needle::new(&text);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(hay.len())).chain([0, hay.len()]).collect();
            cuts.sort_unstable();
            let piece = |pair: &[usize]| hay.as_bytes()[pair[0]..pair[1]].to_vec();
            let seen = cuts.windows(2).fold(0, |seen, pair| needle.scan(seen, piece(pair).into_iter()));
            prop_assert_eq!(needle.is_found(seen), hay.contains(&text));
        }
    }
}

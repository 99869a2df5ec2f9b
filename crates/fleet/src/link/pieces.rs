//! Splits entries that exceed the maximum message length, and reassembles them.

use std::collections::BTreeMap;

/// Maximum number of incomplete entries; far more than authors send at a time.
const MOST: usize = 4_096;

/// The place of a piece: `3/7` is the fourth of seven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    nth: usize,
    of: usize,
}

impl Place {
    pub(super) fn parse(text: &str) -> Option<Place> {
        let (nth, of) = text.split_once('/')?;
        let place = Place { nth: nth.parse().ok()?, of: of.parse().ok()? };
        (place.nth < place.of).then_some(place)
    }

    pub(super) fn text(self) -> String {
        format!("{}/{}", self.nth, self.of)
    }
}

/// Splits an entry into pieces of at most `longest` bytes, each with its place.
pub(super) fn cut(bytes: &[u8], longest: usize) -> impl Iterator<Item = (Place, &[u8])> {
    let of = bytes.len().div_ceil(longest);
    bytes.chunks(longest).enumerate().map(move |(nth, piece)| (Place { nth, of }, piece))
}

/// Pieces of incomplete entries, by the entry's name.
#[derive(Default)]
pub(super) struct Pieces(BTreeMap<String, BTreeMap<usize, Vec<u8>>>);

impl Pieces {
    /// Adds a piece; duplicates and any order are allowed. Returns the entry once it is complete.
    pub(super) fn put(&mut self, entry: &str, place: Place, piece: &[u8]) -> Option<Vec<u8>> {
        if self.0.len() >= MOST && !self.0.contains_key(entry) {
            self.0.pop_first();
        }
        let pieces = self.0.entry(entry.to_owned()).or_default();
        pieces.insert(place.nth, piece.to_vec());
        if pieces.len() < place.of {
            return None;
        }
        let whole = self.0.remove(entry)?;
        Some(whole.into_values().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_cut_is_put_together_in_any_order(
            bytes: Vec<u8>, longest in 1usize..40, order in Just((0..100usize).collect::<Vec<_>>()).prop_shuffle()
        ) {
            let sent: Vec<_> = cut(&bytes, longest).collect();
            prop_assert!(sent.iter().all(|(_, piece)| piece.len() <= longest));
            let (mut pieces, mut whole) = (Pieces::default(), Vec::new());
            for nth in order.into_iter().filter(|nth| *nth < sent.len()) {
                let (place, piece) = &sent[nth];
                let place = Place::parse(&place.text()).unwrap();
                // Pieces of another entry are kept apart.
                pieces.put("other", Place { nth: 0, of: 2 }, &[7]);
                pieces.put("one", place, piece).into_iter().for_each(|entry| whole.push(entry));
            }
            let expected: Vec<Vec<u8>> = (!bytes.is_empty()).then_some(bytes.clone()).into_iter().collect();
            prop_assert_eq!(whole, expected);
        }
    }

    #[test]
    fn what_is_incomplete_does_not_pile_up() {
        let mut pieces = Pieces::default();
        (0..2 * MOST)
            .for_each(|nth| assert_eq!(pieces.put(&nth.to_string(), Place { nth: 0, of: 2 }, &[1]), None));
        assert_eq!(pieces.0.len(), MOST);
        assert_eq!(Place::parse("2/2").or(Place::parse("x")).or(Place::parse("1/x")), None);
    }
}

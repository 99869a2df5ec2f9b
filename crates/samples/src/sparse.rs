//! Counts of which most are zero: what goes over them takes time by those that are not.

use std::{mem, ops::Range};

/// Counts that share a word of bits.
pub(crate) const WORD: usize = u64::BITS as usize;

/// A row of counts, in words.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseCounts {
    /// From the first word in which there is something to the last.
    used: Range<usize>,
    /// A bit for each, set where it is not zero.
    seen: Vec<u64>,
    /// Each of them; packed, only those whose bit is set, so that what was read takes little memory.
    counts: Vec<u64>,
}

/// The least range that has both in it.
pub(crate) fn hull(a: Range<usize>, b: Range<usize>) -> Range<usize> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}

impl SparseCounts {
    /// So many words of zeros.
    pub(crate) fn new(words: usize) -> SparseCounts {
        SparseCounts { used: 0..0, seen: vec![0; words], counts: vec![0; WORD * words] }
    }

    pub(crate) fn words(&self) -> usize {
        self.seen.len()
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.counts.len() < WORD * self.seen.len()
    }

    /// The words from the first to the last in which there is something.
    pub(crate) fn used(&self) -> Range<usize> {
        self.used.clone()
    }

    fn mark(&mut self, nth: usize, bits: u64) {
        self.used = hull(self.used(), nth..nth + 1);
        self.seen[nth] |= bits;
    }

    /// More of one, if they are not packed.
    pub(crate) fn add(&mut self, at: usize, count: u64) {
        self.mark(at / WORD, 1 << (at % WORD));
        self.counts[at] += count;
    }

    /// The next that is not zero, packed, in this many words.
    pub(crate) fn push(&mut self, at: usize, count: u64, words: usize) {
        self.seen.resize(words, 0);
        self.mark(at / WORD, 1 << (at % WORD));
        self.counts.push(count);
    }

    /// Adds others, packed or not, to those that are not: their word `theirs` to the word `own`, and so on to their last.
    pub(crate) fn merge(&mut self, other: &SparseCounts, own: usize, theirs: usize) {
        for word in other.iter_words() {
            let at = own + word.nth - theirs;
            self.mark(at, word.seen);
            let own = &mut self.counts[WORD * at..WORD * (at + 1)];
            match word.seen {
                // All of them, whether packed or not.
                u64::MAX => own.iter_mut().zip(word.counts).for_each(|(own, count)| *own += count),
                _ => word.iter().for_each(|(bit, count)| own[bit] += count),
            }
        }
    }

    /// Back to zero, keeping the memory.
    pub(crate) fn clear(&mut self) {
        if self.is_packed() {
            *self = SparseCounts::default();
        }
        for nth in mem::take(&mut self.used) {
            if mem::take(&mut self.seen[nth]) != 0 {
                self.counts[WORD * nth..WORD * (nth + 1)].fill(0);
            }
        }
    }

    /// Those that are not zero, in order, with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.iter_words().flat_map(|word| {
            let from = WORD * word.nth;
            word.iter().map(move |(bit, count)| (from + bit, count))
        })
    }

    fn iter_words(&self) -> impl Iterator<Item = Word<'_>> {
        let is_packed = self.is_packed();
        let mut counts = if is_packed { &self.counts[..] } else { &self.counts[WORD * self.used.start..] };
        self.used().filter_map(move |nth| {
            let seen = self.seen[nth];
            let own = if is_packed { seen.count_ones() as usize } else { WORD };
            let counts = counts.split_off(..own)?;
            (seen != 0).then_some(Word { nth, seen, counts })
        })
    }
}

/// What was counted is the same, however it came to be.
impl PartialEq for SparseCounts {
    fn eq(&self, other: &SparseCounts) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for SparseCounts {}

/// A word in which there is something.
struct Word<'a> {
    nth: usize,
    seen: u64,
    /// Of all its bits, or only of those that are set.
    counts: &'a [u64],
}

impl<'a> Word<'a> {
    /// Bits that are set, with their counts.
    fn iter(self) -> impl Iterator<Item = (usize, u64)> + use<'a> {
        let (mut left, is_packed) = (self.seen, self.counts.len() < WORD);
        (0..).map_while(move |nth: usize| {
            let bit = left.trailing_zeros() as usize;
            // The lowest bit that is set goes.
            left &= left.checked_sub(1)?;
            Some((bit, self.counts[if is_packed { nth } else { bit }]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(ats: &[usize]) -> SparseCounts {
        let mut packed = SparseCounts::default();
        ats.iter().for_each(|at| packed.push(*at, 1 + *at as u64, at / WORD + 1));
        packed
    }

    #[test]
    fn a_packed_histogram_takes_room_for_its_buckets_only() {
        let counts = packed(&[3, 64, 70, 1_000]);
        assert_eq!((counts.counts.len(), counts.words(), counts.used()), (4, 16, 0..16));
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(3, 4), (64, 65), (70, 71), (1_000, 1_001)]);
        assert_eq!((packed(&[]).used(), packed(&[130]).used()), (0..0, 2..3));
    }

    #[test]
    fn packed_words_are_added() {
        let mut sum = SparseCounts::new(4);
        sum.add(70, 5);
        let some = packed(&[64, 127, 191]);
        sum.merge(&some, 0, 1);
        sum.merge(&some, 1, 1);
        let expected = [(0, 65), (63, 128), (64, 65), (70, 5), (127, 128 + 192), (191, 192)];
        assert_eq!(sum.iter().collect::<Vec<_>>(), expected);
        // A word that is full, packed or not.
        let all: Vec<usize> = (0..64).collect();
        let mut full = SparseCounts::new(1);
        full.merge(&packed(&all), 0, 0);
        full.merge(&full.clone(), 0, 0);
        assert!(full.iter().eq(all.iter().map(|at| (*at, 2 + 2 * *at as u64))));
    }

    #[test]
    fn memory_is_kept() {
        let mut counts = SparseCounts::new(2);
        let at = counts.counts.as_ptr();
        counts.add(100, 1);
        counts.clear();
        assert_eq!((counts.iter().next(), counts.words()), (None, 2));
        counts.add(100, 7);
        assert_eq!((counts.iter().next(), counts.counts.as_ptr()), (Some((100, 7)), at));
    }
}

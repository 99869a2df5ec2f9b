//! Sparse counts: a row of counts, most of which are zero. Iterating and merging take time in proportion to the non-zero ones, found by a
//! bit per count.

use std::{mem, ops::Range};

/// Number of counts that share a word of bits.
const WORD: usize = u64::BITS as usize;
/// Number of words for which memory is allocated at a time: 2 KiB of counts.
const GRAIN: usize = 4;

/// A row of counts, with memory from the first non-zero count to the last.
#[derive(Debug, Default)]
pub(crate) struct SparseCounts {
    /// From the first non-empty word to the last.
    used: Range<usize>,
    /// The number of the first word in `seen`.
    first: usize,
    /// A bit for each count, set if it is not zero.
    seen: Vec<u64>,
    /// All counts; in packed form only the non-zero ones, to save memory for rows that are only read.
    counts: Vec<u64>,
}

/// The smallest range that contains both.
fn hull(a: Range<usize>, b: Range<usize>) -> Range<usize> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}

impl SparseCounts {
    pub(crate) fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    fn is_packed(&self) -> bool {
        self.counts.len() < WORD * self.seen.len()
    }

    /// Ensures memory for these words, and unpacks the counts.
    fn make_room(&mut self, words: Range<usize>) {
        let own = self.first..self.first + self.seen.len();
        if own.start <= words.start && words.end <= own.end && !self.is_packed() {
            return;
        }
        let wanted = hull(own, words);
        let first = wanted.start / GRAIN * GRAIN;
        let n = wanted.end.next_multiple_of(GRAIN) - first;
        let room = SparseCounts { used: 0..0, first, seen: vec![0; n], counts: vec![0; WORD * n] };
        let before = mem::replace(self, room);
        self.merge(&before);
    }

    /// Ensures memory for this number of counts.
    pub(crate) fn reserve(&mut self, counts: usize) {
        self.make_room(0..counts.div_ceil(WORD));
    }

    fn mark(&mut self, word: usize, bits: u64) {
        self.used = hull(self.used.clone(), word..word + 1);
        self.seen[word - self.first] |= bits;
    }

    /// Adds to one count.
    pub(crate) fn add(&mut self, at: usize, count: u64) {
        let word = at / WORD;
        self.make_room(word..word + 1);
        self.mark(word, 1 << (at % WORD));
        self.counts[at - WORD * self.first] += count;
    }

    /// Appends the next non-zero count in packed form.
    pub(crate) fn push(&mut self, at: usize, count: u64) {
        let word = at / WORD;
        if self.seen.is_empty() {
            self.first = word;
        }
        self.seen.resize(word + 1 - self.first, 0);
        self.mark(word, 1 << (at % WORD));
        self.counts.push(count);
    }

    /// Adds other counts, packed or not.
    pub(crate) fn merge(&mut self, other: &SparseCounts) {
        if other.is_empty() {
            return;
        }
        self.make_room(other.used.clone());
        for word in other.iter_words() {
            self.mark(word.nth, word.seen);
            let own = &mut self.counts[WORD * (word.nth - self.first)..][..WORD];
            match word.seen {
                // The word is full, so packed and unpacked forms are equal.
                u64::MAX => own.iter_mut().zip(word.counts).for_each(|(own, count)| *own += count),
                _ => word.iter().for_each(|(bit, count)| own[bit] += count),
            }
        }
    }

    /// Sets all counts to zero, keeping the memory.
    pub(crate) fn clear(&mut self) {
        if self.is_packed() {
            *self = SparseCounts::default();
        }
        for word in mem::take(&mut self.used) {
            let at = word - self.first;
            if mem::take(&mut self.seen[at]) != 0 {
                self.counts[WORD * at..][..WORD].fill(0);
            }
        }
    }

    /// Non-zero counts with their positions, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.iter_words().flat_map(|word| {
            let from = WORD * word.nth;
            word.iter().map(move |(bit, count)| (from + bit, count))
        })
    }

    fn iter_words(&self) -> impl Iterator<Item = Word<'_>> {
        let (is_packed, first) = (self.is_packed(), self.first);
        // Nothing is used before the first word, unless nothing is used at all.
        let unused = if is_packed { 0 } else { WORD * self.used.start.saturating_sub(first) };
        let mut counts = &self.counts[unused..];
        self.used.clone().filter_map(move |nth| {
            let seen = self.seen[nth - first];
            let own = if is_packed { seen.count_ones() as usize } else { WORD };
            let counts = counts.split_off(..own)?;
            (seen != 0).then_some(Word { nth, seen, counts })
        })
    }
}

/// Copies in packed form: copies are stored or sent, and most of the memory of a row in use is zero (220 KB if latencies vary).
impl Clone for SparseCounts {
    fn clone(&self) -> SparseCounts {
        let used = self.used.clone();
        let seen = used.clone().map(|word| self.seen[word - self.first]).collect();
        SparseCounts { first: used.start, used, seen, counts: self.iter().map(|(_, count)| count).collect() }
    }
}

/// Compares counts, independent of the representation.
impl PartialEq for SparseCounts {
    fn eq(&self, other: &SparseCounts) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for SparseCounts {}

/// A non-empty word of bits with its counts.
struct Word<'a> {
    nth: usize,
    seen: u64,
    /// Counts of all bits, or in packed form only of those that are set.
    counts: &'a [u64],
}

impl<'a> Word<'a> {
    /// The set bits with their counts.
    fn iter(self) -> impl Iterator<Item = (usize, u64)> + use<'a> {
        let (mut left, is_packed) = (self.seen, self.counts.len() < WORD);
        (0..).map_while(move |nth: usize| {
            let bit = left.trailing_zeros() as usize;
            // Clears the lowest set bit.
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
        ats.iter().for_each(|at| packed.push(*at, 1 + *at as u64));
        packed
    }

    #[test]
    fn a_packed_histogram_takes_room_for_its_buckets_only() {
        let counts = packed(&[131, 192, 198, 1_000]);
        assert_eq!((counts.counts.len(), counts.seen.len(), counts.used.clone()), (4, 14, 2..16));
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(131, 132), (192, 193), (198, 199), (1_000, 1_001)]);
        assert!(packed(&[]).is_empty() && !packed(&[130]).is_empty());
    }

    #[test]
    fn a_copy_takes_room_for_its_buckets_only() {
        let mut sum = SparseCounts::default();
        sum.reserve(2_000);
        let empty = sum.clone();
        assert!(empty.is_empty() && empty == sum && empty.counts.is_empty());
        [131, 192, 1_000].iter().for_each(|at| sum.add(*at, 3));
        let mut copy = sum.clone();
        assert_eq!((copy.counts.len(), copy.seen.len(), copy.first), (3, 14, 2));
        assert_eq!((&copy, &copy.clone()), (&sum, &sum));
        // It can be counted on like the original.
        copy.add(131, 1);
        copy.merge(&sum);
        assert_eq!(copy.iter().collect::<Vec<_>>(), [(131, 7), (192, 6), (1_000, 6)]);
        sum.clear();
        assert!(sum.is_empty() && !copy.is_empty());
    }

    #[test]
    fn room_is_made_on_either_side() {
        let mut sum = packed(&[1_000]);
        for (at, first, words) in [(1_001, 12, 4), (3_000, 12, 36), (5, 0, 48)] {
            sum.add(at, 1);
            assert_eq!((sum.first, sum.seen.len(), sum.counts.len()), (first, words, WORD * words), "{at}");
        }
        sum.merge(&packed(&[5, 63, 4_000]));
        let expected = [(5, 7), (63, 64), (1_000, 1_001), (1_001, 1), (3_000, 1), (4_000, 4_001)];
        assert_eq!(sum.iter().collect::<Vec<_>>(), expected);
        // A full word, packed or not.
        let all: Vec<usize> = (640..704).collect();
        let mut full = packed(&[640]);
        full.merge(&packed(&all));
        full.merge(&full.clone());
        assert!(
            full.iter().eq(all.iter().map(|at| (*at, 2 + 2 * *at as u64 + 1_282 * u64::from(*at == 640))))
        );
    }

    #[test]
    fn memory_is_kept() {
        let mut counts = SparseCounts::default();
        counts.reserve(100);
        let at = counts.counts.as_ptr();
        counts.add(100, 1);
        counts.clear();
        assert!(counts.is_empty() && counts == SparseCounts::default());
        counts.reserve(256);
        counts.add(255, 7);
        assert_eq!((counts.iter().next(), counts.counts.as_ptr()), (Some((255, 7)), at));
        // Only the used part of reserved memory is merged.
        let mut sum = SparseCounts::default();
        sum.merge(&counts);
        counts.reserve(10_000);
        sum.merge(&counts);
        assert_eq!((sum.seen.len(), sum.iter().next()), (GRAIN, Some((255, 14))));
    }
}

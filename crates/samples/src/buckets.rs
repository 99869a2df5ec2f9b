//! How often each time occurred, to so many significant digits: the buckets of an HDR histogram (Tene, HdrHistogram), from
//! the shortest time that was counted to the longest.

use std::ops::Range;

use hdrhistogram::Histogram;

/// Significant digits that are measured.
pub(crate) const DIGITS: u8 = 3;
/// Enough for what is drawn.
pub(crate) const COARSE: u8 = 2;

/// Smallest difference that is kept, as a power of two: 64 ns. The clock and the loop are coarser.
pub(crate) const LOWEST_BITS: u32 = 6;
/// An hour, nanoseconds: times for which there is no bucket count as this.
pub(crate) const HIGHEST: u64 = 3_600_000_000_000;
/// Of longer times there is none.
const HIGHEST_BITS: u32 = u64::BITS - HIGHEST.leading_zeros();

/// Counts of times in nanoseconds. An octave holds the buckets of the times from a power of two to the next: 8 KiB at three
/// digits, so that times that span a factor of a thousand take 80 KiB. Time to add them up goes with the buckets in which
/// there is something.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    digits: u8,
    total: u64,
    /// The octave that `counts` begins with.
    first: usize,
    /// Of octaves that follow each other.
    counts: Vec<u64>,
    /// Of each of them, a bit for each 64th of its buckets, set where there may be something: at three digits that is two
    /// lines of a cache, and what lies between is not even read.
    seen: Vec<u64>,
}

/// A bucket in which there is something.
pub(crate) struct Bucket {
    /// The shortest time that is counted in it, and how many nanoseconds it spans.
    pub(crate) lowest: u64,
    pub(crate) width: u64,
    pub(crate) count: u64,
}

impl Bucket {
    pub(crate) fn highest(&self) -> u64 {
        self.lowest + (self.width - 1)
    }

    /// In its midst.
    pub(crate) fn middle(&self) -> u64 {
        self.lowest + self.width / 2
    }
}

impl Buckets {
    /// Empty, with so many significant digits: 2 or 3.
    pub(crate) const fn new(digits: u8) -> Buckets {
        Buckets { digits, total: 0, first: 0, counts: Vec::new(), seen: Vec::new() }
    }

    /// How many were counted.
    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Of an octave there are so many buckets, as a power of two: the first that tells 2 · 10^digits apart, halved.
    const fn octave_bits(&self) -> u32 {
        (2 * 10u32.pow(self.digits as u32)).next_power_of_two().trailing_zeros() - 1
    }

    /// Buckets for which a bit of `seen` stands, as a power of two.
    const fn part_bits(&self) -> u32 {
        self.octave_bits() - u64::BITS.trailing_zeros()
    }

    /// The octave of the longest times.
    const fn last(&self) -> usize {
        (HIGHEST_BITS - LOWEST_BITS - self.octave_bits()) as usize
    }

    /// Octave, and place within it. The first two octaves have buckets of the same width.
    fn place(&self, time: u64) -> (usize, usize) {
        let (bits, unit) = (self.octave_bits(), time >> LOWEST_BITS);
        let doublings = (u64::BITS - unit.leading_zeros()).saturating_sub(bits + 1);
        let index = (u64::from(doublings) << bits) + (unit >> doublings);
        ((index >> bits) as usize, (index & ((1 << bits) - 1)) as usize)
    }

    /// The bucket at a place of `counts`.
    fn bucket(&self, at: usize) -> Bucket {
        let (bits, index) = (self.octave_bits(), (self.first << self.octave_bits()) + at);
        let doublings = (index >> bits).saturating_sub(1);
        let (unit, shift) = (index - (doublings << bits), doublings as u32 + LOWEST_BITS);
        Bucket { lowest: (unit as u64) << shift, width: 1 << shift, count: self.counts[at] }
    }

    /// Has these octaves from now on.
    fn make_room(&mut self, octaves: Range<usize>) {
        let own = self.first..self.first + self.seen.len();
        if own.start <= octaves.start && octaves.end <= own.end {
            return;
        }
        let wanted = match own.is_empty() {
            true => octaves,
            false => own.start.min(octaves.start)..own.end.max(octaves.end),
        };
        let moved = |before: &[u64], bits: u32| {
            let mut after = vec![0; wanted.len() << bits];
            let at = own.start.saturating_sub(wanted.start) << bits;
            after[at..at + before.len()].copy_from_slice(before);
            after
        };
        let (counts, seen) = (moved(&self.counts, self.octave_bits()), moved(&self.seen, 0));
        (self.first, self.counts, self.seen) = (wanted.start, counts, seen);
    }

    /// `count` more of a time in nanoseconds.
    pub(crate) fn record_n(&mut self, time: u64, count: u64) {
        let (octave, at) = self.place(if time >> HIGHEST_BITS > 0 { HIGHEST } else { time });
        self.make_room(octave..octave + 1);
        let (nth, bits) = (octave - self.first, self.octave_bits());
        self.total += count;
        self.seen[nth] |= 1 << (at >> self.part_bits());
        self.counts[(nth << bits) + at] += count;
    }

    /// Adds another's, whose digits may be others.
    pub(crate) fn merge(&mut self, other: &Buckets) {
        if self.digits != other.digits {
            other.iter().for_each(|bucket| self.record_n(bucket.lowest, bucket.count));
            return;
        }
        let is_used = |seen: &u64| *seen != 0;
        let (Some(first), Some(last)) =
            (other.seen.iter().position(is_used), other.seen.iter().rposition(is_used))
        else {
            return;
        };
        self.make_room(other.first + first..other.first + last + 1);
        self.total += other.total;
        for nth in first..=last {
            self.seen[other.first + nth - self.first] |= other.seen[nth];
        }
        // Where theirs begin among ours; before, where theirs has octaves that are not used.
        let from = other.first as isize - self.first as isize;
        let shift = from * (1 << self.octave_bits());
        for part in other.parts() {
            let at = (part.start as isize + shift) as usize;
            let pairs = self.counts[at..at + part.len()].iter_mut().zip(&other.counts[part]);
            pairs.for_each(|(own, other)| *own += other);
        }
    }

    /// Back to zero, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.total = 0;
        for part in parts(&self.seen, self.part_bits()) {
            self.counts[part].fill(0);
        }
        self.seen.fill(0);
    }

    /// Has room for every time from now on: nothing that is counted allocates any more.
    pub(crate) fn reserve(&mut self) {
        self.make_room(0..self.last() + 1);
    }

    /// Places of `counts` where there may be something.
    fn parts(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        parts(&self.seen, self.part_bits())
    }

    /// Those in which there is something, the shortest times first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.parts().flatten().filter(|at| self.counts[*at] > 0).map(|at| self.bucket(at))
    }

    /// The bucket in which the one of this rank is, from 1 on; none where there are fewer.
    pub(crate) fn ranked(&self, rank: u64) -> Option<Bucket> {
        let mut before = 0;
        self.iter().find(|bucket| {
            before += bucket.count;
            before >= rank
        })
    }

    /// How many lie between two times, both buckets included.
    pub(crate) fn count_within(&self, from: u64, to: u64) -> u64 {
        let within = |bucket: &Bucket| bucket.highest() >= from && bucket.lowest <= to;
        self.iter().filter(within).map(|bucket| bucket.count).sum()
    }
}

/// The parts whose bits are set, each of so many buckets (a power of two).
fn parts(seen: &[u64], bits: u32) -> impl Iterator<Item = Range<usize>> + '_ {
    let set = |(nth, seen): (usize, &u64)| {
        let mut left = *seen;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            // The lowest bit that is set goes.
            left &= left.checked_sub(1)?;
            Some(64 * nth + bit)
        })
    };
    seen.iter().enumerate().flat_map(set).map(move |part| part << bits..(part + 1) << bits)
}

/// What was counted is the same, however it came to be.
impl PartialEq for Buckets {
    fn eq(&self, other: &Buckets) -> bool {
        let all = |buckets: &Buckets| buckets.iter().map(|one| (one.lowest, one.count)).collect::<Vec<_>>();
        self.total == other.total
            && (self.digits == other.digits || self.is_empty())
            && all(self) == all(other)
    }
}

/// As others know it.
impl From<&Buckets> for Histogram<u64> {
    fn from(buckets: &Buckets) -> Histogram<u64> {
        let bounds = Histogram::new_with_bounds(1 << LOWEST_BITS, HIGHEST, buckets.digits);
        let mut histogram = bounds.expect("constant bounds are valid");
        for bucket in buckets.iter() {
            // The same place as 0; but of nothing but zeros a histogram knows another largest value once it was stored.
            histogram.saturating_record_n(bucket.lowest.max(1), bucket.count);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times() -> impl Strategy<Value = Vec<u64>> {
        // Every octave: the exponent first.
        let time = (0u32..44, any::<u64>()).prop_map(|(bits, rest)| (1 << bits) | (rest & ((1 << bits) - 1)));
        proptest::collection::vec(prop_oneof![time, Just(0)], 0..60)
    }

    proptest! {
        /// The buckets are those of hdrhistogram, to either number of digits.
        #[test]
        fn it_counts_as_hdrhistogram_does(times in times(), digits in 2u8..=3, from in 0u64..1 << 42) {
            let mut ours = Buckets::new(digits);
            let mut theirs = Histogram::<u64>::new_with_bounds(1 << LOWEST_BITS, HIGHEST, digits).unwrap();
            for time in &times {
                ours.record_n(*time, 1);
                // The same place as 0.
                theirs.saturating_record((*time).max(1));
            }
            let recorded: Vec<(u64, u64)> = theirs.iter_recorded()
                .map(|place| (theirs.lowest_equivalent(place.value_iterated_to()), place.count_at_value()))
                .collect();
            prop_assert_eq!(ours.iter().map(|one| (one.lowest, one.count)).collect::<Vec<_>>(), recorded);
            for one in ours.iter() {
                let expected = (theirs.highest_equivalent(one.lowest), theirs.median_equivalent(one.lowest));
                prop_assert_eq!((one.highest(), one.middle()), expected);
            }
            prop_assert_eq!(ours.len(), theirs.len());
            for rank in 1..=times.len() as u64 {
                let quantile = (rank as f64 - 0.5) / times.len() as f64;
                let ranked = ours.ranked(rank).map(|one| one.highest());
                prop_assert_eq!(ranked, Some(theirs.value_at_quantile(quantile)));
            }
            prop_assert!(ours.ranked(times.len() as u64 + 1).is_none());
            if !times.is_empty() {
                prop_assert_eq!(ours.count_within(from, 2 * from), theirs.count_between(from, 2 * from));
            }
            prop_assert_eq!(Histogram::from(&ours), theirs);
        }

        /// Counts add up whatever octaves either side has, and however many digits.
        #[test]
        fn sums_are_those_of_all(a in times(), b in times(), digits in 2u8..=3, other in 2u8..=3, has_room: bool) {
            let of = |times: &[u64], mut buckets: Buckets| {
                times.iter().for_each(|time| buckets.record_n(*time, 3));
                buckets
            };
            let (mut sum, mut other) = (of(&a, Buckets::new(digits)), of(&b, Buckets::new(other)));
            if has_room {
                other.reserve();
            }
            sum.merge(&other);
            let coarse: Vec<u64> = other.iter().map(|bucket| bucket.lowest).collect();
            let mut expected = of(&a, Buckets::new(digits));
            for (time, bucket) in coarse.iter().zip(other.iter()) {
                expected.record_n(*time, bucket.count);
            }
            prop_assert_eq!(sum.len(), 3 * (a.len() + b.len()) as u64);
            prop_assert_eq!(sum, expected);
        }

        /// Memory goes with the octaves that were seen, and what is kept of it is used again.
        #[test]
        fn what_was_cleared_is_as_new(before in times(), after in times()) {
            let of = |times: &[u64], mut buckets: Buckets| {
                times.iter().for_each(|time| buckets.record_n(*time, 2));
                buckets
            };
            let mut used = of(&before, Buckets::new(3));
            used.clear();
            prop_assert_eq!(&used, &Buckets::new(2));
            prop_assert_eq!(of(&after, used), of(&after, Buckets::new(3)));
        }
    }

    #[test]
    fn room_is_made_once() {
        let mut buckets = Buckets::new(3);
        buckets.reserve();
        assert_eq!(buckets.counts.len(), 27_648, "as many as hdrhistogram has between these bounds");
        let at = buckets.counts.as_ptr();
        [0, 1, HIGHEST, u64::MAX].into_iter().for_each(|time| buckets.record_n(time, 1));
        buckets.clear();
        buckets.reserve();
        assert_eq!((buckets.counts.len(), buckets.counts.as_ptr()), (27_648, at));
    }
}

//! Buckets of an HDR histogram (Tene, HdrHistogram): counts of times to a number of significant digits, stored sparsely from the shortest
//! to the longest counted time. The buckets are the same as those of the crate `hdrhistogram`, by test.

use hdrhistogram::Histogram;

use crate::{merge::Merge, sparse::SparseCounts};

/// Significant digits of measurements.
pub(crate) const DIGITS: u8 = 3;
/// Significant digits for charts.
pub(crate) const COARSE: u8 = 2;

/// Resolution of the shortest times as a power of two: 64 ns. The clock and the event loop are coarser.
pub(crate) const LOWEST_BITS: u32 = 6;
/// An hour in nanoseconds; longer times are counted in its bucket.
pub(crate) const HIGHEST: u64 = 3_600_000_000_000;
/// Number of bits of `HIGHEST`.
const HIGHEST_BITS: u32 = u64::BITS - HIGHEST.leading_zeros();

/// Counts of times in nanoseconds. An octave contains the buckets of the times from one power of two to the next: 8 KiB at three digits, so
/// times that span a factor of a thousand take 80 KiB. Merging takes time in proportion to the non-empty buckets.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    digits: u8,
    total: u64,
    /// Counts by bucket number.
    counts: SparseCounts,
}

/// A non-empty bucket.
pub(crate) struct Bucket {
    /// The shortest time counted in it, and its width in nanoseconds.
    pub(crate) lowest: u64,
    pub(crate) width: u64,
    pub(crate) count: u64,
}

impl Bucket {
    pub(crate) fn highest(&self) -> u64 {
        self.lowest + (self.width - 1)
    }

    /// The middle of its range.
    pub(crate) fn middle(&self) -> u64 {
        self.lowest + self.width / 2
    }
}

impl Buckets {
    /// No counts; `digits`: number of significant digits, 2 or 3.
    pub(crate) fn new(digits: u8) -> Buckets {
        Buckets { digits, total: 0, counts: SparseCounts::default() }
    }

    pub(crate) const fn digits(&self) -> u8 {
        self.digits
    }

    /// Total count.
    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Number of buckets per octave, as a power of two: half of the first power that distinguishes 2 · 10^digits values.
    const fn octave_bits(&self) -> u32 {
        (2 * 10u32.pow(self.digits as u32)).next_power_of_two().trailing_zeros() - 1
    }

    /// Maximum number of buckets.
    const fn all(&self) -> usize {
        ((HIGHEST_BITS - LOWEST_BITS - self.octave_bits() + 1) as usize) << self.octave_bits()
    }

    /// The bucket number of a time. The first two octaves have buckets of the same width.
    fn place(&self, time: u64) -> usize {
        let (bits, unit) = (self.octave_bits(), time >> LOWEST_BITS);
        let doublings = (u64::BITS - unit.leading_zeros()).saturating_sub(bits + 1);
        ((u64::from(doublings) << bits) + (unit >> doublings)) as usize
    }

    /// The bucket with this number.
    fn bucket(&self, (place, count): (usize, u64)) -> Bucket {
        let bits = self.octave_bits();
        let doublings = (place >> bits).saturating_sub(1);
        let (unit, shift) = (place - (doublings << bits), doublings as u32 + LOWEST_BITS);
        Bucket { lowest: (unit as u64) << shift, width: 1 << shift, count }
    }

    /// Adds `count` to the bucket of a time in nanoseconds.
    pub(crate) fn record_n(&mut self, time: u64, count: u64) {
        self.total += count;
        self.counts.add(self.place(if time >> HIGHEST_BITS > 0 { HIGHEST } else { time }), count);
    }

    /// Appends the count of a bucket above all others. `None` if there is no such bucket, or if the total overflows.
    pub(crate) fn push(&mut self, (place, count): (usize, u64)) -> Option<()> {
        self.total = self.total.checked_add(count).filter(|_| place < self.all())?;
        self.counts.push(place, count);
        Some(())
    }

    /// Numbers and counts of the non-empty buckets, in ascending order.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter()
    }

    /// The non-empty buckets, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts().map(|counted| self.bucket(counted))
    }

    /// The bucket that contains the time with this rank, counted from 1; `None` if there are fewer times.
    pub(crate) fn ranked(&self, rank: u64) -> Option<Bucket> {
        let mut before = 0;
        self.iter().find(|bucket| {
            before += bucket.count;
            before >= rank
        })
    }

    /// Count between two times, including both of their buckets.
    pub(crate) fn count_within(&self, from: u64, to: u64) -> u64 {
        let within = |bucket: &Bucket| bucket.highest() >= from && bucket.lowest <= to;
        self.iter().filter(within).map(|bucket| bucket.count).sum()
    }
}

impl Merge for Buckets {
    /// The number of digits may differ.
    fn merge(&mut self, other: &Buckets) {
        if self.digits != other.digits {
            other.iter().for_each(|bucket| self.record_n(bucket.lowest, bucket.count));
            return;
        }
        self.total += other.total;
        self.counts.merge(&other.counts);
    }

    fn clear(&mut self) {
        self.total = 0;
        self.counts.clear();
    }

    /// Two significant digits, a fifth of the memory, for charts.
    fn coarsen(&mut self) {
        let mut coarse = Buckets::new(COARSE);
        coarse.merge(self);
        *self = coarse;
    }

    fn reserve(&mut self) {
        self.counts.reserve(self.all());
    }
}

/// Compares counts, independent of the representation.
impl PartialEq for Buckets {
    fn eq(&self, other: &Buckets) -> bool {
        (self.digits == other.digits || self.is_empty()) && self.counts().eq(other.counts())
    }
}

/// Conversion for other libraries.
impl From<&Buckets> for Histogram<u64> {
    fn from(buckets: &Buckets) -> Histogram<u64> {
        let bounds = Histogram::new_with_bounds(1 << LOWEST_BITS, HIGHEST, buckets.digits);
        let mut histogram = bounds.expect("constant bounds are valid");
        for bucket in buckets.iter() {
            // Counted in the same bucket as 0, but hdrhistogram tracks its maximum differently if zeros were stored.
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
        // Covers every octave: the exponent is drawn first.
        let time = (0u32..44, any::<u64>()).prop_map(|(bits, rest)| (1 << bits) | (rest & ((1 << bits) - 1)));
        proptest::collection::vec(prop_oneof![time, Just(0)], 0..60)
    }

    proptest! {
        /// The buckets are those of hdrhistogram, for both numbers of digits.
        #[test]
        fn it_counts_as_hdrhistogram_does(times in times(), digits in 2u8..=3, from in 0u64..1 << 42) {
            let mut ours = Buckets::new(digits);
            let mut theirs = Histogram::<u64>::new_with_bounds(1 << LOWEST_BITS, HIGHEST, digits).unwrap();
            for time in &times {
                ours.record_n(*time, 1);
                // Counted in the same bucket as 0.
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

        /// Counts add up for any octaves, digits and representation of both sides.
        #[test]
        fn sums_are_those_of_all(
            a in times(), b in times(), digits in 2u8..=3, other in 2u8..=3, forms in (form(), form()),
        ) {
            let (mut sum, other) = (of(&a, digits, 3, forms.0), of(&b, other, 3, forms.1));
            sum.merge(&other);
            let mut expected = of(&a, digits, 3, Form::Grown);
            other.iter().for_each(|bucket| expected.record_n(bucket.lowest, bucket.count));
            prop_assert_eq!(sum.len(), 3 * (a.len() + b.len()) as u64);
            prop_assert_eq!(sum, expected);
        }

        /// Adjacent full words are merged like others.
        #[test]
        fn full_octaves_add_up(from in 0u64..5_000, n in 0u64..5_000, forms in (form(), form())) {
            let all: Vec<u64> = (from..from + n).map(|unit| unit << LOWEST_BITS).collect();
            let mut sum = of(&all, 3, 3, forms.0);
            sum.merge(&of(&all, 3, 4, forms.1));
            prop_assert_eq!(sum, of(&all, 3, 7, Form::Grown));
        }

        /// A cleared histogram can be reused like a new one.
        #[test]
        fn a_cleared_histogram_is_as_new(before in times(), after in times(), form in form()) {
            let mut used = of(&before, 3, 2, form);
            used.clear();
            prop_assert_eq!(&used, &Buckets::new(2));
            after.iter().for_each(|time| used.record_n(*time, 2));
            prop_assert_eq!(used, of(&after, 3, 2, Form::Grown));
        }
    }

    /// How the buckets were built.
    #[derive(Clone, Copy, Debug)]
    enum Form {
        Grown,
        Reserved,
        Packed,
    }

    fn form() -> impl Strategy<Value = Form> {
        prop_oneof![Just(Form::Grown), Just(Form::Reserved), Just(Form::Packed)]
    }

    /// `count` of each of these times.
    fn of(times: &[u64], digits: u8, count: u64, form: Form) -> Buckets {
        let mut buckets = Buckets::new(digits);
        if let Form::Reserved = form {
            buckets.reserve();
        }
        times.iter().for_each(|time| buckets.record_n(*time, count));
        if let Form::Packed = form {
            let mut packed = Buckets::new(digits);
            buckets.counts().for_each(|counted| packed.push(counted).expect("it is beyond all others"));
            return packed;
        }
        buckets
    }

    #[test]
    fn there_is_a_last_bucket() {
        assert_eq!(Buckets::new(3).all(), 27_648, "as many as hdrhistogram has between these bounds");
        for digits in [2, 3] {
            let (last, all) = (Buckets::new(digits).place(HIGHEST), Buckets::new(digits).all());
            for (place, is_one) in [(last, true), (all - 1, true), (all, false), (usize::MAX, false)] {
                assert_eq!(Buckets::new(digits).push((place, 1)).is_some(), is_one, "{place}");
            }
            let mut many = of(&[0], digits, u64::MAX, Form::Packed);
            assert!(many.push((last, 1)).is_none(), "they are too many");
        }
    }
}

//! Slices: the part of a population that one machine executes, and the turns of parts in a common schedule.

/// `width` of every `of` units of a population, from `from` on. Slices that cover each unit once sum to the whole: in connections, in
/// rates, and in numbers of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Slice {
    /// First unit.
    pub from: u32,
    /// Number of units; 0 is nothing of the population.
    pub width: u32,
    /// Total of units, at least 1: the connections, if they are counted.
    pub of: u32,
}

/// The turns of a part in the common schedule of its population: `width` of every `of` turns, evenly spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Offset of the first turn, less than `of`, in fractions of the time between two of its turns.
    pub at: u64,
    /// Number of its turns.
    pub width: u64,
    /// Number of turns of all parts.
    pub of: u64,
}

impl Default for Slice {
    fn default() -> Slice {
        Slice::WHOLE
    }
}

impl Slice {
    /// The whole population.
    pub const WHOLE: Slice = Slice { from: 0, width: 1, of: 1 };

    /// Whether it is a valid slice.
    pub fn is_valid(self) -> bool {
        self.from.checked_add(self.width).is_some_and(|end| end <= self.of) && self.of > 0
    }

    /// Its part of `n`: the parts of all slices sum to `n`, and each differs by less than one from its proportion.
    pub fn of(self, n: u32) -> u32 {
        let up_to = |unit: u32| u64::from(n) * u64::from(unit) / u64::from(self.of);
        (up_to(self.from + self.width) - up_to(self.from)) as u32
    }

    /// The same for 64 bits.
    pub fn of_long(self, n: u64) -> u64 {
        let up_to = |unit: u32| (u128::from(n) * u128::from(unit) / u128::from(self.of)) as u64;
        up_to(self.from + self.width) - up_to(self.from)
    }

    /// Sum of the parts of `n` of the slices before it.
    pub(crate) fn before(self, n: u32) -> u32 {
        (u64::from(n) * u64::from(self.from) / u64::from(self.of)) as u32
    }

    /// Maximum of `of(m)` over all `m` up to `n`.
    pub(crate) fn of_at_most(self, n: u32) -> u32 {
        (u64::from(n) * u64::from(self.width)).div_ceil(u64::from(self.of)) as u32
    }

    /// The number, unique among all slices, of the `nth` item of this slice.
    ///
    /// # Panics
    /// The slice is empty.
    pub fn number(self, nth: u64) -> u64 {
        let width = u64::from(self.width);
        // The whole: every slice of a run on one machine.
        if width == u64::from(self.of) {
            return nth;
        }
        nth / width * u64::from(self.of) + u64::from(self.from) + nth % width
    }

    /// The index within this slice of an item with this [number](Slice::number); `None` if another slice has it.
    pub(crate) fn place_of(self, number: u64) -> Option<u64> {
        let (from, width, of) = (u64::from(self.from), u64::from(self.width), u64::from(self.of));
        let within = (number % of).checked_sub(from).filter(|within| *within < width)?;
        Some(number / of * width + within)
    }

    /// How many of the first `n` numbers belong to this slice.
    pub(crate) fn numbers_below(self, n: u64) -> u64 {
        let (from, width, of) = (u64::from(self.from), u64::from(self.width), u64::from(self.of));
        n / of * width + (n % of).saturating_sub(from).min(width)
    }

    /// The same proportion of `n` numbers, in units fine enough for each slice to get its part: with few numbers per unit, those of the
    /// last units would be missing.
    pub(crate) fn among(self, n: u64) -> Slice {
        const MANY: u64 = 16;
        let of = u64::from(self.of);
        let Some(units) = u32::try_from(n).ok().filter(|n| *n > 0 && u64::from(*n) < MANY * of) else {
            return self;
        };
        let unit = |at: u32| (u64::from(at) * u64::from(units) / of) as u32;
        let from = unit(self.from);
        Slice { from, width: unit(self.from + self.width) - from, of: units }
    }

    /// Its proportion of the whole.
    pub fn share(self) -> f64 {
        f64::from(self.width) / f64::from(self.of)
    }
}

impl Turn {
    /// Every turn.
    pub const ALWAYS: Turn = Turn { at: 0, width: 1, of: 1 };

    /// The turn of this shard, among all that execute the slice.
    pub fn new(slice: Slice, shard: u32, shards: u32) -> Turn {
        let (from, of) = (u64::from(slice.from), u64::from(slice.of));
        Turn { at: u64::from(shard) * of + from, width: slice.width.into(), of: u64::from(shards) * of }
    }

    /// How many of the first `all` turns belong to this shard.
    pub fn among(self, all: u64) -> u64 {
        if self.width == 1 {
            return all.saturating_sub(self.at).div_ceil(self.of);
        }
        let turns = u128::from(all) * u128::from(self.width);
        u64::try_from(turns.saturating_sub(self.at.into()).div_ceil(self.of.into())).unwrap_or(u64::MAX)
    }

    /// The position among all turns of its `nth` turn, from zero.
    pub fn place(self, nth: u64) -> u64 {
        if self.width == 1 {
            return nth.saturating_mul(self.of).saturating_add(self.at);
        }
        let place = (u128::from(nth) * u128::from(self.of) + u128::from(self.at)) / u128::from(self.width);
        u64::try_from(place).unwrap_or(u64::MAX)
    }

    /// Its proportion of all turns.
    pub fn share(self) -> f64 {
        self.width as f64 / self.of as f64
    }

    /// Offset of its first turn, as a part of the time in which each part has one.
    pub fn first(self) -> f64 {
        self.at as f64 / self.of as f64
    }

    /// Number of parts of this size whose turn comes before.
    pub fn before(self) -> u64 {
        self.at / self.width.max(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// Adjacent slices of these widths.
    fn slices(widths: &[u32]) -> Vec<Slice> {
        let of = widths.iter().sum();
        let mut from = 0;
        let slice = |width: &u32| {
            from += width;
            Slice { from: from - width, width: *width, of }
        };
        widths.iter().map(slice).collect()
    }

    fn widths() -> impl Strategy<Value = Vec<u32>> {
        vec(0u32..3_000_000, 1..20).prop_filter("at least one unit", |widths| widths.iter().sum::<u32>() > 0)
    }

    #[test]
    fn each_slice_has_its_part_of_few_numbers() {
        // Three agents with one unit per connection, and the ports of one address.
        for n in [28_000u64, 874_521, 2_000_000, 1 << 40] {
            let all = slices(&[291_509, 291_509, 291_503]);
            let below = all.iter().map(|slice| slice.among(n).numbers_below(n)).collect::<Vec<_>>();
            assert_eq!(below.iter().sum::<u64>(), n);
            assert!(below.iter().all(|own| own.abs_diff(n / 3) <= n / 16), "{n}: {below:?}");
        }
        assert_eq!(Slice::WHOLE.among(1 << 40), Slice::WHOLE);
    }

    proptest! {
        #[test]
        fn parts_of_any_number_sum_to_it_and_follow_the_widths(widths in widths(), n: u32) {
            let slices = slices(&widths);
            prop_assert_eq!(slices.iter().map(|slice| u64::from(slice.of(n))).sum::<u64>(), u64::from(n));
            for slice in slices {
                prop_assert!((f64::from(slice.of(n)) - f64::from(n) * slice.share()).abs() < 1.000_1, "{:?}", slice);
                prop_assert_eq!(slice.of(slice.of), slice.width);
            }
        }

        #[test]
        fn equal_slices_differ_by_at_most_one(parts in 1u32..2_000, n: u32) {
            let of = |from| Slice { from, width: 1, of: parts }.of(n);
            let sizes: Vec<u32> = (0..parts).map(of).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }

        #[test]
        fn each_number_is_one_slices(widths in vec(0u32..9, 1..9), rounds in 1u64..4) {
            prop_assume!(widths.iter().sum::<u32>() > 0);
            let of = |slice: &Slice| (0..rounds * u64::from(slice.width)).map(|nth| slice.number(nth)).collect::<Vec<_>>();
            let mut numbers: Vec<u64> = slices(&widths).iter().flat_map(of).collect();
            numbers.sort_unstable();
            let all = rounds * u64::from(widths.iter().sum::<u32>());
            prop_assert_eq!(numbers, (0..all).collect::<Vec<_>>());
        }

        /// After a time in which every unit has its turn, the number of turns is exact; at any other time it differs by less than one.
        #[test]
        fn turns_follow_the_widths(
            widths in vec(1u32..300, 1..9), shards in 1u32..5, rounds in 1u64..4, all in 0u64..100_000
        ) {
            let of: u32 = widths.iter().sum();
            let mut sum = 0;
            for (slice, width) in slices(&widths).into_iter().zip(&widths) {
                let turns: Vec<Turn> = (0..shards).map(|shard| Turn::new(slice, shard, shards)).collect();
                let exact = rounds * u64::from(shards) * u64::from(of);
                for turn in &turns {
                    prop_assert_eq!(turn.among(exact), rounds * u64::from(*width));
                    let n = turn.among(all);
                    prop_assert!((n as f64 - all as f64 * turn.share()).abs() < 1.000_1);
                    prop_assert!(n == 0 || turn.place(n - 1) < all, "{:?}: {} of {}", turn, n, all);
                    prop_assert!(turn.place(n) >= all, "{:?}: {} of {}", turn, n, all);
                }
                let of_slice: u64 = turns.iter().map(|turn| turn.among(all)).sum();
                prop_assert_eq!(of_slice, Turn::new(slice, 0, 1).among(all));
                sum += of_slice;
            }
            prop_assert!(sum.abs_diff(all) <= widths.len() as u64);
        }
    }

    #[test]
    fn the_whole_is_everything() {
        let whole = Slice::WHOLE;
        assert_eq!((whole.of(u32::MAX), whole.number(7), whole.share()), (u32::MAX, 7, 1.0));
        let slice = Slice { from: 2, width: 3, of: 7 };
        let places = |slice: Slice| (0..9).map(|number| slice.place_of(number)).collect::<Vec<_>>();
        let none = None;
        assert_eq!(places(slice), [none, none, Some(0), Some(1), Some(2), none, none, none, none]);
        assert!((0..50).all(|nth| slice.place_of(slice.number(nth)) == Some(nth)));
        assert_eq!(places(whole), (0..9).map(Some).collect::<Vec<_>>());
        let none = Slice { from: 3, width: 0, of: 5 };
        assert!(none.is_valid() && whole.is_valid() && none.of(1_000) == 0);
        assert_eq!(Turn::new(none, 0, 1).among(1_000), 0);
        for bad in [Slice { from: 3, width: 3, of: 5 }, Slice { from: u32::MAX, width: 2, of: 5 }] {
            assert!(!bad.is_valid());
        }
        assert!(!Slice { from: 0, width: 0, of: 0 }.is_valid());
        // Two thirds of twelve million: not rounded to millionths.
        assert_eq!(Slice { from: 0, width: 8_000_001, of: 12_000_001 }.of(12_000_001), 8_000_001);
    }
}

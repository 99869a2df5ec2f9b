//! The result of a search, and the interval of the capacity.

/// Maximum distance of the interval's ends from the result, as a share of it, for [`Answer::Found`].
pub(crate) const FOUND: f64 = 0.1;

/// The loads between which the capacity lies with a probability of 95 %, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The lower end; 0 if the capacity may be below the search's smallest load.
    pub low: u64,
    /// The upper end; the search's largest load if the capacity may be above it.
    pub high: u64,
}

impl Interval {
    /// The maximum difference between the capacity and `max`.
    pub fn error(self, max: u64) -> u64 {
        self.high.abs_diff(max).max(max.abs_diff(self.low))
    }

    /// Whether both ends are within `share` of the middle.
    pub(crate) fn is_within(self, share: f64) -> bool {
        let middle = f64::midpoint(self.low as f64, self.high as f64);
        // Loads are whole numbers.
        (self.high - self.low) as f64 <= 2.0 * (share * middle).max(1.0)
    }

    /// Whether both ends are within `share` of `max`.
    pub(crate) fn is_around(self, max: u64, share: f64) -> bool {
        let (low, high) = (self.low as f64, self.high as f64);
        let margin = (share * max as f64).max(1.0);
        low >= max as f64 - margin && high <= max as f64 + margin
    }
}

/// What a search knows at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The capacity is known to within 10 %.
    Found {
        /// The largest load that the target sustains.
        max: u64,
        /// The interval of the capacity.
        interval: Interval,
    },
    /// The largest load passed.
    NotReached {
        /// The largest load that passed.
        most: u64,
    },
    /// No load passes, not even the smallest.
    Impossible {
        /// The smallest load.
        least: u64,
    },
    /// The steps contradict each other, or there are too few.
    Unsettled {
        /// The largest load that passed.
        passed: Option<u64>,
        /// The smallest load that failed; it may be less than one that passed.
        failed: Option<u64>,
        /// The interval of the capacity.
        interval: Interval,
    },
}

impl Answer {
    /// The largest load that the target is known to sustain; 0 if none.
    pub fn max(self) -> u64 {
        match self {
            Answer::Found { max, .. } | Answer::NotReached { most: max } => max,
            Answer::Impossible { .. } => 0,
            Answer::Unsettled { passed, .. } => passed.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_within_a_share_at_both_ends() {
        let interval = Interval { low: 95, high: 105 };
        assert!(interval.is_within(0.05) && !interval.is_within(0.049));
        assert!(
            interval.is_around(100, 0.05) && !interval.is_around(99, 0.05) && !interval.is_around(101, 0.05)
        );
        assert!(Interval { low: 5, high: 5 }.is_within(0.0) && !Interval { low: 0, high: 3 }.is_within(0.9));
    }
}

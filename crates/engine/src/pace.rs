//! When something is due. Pure: elapsed time in, a number out.

use units::{Nanos, Rate};

/// A steady schedule of `total` things at `rate`.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    rate: Rate,
    total: u64,
    /// Which of every `of` things of the whole schedule are this shard's: `at`, `at + of`, …
    at: u64,
    of: u64,
}

impl Steady {
    /// One shard's share (`at` of `of`) of a schedule that all shards follow together.
    pub fn share(rate: Rate, total: u64, at: u32, of: u32) -> Steady {
        assert!(at < of && !rate.is_zero());
        Steady { rate, total, at: u64::from(at), of: u64::from(of) }
    }

    /// Those of it that are due in less than `time` from its beginning: in all shares, exactly `rate × time` of them.
    pub fn within(self, time: Nanos) -> Steady {
        let total = if time == Nanos::ZERO { 0 } else { self.due(time.since(Nanos(1))) };
        Steady { total, ..self }
    }

    /// How many are due by now.
    pub fn due(&self, elapsed: Nanos) -> u64 {
        // The first thing is due at once, hence the one more.
        let all = self.rate.due(elapsed) + 1;
        all.saturating_sub(self.at).div_ceil(self.of).min(self.total)
    }

    /// When the `n`-th (from zero) is due.
    pub fn time_of(&self, n: u64) -> Nanos {
        self.rate.time_of(n * self.of + self.at)
    }

    /// When the first one after `done` of them is due; never, when all are done.
    pub fn next_after(&self, done: u64) -> Nanos {
        if done >= self.total { Nanos::NEVER } else { self.time_of(done) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Never ahead of due, exact in the long run, and the shares make the whole.
        #[test]
        fn shares_follow_the_schedule(per_s in 1u32..2_000_000, of in 1u32..9, ms in 0u64..100_000) {
            let rate = Rate::per_s(per_s);
            let elapsed = Nanos::from_millis(ms);
            let shares: Vec<Steady> = (0..of).map(|at| Steady::share(rate, u64::MAX, at, of)).collect();
            let due: u64 = shares.iter().map(|s| s.due(elapsed)).sum();
            prop_assert_eq!(due, u64::from(per_s) * ms / 1000 + 1);
            for s in &shares {
                let n = s.due(elapsed);
                prop_assert!(n == 0 || s.time_of(n - 1) <= elapsed, "ahead of due");
                prop_assert!(s.time_of(n) > elapsed, "behind: {:?} {:?}", s.time_of(n), elapsed);
            }
        }
    }

    #[test]
    fn a_time_has_as_many_as_the_rate_says() {
        for (per_s, ms, all) in
            [(20_000, 30_000, 600_000), (10, 1_050, 11), (10, 1_000, 10), (3, 1_000, 3), (1, 0, 0)]
        {
            let share =
                |at| Steady::share(Rate::per_s(per_s), u64::MAX, at, 3).within(Nanos::from_millis(ms)).total;
            assert_eq!((0..3).map(share).sum::<u64>(), all, "{per_s}/s for {ms} ms");
        }
    }

    #[test]
    fn it_ends_with_the_total() {
        let s = Steady::share(Rate::per_s(10), 3, 0, 1);
        for (ms, due) in [(0, 1), (99, 1), (100, 2), (200, 3), (10_000, 3)] {
            assert_eq!(s.due(Nanos::from_millis(ms)), due, "at {ms} ms");
        }
        assert_eq!((s.next_after(2), s.next_after(3)), (Nanos::from_millis(200), Nanos::NEVER));
    }
}

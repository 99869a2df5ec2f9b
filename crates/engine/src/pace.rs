//! Rate profiles and schedules: when each of a series of things is due. Pure: elapsed time in, a number out.

use plan::Turn;
use units::{Nanos, Rate};

/// The rate of dials or requests over time.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum RateProfile {
    /// A constant rate.
    Steady(Rate),
    /// Changes linearly from one rate to another, then stays there.
    Slope {
        /// At the beginning.
        from: Rate,
        /// At the end.
        to: Rate,
        /// Duration of the change, more than zero.
        over: Nanos,
    },
}

impl RateProfile {
    /// How many are due within `elapsed`, in addition to the one that is due immediately.
    fn due(self, elapsed: Nanos) -> u64 {
        let RateProfile::Slope { from, to, over } = self else { return self.last_rate().due(elapsed) };
        let (r, d, t) = (from.per_s_f64(), to.per_s_f64() - from.per_s_f64(), elapsed.secs_f64());
        let end = over.secs_f64();
        let sloping = t.min(end);
        let about = r * sloping + d * sloping * sloping / (2.0 * end) + (r + d) * (t - sloping);
        // `time_of` defines the exact time; this corrects the estimate.
        let mut n = about as u64;
        while n > 0 && self.time_of(n) > elapsed {
            n -= 1;
        }
        while self.time_of(n + 1) <= elapsed {
            n += 1;
        }
        n
    }

    /// When the `n`-th is due; number 0 is due immediately.
    fn time_of(self, n: u64) -> Nanos {
        let RateProfile::Slope { from, to, over } = self else { return self.last_rate().time_of(n) };
        let (r, d, end) = (from.per_s_f64(), to.per_s_f64() - from.per_s_f64(), over.secs_f64());
        let n = n as f64;
        let sloping = r * end + d * end / 2.0;
        let seconds = if n > sloping {
            end + (n - sloping) / (r + d)
        } else {
            // n = r t + d t² / (2 end), solved without subtracting nearly equal numbers.
            2.0 * n / (r + (r * r + 2.0 * d / end * n).max(0.0).sqrt())
        };
        if n == 0.0 {
            Nanos::ZERO
        } else if seconds.is_finite() && seconds < 1e9 {
            Nanos((seconds * 1e9) as u64)
        } else {
            Nanos::NEVER
        }
    }

    /// The final rate.
    pub fn last_rate(self) -> Rate {
        match self {
            RateProfile::Steady(rate) | RateProfile::Slope { to: rate, .. } => rate,
        }
    }
}

/// When each of `total` things is due.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    profile: RateProfile,
    total: u64,
    /// Which of them belong to this shard.
    turn: Turn,
}

impl Schedule {
    /// One shard's share of a schedule that all shards follow together. With a rate of zero, nothing is due.
    pub fn share(profile: RateProfile, total: u64, turn: Turn) -> Schedule {
        assert!(turn.at < turn.of);
        let total = if profile == RateProfile::Steady(Rate::default()) { 0 } else { total };
        Schedule { profile, total, turn }
    }

    /// Limits the schedule to what is due in less than `time` from its beginning: exactly `rate × time` over all shares of a
    /// steady one.
    pub fn within(self, time: Nanos) -> Schedule {
        let total = if time == Nanos::ZERO { 0 } else { self.due(time.since(Nanos(1))) };
        Schedule { total, ..self }
    }

    /// The number of things in this share.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many are due after `elapsed`.
    pub fn due(&self, elapsed: Nanos) -> u64 {
        // One more than the rate gives: the first is due immediately.
        let all = self.profile.due(elapsed).saturating_add(1);
        self.turn.among(all).min(self.total)
    }

    /// When the `n`-th (counted from zero) is due.
    pub fn time_of(&self, n: u64) -> Nanos {
        self.profile.time_of(self.turn.place(n))
    }

    /// When the next is due after `done` of them; never, if all are done.
    pub fn next_after(&self, done: u64) -> Nanos {
        if done >= self.total { Nanos::NEVER } else { self.time_of(done) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Slice;
    use proptest::prelude::*;

    /// The turn of shard number `shard` among `shards`.
    fn turn(shard: u32, shards: u32) -> Turn {
        Turn::new(Slice::WHOLE, shard, shards)
    }

    proptest! {
        /// A machine with a slice of the load dials and sends at its share of the rate, evenly.
        #[test]
        fn slices_have_their_share_of_a_rate(
            per_s in 1u32..100_000, width in 1u32..1_000, rest in 1u32..1_000, shards in 1u32..5
        ) {
            let of = width + rest;
            let schedule = |slice, shard| {
                let turn = Turn::new(slice, shard, shards);
                Schedule::share(RateProfile::Steady(Rate::per_s(per_s)), u64::MAX, turn).within(Nanos::from_secs(10))
            };
            let due = |slice| (0..shards).map(|shard| schedule(slice, shard).total).sum::<u64>();
            let (own, other) = (Slice { from: 0, width, of }, Slice { from: width, width: rest, of });
            let all = u64::from(per_s) * 10;
            prop_assert!((due(own) as f64 - all as f64 * own.share()).abs() <= 1.0, "{} of {}", due(own), all);
            prop_assert!((due(own) + due(other)).abs_diff(all) <= 1);
            // The distance between consecutive ones follows the share, up to rounding to a turn.
            let one = schedule(own, 0);
            let apart = f64::from(shards) / own.share();
            for n in 0..one.total.saturating_sub(1).min(50) {
                let gap = (one.turn.place(n + 1) - one.turn.place(n)) as f64;
                prop_assert!((gap - apart).abs() <= 1.0, "{} of {}", gap, apart);
            }
        }

        /// Never early, exact in the long run, and the shares add up to the whole.
        #[test]
        fn shares_follow_the_schedule(per_s in 1u32..2_000_000, of in 1u32..9, ms in 0u64..100_000) {
            let rate = Rate::per_s(per_s);
            let elapsed = Nanos::from_millis(ms);
            let shares: Vec<Schedule> =
                (0..of).map(|at| Schedule::share(RateProfile::Steady(rate), u64::MAX, turn(at, of))).collect();
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
    fn a_period_has_as_many_slots_as_its_rate() {
        for (per_s, ms, all) in
            [(20_000, 30_000, 600_000), (10, 1_050, 11), (10, 1_000, 10), (3, 1_000, 3), (1, 0, 0)]
        {
            let share = |at| {
                Schedule::share(RateProfile::Steady(Rate::per_s(per_s)), u64::MAX, turn(at, 3))
                    .within(Nanos::from_millis(ms))
                    .total
            };
            assert_eq!((0..3).map(share).sum::<u64>(), all, "{per_s}/s for {ms} ms");
        }
    }

    #[test]
    fn it_ends_with_the_total() {
        let s = Schedule::share(RateProfile::Steady(Rate::per_s(10)), 3, Turn::ALWAYS);
        for (ms, due) in [(0, 1), (99, 1), (100, 2), (200, 3), (10_000, 3)] {
            assert_eq!(s.due(Nanos::from_millis(ms)), due, "at {ms} ms");
        }
        assert_eq!((s.next_after(2), s.next_after(3)), (Nanos::from_millis(200), Nanos::NEVER));
    }

    proptest! {
        /// For any slope: never early, and as many as the area below it.
        #[test]
        fn a_slope_goes_evenly(from in 0u32..100_000, to in 0u32..100_000, over_ms in 1u64..100_000, part in 0.0..2.0f64) {
            let over = Nanos::from_millis(over_ms);
            let profile = RateProfile::Slope { from: Rate::per_s(from), to: Rate::per_s(to), over };
            let s = Schedule::share(profile, u64::MAX, Turn::ALWAYS);
            let elapsed = Nanos((over.0 as f64 * part) as u64);
            let n = s.due(elapsed);
            prop_assert!(n == 1 || s.time_of(n - 1) <= elapsed, "ahead of due");
            prop_assert!(s.time_of(n) > elapsed, "behind");
            let (r, d, t, end) = (f64::from(from), f64::from(to) - f64::from(from), elapsed.secs_f64(), over.secs_f64());
            let sloping = t.min(end);
            let area = (r + (r + d * sloping / end)) / 2.0 * sloping + f64::from(to) * (t - sloping);
            prop_assert!((n as f64 - 1.0 - area).abs() <= 1.0 + area * 1e-6, "{} of {}", n, area);
        }
    }

    #[test]
    fn at_no_rate_nothing_is_due() {
        let s = Schedule::share(RateProfile::Steady(Rate::default()), u64::MAX, Turn::ALWAYS);
        assert_eq!((s.due(Nanos::from_secs(1_000)), s.next_after(0)), (0, Nanos::NEVER));
    }
}

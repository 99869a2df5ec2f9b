//! The offset of an agent's clock, estimated from messages with replies (as in RFC 5905, section 8).

use units::Nanos;

/// The best estimate for an agent so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    samples: u32,
    best: Option<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    round_trip: Nanos,
    /// Its clock minus this one.
    offset: i128,
}

impl Way {
    /// Adds a sample: a message sent at `sent`, answered at `at` by the agent's clock, with the reply received at `now`. The sample with
    /// the shortest round trip counts: its error is at most half of that.
    pub(crate) fn learn(&mut self, sent: Nanos, at: Nanos, now: Nanos) {
        if sent > now {
            return;
        }
        self.samples = self.samples.saturating_add(1);
        let round_trip = now.since(sent);
        if self.best.is_none_or(|best| round_trip < best.round_trip) {
            let middle = sent.0 + round_trip.0 / 2;
            self.best = Some(Sample { round_trip, offset: i128::from(at.0) - i128::from(middle) });
        }
    }

    /// Number of samples.
    pub(crate) fn samples(&self) -> u32 {
        self.samples
    }

    /// Converts a time of this clock to the agent's; not below 0.
    pub(crate) fn there(&self, at: Nanos) -> Nanos {
        let offset = self.best.map_or(0, |best| best.offset);
        Nanos((i128::from(at.0) + offset).clamp(0, i128::from(u64::MAX)) as u64)
    }

    /// Converts a time of the agent's clock to this one.
    pub(crate) fn back(&self, at: Nanos) -> i128 {
        i128::from(at.0) - self.best.map_or(0, |best| best.offset)
    }

    /// Maximum error of the conversion; `None` without a sample.
    pub(crate) fn error(&self) -> Option<Nanos> {
        self.best.map(|best| Nanos(best.round_trip.0.div_ceil(2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_clock_is_known_to_half_the_shortest_way(
            ahead in 0u64..1_000_000_000_000,
            ways in proptest::collection::vec((0u64..1_000_000, 0u64..1_000_000), 1..20),
        ) {
            let mut way = Way::default();
            let mut now = 5_000_000;
            for (there, back) in &ways {
                way.learn(Nanos(now), Nanos(now + there + ahead), Nanos(now + there + back));
                now += 1_000_000;
            }
            let error = way.error().unwrap().0;
            let shortest = ways.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert_eq!(error, shortest.div_ceil(2));
            let at = Nanos(7_000_000);
            prop_assert!(way.there(at).0.abs_diff(at.0 + ahead) <= error + 1);
            prop_assert!(way.back(Nanos(at.0 + ahead)).abs_diff(i128::from(at.0)) <= u128::from(error) + 1);
        }
    }

    #[test]
    fn an_answer_before_its_question_is_none() {
        let mut way = Way::default();
        way.learn(Nanos(10), Nanos(10), Nanos(9));
        assert_eq!((way.samples(), way.error()), (0, None));
    }
}

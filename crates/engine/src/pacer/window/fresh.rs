//! The early outcome of dials. A lost SYN is retransmitted after a second, but that a dial has not succeeded in time is known
//! much sooner.

use units::Nanos;

/// Length of a period, whose dials are counted together.
pub(super) const PERIOD: Nanos = Nanos::from_millis(250);
/// A period is judged after this multiple of the fastest dial's time since its end, within these bounds.
const ROUNDS: u64 = 4;
const SOONEST: Nanos = Nanos::from_millis(50);
/// Number of periods kept: those not yet judged, and the current one.
const MOST: u64 = 4;

/// The outcome of a period's dials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Through {
    /// When the period ended.
    pub(super) until: Nanos,
    pub(super) begun: u32,
    /// How many succeeded fast, and how many failed or were slow; the others are lost.
    pub(super) opened: u32,
    pub(super) failed: u32,
}

/// Counts of the latest periods.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    periods: [Through; MOST as usize],
    /// Number of the first period that is not judged yet.
    next: u64,
    least: Nanos,
    /// Dials that take longer are slow.
    slow: Nanos,
}

impl Fresh {
    pub(super) fn new(slow: Nanos) -> Fresh {
        Fresh { periods: [Through::default(); MOST as usize], next: 0, least: Nanos::NEVER, slow }
    }

    fn place(&mut self, at: Nanos) -> Option<&mut Through> {
        let number = at.0 / PERIOD.0;
        let until = Nanos((number + 1) * PERIOD.0);
        let period = &mut self.periods[(number % MOST) as usize];
        if period.until < until {
            *period = Through { until, ..Through::default() };
        }
        (period.until == until).then_some(period)
    }

    /// Counts a dial as begun.
    pub(super) fn begin(&mut self, now: Nanos) {
        if let Some(period) = self.place(now) {
            period.begun += 1;
        }
    }

    /// A dial succeeded or failed after this time; returns whether it had counted as lost.
    pub(super) fn end(&mut self, took: Nanos, ok: bool, now: Nanos) -> bool {
        let begun = Nanos(now.0 - took.0.min(now.0));
        let is_fast = ok && took < self.slow;
        if is_fast {
            self.least = self.least.min(took);
        }
        if begun.0 / PERIOD.0 < self.next {
            return true;
        }
        if let Some(period) = self.place(begun) {
            *if is_fast { &mut period.opened } else { &mut period.failed } += 1;
        }
        false
    }

    /// The time of the fastest dial.
    pub(super) fn least(&self) -> Nanos {
        self.least
    }

    /// A dial that has not succeeded after this time counts as lost.
    pub(super) fn patience(&self) -> Nanos {
        Nanos(self.least.0.saturating_mul(ROUNDS)).max(SOONEST).min(self.slow)
    }

    /// The next period with dials whose outcome is decided.
    pub(super) fn judge(&mut self, now: Nanos) -> Option<Through> {
        let ended = now.0.saturating_sub(self.patience().0) / PERIOD.0;
        self.next = self.next.max(ended.saturating_sub(MOST - 1));
        while self.next < ended {
            let period = self.periods[(self.next % MOST) as usize];
            self.next += 1;
            if period.until.0 == self.next * PERIOD.0 && period.begun > 0 {
                return Some(period);
            }
        }
        None
    }

    /// When the next period will be judged.
    pub(super) fn next_at(&self, now: Nanos) -> Nanos {
        let ends =
            Nanos((self.next.max(now.0.saturating_sub(self.slow.0 + PERIOD.0) / PERIOD.0) + 1) * PERIOD.0);
        (ends + self.patience()).max(now + Nanos::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Nanos = Nanos::from_millis(500);

    #[test]
    fn a_period_is_judged_when_its_dials_had_time() {
        let ms = Nanos::from_millis;
        let mut fresh = Fresh::new(SLOW);
        (0..10).for_each(|n| fresh.begin(ms(1_000 + n)));
        assert!((0..4).all(|n| !fresh.end(ms(2), true, ms(1_002 + n))));
        assert_eq!((fresh.judge(ms(1_299)), fresh.next_at(ms(1_200))), (None, ms(1_300)));
        // A dial of the previous period does not count, nor one that is late.
        fresh.end(ms(300), true, ms(1_250));
        assert!(!fresh.end(ms(2), false, ms(1_002)));
        assert_eq!(
            fresh.judge(ms(1_300)),
            Some(Through { until: ms(1_250), begun: 10, opened: 4, failed: 1 })
        );
        assert_eq!(fresh.judge(ms(1_300)), None);
        assert!(fresh.end(ms(1_000), true, ms(2_001)), "it was taken for lost");
        assert_eq!(fresh.judge(ms(9_000)), None);
        // On a long path dials have more time.
        let mut far = Fresh::new(SLOW);
        far.begin(ms(1_000));
        assert_eq!(far.judge(ms(1_700)), None);
        far.end(ms(100), true, ms(1_100));
        assert_eq!(far.judge(ms(1_649)), None);
        assert_eq!(far.judge(ms(1_650)), Some(Through { until: ms(1_250), begun: 1, opened: 1, failed: 0 }));
    }
}

//! Whether the adaptive ramp makes progress. If not, waiting is pointless, and the remaining connections are dialled within
//! one timeout: so a ramp ends. Pure.

use units::Nanos;

/// Recent results of first dials.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// When the last one succeeded, or the ramp began.
    last: Nanos,
    /// Since then those of one timeout are counted.
    from: Nanos,
    oks: u32,
    failures: u32,
}

impl Progress {
    /// A ramp begins.
    pub(super) fn new(from: Nanos) -> Progress {
        Progress { last: from, from, oks: 0, failures: 0 }
    }

    /// One more is known.
    pub(super) fn learn(&mut self, ok: bool, now: Nanos) {
        if ok {
            self.oks += 1;
            self.last = now;
        } else {
            self.failures += 1;
        }
    }

    /// Whether nothing has succeeded for as long as a dial may take, or more failed in that time than succeeded.
    pub(super) fn is_stuck(&mut self, timeout: Nanos, now: Nanos) -> bool {
        let is_over = now.since(self.from) >= timeout;
        let stuck = now.since(self.last) >= timeout || is_over && self.failures > self.oks;
        if is_over || stuck {
            *self = Progress { last: self.last, ..Progress::new(now) };
        }
        stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Nanos = Nanos::from_secs;

    /// (second, successes, failures, stuck after them)
    fn check(course: &[(u64, u32, u32, bool)]) {
        let mut progress = Progress::new(S(0));
        for &(at, oks, failures, stuck) in course {
            (0..oks).for_each(|_| progress.learn(true, S(at)));
            (0..failures).for_each(|_| progress.learn(false, S(at)));
            assert_eq!(progress.is_stuck(S(10), S(at)), stuck, "at {at} s of {course:?}");
        }
    }

    #[test]
    fn nothing_for_a_timeout_is_stuck() {
        check(&[(1, 0, 0, false), (9, 0, 0, false), (10, 0, 0, true)]);
        check(&[(1, 100, 0, false), (10, 0, 0, false), (11, 0, 50, true)]);
        // A slow target makes progress: one each five seconds.
        check(&[
            (5, 1, 0, false),
            (10, 1, 0, false),
            (15, 1, 0, false),
            (20, 1, 0, false),
            (25, 1, 0, false),
        ]);
        // One in ten succeeds: that is no pace.
        check(&[(5, 1, 9, false), (9, 1, 9, false), (11, 1, 9, true)]);
        check(&[(5, 9, 1, false), (9, 9, 1, false), (11, 9, 1, false), (22, 0, 1, true), (23, 9, 1, false)]);
    }
}

//! Detects an adaptive ramp without progress. Waiting would then be pointless: the remaining connections are dialled within one
//! timeout, so that every ramp ends. Pure.

use units::Nanos;

/// Recent outcomes of first dials.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// When a dial last succeeded, or the ramp began.
    last: Nanos,
    /// Beginning of the current counting period, one timeout long.
    from: Nanos,
    oks: u32,
    failures: u32,
}

impl Progress {
    /// Progress of a ramp that begins at `from`.
    pub(super) fn new(from: Nanos) -> Progress {
        Progress { last: from, from, oks: 0, failures: 0 }
    }

    /// Counts an outcome.
    pub(super) fn learn(&mut self, ok: bool, now: Nanos) {
        if ok {
            self.oks += 1;
            self.last = now;
        } else {
            self.failures += 1;
        }
    }

    /// Whether no dial has succeeded for a timeout, or more dials failed than succeeded in that time.
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
        // A slow target, with one connection every five seconds, makes progress.
        check(&[
            (5, 1, 0, false),
            (10, 1, 0, false),
            (15, 1, 0, false),
            (20, 1, 0, false),
            (25, 1, 0, false),
        ]);
        // One success in ten is no progress.
        check(&[(5, 1, 9, false), (9, 1, 9, false), (11, 1, 9, true)]);
        check(&[(5, 9, 1, false), (9, 9, 1, false), (11, 9, 1, false), (22, 0, 1, true), (23, 9, 1, false)]);
    }
}

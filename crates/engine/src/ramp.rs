//! How fast to dial for the first time: by a schedule, or as fast as the target takes it.

use units::Nanos;

use crate::pace::Schedule;

/// Dials (and first answers) outstanding at the beginning, and at least, and at most.
const FIRST: u32 = 32;
const LEAST: u32 = 4;
const MOST: u32 = 1024;
/// A dial that takes longer is a sign of pressure, for a SYN is sent again after 1 s; a first answer that takes so
/// much longer than the quickest is one too.
const SLOW: Nanos = Nanos::from_millis(500);
/// A first answer that takes so much longer than the quickest has waited in a queue: the target is busy, and a
/// window that doubles would fill its backlog before a lost SYN can say so (HyStart++, RFC 9406, section 4.2).
const QUEUE: Nanos = Nanos::from_millis(16);
/// While answers queue the window grows so much slower: more of it would not be accepted any faster. Not at all
/// would be too little, for the quickest answer may have been an exception.
const PATIENCE: u32 = 8;
/// One cut for all signs of the same jam.
const CUT_EVERY: Nanos = Nanos::from_secs(1);

/// The pacer of the ramp.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pacer {
    Scheduled(Schedule),
    Adaptive(Window),
}

/// How many dials and first answers may be outstanding: grows while they come quickly, shrinks when they do not.
/// Additive increase and multiplicative decrease after a slow start, as in TCP (RFC 5681, section 3.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    size: u32,
    /// Below it the window doubles each round, above it grows by one.
    threshold: u32,
    /// Successes since the last growth by one, in [`PATIENCE`]ths.
    credit: u32,
    cut_at: Nanos,
    /// The quickest first answer.
    least: Nanos,
}

impl Default for Window {
    fn default() -> Self {
        Window { size: FIRST, threshold: MOST, credit: 0, cut_at: Nanos::ZERO, least: Nanos::NEVER }
    }
}

impl Window {
    /// How many more may be started while `outstanding` are.
    pub(crate) fn room(&self, outstanding: u32) -> u32 {
        self.size.saturating_sub(outstanding)
    }

    /// A dial that is followed by a request took so long. A quick one tells nothing: the listener's backlog takes
    /// everyone until it is full.
    pub(crate) fn learn_dial(&mut self, took: Nanos, now: Nanos) {
        if took >= SLOW {
            self.cut(now);
        }
    }

    /// A first answer, or a dial without a request, took so long; `ok` is false where it did not come at all.
    pub(crate) fn learn(&mut self, took: Nanos, ok: bool, now: Nanos) {
        if !ok || took.since(self.least) >= SLOW {
            return self.cut(now);
        }
        self.least = self.least.min(took);
        let queued = took.since(self.least) >= QUEUE;
        if queued {
            self.threshold = self.threshold.min(self.size);
        }
        if self.size < self.threshold {
            self.size += 1;
        } else {
            self.credit += if queued { 1 } else { PATIENCE };
            if self.credit >= self.size * PATIENCE {
                self.credit = 0;
                self.size = (self.size + 1).min(MOST);
            }
        }
    }

    fn cut(&mut self, now: Nanos) {
        if now.since(self.cut_at) >= CUT_EVERY {
            self.cut_at = now;
            self.threshold = (self.size / 2).max(LEAST);
            self.size = self.threshold;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (what happens, how often, window afterwards)
    fn check(steps: &[(bool, u64, u32, u32)]) {
        let mut w = Window::default();
        let mut now = Nanos::from_secs(10);
        for &(ok, took_ms, times, size) in steps {
            for _ in 0..times {
                now = now + Nanos::from_millis(1);
                w.learn(Nanos::from_millis(took_ms), ok, now);
            }
            assert_eq!(w.size, size, "after {times} of {took_ms} ms in {steps:?}");
        }
    }

    #[test]
    fn the_window_follows_the_target() {
        check(&[(true, 1, 32, 64), (true, 1, 10_000, 1024)]);
        check(&[(true, 1, 10_000, 1024), (true, 1000, 500, 512), (true, 1, 512, 513)]);
        check(&[(false, 0, 1, 16), (false, 0, 100, 16)]);
        check(&[(false, 0, 5000, 4)]);
        // A queue: no more doubling, and growth by one in eight rounds.
        check(&[(true, 1, 32, 64), (true, 18, 8 * 64 - 1, 64), (true, 18, 1, 65), (true, 1, 65, 66)]);
        // A target that takes two seconds to answer, always, is not under pressure; three seconds are.
        check(&[(true, 2000, 32, 64), (true, 2400, 100, 64), (true, 2500, 1, 32)]);
    }

    #[test]
    fn only_a_slow_dial_says_anything() {
        let mut w = Window::default();
        for (took_ms, size) in [(0, FIRST), (499, FIRST), (1000, FIRST / 2), (3000, FIRST / 2)] {
            w.learn_dial(Nanos::from_millis(took_ms), Nanos::from_secs(10));
            assert_eq!(w.size, size, "after {took_ms} ms");
        }
    }

    #[test]
    fn room_is_what_is_not_outstanding() {
        let w = Window::default();
        assert_eq!((w.room(0), w.room(31), w.room(32), w.room(99)), (32, 1, 0, 0));
    }
}

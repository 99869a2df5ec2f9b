//! Delays caused by the shard itself: in sending, and in reading after a stall. They are reported as lag, or subtracted from what
//! is charged to the target.

use samples::{Latency, Tick};
use units::Nanos;

/// Maximum number of requests of one turn with different lags; further ones count with the last.
const MAX_APART: usize = 4_096;
/// Number of stalls remembered. A request lives through only a few: each takes at least [`Tick::STALL`].
const REMEMBERED: usize = 16;

/// The delays of a shard.
pub(crate) struct Lateness {
    /// What was queued in this turn: since when it could have been sent, and how many requests.
    leaving: Vec<(Nanos, u64)>,
    /// The latest stalls of the shard, newest first: beginning and end.
    stalls: [(Nanos, Nanos); REMEMBERED],
    /// Input read after this time was not delayed by any stall: the usual case.
    backlog_until: Nanos,
    /// When the next turn is to begin at the latest.
    due: Nanos,
}

impl Lateness {
    pub(crate) fn none() -> Lateness {
        Lateness {
            leaving: Vec::with_capacity(MAX_APART),
            stalls: [(Nanos::ZERO, Nanos::ZERO); REMEMBERED],
            backlog_until: Nanos::ZERO,
            due: Nanos::NEVER,
        }
    }

    /// Notes something queued that could have been sent since `ready`; it is sent at the end of the turn.
    pub(crate) fn leaves(&mut self, ready: Nanos) {
        let is_full = self.leaving.len() == MAX_APART;
        match self.leaving.last_mut() {
            Some((last, n)) if *last == ready || is_full => *n += 1,
            _ => self.leaving.push((ready, 1)),
        }
    }

    /// What was queued has been sent at this time: records its lag.
    pub(crate) fn left(&mut self, at: Nanos, lag: &mut Latency) {
        self.leaving.drain(..).for_each(|(ready, n)| lag.record_n(at.since(ready), n));
    }

    /// The next turn is to begin at `due` at the latest.
    pub(crate) fn next_turn(&mut self, due: Nanos) {
        self.due = due;
    }

    /// A turn begins; returns how late. If it is very late, the shard has stalled.
    pub(crate) fn begin_turn(&mut self, now: Nanos) -> Nanos {
        let late = now.since(self.due);
        if late >= Tick::STALL {
            self.stalls.rotate_right(1);
            self.stalls[0] = (self.due, now);
            self.backlog_until = self.backlog_until.max(now + late);
        }
        late
    }

    /// How much of the time from `started` until input is read `now` the shard stalled. Input delayed by a stall waited at most
    /// as long as the stall took; the backlog is assumed to be processed within the same time again. During that time, earlier
    /// stalls since `started` count as well: the target may have waited for what this shard did not read or send.
    pub(crate) fn stood_still(&self, started: Nanos, now: Nanos) -> Nanos {
        if now > self.backlog_until {
            return Nanos::ZERO;
        }
        let is_after = |(from, until): &(Nanos, Nanos)| now <= *until + until.since(*from);
        if self.stalls.iter().any(is_after) { self.since(started) } else { Nanos::ZERO }
    }

    /// How much of the delay from `due` to `begun` was a stall of the shard.
    pub(crate) fn delayed(&self, due: Nanos, begun: Nanos) -> Nanos {
        self.sum(|(from, until)| until.min(begun).since(from.max(due)))
    }

    /// How long the shard stalled since `started`; timeouts are extended by this.
    pub(crate) fn since(&self, started: Nanos) -> Nanos {
        self.sum(|(from, until)| until.since(from.max(started)))
    }

    fn sum(&self, part: impl Fn((Nanos, Nanos)) -> Nanos) -> Nanos {
        Nanos(self.stalls.iter().map(|stall| part(*stall).0).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// A turn due at `due` begins `now`.
    fn turn(lateness: &mut Lateness, due: u64, now: u64) {
        lateness.next_turn(MS(due));
        assert_eq!(lateness.begin_turn(MS(now)), MS(now - due));
    }

    #[test]
    fn queued_messages_lag_until_they_are_sent() {
        let (mut lateness, mut lag) = (Lateness::none(), Latency::default());
        lateness.leaves(MS(10));
        lateness.leaves(MS(10));
        lateness.leaves(MS(7));
        lateness.left(MS(12), &mut lag);
        assert_eq!((lag.count(), lag.quantiles().mean, lag.max()), (3, 3_000.0, MS(5)));
        lateness.left(MS(99), &mut lag);
        assert_eq!(lag.count(), 3, "nothing was queued since");
        (0..2 * MAX_APART as u64).for_each(|n| lateness.leaves(Nanos(n)));
        lateness.left(MS(100), &mut lag);
        assert_eq!(lag.count(), 3 + 2 * MAX_APART as u64, "more than are kept apart count all the same");
        assert_eq!(lateness.leaving.capacity(), MAX_APART);
    }

    #[test]
    fn a_stall_is_subtracted_from_outstanding_requests() {
        let mut lateness = Lateness::none();
        turn(&mut lateness, 1_000, 1_009);
        assert_eq!(lateness.stood_still(MS(900), MS(1_009)), Nanos::ZERO, "a turn somewhat late is no stall");
        turn(&mut lateness, 1_000, 1_300);
        // (started, read, stalled)
        for (started, read, expected) in [
            (900, 1_300, 300),
            (1_100, 1_300, 200),
            (1_300, 1_301, 0),
            // Within the backlog of the stall.
            (900, 1_550, 300),
            // Long after it: the delay is the target's.
            (900, 1_601, 0),
        ] {
            assert_eq!(lateness.stood_still(MS(started), MS(read)), MS(expected), "{started} {read}");
        }
        // What was due in the stall was begun after it; what was begun before was not delayed.
        for (due, begun, expected) in
            [(1_100, 1_300, 200), (900, 1_350, 300), (900, 950, 0), (1_300, 1_400, 0), (1_100, 1_200, 100)]
        {
            assert_eq!(lateness.delayed(MS(due), MS(begun)), MS(expected), "{due} {begun}");
        }
        // With two stalls during a request, neither is charged to the target; a stall that ended before the request does not
        // count.
        let mut twice = Lateness::none();
        turn(&mut twice, 1_000, 1_300);
        turn(&mut twice, 1_500, 1_700);
        assert_eq!(
            [900, 1_400, 1_700].map(|at| twice.stood_still(MS(at), MS(1_710)).millis()),
            [500, 200, 0]
        );
        assert_eq!(twice.stood_still(MS(900), MS(1_950)), Nanos::ZERO, "long after both");
        assert_eq!((twice.since(MS(900)), twice.delayed(MS(1_100), MS(1_600))), (MS(500), MS(300)));
        // A timeout that began before the stall is extended by it, whenever it is checked.
        assert_eq!([500, 1_200, 2_000].map(|from| lateness.since(MS(from)).millis()), [300, 100, 0]);
    }
}

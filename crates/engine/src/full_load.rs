//! The intervals of full load. A request belongs to the interval in which it was due, whenever its response arrives.

use units::Nanos;

/// The current interval of full load, and the previous one. The load was full until it was paused or changed by the user, and
/// requests of that time may still be outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullLoad {
    from: Nanos,
    until: Nanos,
    before: (Nanos, Nanos),
    /// Outstanding requests that were due in the previous one.
    owed: u64,
}

impl FullLoad {
    /// No full load yet.
    pub(crate) const NEVER: FullLoad =
        FullLoad { from: Nanos::NEVER, until: Nanos::NEVER, before: (Nanos::NEVER, Nanos::NEVER), owed: 0 };

    /// Full load begins at `from`; never: the current one ends now.
    pub(crate) fn begin(&mut self, from: Nanos, now: Nanos) {
        if from == Nanos::NEVER && self.from < now {
            self.before = (self.from, now.min(self.until));
        }
        (self.from, self.until) = (from, Nanos::NEVER);
    }

    /// `owed` requests are outstanding that were due in the previous interval.
    pub(crate) fn owe(&mut self, owed: u64) {
        self.owed = owed;
    }

    /// A request that was due at `due` is no longer outstanding.
    pub(crate) fn settle(&mut self, due: Nanos) {
        if self.owed > 0 && self.was(due) {
            self.owed -= 1;
        }
    }

    /// Number of outstanding requests that were due in the previous interval.
    pub(crate) fn owed(&self) -> u64 {
        self.owed
    }

    /// The current full load ends at `until`.
    pub(crate) fn end_at(&mut self, until: Nanos) {
        self.until = until;
    }

    /// When it ends; never, if an order will end it.
    pub(crate) fn until(&self) -> Nanos {
        self.until
    }

    /// When it began, or will begin; never, if there is none.
    pub(crate) fn from(&self) -> Nanos {
        self.from
    }

    /// Whether full load is on at `now`.
    pub(crate) fn is(&self, now: Nanos) -> bool {
        (self.from..self.until).contains(&now)
    }

    /// Whether there was an earlier interval.
    pub(crate) fn has_past(&self) -> bool {
        self.before.0 != Nanos::NEVER
    }

    /// Whether a request due at `due` belongs to the earlier interval.
    pub(crate) fn was(&self, due: Nanos) -> bool {
        due < self.from && (self.before.0..self.before.1).contains(&due)
    }

    /// Whether a request due at `due` belongs to either interval.
    pub(crate) fn has(&self, due: Nanos) -> bool {
        (self.from..self.until).contains(&due) || (self.before.0..self.before.1).contains(&due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_known_before_is_exact() {
        let s = Nanos::from_secs;
        let mut load = FullLoad::NEVER;
        load.begin(s(10), s(9));
        load.end_at(s(20));
        assert_eq!([9, 10, 19, 20].map(|at| load.has(s(at))), [false, true, true, false]);
        assert!(load.is(s(19)) && !load.is(s(20)) && !load.was(s(15)) && !load.has_past());
        // The shard notices the end a little later.
        load.begin(Nanos::NEVER, s(21));
        assert_eq!([9, 10, 19, 20].map(|at| load.was(s(at))), [false, true, true, false]);
        assert!(load.has(s(19)) && !load.is(s(19)) && load.has_past());
        load.owe(2);
        [s(15), s(25), s(5), s(19), s(12)].into_iter().for_each(|due| load.settle(due));
        assert_eq!(load.owed(), 0, "three were outstanding, and two of them known");
        load.begin(s(30), s(25));
        assert!(load.is(s(1_000)), "the next one has no end yet");
    }

    #[test]
    fn requests_due_before_a_pause_count() {
        let s = Nanos::from_secs;
        let mut load = FullLoad::NEVER;
        let check = |load: &FullLoad, expected: [bool; 5]| {
            assert_eq!([1, 10, 19, 25, 40].map(|at| load.has(s(at))), expected, "{load:?}");
        };
        check(&load, [false; 5]);
        load.begin(s(10), s(9));
        check(&load, [false, true, true, true, true]);
        load.begin(Nanos::NEVER, s(20));
        check(&load, [false, true, true, false, false]);
        assert!(!load.is(s(21)));
        // A repeated order changes nothing.
        load.begin(Nanos::NEVER, s(30));
        check(&load, [false, true, true, false, false]);
        load.begin(s(40), s(31));
        check(&load, [false, true, true, false, true]);
        assert!(load.is(s(40)) && !load.is(s(39)));
    }
}

//! The slots of an open loop: when each is due, and which ones wait for a connection. Pure, like [`crate::pace`].
//!
//! ```text
//!   sent or given up │ waiting for a connection │ not due, or not collected
//!                    taken                      seen
//! ```
//! The schedule determines when each slot is due, so two numbers represent the whole queue: it takes no memory, however long the
//! target stalls. It is bounded by time instead: a slot is given up when it has waited for a request's timeout.

use units::Nanos;

use super::Slot;
use crate::pace::Schedule;

/// Maximum number of slots collected in one turn, so that a backlog after a stall does not delay responses.
const SLOTS_A_TURN: u64 = 1_024;

/// The slots of one shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    schedule: Schedule,
    /// When the schedule begins.
    from: Nanos,
    seen: u64,
    taken: u64,
}

impl Slots {
    pub(crate) fn new(schedule: Schedule, from: Nanos) -> Slots {
        Slots { schedule, from, seen: 0, taken: 0 }
    }

    /// Nothing is due from `at` on.
    pub(crate) fn end_at(&mut self, at: Nanos) {
        self.schedule = self.schedule.within(at.since(self.from));
    }

    /// Total number of slots.
    pub(crate) fn total(&self) -> u64 {
        self.schedule.total()
    }

    fn time_of(&self, n: u64) -> Nanos {
        self.from + self.schedule.time_of(n)
    }

    fn due(&self, now: Nanos) -> u64 {
        if now < self.from { 0 } else { self.schedule.due(now.since(self.from)) }
    }

    /// Collects the slots that have become due, and calls `see` for each.
    pub(crate) fn collect_due(&mut self, now: Nanos, see: impl FnMut(Slot)) {
        let until = self.due(now).min(self.seen + SLOTS_A_TURN);
        self.collect(until, see);
    }

    fn collect(&mut self, until: u64, see: impl FnMut(Slot)) {
        (self.seen..until).map(|n| Slot::Due(self.time_of(n))).for_each(see);
        self.seen = self.seen.max(until);
    }

    /// Takes the slot that has waited longest; returns its due time.
    pub(crate) fn take(&mut self) -> Option<Nanos> {
        (self.taken < self.seen).then(|| {
            self.taken += 1;
            self.time_of(self.taken - 1)
        })
    }

    /// Whether a slot waits for a connection.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting() > 0
    }

    /// Number of waiting slots.
    pub(crate) fn waiting(&self) -> u64 {
        self.seen - self.taken
    }

    /// Whether no slot is waiting, and none will be due.
    pub(crate) fn is_over(&self) -> bool {
        !self.is_waiting() && self.next() == Nanos::NEVER
    }

    /// Gives up the slots that have waited longer than `limit`, a function of their due time; calls `see` for each.
    pub(crate) fn give_up(&mut self, now: Nanos, limit: impl Fn(Nanos) -> Nanos, see: &mut impl FnMut(Slot)) {
        while self.taken < self.seen {
            let due = self.time_of(self.taken);
            if due + limit(due) > now {
                return;
            }
            see(Slot::Missed(due));
            self.taken += 1;
        }
    }

    /// Ends the schedule: gives up all slots that are due, and calls `see` for each.
    pub(crate) fn end(&mut self, now: Nanos, see: &mut impl FnMut(Slot)) {
        self.collect(self.due(now), &mut *see);
        (self.taken..self.seen).for_each(|n| see(Slot::Missed(self.time_of(n))));
        self.taken = self.seen;
    }

    /// Number of waiting slots whose due time satisfies `is_one`.
    pub(crate) fn count_waiting(&self, is_one: impl Fn(Nanos) -> bool) -> u64 {
        (self.taken..self.seen).filter(|n| is_one(self.time_of(*n))).count() as u64
    }

    /// When the next slot is due.
    pub(crate) fn next(&self) -> Nanos {
        self.from + self.schedule.next_after(self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::RateProfile;
    use samples::Latency;
    use units::Rate;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// A hundred slots a second from 1 s on, `total` of them.
    fn slots(total: u64) -> Slots {
        Slots::new(
            Schedule::share(RateProfile::Steady(Rate::per_s(100)), total, plan::Turn::ALWAYS),
            MS(1_000),
        )
    }

    /// The due time of a slot given up, in milliseconds.
    fn missed(slot: Slot) -> Option<u64> {
        if let Slot::Missed(due) = slot { Some(due.millis()) } else { None }
    }

    /// Collects slots, and records how late each is.
    fn collect(slots: &mut Slots, now: Nanos, lag: &mut Latency) {
        slots.collect_due(now, |slot| {
            let Slot::Due(due) = slot else { panic!("given up: {slot:?}") };
            lag.record(now.since(due));
        });
    }

    #[test]
    fn a_slot_is_due_at_its_time_and_lags_until_it_is_seen() {
        let (mut slots, mut lag) = (slots(u64::MAX), Latency::default());
        collect(&mut slots, MS(999), &mut lag);
        assert_eq!((lag.count(), slots.take(), slots.next()), (0, None, MS(1_000)));
        collect(&mut slots, MS(1_025), &mut lag);
        // At 1,000, 1,010 and 1,020 ms: 25, 15 and 5 ms late.
        assert_eq!((lag.count(), lag.quantiles().mean, lag.quantiles().max), (3, 15_000.0, 25_000.0));
        assert_eq!(slots.next(), MS(1_030));
        let taken: Vec<Nanos> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken, [MS(1_000), MS(1_010), MS(1_020)]);
        collect(&mut slots, MS(1_029), &mut lag);
        assert_eq!((lag.count(), slots.is_waiting()), (3, false));
    }

    #[test]
    fn only_requests_beyond_the_timeout_are_given_up() {
        let (mut slots, mut lag) = (slots(u64::MAX), Latency::default());
        collect(&mut slots, MS(1_200), &mut lag);
        assert_eq!(slots.take(), Some(MS(1_000)));
        // The slots of 1,010 to 1,100 ms have waited for 100 ms.
        let mut given_up = Vec::new();
        assert_eq!(slots.count_waiting(|due| due < MS(1_050)), 4);
        slots.give_up(MS(1_200), |_| MS(100), &mut |slot| given_up.extend(missed(slot)));
        assert_eq!(given_up, (101..=110).map(|n| n * 10).collect::<Vec<_>>());
        slots.give_up(MS(1_200), |_| MS(100), &mut |_| panic!("all of them were given up"));
        slots.give_up(MS(50), |_| MS(100), &mut |_| panic!("before any was due"));
        assert_eq!(slots.take(), Some(MS(1_110)));
        // A slot that was due in a stall of the shard has longer.
        slots.give_up(MS(1_300), |due| if due < MS(1_150) { MS(500) } else { MS(100) }, &mut |_| {
            panic!("the first of them still waits")
        });
    }

    #[test]
    fn the_schedule_has_an_end() {
        let (mut slots, mut lag) = (slots(5), Latency::default());
        collect(&mut slots, MS(9_000), &mut lag);
        assert_eq!((lag.count(), slots.next()), (5, Nanos::NEVER));
        let ended = |slots: &mut Slots, now| {
            let mut given_up = Vec::new();
            slots.end(now, &mut |slot| given_up.extend(missed(slot)));
            given_up
        };
        assert_eq!(slots.take(), Some(MS(1_000)));
        assert_eq!(ended(&mut slots, MS(9_000)), [1_010, 1_020, 1_030, 1_040]);
        assert_eq!(slots.take(), None);
        // Untaken slots are dropped with the rest; slots not yet due are not missed.
        let mut unseen = self::slots(50);
        assert_eq!(ended(&mut unseen, MS(1_095)).len(), 10);
        assert_eq!((ended(&mut unseen, MS(1_095)).len(), unseen.next()), (0, MS(1_100)));
    }

    #[test]
    fn a_stall_of_ours_is_collected_at_in_pieces() {
        let (mut slots, mut lag) = (slots(u64::MAX), Latency::default());
        collect(&mut slots, MS(101_000), &mut lag);
        assert_eq!((lag.count(), slots.next()), (SLOTS_A_TURN, MS(1_000 + 10 * SLOTS_A_TURN)));
        for _ in 0..9 {
            collect(&mut slots, MS(101_000), &mut lag);
        }
        assert_eq!((lag.count(), slots.next()), (10_001, MS(101_010)));
    }
}

//! What happened in one period. Ticks merge: of shards, of agents, of periods.

use units::Nanos;

use crate::{fault::Faults, latency::Latency};

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Connections are being dialled for the first time.
    #[default]
    Ramp,
    /// Full load.
    Hold,
    /// Nothing new is sent; what is under way may end.
    Drain,
}

/// Answers are counted by these statuses and one place for all others.
const STATUSES: usize = 1000;

/// Things counted in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Dials that led to a connection for the first time.
    pub opened: u64,
    /// Dials that did not.
    pub failed: u64,
    /// Connections lost without notice.
    pub dropped: u64,
    /// Connections closed by the server with notice.
    pub closed: u64,
    /// Of those, the ones dialled again successfully.
    pub redialled: u64,
    /// Local addresses that turned out to be taken; the next was used.
    pub addresses_skipped: u64,
    /// Requests sent.
    pub sent: u64,
    /// Right and wrong answers, complete ones.
    pub answered: u64,
    /// Of those, the ones that came at full load.
    pub answered_at_load: u64,
    /// Bytes received, heads included.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Bytes of answers without their heads.
    pub body_bytes_in: u64,
}

impl Counts {
    fn merge(&mut self, o: &Counts) {
        self.opened += o.opened;
        self.failed += o.failed;
        self.dropped += o.dropped;
        self.closed += o.closed;
        self.redialled += o.redialled;
        self.addresses_skipped += o.addresses_skipped;
        self.sent += o.sent;
        self.answered += o.answered;
        self.answered_at_load += o.answered_at_load;
        self.bytes_in += o.bytes_in;
        self.bytes_out += o.bytes_out;
        self.body_bytes_in += o.body_bytes_in;
    }
}

/// One period of one shard, or of several merged.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Which period, counted from the start of the run.
    pub index: u64,
    /// When it began and ended.
    pub from: Nanos,
    /// When it ended.
    pub until: Nanos,
    /// Where the run stood at its end; merged: the earliest phase.
    pub phase: Phase,
    /// Connections open at its end.
    pub open: u64,
    /// Connections dialled at least once, with the outcome known, since the start.
    pub resolved: u64,
    /// Requests waiting for their answer at its end.
    pub waiting: u64,
    /// When the outcome of the last first dial was known; [`Nanos::NEVER`] while one is not.
    pub ramped_at: Nanos,
    /// What was counted.
    pub counts: Counts,
    /// What went wrong.
    pub faults: Faults,
    /// Answers by status.
    pub status: Box<[u64; STATUSES]>,
    /// From due to the whole answer, of requests due at full load.
    pub latency: Latency,
    /// The same, of requests due during the ramp.
    pub ramp_latency: Latency,
    /// From when a dial was due to the connection.
    pub connect: Latency,
    /// From due to when the loop was able to send.
    pub lag: Latency,
    /// How long each connection that was lost had been silent.
    pub silence: Latency,
    /// By how much a turn of a shard came later than it was wanted at the latest; the most.
    pub stalled: Nanos,
}

impl Default for Tick {
    fn default() -> Self {
        Tick {
            index: 0,
            from: Nanos::ZERO,
            until: Nanos::ZERO,
            phase: Phase::Ramp,
            open: 0,
            resolved: 0,
            waiting: 0,
            ramped_at: Nanos::ZERO,
            counts: Counts::default(),
            faults: Faults::default(),
            status: Box::new([0; STATUSES]),
            latency: Latency::default(),
            ramp_latency: Latency::default(),
            connect: Latency::default(),
            lag: Latency::default(),
            silence: Latency::default(),
            stalled: Nanos::ZERO,
        }
    }
}

impl Tick {
    /// Counts an answer with this status.
    pub fn count_status(&mut self, status: u16) {
        self.status[usize::from(status).min(STATUSES - 1)] += 1;
    }

    /// Adds the same period of another shard.
    pub fn merge(&mut self, other: &Tick) {
        self.open += other.open;
        self.resolved += other.resolved;
        self.waiting += other.waiting;
        self.ramped_at = self.ramped_at.max(other.ramped_at);
        self.phase = self.phase.min(other.phase);
        self.add(other);
    }

    /// Adds a later period of the same shards: counts and times add up, the state is the later one's.
    pub fn extend(&mut self, later: &Tick) {
        (self.index, self.phase) = (later.index, later.phase);
        (self.open, self.resolved, self.waiting) = (later.open, later.resolved, later.waiting);
        self.ramped_at = later.ramped_at;
        self.add(later);
    }

    fn add(&mut self, other: &Tick) {
        self.from = self.from.min(other.from);
        self.until = self.until.max(other.until);
        self.counts.merge(&other.counts);
        self.faults.merge(&other.faults);
        for (a, b) in self.status.iter_mut().zip(other.status.iter()) {
            *a += b;
        }
        self.latency.merge(&other.latency);
        self.ramp_latency.merge(&other.ramp_latency);
        self.connect.merge(&other.connect);
        self.lag.merge(&other.lag);
        self.silence.merge(&other.silence);
        self.stalled = self.stalled.max(other.stalled);
    }

    /// Forgets all, keeping the memory.
    pub fn clear(&mut self) {
        (self.index, self.from, self.until, self.phase) = (0, Nanos::ZERO, Nanos::ZERO, Phase::Ramp);
        (self.open, self.resolved, self.waiting, self.ramped_at) = (0, 0, 0, Nanos::ZERO);
        self.counts = Counts::default();
        self.faults.clear();
        self.status.fill(0);
        self.latency.clear();
        self.ramp_latency.clear();
        self.connect.clear();
        self.lag.clear();
        self.silence.clear();
        self.stalled = Nanos::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Fault, Kind, Stage};
    use proptest::prelude::*;

    fn tick(seed: u64) -> Tick {
        let mut t = Tick {
            from: Nanos(10),
            until: Nanos(20 + seed % 3),
            open: seed % 7,
            resolved: seed % 11,
            ..Tick::default()
        };
        t.waiting = seed % 5;
        t.stalled = Nanos(seed % 13);
        t.ramped_at = if seed.is_multiple_of(3) { Nanos::NEVER } else { Nanos(seed) };
        t.phase = if seed.is_multiple_of(2) { Phase::Ramp } else { Phase::Hold };
        t.counts = Counts {
            opened: seed,
            sent: seed * 3,
            answered: seed * 2,
            body_bytes_in: seed * 5,
            ..Counts::default()
        };
        for i in 0..seed % 6 {
            t.faults.count(Fault::target(Stage::Hold, Kind::ALL[(seed + i) as usize % Kind::ALL.len()]));
            t.count_status(200 + (i as u16));
            t.latency.record(Nanos(seed * 1000 + i));
            t.lag.record(Nanos(seed * 10 + i));
            t.silence.record(Nanos(seed * 1_000_000 + i));
            t.connect.record(Nanos(seed + i));
            t.ramp_latency.record(Nanos(seed * 77 + i));
        }
        t
    }

    proptest! {
        /// N shards merged in any order and grouping give the same tick.
        #[test]
        fn merging_is_associative_and_commutative(a in 0u64..1000, b in 0u64..1000, c in 0u64..1000) {
            let merged = |order: [u64; 3]| {
                let mut t = tick(order[0]);
                t.merge(&tick(order[1]));
                t.merge(&tick(order[2]));
                t
            };
            let mut right = tick(b);
            right.merge(&tick(c));
            let mut grouped = tick(a);
            grouped.merge(&right);
            prop_assert_eq!(&merged([a, b, c]), &grouped);
            prop_assert_eq!(&merged([c, a, b]), &grouped);
            prop_assert_eq!(grouped.counts.opened, a + b + c);
            prop_assert_eq!(grouped.silence.count(), a % 6 + b % 6 + c % 6);
            prop_assert_eq!(grouped.stalled, Nanos((a % 13).max(b % 13).max(c % 13)));
            prop_assert_eq!(grouped.open, a % 7 + b % 7 + c % 7);
        }
    }

    #[test]
    fn extending_adds_counts_and_keeps_the_later_state() {
        let (mut sum, later) = (tick(5), tick(9));
        sum.extend(&later);
        assert_eq!((sum.open, sum.resolved, sum.waiting), (later.open, later.resolved, later.waiting));
        assert_eq!(sum.counts.sent, 14 * 3);
        assert_eq!(sum.latency.count(), 5 + 3);
    }

    #[test]
    fn a_cleared_tick_is_a_new_one() {
        let (mut used, mut new) = (tick(17), Tick::default());
        used.clear();
        used.extend(&tick(9));
        new.extend(&tick(9));
        assert_eq!(used, new);
    }
}

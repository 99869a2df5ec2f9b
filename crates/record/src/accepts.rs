//! How fast the target accepts connections: the length of its accept queue is compared with the dials that succeeded. In bounded memory.

use serde::{Deserialize, Serialize};
use stats::slope;
use units::Nanos;

use crate::fill::Fill;

/// Maximum number of samples stored; a minute of ticks is enough for a rate.
const MAX_SAMPLES: usize = 300;
/// Minimum number of samples for a line.
const MIN_SAMPLES: usize = 5;

const SECOND: Nanos = Nanos::from_secs(1);
/// Number of samples within a second at which a connection must wait to count as stuck in the queue.
const SAMPLES_A_SECOND: u32 = 3;

/// State of the measurement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Accepts {
    /// (time in seconds, connections accepted so far), sampled while others waited.
    samples: Vec<(f64, f64)>,
    /// Connections waiting at the first sample, which do not belong to this run.
    before: Option<u64>,
    /// When a listener was first seen.
    pub listened_from: Option<Nanos>,
    /// The fullest queue, at its maximum.
    pub fullest: Option<Fill>,
    /// Whether any connection waited at the last sample: then more frequent samples are useful.
    pub is_queueing: bool,
    /// The first and the latest sample with waiting connections; `waiting_since`: start of the current uninterrupted series of such
    /// samples.
    waited: Option<(Nanos, Nanos)>,
    waiting_since: Option<Nanos>,
    /// The longest such series.
    longest: Nanos,
    /// The current second: its number, the minimum of waiting connections in it, and its number of samples.
    second: (u64, u64, u32),
    /// Waiting connections at the latest samples.
    latest: [u64; SAMPLES_A_SECOND as usize],
    /// Connections that were in the queue for a large part of a second or longer: more than a burst that is being accepted.
    pub stood: u64,
    /// Drops of full listeners' queues before the run, and the maximum since.
    dropped: Option<(u64, u64)>,
}

impl Accepts {
    /// Adds a sample: `opened` dials have succeeded so far, `waiting` of them are not accepted yet, and throng has not given up `live` of
    /// these; `fullest` is the target's fullest queue.
    pub fn see(&mut self, now: Nanos, opened: u64, (waiting, live): (u64, u64), fullest: Fill) {
        if self.fullest.is_none_or(|most| fullest.used >= most.used) {
            self.fullest = Some(fullest);
        }
        self.listened_from.get_or_insert(now);
        let before = *self.before.get_or_insert(waiting);
        self.is_queueing = waiting > 0;
        self.see_break(now, waiting);
        self.see_standing(now, live);
        if waiting > 0 && self.samples.len() < MAX_SAMPLES {
            // Dials may be reported later than their waiting: the count must never decrease.
            let accepted = (opened + before).saturating_sub(waiting) as f64;
            let accepted = self.samples.last().map_or(accepted, |(_, last)| accepted.max(*last));
            self.samples.push((now.secs_f64(), accepted));
        }
    }

    fn see_break(&mut self, now: Nanos, waiting: u64) {
        if waiting == 0 {
            self.waiting_since = None;
            return;
        }
        let since = *self.waiting_since.get_or_insert(now);
        self.longest = self.longest.max(now.since(since));
        self.waited = Some((self.waited.map_or(now, |(first, _)| first), now));
    }

    fn see_standing(&mut self, now: Nanos, waiting: u64) {
        let this = now.0 / SECOND.0;
        let (second, least, samples) = self.second;
        self.latest.rotate_left(1);
        self.latest[self.latest.len() - 1] = waiting;
        self.second =
            if second == this { (second, least.min(waiting), samples + 1) } else { (this, waiting, 1) };
        let (_, least, samples) = self.second;
        if samples >= SAMPLES_A_SECOND {
            self.stood = self.stood.max(least);
        }
    }

    /// Adds the listeners' total drops since they began to listen.
    pub fn see_drops(&mut self, all: u64) {
        let (before, most) = *self.dropped.get_or_insert((all, 0));
        // A listener may have ended, and its count with it.
        self.dropped = Some((before, most.max(all.saturating_sub(before))));
    }

    /// SYNs and final handshake segments that the target's listeners dropped in this run.
    pub fn drops(&self) -> u64 {
        self.dropped.map_or(0, |(_, most)| most)
    }

    /// Whether dials of this run waited in the queue at any sample.
    pub fn has_queued(&self) -> bool {
        self.fullest.is_some_and(|fullest| fullest.used > self.before.unwrap_or_default())
    }

    /// Connections stuck in the queue now: the minimum of the latest samples.
    pub fn stands(&self) -> u64 {
        self.latest.iter().copied().min().unwrap_or(0)
    }

    /// Whether the queue was empty repeatedly, as with a target that stalls occasionally: the longest series with waiting connections is
    /// shorter than half of the time from the first to the last.
    pub fn empties(&self) -> bool {
        self.waited.is_some_and(|(first, last)| 2 * self.longest.0 < last.since(first).0)
    }

    /// Connections accepted per second while others waited, if that rate was steady (a line fits). A queue from which nothing is accepted
    /// has no rate.
    pub fn per_s(&self) -> Option<f64> {
        let line = slope(&self.samples).filter(|_| self.samples.len() >= MIN_SAMPLES)?;
        (line.r2 > 0.98 && line.value >= 1.0).then_some(line.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: Fill = Fill { used: 5, limit: 8 };

    #[test]
    fn only_a_steady_rate_is_one() {
        let check = |accepted: &[(u64, u64)], expected: Option<f64>| {
            let mut accepts = Accepts::default();
            accepts.see(Nanos::ZERO, 0, (0, 0), QUEUE);
            let see = |(s, n): &(u64, u64)| accepts.see(Nanos::from_secs(*s), n + 5, (5, 5), QUEUE);
            accepted.iter().for_each(see);
            assert_eq!(accepts.per_s(), expected, "{accepted:?}");
        };
        check(&[(0, 0), (1, 50), (2, 100), (3, 150), (4, 200)], Some(50.0));
        check(&[(0, 0), (1, 50), (2, 100), (3, 150)], None);
        check(&[(0, 195), (1, 195), (2, 195), (3, 195), (4, 195)], None);
        check(&[(0, 0), (1, 500), (2, 500), (3, 510), (4, 1_000)], None);
        check(&[], None);
        // At the first sample, the dials had not been reported yet.
        let mut accepts = Accepts::default();
        accepts.see(Nanos::ZERO, 0, (0, 0), QUEUE);
        (0..30).for_each(|s| {
            accepts.see(Nanos::from_secs(s), if s == 0 { 0 } else { 1_500 }, (1_500 - 10 * s, 0), QUEUE)
        });
        assert_eq!(accepts.per_s(), Some(10.0));
    }

    #[test]
    fn an_empty_queue_has_no_rate_and_the_fullest_is_kept() {
        let mut accepts = Accepts::default();
        for s in 0..9 {
            accepts.see(Nanos::from_secs(s), 100 * s, (0, 0), Fill { used: 0, limit: 8 });
        }
        assert_eq!((accepts.per_s(), accepts.is_queueing), (None, false));
        accepts.see(Nanos::from_secs(9), 900, (14, 14), Fill { used: 9, limit: 8 });
        assert!(accepts.is_queueing);
        accepts.see(Nanos::from_secs(10), 900, (1, 1), Fill { used: 1, limit: 9 });
        assert_eq!(accepts.fullest, Some(Fill { used: 9, limit: 8 }));
    }

    #[test]
    fn what_waited_before_the_run_is_none_of_its_dials() {
        let queue = |used| Fill { used, limit: 8 };
        let mut accepts = Accepts::default();
        assert!(!accepts.has_queued());
        [2, 1, 2, 0].iter().for_each(|used| accepts.see(Nanos::ZERO, 100, (*used, *used), queue(*used)));
        assert!(!accepts.has_queued());
        [6, 0].iter().for_each(|used| accepts.see(Nanos::ZERO, 100, (*used, *used), queue(*used)));
        assert!(accepts.has_queued(), "it is empty again, and yet it was theirs");
    }

    #[test]
    fn connections_that_stay_in_the_queue_are_counted() {
        let mut accepts = Accepts::default();
        // A burst that is accepted, and 500 connections that are not.
        for (ms, waiting) in
            [(0, 900), (200, 300), (400, 0), (1_000, 500), (1_200, 510), (1_400, 500), (2_000, 700)]
        {
            accepts.see(Nanos::from_millis(ms), 2_500, (waiting, waiting), QUEUE);
        }
        assert_eq!((accepts.stood, accepts.stands()), (500, 500));
        accepts.see(Nanos::from_millis(2_200), 2_500, (3, 3), QUEUE);
        assert_eq!((accepts.stood, accepts.stands()), (500, 3));
    }

    #[test]
    fn a_queue_that_is_empty_between_stalls_does_not_stand() {
        let empties = |waiting: &dyn Fn(u64) -> u64| {
            let mut accepts = Accepts::default();
            for n in 0..25 {
                accepts.see(Nanos::from_millis(200 * n), 10 * n, (waiting(n), waiting(n)), QUEUE);
            }
            accepts.empties()
        };
        // 50 arrive per second, and none is accepted for 0.8 s in every 2 s.
        assert!(empties(&|n| if n % 10 < 4 { 10 * (n % 10 + 1) } else { 0 }));
        // Only half of them are accepted; or a burst is accepted until none is left; or none waits.
        assert!(!empties(&|n| 5 * n));
        assert!(!empties(&|n| 50_u64.saturating_sub(4 * n)));
        assert!(!empties(&|_| 0));
    }

    #[test]
    fn connections_that_throng_has_given_up_do_not_wait() {
        let mut accepts = Accepts::default();
        for ms in [1_000, 1_200, 1_400, 1_600] {
            accepts.see(Nanos::from_millis(ms), 25, (13, 6), QUEUE);
        }
        assert_eq!((accepts.stood, accepts.stands(), accepts.is_queueing), (6, 6, true));
        // The others still have to be accepted.
        assert_eq!(accepts.samples.last(), Some(&(1.6, 25.0)));
    }

    #[test]
    fn what_listeners_dropped_before_the_run_does_not_count() {
        let drops = |samples: &[u64]| {
            let mut accepts = Accepts::default();
            samples.iter().for_each(|all| accepts.see_drops(*all));
            accepts.drops()
        };
        assert_eq!([drops(&[]), drops(&[70]), drops(&[70, 70])], [0, 0, 0]);
        assert_eq!(drops(&[70, 71, 812]), 742);
        assert_eq!(drops(&[70, 90, 5]), 20, "one of two listeners has ended");
    }

    #[test]
    fn connections_queued_before_the_run_do_not_bend_the_line() {
        let mut accepts = Accepts::default();
        for s in 0..6 {
            // 300 connections of a previous run; 20 are dialled per second, and 50 accepted.
            accepts.see(Nanos::from_secs(s), 20 * s, (300 - 30 * s, 0), QUEUE);
        }
        assert_eq!(accepts.per_s(), Some(50.0));
    }

    #[test]
    fn a_shard_that_reports_later_than_the_others_does_not_bend_it_either() {
        let mut accepts = Accepts::default();
        for s in 0..20 {
            // 50 accepted per second, of 100 dialled; occasionally half of the latest dials are reported one sample later.
            let late = if s % 4 == 3 { 50 } else { 0 };
            accepts.see(Nanos::from_secs(s), 100 * s - late, (50 * s, 0), QUEUE);
        }
        assert!(accepts.per_s().is_some_and(|rate| (rate - 50.0).abs() < 2.0), "{:?}", accepts.per_s());
    }

    #[test]
    fn memory_has_a_bound() {
        let mut accepts = Accepts::default();
        (0..2 * MAX_SAMPLES as u64).for_each(|s| accepts.see(Nanos::from_secs(s), 50 * s + 5, (5, 5), QUEUE));
        assert_eq!((accepts.samples.len(), accepts.per_s()), (MAX_SAMPLES, Some(50.0)));
    }
}

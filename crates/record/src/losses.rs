//! Losses of connections and refused dials: how old lost connections were, and whether their number was the reason. Ages assume that
//! connections are lost in the order in which they were opened. Taken from ticks, in bounded memory.

use std::collections::VecDeque;

use samples::{Fault, Kind, Phase, Stage, Tick};
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::tolerances::{FEW, equal_within};

/// A loss at least this long after the last connection was opened is not caused by it: two ticks.
const LATE: Nanos = Nanos::from_millis(400);
/// Maximum number of batches of openings stored; further ones are added to the last batch.
const MAX_BATCHES: usize = 4096;

/// Losses so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Connections opened and not lost yet, by time of opening, oldest first.
    young: VecDeque<(Nanos, u64)>,
    opened: u64,
    /// Connections open before counting began: in a search, those of earlier steps.
    pub before: u64,
    /// Connections lost.
    pub lost: u64,
    /// The part of them that was lost when the last opening was [a while](LATE) ago.
    pub lost_late: u64,
    /// End of the last tick with an opening.
    last_opened: Nanos,
    /// Minimum and maximum age of lost connections, assuming that they are lost in the order of their opening; accurate to a tick.
    ages: Option<(Nanos, Nanos)>,
    /// The first and last opening of lost connections, and the first and last loss.
    lives: Option<[(Nanos, Nanos); 2]>,
    /// The longest tick with an opening or loss.
    tick: Nanos,
    /// Until then throng has closed no connection.
    until: Nanos,
    /// When the first connection was lost, accurate to a tick.
    first: Option<Nanos>,
    /// How many connections had been opened by then.
    pub opened_by_then: u64,
    /// Start and end of the last tick with refused dials; `accepted`: end of the first tick with a successful one.
    pub refused: Option<(Nanos, Nanos)>,
    accepted: Option<Nanos>,
    /// Connections opened in ticks after the refusals.
    accepted_since: u64,
}

impl Losses {
    /// Starts a new step with the connections that are open now; earlier losses are dropped.
    pub fn forget(self) -> Losses {
        let Losses { young, last_opened, tick, .. } = self;
        let before = young.iter().map(|(_, n)| n).sum();
        Losses { young, opened: before, before, last_opened, tick, ..Losses::default() }
    }

    /// Takes the next tick of any shard.
    pub fn take(&mut self, tick: &Tick) {
        // Events within a tick are dated to its middle.
        let at = Nanos(tick.from.0 / 2 + tick.until.0 / 2);
        let opened = tick.counts.opened + tick.counts.redialled;
        let lost = tick.counts.dropped;
        if opened + lost + tick.counts.failed > 0 {
            self.tick = self.tick.max(tick.until.since(tick.from));
        }
        self.opened += opened;
        if tick.counts.opened > 0 {
            self.last_opened = self.last_opened.max(tick.until);
        }
        if opened > 0 {
            let is_full = self.young.len() >= MAX_BATCHES;
            match self.young.back_mut() {
                Some((_, n)) if is_full => *n += opened,
                _ => self.young.push_back((at, opened)),
            }
        }
        if lost + tick.counts.failed > 0 && self.first.is_none() {
            self.first = Some(tick.until);
        }
        if self.first.is_none_or(|first| tick.until <= first + self.tick) {
            self.opened_by_then = self.opened;
        }
        if tick.phase != Phase::Drain {
            self.until = self.until.max(tick.until);
        }
        self.take_dials(tick, opened);
        self.close_the_youngest(tick.counts.finished);
        self.lost += lost;
        let is_late = tick.from >= self.last_opened + LATE;
        self.lost_late += if is_late { lost } else { 0 };
        self.end_the_oldest(lost, at);
    }

    fn take_dials(&mut self, tick: &Tick, opened: u64) {
        let is_refusal = |(fault, _): (Fault, u64)| (fault.stage, fault.kind) == (Stage::Dial, Kind::Refused);
        if opened > 0 {
            self.accepted = Some(self.accepted.map_or(tick.until, |first| first.min(tick.until)));
        }
        if tick.faults.iter().any(is_refusal) {
            self.refused = self.refused.max(Some((tick.from, tick.until)));
            self.accepted_since = 0;
        } else if self.refused.is_some() {
            self.accepted_since += opened;
        }
    }

    /// When the last dial was refused, if all refusals came before the first success: the target was started late. `is_complete`: all
    /// wanted connections are open, including those that were refused; otherwise connections must have succeeded since.
    pub fn last_refused_at_first(&self, is_complete: bool) -> Option<Nanos> {
        let ((_, refused), accepted) = (self.refused?, self.accepted?);
        // Shards end a tick at about the same time.
        let is_first = refused <= accepted + Nanos(self.tick.0 / 2) && self.before == 0;
        (is_first && (is_complete || self.accepted_since >= FEW)).then_some(refused)
    }

    /// Open connections that were opened after the first failed dial had begun, given that it waited for `waited`.
    pub fn opened_beside(&self, waited: Nanos) -> u64 {
        let Some(first) = self.first else { return 0 };
        let dialled = Nanos(first.0.saturating_sub(waited.0));
        self.young.iter().filter(|(at, _)| *at > dialled).map(|(_, n)| n).sum()
    }

    /// Surplus connections are closed in reverse order of opening.
    fn close_the_youngest(&mut self, mut closed: u64) {
        self.opened = self.opened.saturating_sub(closed);
        while let Some((_, n)) = self.young.back_mut().filter(|_| closed > 0) {
            let ended = closed.min(*n);
            (*n, closed) = (*n - ended, closed - ended);
            if *n == 0 {
                self.young.pop_back();
            }
        }
    }

    fn end_the_oldest(&mut self, mut lost: u64, at: Nanos) {
        while lost > 0 {
            let Some((opened_at, n)) = self.young.front_mut() else { return };
            let age = at.since(*opened_at);
            let (least, most) = self.ages.unwrap_or((age, age));
            self.ages = Some((least.min(age), most.max(age)));
            let both = [*opened_at, at];
            let lives = self.lives.unwrap_or(both.map(|time| (time, time)));
            let with = |n: usize| (lives[n].0.min(both[n]), lives[n].1.max(both[n]));
            self.lives = Some([with(0), with(1)]);
            let ended = lost.min(*n);
            (*n, lost) = (*n - ended, lost - ended);
            if *n == 0 {
                self.young.pop_front();
            }
        }
    }

    /// The age at which connections are lost, if it is equal for all within two ticks. `None` if other connections live longer: with
    /// arrivals at a steady rate, losses follow each other in the same order and spacing as the openings.
    pub fn constant_age(&self) -> Option<Nanos> {
        let (least, most) = self.ages.filter(|_| self.lost >= FEW)?;
        let spread = equal_within(most, Nanos(2 * self.tick.0)).0;
        let oldest = self.young.front().map_or(Nanos::ZERO, |(opened_at, _)| self.until.since(*opened_at));
        let is_constant = most.since(least).0 <= spread && oldest.0 <= most.0 + spread;
        (is_constant && least > self.tick).then_some(Nanos(least.0 / 2 + most.0 / 2))
    }

    /// Whether all were lost within two ticks.
    pub fn were_at_once(&self) -> bool {
        self.lives.is_some_and(|[_, (first, last)]| last.since(first).0 < 2 * self.tick.0)
    }

    /// Whether all were opened, or all lost, at one moment, so that their equal age proves nothing: a restart of the target ends all
    /// connections, and connections opened together have the same age. An age limit ends them one after the other, as they were opened.
    pub fn is_one_moment(&self) -> bool {
        let Some(lives) = self.lives else { return false };
        let [opened, lost] = lives.map(|(first, last)| last.since(first));
        opened.0 < 2 * self.tick.0 || 2 * lost.0 < opened.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tick of this length, with this many connections opened and lost.
    fn tick_of(length: Nanos, index: u64, opened: u64, dropped: u64) -> Tick {
        let mut tick =
            Tick { from: Nanos(index * length.0), until: Nanos((index + 1) * length.0), ..Tick::default() };
        (tick.counts.opened, tick.counts.dropped) = (opened, dropped);
        tick
    }

    fn tick(index: u64, opened: u64, dropped: u64) -> Tick {
        tick_of(Nanos::from_millis(200), index, opened, dropped)
    }

    /// With ticks of 200 ms, and of other lengths: the age is the same number of ticks.
    fn check(ticks: &[(u64, u64, u64)], expected_ms: Option<u64>) {
        for length_ms in [200, 20, 1_000] {
            let mut losses = Losses::default();
            let each = ticks.iter().map(|&(n, opened, lost)| (n, opened, lost));
            let length = Nanos::from_millis(length_ms);
            each.for_each(|(n, opened, lost)| losses.take(&tick_of(length, n, opened, lost)));
            let expected = expected_ms.map(|ms| ms * length_ms / 200);
            assert_eq!(losses.constant_age().map(Nanos::millis), expected, "{length_ms} ms: {ticks:?}");
        }
    }

    #[test]
    fn an_age_is_constant_or_none() {
        check(&[], None);
        check(&[(0, 10, 0), (1, 20, 0)], None);
        check(&[(0, 10, 0), (1, 20, 0), (10, 0, 10), (11, 0, 20)], Some(2_000));
        // A tick early, a tick late.
        check(&[(0, 10, 0), (1, 20, 0), (9, 0, 5), (10, 0, 5), (11, 0, 15), (12, 0, 5)], Some(2_000));
        // Two losses are no pattern.
        check(&[(0, 10, 0), (10, 0, 2)], None);
        // All at once, whenever they were opened.
        check(&[(0, 10, 0), (5, 10, 0), (10, 0, 20)], None);
        // The surplus of a steady ramp, rejected immediately: its age seems to be the time that the ramp took to get there, until the
        // others are seen to stay.
        let ramp: Vec<_> = (0..20).map(|n| (n, 10, if n < 10 { 0 } else { 10 })).collect();
        check(&ramp, Some(2_000));
        check(&[ramp, vec![(30, 0, 0)]].concat(), None);
        // Immediately after the opening: no age.
        check(&[(0, 10, 10), (1, 10, 10)], None);
    }

    #[test]
    fn an_age_of_what_ends_in_one_moment_says_nothing() {
        let check = |ticks: &[(u64, u64, u64)], expected: bool| {
            let mut losses = Losses::default();
            ticks.iter().for_each(|&(n, opened, lost)| losses.take(&tick(n, opened, lost)));
            assert!(losses.constant_age().is_some(), "{ticks:?}");
            assert_eq!(losses.is_one_moment(), expected, "{ticks:?}");
        };
        check(&[(0, 10, 0), (3, 20, 0), (10, 0, 10), (13, 0, 20)], false);
        let ramp: Vec<_> = (0..20).map(|n| (n, 10, if n < 10 { 0 } else { 10 })).collect();
        check(&ramp, false);
        // Opened in one tick, or in two adjacent ones; or all lost at once, long after a short ramp.
        check(&[(0, 30, 0), (16, 0, 30)], true);
        check(&[(0, 10, 0), (1, 20, 0), (10, 0, 10), (11, 0, 20)], true);
        check(&[(0, 10, 0), (3, 20, 0), (60, 0, 30)], true);
        assert!(!Losses::default().is_one_moment());
    }

    #[test]
    fn the_number_open_before_the_first_loss_is_kept() {
        let mut losses = Losses::default();
        for (index, opened, lost) in [(0, 100, 0), (1, 100, 0), (2, 100, 3), (3, 50, 60), (4, 100, 100)] {
            losses.take(&tick(index, opened, lost));
        }
        assert_eq!((losses.opened_by_then, losses.lost, losses.lost_late), (350, 163, 0));
        losses.take(&tick(6, 0, 5));
        losses.take(&tick(7, 0, 7));
        assert_eq!((losses.lost, losses.lost_late), (175, 7), "two ticks after the last opening");
        // The next step of a search begins with the remaining connections.
        let mut losses = losses.forget();
        for (index, opened, lost) in [(20, 25, 0), (21, 25, 20)] {
            losses.take(&tick(index, opened, lost));
        }
        assert_eq!((losses.before, losses.opened_by_then, losses.lost), (275, 325, 20));
    }

    #[test]
    fn refusals_before_the_first_connection_are_a_late_start() {
        // (opened, refused) in each tick.
        let last_refused = |ticks: &[(u64, u64)], is_complete: bool| {
            let mut losses = Losses::default();
            for (index, (opened, refused)) in (0..).zip(ticks) {
                let mut tick = tick(index, *opened, 0);
                let fault = Fault::target(Stage::Dial, Kind::Refused);
                (0..*refused).for_each(|_| tick.faults.count(fault));
                tick.counts.failed = *refused;
                losses.take(&tick);
            }
            losses.last_refused_at_first(is_complete).map(Nanos::millis)
        };
        assert_eq!(last_refused(&[(0, 10), (8, 2), (10, 0)], false), Some(400));
        assert_eq!(last_refused(&[(0, 10), (0, 0), (10, 0)], false), Some(200));
        // In one burst: the refused ones are finally open, or not.
        assert_eq!([true, false].map(|all| last_refused(&[(0, 5), (20, 9)], all)), [Some(400), None]);
        // It stopped listening; it stopped and started again; it never listened, or always.
        assert_eq!(last_refused(&[(10, 0), (10, 0), (2, 8), (0, 10)], false), None);
        assert_eq!(last_refused(&[(10, 0), (0, 10), (10, 0)], true), None);
        assert_eq!(last_refused(&[(0, 10), (10, 0), (0, 10), (10, 0)], true), None);
        assert_eq!((last_refused(&[(0, 10)], false), last_refused(&[(10, 0)], true)), (None, None));
    }

    #[test]
    fn memory_has_a_bound() {
        let (mut losses, mut tick) = (Losses::default(), tick(0, 1, 0));
        for _ in 0..3 * MAX_BATCHES {
            losses.take(&tick);
            (tick.from, tick.until) = (tick.until, tick.until + Nanos::from_millis(200));
        }
        assert_eq!(losses.young.len(), MAX_BATCHES);
        assert_eq!(losses.young.iter().map(|(_, n)| n).sum::<u64>(), 3 * MAX_BATCHES as u64);
    }
}

//! How fast all shards together make first dials where SYNs are lost: each of them sees too little of it. Pure.

use samples::Congestion;
use units::{Nanos, Rate};

use super::window::{FEW_LOST, MIN_PER_S, REDUCED, SHARE_LOST};

/// As long as a reduced rate needs to show what it leads to.
const SHOWS: Nanos = Nanos::from_millis(1_500);
/// How much faster, a second, if no more is lost: before the first reduction, after one, and this long after it.
const DOUBLING: f64 = 2.0;
const FASTER: [(Nanos, f64); 3] =
    [(Nanos::from_secs(6), 1.3), (Nanos::from_secs(3), 1.15), (Nanos::ZERO, 1.05)];
/// Never less than this of the present rate at once.
const HALF: f64 = 0.5;

/// The most first dials a second of all shards of a population together, as all of them have experienced the target. It has no
/// say before a shard has lost SYNs.
#[derive(Clone, Copy, Debug, Default)]
pub struct DialRate {
    per_s: Option<f64>,
    /// When it was reduced last, or set.
    since: Nanos,
    was_reduced: bool,
}

impl DialRate {
    /// What dials have met in a time that ended at `until`; returns the rate from now on, if it changes.
    pub fn learn(&mut self, met: &Congestion, over: Nanos, until: Nanos) -> Option<Rate> {
        let seconds = over.secs_f64();
        if met.dialled == 0 || seconds <= 0.0 {
            return None;
        }
        let [all, lost] = [met.dialled, met.lost].map(|n| n as f64);
        let taken = (all - lost) / seconds;
        let is_lossy = lost > (FEW_LOST * seconds).max(all * SHARE_LOST);
        let Some(per_s) = self.per_s else {
            let is_paced = 2 * met.paced > met.dialled && is_lossy;
            return is_paced.then(|| self.set((taken * REDUCED).max(MIN_PER_S), until, false));
        };
        let has_shown = until >= self.since + SHOWS;
        if is_lossy {
            let less = per_s * taken * seconds / all;
            let less = (less * REDUCED).max(per_s * HALF).max(MIN_PER_S).min(per_s);
            return has_shown.then(|| self.set(less, until, true));
        }
        // A rate that is not reached is no reason for a higher one.
        (2 * met.reached > met.dialled).then(|| {
            // What was dialled before the rate arrived everywhere is no reason, either.
            let per_s = (all / seconds * self.faster(until)).max(per_s);
            self.per_s = Some(per_s);
            Rate::from_per_s_f64(per_s)
        })
    }

    fn set(&mut self, per_s: f64, now: Nanos, was_reduced: bool) -> Rate {
        *self = DialRate { per_s: Some(per_s), since: now, was_reduced };
        Rate::from_per_s_f64(per_s)
    }

    fn faster(&self, now: Nanos) -> f64 {
        let long = now.since(self.since);
        let by = FASTER.into_iter().find(|(least, _)| long >= *least).map_or(1.0, |(_, by)| by);
        if self.was_reduced { by } else { DOUBLING }
    }
}

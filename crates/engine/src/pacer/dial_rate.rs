//! The dial rate of all shards together when SYNs are lost: a single shard sees too few losses to adapt by itself. Pure.

use samples::Congestion;
use units::{Nanos, Rate};

use super::window::{FEW_LOST, MIN_PER_S, REDUCED, SHARE_LOST};

/// Time that a reduced rate needs to show its effect.
const SHOWS: Nanos = Nanos::from_millis(1_500);
/// Growth factors per second if few SYNs are lost: before the first reduction, and after one by the time since it.
const DOUBLING: f64 = 2.0;
const FASTER: [(Nanos, f64); 3] =
    [(Nanos::from_secs(6), 1.3), (Nanos::from_secs(3), 1.15), (Nanos::ZERO, 1.05)];
/// One reduction goes no lower than this part of the present rate.
const HALF: f64 = 0.5;

/// The maximum rate of first dials of all shards of a population together, learnt from what all of them met. No limit until SYNs
/// are lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct DialRate {
    per_s: Option<f64>,
    /// When the rate was last reduced, or first set.
    since: Nanos,
    was_reduced: bool,
}

impl DialRate {
    /// Learns what dials met during `over`, which ended at `until`; returns the new rate if it changes.
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
        // Only a rate that was reached may be raised.
        (2 * met.reached > met.dialled).then(|| {
            // Dials made before all shards applied the present rate must not lower it.
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

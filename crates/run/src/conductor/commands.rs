//! Commands of those who watch a run, and what becomes of them.

use samples::{Ask, Asked};
use units::Nanos;

use super::Conductor;

/// Who may end a run, besides a signal.
const BY_HAND: &str = "hand";
/// So many commands are kept.
const MOST_ASKS: usize = 1_000;

impl Conductor<'_> {
    /// Someone who watches wants this; whether it changes anything.
    pub fn handle_command(&mut self, ask: Ask, now: Nanos) -> bool {
        // Every worker learns of the end, and reports what it still has.
        let short = Nanos(2 * self.latency.0);
        let done = match ask {
            Ask::Drain if self.ends_by.is_none() => {
                self.ends_by = Some(BY_HAND);
                Some("drained".to_owned())
            }
            // Once more, where a drain that was asked for takes too long.
            Ask::Stop if self.ends_by.is_none() || self.patience > short => {
                (self.ends_by, self.patience) = (Some(BY_HAND), self.patience.min(short));
                Some("stopped".to_owned())
            }
            ask if self.ends_by.is_none() && self.draining.is_none() => {
                // Those held are counted before the load is moved, where it has been reached.
                let arrived = (0..).map(|nth| self.course.has_arrived(nth));
                let held: Vec<Option<u64>> = self
                    .held()
                    .into_iter()
                    .zip(arrived)
                    .map(|(held, arrived)| held.filter(|_| arrived))
                    .collect();
                self.course.heed(ask, now).inspect(|_| self.keep_held(&held))
            }
            _ => None,
        };
        let Some(what) = done else { return false };
        if self.record.asks.len() < MOST_ASKS {
            let at_s = now.since(self.record.started).secs_f64();
            self.record.asks.push(Asked { at_s, what });
        }
        true
    }
}

//! What those who watch ask for, and what becomes of it.

use samples::{Ask, Asked, Sink};
use units::Nanos;

use super::Conductor;
use crate::workers::Workers;

/// So long, where it is to end at once: every shard hears of it, and says what it still has.
const SHORT: Nanos = Nanos::from_millis(400);
/// Who may end a run, besides a signal.
const BY_HAND: &str = "hand";
/// What was asked for is kept so often.
const MOST_ASKS: usize = 1_000;

impl Conductor<'_> {
    /// Does what the sinks ask for.
    pub(super) fn heed(&mut self, workers: &Workers, sinks: &mut [&mut dyn Sink]) {
        let now = workers.clock.now();
        while let Some(ask) = sinks.iter_mut().find_map(|sink| sink.ask()) {
            let done = match ask {
                Ask::Drain if self.ends_by.is_none() => {
                    self.ends_by = Some(BY_HAND);
                    Some("drained".to_owned())
                }
                // Once more, where a drain that was asked for takes too long.
                Ask::Stop if self.ends_by.is_none() || self.patience > SHORT => {
                    (self.ends_by, self.patience) = (Some(BY_HAND), self.patience.min(SHORT));
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
            if let Some(what) = done.filter(|_| self.record.asks.len() < MOST_ASKS) {
                let at_s = now.since(self.record.started).secs_f64();
                self.record.asks.push(Asked { at_s, what });
            }
        }
        self.give_orders(workers);
    }
}

//! Detects early that a step cannot pass, so that the search need not wait for its end.

use plan::Plan;
use units::Nanos;

use super::By;
use crate::conductor::Conductor;

/// Minimum time without progress after which a target counts as stuck, and the same as a multiple of the unloaded latency (`RESPONSES`).
const PATIENCE: Nanos = Nanos::from_secs(2);
const RESPONSES: u64 = 4;
/// A step has failed if more than this fraction of its connections has failed, and more than `SOME` in number.
const SHARE: f64 = 0.05;
const SOME: u64 = 10;
/// Extra time before the step ends, so that samples (one per second) show the cause.
const SAMPLES: Nanos = Nanos::from_millis(1_500);

/// The prospects of a step that opens connections.
pub(super) struct Prospects {
    /// Connections to be opened; `None` if the load is a request rate.
    connections: Option<u64>,
    patience: Nanos,
    /// Connections and first responses so far, and the time of the last progress.
    progress: (u64, Nanos),
    /// When the prospects became bad.
    since: Option<Nanos>,
}

impl Prospects {
    /// `unloaded`: the median latency without load; if unknown, the step never counts as stuck.
    pub(super) fn of(by: By, plan: &Plan, unloaded: Option<Nanos>) -> Prospects {
        let patience = unloaded.map_or(Nanos::NEVER, |time| PATIENCE.max(Nanos(RESPONSES * time.0)));
        let all = (0..plan.populations.len() as u16).map(|nth| plan.connections(nth));
        let connections = (by != By::Rate).then(|| all.sum());
        Prospects { connections, patience, progress: (0, Nanos::ZERO), since: None }
    }

    /// Whether the prospects are bad, and have been for long enough to see the cause.
    pub(super) fn are_bad(&mut self, conductor: &Conductor, now: Nanos) -> bool {
        let Some(connections) = self.connections else { return false };
        let came = conductor.sum(|tick| tick.counts.opened + tick.served);
        if came != self.progress.0 || self.progress.1 == Nanos::ZERO || conductor.is_holding() {
            self.progress = (came, now);
        }
        let failed = conductor.sum(|tick| tick.counts.failed + tick.counts.given_up + tick.counts.dropped);
        let is_failing = failed as f64 > SHARE * connections as f64 && failed > SOME;
        let is_stuck = now.since(self.progress.1) >= self.patience;
        if is_failing || is_stuck {
            self.since.get_or_insert(now);
        }
        self.since.is_some_and(|since| now >= since + SAMPLES)
    }
}

//! Whether a step can still pass: one that cannot is not waited for.

use plan::Plan;
use units::Nanos;

use super::By;
use crate::conductor::Conductor;

/// A target that has taken no connection for this long, or for this many times as long as a response takes without load, takes no more.
const PATIENCE: Nanos = Nanos::from_secs(2);
const RESPONSES: u64 = 4;
/// A step fails of which more than this share has failed, and some.
const SHARE: f64 = 0.05;
const SOME: u64 = 10;
/// What stopped the target is looked for that much longer: samples are taken every second.
const SAMPLES: Nanos = Nanos::from_millis(1_500);

/// Of a step that opens connections.
pub(super) struct Prospects {
    /// Connections that it opens; none where the load is requests.
    connections: Option<u64>,
    patience: Nanos,
    /// Connections and first responses so far, and since when there are no more.
    progress: (u64, Nanos),
    /// Since when they are bad.
    since: Option<Nanos>,
}

impl Prospects {
    /// `unloaded`: the median latency without load, if it is known.
    pub(super) fn of(by: By, plan: &Plan, unloaded: Option<Nanos>) -> Prospects {
        let patience = unloaded.map_or(Nanos::NEVER, |time| PATIENCE.max(Nanos(RESPONSES * time.0)));
        let all = (0..plan.populations.len() as u16).map(|nth| plan.connections(nth));
        let connections = (by != By::Rate).then(|| all.sum());
        Prospects { connections, patience, progress: (0, Nanos::ZERO), since: None }
    }

    /// Whether they are, and have been for long enough to see why.
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

//! How long a run waits for its workers after the load has ended.

use units::Nanos;

use super::Conductor;

/// How long after the end of the load a disconnected broker is waited for: one that restarts is back within seconds, one that reads a
/// large store first within tens of seconds.
const MOST_DISCONNECTED: Nanos = Nanos::from_secs(60);

/// How long to wait for responses after the load has ended.
pub(super) struct Patience {
    most: Nanos,
    /// When the workers were last seen to be disconnected: their reports still come.
    disconnected: Nanos,
    /// A user has waited long enough.
    is_short: bool,
}

impl Patience {
    pub(super) fn of(most: Nanos) -> Patience {
        Patience { most, disconnected: Nanos::ZERO, is_short: false }
    }

    /// Reports do not arrive now.
    pub(super) fn handle_disconnected(&mut self, now: Nanos) {
        self.disconnected = now;
    }

    /// The user asks for the end, and waits no longer than this for the last reports; whether that changes anything.
    pub(super) fn shorten(&mut self, most: Nanos) -> bool {
        let is_changed = !self.is_short || self.most > most;
        (self.most, self.is_short) = (self.most.min(most), true);
        is_changed
    }

    /// How long has been waited since the load ended, without the time in which no report arrived.
    pub(super) fn waited(&self, ended: Nanos, now: Nanos) -> Nanos {
        let disconnected =
            if self.is_short { Nanos::ZERO } else { self.disconnected.min(ended + MOST_DISCONNECTED) };
        now.since(ended.max(disconnected))
    }

    /// Whether nothing is waited for any longer.
    pub(super) fn ends(&self, ended: Nanos, now: Nanos) -> bool {
        self.waited(ended, now) >= self.most
    }
}

impl Conductor<'_> {
    /// Workers that have not reported the end of the load, after all this time, never will.
    pub(super) fn lose_silent_workers(&mut self) {
        for worker in 0..self.reports.len() {
            if !self.has_reported_end(&self.reports[worker]) {
                self.handle_lost(worker as u32);
                self.record.interrupted = self.record.interrupted.or(self.ends_by);
            }
        }
    }

    /// At the end, once it lasts longer than the report of it: requests whose responses are waited for, and for how long at most.
    pub(crate) fn waiting_for(&self, now: Nanos) -> Option<(u64, Nanos)> {
        let waited = self.patience.waited(self.draining?, now);
        let is_long = waited >= Nanos(3 * self.latency.0) && self.awaited() > 0;
        is_long.then(|| (self.awaited(), self.patience.most.since(waited)))
    }
}

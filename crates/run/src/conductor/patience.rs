//! What a run waits for after the load has ended, and for how long: responses within their timeout, the reports of workers, and the
//! broker that carries them.

use std::fmt;

use engine::Control;
use units::{Count, Nanos};

use super::Conductor;
use crate::schedule::Order;

/// Maximum wait for a disconnected broker after the end of the load: a restart takes seconds; one that first reads a large store takes
/// tens of seconds.
const MOST_DISCONNECTED: Nanos = Nanos::from_secs(60);

/// A wait of this length is explained to the user, even where reports are rare.
const LONG: Nanos = Nanos::from_secs(2);

/// What a run waits for at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Responses to this number of requests.
    Responses(u64),
    /// The broker that carries the reports.
    Broker,
    /// Workers that have not reported the end of the load.
    Reports,
    /// The last counts of these agents.
    Counts(Vec<String>),
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Responses(n) => write!(f, "outstanding responses ({})", Count(*n)),
            Awaited::Broker => f.write_str("the NATS server"),
            Awaited::Reports => f.write_str("reports that the load has ended"),
            Awaited::Counts(agents) => write!(f, "the last counts of {}", agents.join(", ")),
        }
    }
}

/// The limit of the wait after the end of the load.
pub(super) struct Patience {
    most: Nanos,
    /// When the workers were last seen disconnected, 0 if never. Their reports are still to come.
    disconnected: Nanos,
    /// The user asked for the end, so the wait is shortened.
    is_short: bool,
    /// Workers were ordered to close connections without an outstanding request.
    has_released: bool,
}

impl Patience {
    pub(super) fn of(most: Nanos) -> Patience {
        Patience { most, disconnected: Nanos::ZERO, is_short: false, has_released: false }
    }

    /// Notes that reports do not arrive now.
    pub(super) fn handle_disconnected(&mut self, now: Nanos) {
        self.disconnected = now;
    }

    /// The user asks for the end: limits the wait to `most`. Returns whether that changes anything.
    pub(super) fn shorten(&mut self, most: Nanos) -> bool {
        let is_changed = !self.is_short || self.most > most;
        (self.most, self.is_short) = (self.most.min(most), true);
        is_changed
    }

    /// Whether the user has asked for the end.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Time waited since the load ended, excluding the time without a connection to the workers.
    pub(super) fn waited(&self, ended: Nanos, now: Nanos) -> Nanos {
        let disconnected =
            if self.is_short { Nanos::ZERO } else { self.disconnected.min(ended + MOST_DISCONNECTED) };
        now.since(ended.max(disconnected))
    }

    /// Whether the workers were disconnected within the last `moment`.
    fn is_disconnected(&self, now: Nanos, moment: Nanos) -> bool {
        self.disconnected > Nanos::ZERO && now.since(self.disconnected) < moment
    }

    /// Maximum time left to wait.
    fn left(&self, ended: Nanos, now: Nanos, is_disconnected: bool) -> Nanos {
        match is_disconnected && !self.is_short {
            true => (ended + MOST_DISCONNECTED + self.most).since(now),
            false => self.most.since(self.waited(ended, now)),
        }
    }

    /// Whether the wait is over.
    pub(super) fn ends(&self, ended: Nanos, now: Nanos) -> bool {
        self.waited(ended, now) >= self.most
    }
}

impl Conductor<'_> {
    /// Declares workers lost that have not reported the end of the load by the end of the wait.
    pub(super) fn lose_silent_workers(&mut self) {
        for worker in 0..self.reports.len() {
            if !self.has_reported_end(&self.reports[worker]) {
                self.handle_lost(worker as u32);
                self.record.interrupt(self.ends_by);
            }
        }
    }

    /// Once, if the end takes long: orders workers to close connections that have their response, to make room for those queued at a
    /// server that serves only a few at a time.
    pub(super) fn release_idle(&mut self, now: Nanos) {
        let awaits_responses = matches!(self.waiting_for(now), Some((Awaited::Responses(_), _)));
        if !self.goes_on() && awaits_responses && !self.patience.has_released {
            self.patience.has_released = true;
            self.orders.push(Order::All(Control::Release));
        }
    }

    /// What the run waits for, and the maximum time left. `None` until the end takes longer than a report, and once the wait is over.
    pub(crate) fn waiting_for(&self, now: Nanos) -> Option<(Awaited, Nanos)> {
        let since = self.draining.filter(|since| now.since(*since) >= Nanos(3 * self.latency.0).min(LONG))?;
        let is_disconnected = self.patience.is_disconnected(now, self.latency);
        let awaited = match self.awaited() {
            _ if is_disconnected => Awaited::Broker,
            responses @ 1.. => Awaited::Responses(responses),
            _ if !self.end_is_reported() => Awaited::Reports,
            _ => return None,
        };
        let left = self.patience.left(since, now, is_disconnected);
        (left > Nanos::ZERO).then_some((awaited, left))
    }
}

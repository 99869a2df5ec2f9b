//! What a run waits for after the load has ended, and for how long.

use std::fmt;

use engine::Control;
use units::{Count, Nanos};

use super::Conductor;
use crate::schedule::Order;

/// How long after the end of the load a disconnected broker is waited for: one that restarts is back within seconds, one that reads a
/// large store first within tens of seconds.
const MOST_DISCONNECTED: Nanos = Nanos::from_secs(60);

/// A wait of this length is explained, also where reports come rarely.
const LONG: Nanos = Nanos::from_secs(2);

/// What a run waits for at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Responses to this many requests.
    Responses(u64),
    /// The broker over which reports come.
    Broker,
    /// Workers that have not reported the end of the load.
    Reports,
    /// What these agents have counted.
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

/// How long to wait for responses after the load has ended.
pub(super) struct Patience {
    most: Nanos,
    /// When the workers were last seen to be disconnected: their reports still come.
    disconnected: Nanos,
    /// A user has waited long enough.
    is_short: bool,
    /// Connections without a request under way were ordered to be closed.
    has_released: bool,
}

impl Patience {
    pub(super) fn of(most: Nanos) -> Patience {
        Patience { most, disconnected: Nanos::ZERO, is_short: false, has_released: false }
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

    /// Whether the user has asked for the end.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// How long has been waited since the load ended, without the time in which no report arrived.
    pub(super) fn waited(&self, ended: Nanos, now: Nanos) -> Nanos {
        let disconnected =
            if self.is_short { Nanos::ZERO } else { self.disconnected.min(ended + MOST_DISCONNECTED) };
        now.since(ended.max(disconnected))
    }

    /// Whether reports did not arrive a moment ago.
    fn is_disconnected(&self, now: Nanos, moment: Nanos) -> bool {
        self.disconnected > Nanos::ZERO && now.since(self.disconnected) < moment
    }

    /// How much longer is waited at most.
    fn left(&self, ended: Nanos, now: Nanos, is_disconnected: bool) -> Nanos {
        match is_disconnected && !self.is_short {
            true => (ended + MOST_DISCONNECTED + self.most).since(now),
            false => self.most.since(self.waited(ended, now)),
        }
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
                self.record.interrupt(self.ends_by);
            }
        }
    }

    /// Once, where the end takes long: connections that have their response make room for those that wait in the queue of a server that
    /// serves only some at a time.
    pub(super) fn release_idle(&mut self, now: Nanos) {
        let awaits_responses = matches!(self.waiting_for(now), Some((Awaited::Responses(_), _)));
        if !self.goes_on() && awaits_responses && !self.patience.has_released {
            self.patience.has_released = true;
            self.orders.push(Order::All(Control::Release));
        }
    }

    /// At the end, once it lasts longer than the report of it: what is waited for, and for how long at most; none once that is over.
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

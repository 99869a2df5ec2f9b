//! Requests that were due, at a rate or at an interval, and not sent because all connections were waiting for a response.

use samples::Figures;
use units::Count;

use crate::{away, case::Case, trouble::Trouble};

/// Figures of a population that missed requests.
#[derive(Clone, Debug)]
pub(crate) struct Missed {
    /// The population that missed most, if there are several.
    pub(crate) population: Option<String>,
    pub(crate) held: u64,
    /// Connections, including those that the target had closed.
    pub(crate) all: u64,
    pub(crate) sent: u64,
    pub(crate) missed: u64,
    /// Responses per second; `least_us`: the shortest response time in microseconds.
    pub(crate) answered_per_s: f64,
    pub(crate) least_us: f64,
    pub(crate) time_s: f64,
}

impl Missed {
    pub(crate) fn due(&self) -> u64 {
        self.sent + self.missed
    }

    pub(crate) fn due_per_s(&self) -> f64 {
        self.due() as f64 / self.time_s
    }
}

/// Causes that keep all connections waiting for another reason.
pub(crate) const YIELDS_TO: &str = "cpu open-files heap target-stopped silent throng-too-slow throng-stopped shared-processors starved \
    slow-accept syn-loss queue-slowed-dials queue-unaccepted queue-overflowed queue-standing \
    probe-turned-away";

/// `None` if something else went wrong, or no request was missed.
pub(crate) fn missed(case: &Case) -> Option<Missed> {
    let s = case.summary;
    // With several populations, the others do not matter.
    let is_one = s.populations.len() < 2;
    let named = if is_one { None } else { case.populations().max_by_key(|(_, own)| own.requests.missed) };
    let own: &Figures = named.map_or(&s.figures, |(_, own)| &own.figures);
    let (held, sent, missed) = (own.connections.held, own.requests.sent, own.requests.missed);
    if case.trouble != Trouble::None || missed == 0 || sent == 0 || held == 0 || own.duration_s <= 0.0 {
        return None;
    }
    // The connections of an absent agent carried nothing, and its due requests were missed.
    if s.agents.iter().any(away::was_missing) {
        return None;
    }
    Some(Missed {
        population: named.map(|(name, _)| name.to_owned()),
        held,
        all: held.max(own.connections.wanted),
        sent,
        missed,
        answered_per_s: own.requests.per_s,
        least_us: own.latency_us.min,
        // The ramps of a rate have requests, too.
        time_s: if case.evidence.subject.has_stages { own.elapsed_s } else { own.duration_s },
    })
}

/// Whether each connection sends messages at an interval, and awaits each reply before it sends the next.
pub(crate) fn is_by_interval(case: &Case) -> bool {
    let subject = &case.evidence.subject;
    subject.pause_flag.as_deref() == Some("--ping") && subject.rate.is_none()
}

/// The sentence for connections that carry fewer requests per second than are due.
pub(crate) fn too_few(held: u64, carried: f64, due: f64) -> String {
    format!(
        "too few connections: {} carried {} of the {} requests that were due each second",
        Count(held),
        Count(carried.round() as u64),
        Count(due.round() as u64)
    )
}

//! throng's own part in the result: deviations that throng may have caused, so that the target is not judged by them.

use plan::Threshold;
use samples::{FaultCount, Figure, Kind, Side, Statistic, Summary, ThresholdResult};
use units::Unit;

use crate::{
    evidence::Facts,
    honesty::{is_too_slow, late, late_handshakes, saturated, undialled, unsure},
    sent,
};

/// What throng may have caused, if it was late or could not dial; by default nothing.
#[derive(Debug, Default)]
pub(crate) struct OwnPart {
    /// Why the figures do not describe the target; `None` if they do.
    pub(crate) why: Option<String>,
    /// Whether throng was late enough to cause timeouts.
    pub(crate) is_slow: bool,
    /// Requests that were due and not sent.
    pub(crate) missed: u64,
    /// Connections that may have failed because of throng, or were not dialled.
    pub(crate) connections: u64,
    /// Requests that may have failed because of throng, including those on such connections.
    pub(crate) requests: u64,
    /// For each threshold, whether its result may be due to throng.
    pub(crate) thresholds: Vec<bool>,
}

impl OwnPart {
    /// Whether a fault may be throng's: slowness explains timeouts, but no closes, resets or wrong responses.
    pub(crate) fn explains(&self, fault: &FaultCount) -> bool {
        self.why.is_some() && (fault.side == Side::Host || self.is_slow && fault.kind == Kind::Timeout)
    }

    /// Whether the result of a failed threshold would change if everything attributed to throng had succeeded (or failed, for thresholds
    /// that require failures).
    fn decides(&self, threshold: &Threshold, result: &ThresholdResult, s: &Summary) -> bool {
        let figure = &threshold.figure;
        let is_of_connections = figure.key.starts_with("connections.");
        let own = if is_of_connections { self.connections } else { self.requests } as f64;
        let whole = figure.whole_value(s).filter(|_| threshold.is_share);
        let own = whole.map_or(own, |whole| own * 100.0 / whole);
        result.value.is_some_and(|value| threshold.is_met_by(value - own) || threshold.is_met_by(value + own))
    }
}

/// Determines throng's own part in the results.
pub(crate) fn own_part(facts: &Facts, s: &Summary) -> OwnPart {
    let results = || facts.plan.thresholds.iter().zip(&s.thresholds);
    let unsure: Vec<Option<String>> =
        results().map(|(threshold, result)| unsure(facts, s, threshold, result)).collect();
    let not_dialled = undialled(s).or_else(|| sent::undialled(facts)).or_else(|| late_handshakes(s));
    let is_late = not_dialled.is_none().then(|| too_late(facts, s)).flatten();
    // Whether all times are affected, or only some.
    let is_all = not_dialled.is_some() || is_late.is_some();
    let why = not_dialled.or_else(|| unsure.iter().flatten().next().cloned()).or(is_late);
    if why.is_none() {
        return OwnPart { thresholds: vec![false; s.thresholds.len()], ..OwnPart::default() };
    }
    let is_slow = is_too_slow(s, facts.evidence);
    let mut own = OwnPart { why, is_slow, missed: s.requests.missed, ..OwnPart::default() };
    let faults: u64 = s.faults.iter().filter(|fault| own.explains(fault)).map(|fault| fault.count).sum();
    own.connections = faults + sent::arrivals_missed(facts);
    own.requests = faults + s.requests.missed + if is_slow { s.requests.unanswered } else { 0 };
    let thresholds = results().zip(&unsure).map(|((threshold, result), unsure)| {
        // If too many requests have no time at all, the times of the others do not matter.
        let lacks = !result.pass && lacks(&threshold.figure, s, own.requests);
        let is_void = is_all && is_timed(threshold) && !lacks;
        unsure.is_some() || is_void || !result.pass && own.decides(threshold, result, s)
    });
    own.thresholds = thresholds.collect();
    own
}

/// Whether a figure is a time or a rate.
fn is_timed(threshold: &Threshold) -> bool {
    let is_rate = matches!(threshold.figure.unit, Unit::Seconds | Unit::PerSecond | Unit::BytesPerSecond);
    is_rate || threshold.figure.is_latency()
}

/// Whether a figure lies among events without an end, even if `without` of them are left out.
fn lacks(figure: &Figure, s: &Summary, without: u64) -> bool {
    let times = figure.distribution(s).zip(figure.statistic());
    times.is_some_and(|(times, statistic)| times.lacks(statistic, without))
}

/// Why throng was too late, or short of CPU, for the figures that are judged.
fn too_late(facts: &Facts, s: &Summary) -> Option<String> {
    let judged = || facts.plan.thresholds.iter().zip(&s.thresholds);
    let judges_latency = judged().any(|(threshold, _)| threshold.figure.is_latency());
    // A rate that was reached counts; if it was not, the cause is ambiguous.
    let misses_rate = judged().any(|(t, result)| t.figure.is_any(&["requests.per_s"]) && !result.pass);
    let percentiles: Vec<Statistic> = judged()
        .filter(|(threshold, _)| threshold.figure.is_latency())
        .filter_map(|(threshold, _)| threshold.figure.statistic())
        .collect();
    // A closed loop without spare CPU is necessarily late: its rate is reported as a lower bound.
    let judges_all = s.thresholds.is_empty() && !s.requests.lower_bound;
    let is_timed = judges_latency || misses_rate;
    let late = late(s, &percentiles, facts.plan.max_lag).filter(|_| is_timed || judges_all);
    late.or_else(|| saturated(facts.evidence).filter(|_| is_timed))
}

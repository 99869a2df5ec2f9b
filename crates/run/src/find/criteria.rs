//! The criteria by which a step of a search passes or fails, apart from the verdict of its run: the load must be reached, and the probe
//! must not be much slower than at the baseline, unless the user gives thresholds. A step that cannot pass any more is detected early
//! ([`Prospects`]), so that the search need not wait for its end.

use plan::Plan;
use samples::{
    Baseline, Cause, Censored, Certainty, Kind, Limit, Side, Stage, Summary, ThresholdResult, Verdict,
};
use search::SeenLimit;
use units::{Count, Nanos};

use super::By;
use crate::conductor::Conductor;

/// A probe fails a step if its p99 exceeds the baseline by this factor and by this many µs.
const PROBE_TIMES: f64 = 5.0;
const PROBE_MORE_US: f64 = 20_000.0;
/// It also fails if it exceeds this fraction of the probe's timeout, unless the baseline is close to that (see [`baseline`]).
const PROBE_OF_TIMEOUT: f64 = 0.5;
/// Minimum fraction of the load that must be reached.
const SHARE: f64 = 0.98;
/// Announced closes are attributed to the load if their ratio to responses exceeds that of smaller loads by this factor and by this
/// difference.
const CLOSES_TIMES: f64 = 2.0;
const CLOSES_MORE: f64 = 0.005;
/// Minimum fraction of a load that must be closed to show that the target closes all connections.
const MANY: f64 = 0.5;
/// Minimum time without progress after which a target counts as stuck, and the same as a multiple of the unloaded latency (`RESPONSES`).
const PATIENCE: Nanos = Nanos::from_secs(2);
const RESPONSES: u64 = 4;
/// A step has failed if more than this fraction of its connections has failed, and more than `FAILED_SOME` in number.
const FAILED_SHARE: f64 = 0.05;
const FAILED_SOME: u64 = 10;
/// Extra time before the step ends, so that samples (one per second) show the cause.
const SAMPLES: Nanos = Nanos::from_millis(1_500);
/// Why no number of connections can be held, and the fix.
pub(super) const HOLDS_NONE: &str = "the target closes its connections as announced (Connection: close, GOAWAY, or a \
Keep-Alive timeout), so none can be held";
pub(super) const HOLD_SOME: &str = "enable keep-alive; if it closes idle connections, raise its keep-alive timeout or lower \
--think; or use --by arrival";

impl By {
    /// The sustained part of a load.
    pub(super) fn sustained(self, s: &Summary) -> f64 {
        match self {
            By::Connections => s.connections.held as f64,
            By::Burst => s.connections.opened as f64,
            By::Arrival => s.connections.open_per_s,
            By::Rate => answered_per_s(s),
            By::Number(_) => 0.0,
        }
    }

    /// The reached part of a load. Also counts requests that were outstanding at the end, and connections closed as announced that will
    /// be redialled, unless the target closes them because of the load. `usual`: see [`closes`].
    fn reached(self, s: &Summary, usual: Option<f64>) -> f64 {
        let come_with_load =
            |usual: f64| closes(s).is_some_and(|now| now > CLOSES_TIMES * usual + CLOSES_MORE);
        let more = match self {
            By::Connections if usual.is_some_and(come_with_load) => 0.0,
            By::Connections => s.connections.closed.saturating_sub(s.connections.redialled) as f64,
            By::Rate => under_way_per_s(s),
            By::Arrival | By::Burst => 0.0,
            // The run itself judges whether the number was sustained.
            By::Number(_) => return f64::INFINITY,
        };
        self.sustained(s) + more
    }

    /// The verb for the sustained part, used in messages.
    const fn done(self) -> &'static str {
        match self {
            By::Connections => "held",
            By::Arrival | By::Burst => "opened",
            By::Rate => "answered",
            By::Number(_) => "reached",
        }
    }
}

/// Announced closes per response; `None` if there are too few responses. A target that closes each connection after a number of responses
/// has the same ratio at any load; one that has too many connections closes more of them.
pub(super) fn closes(s: &Summary) -> Option<f64> {
    let answered = s.requests.answered as f64;
    (answered * CLOSES_MORE >= 1.0).then(|| s.connections.closed as f64 / answered)
}

/// The probe's p99 at full load, in µs. The ramp is excluded: it disturbs the target more than the open connections do.
pub(super) fn probe_p99_us(s: &Summary) -> Option<f64> {
    s.probe.as_ref().filter(|probe| probe.held_us.count > 0).map(|probe| probe.held_us.p99)
}

/// Responses per second at full load, including the probe's.
fn answered_per_s(s: &Summary) -> f64 {
    let probes = s.probe.as_ref().map_or(0, |probe| probe.held_us.count) as f64;
    s.requests.per_s + if s.duration_s > 0.0 { probes / s.duration_s } else { 0.0 }
}

/// Requests per second that were due too late in the step for a response within it: those of one median latency. If the target is
/// overloaded, the latency grows during the step, so the median is limited to twice the minimum. A queue that grows within that limit makes
/// the step fail for other reasons.
fn under_way_per_s(s: &Summary) -> f64 {
    let latency_us = s.latency_us.p50.min(2.0 * s.latency_us.min);
    let latency_s = (latency_us / 1e6).min(s.duration_s / 2.0);
    if s.duration_s > 0.0 { s.requests.per_s * latency_s / (s.duration_s - latency_s) } else { 0.0 }
}

fn is_seen_of_target(limit: &Limit) -> bool {
    limit.side == Side::Target && limit.certainty == Certainty::Seen
}

/// Whether throng itself was the limit of a step. Such a step shows nothing about the target, unless the target's own limit was seen.
pub(super) fn is_late(s: &Summary) -> bool {
    s.verdict == Verdict::Invalid && !s.limit.as_ref().is_some_and(is_seen_of_target)
}

/// Whether throng or this machine was the limit.
pub(super) fn is_here(s: &Summary) -> bool {
    let is_of_host = |limit: &Limit| limit.side == Side::Host && limit.cause != Cause::TooFewConnections;
    is_late(s) || s.limit.as_ref().is_some_and(is_of_host)
}

/// Like [`is_here`], and also whether a rate was limited by the number of throng's connections.
pub(super) fn is_ours(by: By, s: &Summary) -> bool {
    let too_few = |limit: &Limit| by == By::Rate && limit.cause == Cause::TooFewConnections;
    is_here(s) || s.limit.as_ref().or(s.suspect.as_ref()).is_some_and(too_few)
}

/// Why a step failed: the verdict of its run, a load that was not reached, or probes without a response. `usual`: the [`closes`] of loads
/// that passed.
pub fn reasons(by: By, load: u64, s: &Summary, usual: Option<f64>) -> Vec<String> {
    let mut reasons = Vec::new();
    if s.verdict != Verdict::Pass {
        reasons.extend(s.reasons.iter().cloned());
        if reasons.is_empty() {
            reasons.push(s.verdict.name().to_owned());
        }
    }
    // A load that was not reached was not sustained, whatever the thresholds.
    let got = by.reached(s, usual);
    if got < SHARE * load as f64 && reasons.is_empty() {
        // Outstanding requests have no response yet, but are no shortfall either.
        let (done, under_way) = match by {
            By::Rate => (by.sustained(s) as u64, under_way_per_s(s) as u64),
            _ => (got as u64, 0),
        };
        let more =
            if under_way > 0 { format!(", {} more under way", Count(under_way)) } else { String::new() };
        reasons.push(format!("{} of {} {} {}{more}", Count(done), Count(load), by.unit(), by.done()));
    }
    if !s.thresholds.is_empty() {
        return reasons;
    }
    let Some(probe) = &s.probe else { return reasons };
    let met = probe.failed_by();
    if probe.sent > 0 && probe.held_us.count == 0 {
        reasons.push(format!("no probe had a correct response at full load{met}"));
    }
    if let Some(censored) = unanswered_probes(s).filter(|all| all.p99.is_none() && all.share < 1.0) {
        let share = 1e2 * censored.share;
        reasons.push(format!("{share:.0} % of the probes at full load had no correct response{met}"));
    }
    reasons
}

/// Whether nearly all connections with a response were closed as announced, and nearly none is held. They are redialled, but that happens
/// at any load. Connections that still wait for their response, as in a short step, are left out.
pub(super) fn holds_none(load: u64, s: &Summary) -> bool {
    let c = &s.connections;
    let waiting = s.requests.sent.saturating_sub(s.requests.answered).min(c.held);
    let judged = (c.opened + c.redialled).saturating_sub(waiting);
    let were_closed = c.closed as f64 >= MANY * load as f64 && c.closed as f64 >= SHARE * judged as f64;
    // Closes after an unexpected status are rejections.
    let are_turned_away = 2 * wrong_statuses(s, Stage::Exchange) >= c.closed;
    let are_closed = c.closed > 0 && were_closed && !are_turned_away;
    are_closed && (c.held - waiting) as f64 <= (1.0 - SHARE) * load as f64
}

/// Responses in this stage with an unexpected status.
fn wrong_statuses(s: &Summary, stage: Stage) -> u64 {
    let of = s.faults.iter().filter(|f| f.stage == stage && f.kind == Kind::WrongStatus);
    of.map(|f| f.count).sum()
}

/// Whether every response had an unexpected status that a smaller load would have as well, that is, one caused by the request.
pub(super) fn all_wrong(s: &Summary) -> bool {
    let (responses, upgrades) = (wrong_statuses(s, Stage::Exchange), wrong_statuses(s, Stage::Handshake));
    let all: u64 = s.requests.status.values().sum();
    // A successful upgrade has no status in this count.
    let is_all = all > 0 && responses + upgrades >= all && (upgrades == 0 || s.connections.held == 0);
    is_all && s.requests.status.keys().all(|status| is_of_request(*status))
}

/// Whether TLS failed on every connection for a reason that does not depend on the load, such as the target's certificate.
pub(super) fn none_secured(s: &Summary) -> bool {
    let is_of_tls = |limit: &Limit| matches!(limit.cause, Cause::Tls | Cause::TlsExpected);
    let is_of_load = |kind: Kind| matches!(kind, Kind::Closed | Kind::Reset | Kind::Timeout);
    let by_load = s.faults.iter().any(|fault| is_of_load(fault.kind));
    s.limit.as_ref().is_some_and(is_of_tls) && s.connections.held == 0 && !by_load
}

/// Whether this status is caused by the request rather than by overload; for HTTP and gRPC (grpc/doc/statuscodes.md).
fn is_of_request(status: u16) -> bool {
    match status {
        4 | 8 | 14 | 408 | 425 | 429 => false,
        1..=16 | 100..=499 => true,
        _ => false,
    }
}

/// The limit of a target that [holds none](holds_none): its policy, which was seen.
pub(super) fn none_held() -> Limit {
    Limit {
        side: Side::Target,
        cause: Cause::Closed,
        certainty: Certainty::Seen,
        sentence: HOLDS_NONE.to_owned(),
        detail: HOLDS_NONE.to_owned(),
        fix: HOLD_SOME.to_owned(),
        ..Limit::default()
    }
}

/// The limit of a step that failed only because a threshold is on a figure that the step does not measure.
pub(super) fn unmeasured(s: &Summary) -> Option<Limit> {
    let failed = || s.thresholds.iter().filter(|result| !result.pass);
    let is_one = |result: &ThresholdResult| result.value.is_none() && result.shown.is_empty();
    let is_only = s.verdict == Verdict::Fail && s.faults.is_empty() && failed().all(is_one);
    let first = failed().next().filter(|_| is_only)?;
    let fix = if first.expr.starts_with("latency") { SEND_SOME } else { JUDGE_OTHERS };
    let sentence = s.reasons.first().cloned().unwrap_or_default();
    let detail = sentence.clone();
    Some(Limit { certainty: Certainty::Seen, sentence, detail, fix: fix.to_owned(), ..Limit::default() })
}

/// Whether a repeated step failed only by an [unmeasured] figure: the threshold is on the opening of connections, and all of them were
/// already open.
pub(super) fn is_confirmed(by: By, load: u64, s: &Summary, usual: Option<f64>) -> bool {
    unmeasured(s).is_some() && by.reached(s, usual) >= SHARE * load as f64
}

const SEND_SOME: &str = "no request was due at full load: use shorter pauses (--think, --ping) or longer steps (-d), or judge probe.held.p99";
const JUDGE_OTHERS: &str = "judge a figure that a step measures, or use longer steps (-d)";

/// What a limit shows about the number of connections that the target holds. Its limit on open files is constant. A connection limit
/// applies to one of several processes, whose share of the connections varies.
pub(super) fn seen(limit: &Limit) -> SeenLimit {
    match (limit.side, limit.cause) {
        (Side::Target, Cause::OpenFiles) if limit.certainty == Certainty::Seen => SeenLimit::Fixed,
        (Side::Target, Cause::OpenFiles | Cause::ConnectionLimit | Cause::AcceptQueue) => SeenLimit::Plateau,
        _ => SeenLimit::None,
    }
}

/// The median latency of a step; of the first responses if no request was due after the ramp.
pub(super) fn unloaded(s: &Summary) -> Option<Nanos> {
    let measured = [&s.latency_us, &s.ramp_latency_us].into_iter().find(|times| times.count > 0);
    measured.map(|times| Nanos((1e3 * times.p50) as u64))
}

/// The baseline after a step that passed: the fastest so far. The first step may be slow, since it warms the target up. Unchanged with
/// thresholds, which replace the comparison. `timeout`: the probe's; `None` if unknown.
pub(super) fn baseline(
    before: Option<Baseline>,
    load: u64,
    s: &Summary,
    timeout: Option<Nanos>,
) -> Option<Baseline> {
    let judged = probe_p99_us(s).filter(|_| s.thresholds.is_empty());
    let faster = judged.filter(|us| before.is_none_or(|before| *us < before.probe_p99_us));
    let timeout_us = timeout.map_or(f64::INFINITY, |timeout| timeout.secs_f64() * 1e6);
    let allowed = |us: f64| {
        let times = (us * PROBE_TIMES).min(timeout_us * PROBE_OF_TIMEOUT);
        times.max(us + PROBE_MORE_US).min(timeout_us)
    };
    faster.map(|us| Baseline { load, probe_p99_us: us, allowed_us: allowed(us) }).or(before)
}

/// The reason if the probe's p99 exceeds what the baseline allows; `None` otherwise, and with thresholds.
pub(super) fn slow_probe(by: By, s: &Summary, baseline: Option<Baseline>) -> Option<String> {
    let judged = unanswered_probes(s).map_or_else(|| probe_p99_us(s), |censored| censored.p99);
    let (now, Baseline { load, probe_p99_us, allowed_us }) =
        judged.zip(baseline).filter(|_| s.thresholds.is_empty())?;
    let [after, before, most] = [now, probe_p99_us, allowed_us].map(|us| us / 1e3);
    (now > allowed_us).then(|| {
        format!(
            "a probe took {after:.1} ms at the 99th percentile, {before:.1} ms at {} {}, {most:.1} ms allowed",
            Count(load),
            by.unit()
        )
    })
}

/// The statistics of probes at full load, if some had no response.
fn unanswered_probes(s: &Summary) -> Option<&Censored> {
    s.probe.as_ref().and_then(|probe| probe.held_us.censored.as_ref())
}

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
        let is_failing = failed as f64 > FAILED_SHARE * connections as f64 && failed > FAILED_SOME;
        let is_stuck = now.since(self.progress.1) >= self.patience;
        if is_failing || is_stuck {
            self.since.get_or_insert(now);
        }
        self.since.is_some_and(|since| now >= since + SAMPLES)
    }
}

#[cfg(test)]
mod tests {
    use samples::Quantiles;

    use super::*;
    use record::fixture::fault;

    /// A step with this p99 of the probe.
    fn probed(p99_us: f64) -> Summary {
        let held_us = Quantiles { count: 100, p99: p99_us, ..Quantiles::default() };
        let probe = Some(samples::ProbeSummary { held_us, ..Default::default() });
        Summary { probe, ..Summary::default() }
    }

    #[test]
    fn statuses_of_the_request_are_wrong_with_any_load() {
        let check = |stage, statuses: &[(u16, u64)], held, expected| {
            let mut s = Summary::default();
            (s.faults, s.connections.held) = (vec![fault(stage, Kind::WrongStatus, 100)], held);
            s.requests.status.extend(statuses.iter().copied());
            assert_eq!(all_wrong(&s), expected, "{stage:?} {statuses:?}");
        };
        check(Stage::Exchange, &[(401, 100)], 100, true);
        check(Stage::Exchange, &[(401, 90), (302, 10)], 0, true);
        // Some were served, or may be served at a smaller load.
        check(Stage::Exchange, &[(200, 5), (401, 100)], 100, false);
        check(Stage::Exchange, &[(429, 100)], 100, false);
        check(Stage::Exchange, &[(404, 99), (503, 1)], 100, false);
        check(Stage::Handshake, &[(403, 100)], 0, true);
        check(Stage::Handshake, &[(403, 100)], 50, false);
        assert!(!all_wrong(&Summary::default()));
    }

    #[test]
    fn a_certificate_is_wrong_with_any_load() {
        let check = |kind, held, cause, expected| {
            let limit = Some(Limit { cause, ..Limit::default() });
            let mut s = Summary { limit, ..Summary::default() };
            (s.faults, s.connections.held) = (vec![fault(Stage::Tls, kind, 500)], held);
            assert_eq!(none_secured(&s), expected, "{kind:?} {held} {cause:?}");
        };
        check(Kind::UnknownIssuer, 0, Cause::Tls, true);
        check(Kind::TlsExpected, 0, Cause::TlsExpected, true);
        // Only some destinations are affected, or the cause is overload.
        check(Kind::UnknownIssuer, 9, Cause::Tls, false);
        check(Kind::Reset, 0, Cause::Tls, false);
        check(Kind::Timeout, 0, Cause::Timeout, false);
    }

    /// At 100 requests/s for one second: how many were answered within it, the median latency, and the minimum latency.
    #[test]
    fn slow_responses_are_no_shortfall() {
        let check = |answered: f64, p50_ms: f64, min_ms: f64, short: Option<&str>| {
            let mut s = Summary::default();
            (s.duration_s, s.requests.per_s) = (1.0, answered);
            (s.latency_us.p50, s.latency_us.min) = (p50_ms * 1e3, min_ms * 1e3);
            // Outstanding requests are not reported as answered.
            let short = short.map(|more| format!("{answered} of 100 requests/s answered{more}"));
            let seen = reasons(By::Rate, 100, &s, None);
            assert_eq!(seen, Vec::from_iter(short), "{answered} {p50_ms} {min_ms}");
        };
        check(98.0, 1.0, 1.0, None);
        check(97.0, 1.0, 1.0, Some(""));
        // Each response takes 300 ms, or 200 to 400 ms.
        check(70.0, 300.0, 300.0, None);
        check(70.0, 300.0, 200.0, None);
        check(60.0, 300.0, 200.0, Some(", 25 more under way"));
        // 90 responses/s, or half of the load: the longer the step, the more requests wait.
        check(90.0, 50.0, 10.0, Some(", 1 more under way"));
        check(50.0, 500.0, 10.0, Some(", 1 more under way"));
        // Longer than the step.
        check(10.0, 2_000.0, 2_000.0, Some(", 10 more under way"));
        check(0.0, 0.0, 0.0, Some(""));
    }

    /// `held` of 1,000 connections are held, the others closed as announced, with 2,000 responses in all. `usual`: closes per response at
    /// smaller loads.
    #[test]
    fn closes_that_come_with_the_load_are_a_shortfall() {
        let check = |held: u64, usual: Option<f64>, expected: Option<&str>| {
            let mut s = Summary::default();
            (s.connections.held, s.connections.closed, s.requests.answered) = (held, 1_000 - held, 2_000);
            let seen = reasons(By::Connections, 1_000, &s, usual);
            assert_eq!(seen, Vec::from_iter(expected), "{held} {usual:?}");
        };
        check(900, None, None);
        check(900, Some(0.05), None);
        check(900, Some(0.022), Some("900 of 1,000 connections held"));
        check(900, Some(0.0), Some("900 of 1,000 connections held"));
        // One close per 200 responses is within the tolerance.
        check(990, Some(0.0), None);
        check(980, Some(0.0), None);
    }

    #[test]
    fn what_failed_probes_met_is_said() {
        let failures = vec![samples::ProbeFailure { what: "status 503".to_owned(), count: 20 }];
        let mut probe = samples::ProbeSummary { sent: 20, failures, ..Default::default() };
        let check = |probe: &samples::ProbeSummary, why: &str| {
            let s = Summary { probe: Some(probe.clone()), ..Summary::default() };
            assert_eq!(reasons(By::Connections, 0, &s, None), [why]);
        };
        check(&probe, "no probe had a correct response at full load (status 503)");
        let censored = Some(Censored { count: 9, share: 0.45, ..Censored::default() });
        probe.held_us = Quantiles { count: 11, censored, ..Quantiles::default() };
        check(&probe, "45 % of the probes at full load had no correct response (status 503)");
    }

    #[test]
    fn a_slow_probe_is_compared_with_a_load_that_is_named() {
        let s = probed(2_195_500.0);
        let why =
            "a probe took 2195.5 ms at the 99th percentile, 295.7 ms at 100 connections/s, 1478.5 ms allowed";
        let first = baseline(None, 100, &probed(295_700.0), None);
        assert_eq!(slow_probe(By::Arrival, &s, first).as_deref(), Some(why));
        assert_eq!(slow_probe(By::Arrival, &s, None), None);
    }

    #[test]
    fn the_baseline_is_the_fastest_step() {
        let baseline = |before, load, s: &Summary| baseline(before, load, s, None);
        let first = baseline(None, 100, &probed(300_000.0));
        assert_eq!(first, Some(Baseline { load: 100, probe_p99_us: 300_000.0, allowed_us: 1_500_000.0 }));
        let warm = baseline(first, 200, &probed(3_000.0));
        assert_eq!(warm, Some(Baseline { load: 200, probe_p99_us: 3_000.0, allowed_us: 23_000.0 }));
        assert_eq!(baseline(warm, 50, &probed(4_000.0)), warm);
        assert_eq!(baseline(warm, 50, &Summary::default()), warm, "without a probe");
        let thresholds = vec![ThresholdResult::default()];
        assert_eq!(baseline(None, 100, &Summary { thresholds, ..probed(3_000.0) }), None);
    }

    #[test]
    fn a_probe_near_its_timeout_is_too_slow_whatever_the_baseline_is() {
        let check = |p99_ms: f64, timeout_ms: u64, allowed_ms: f64| {
            let timeout = Some(Nanos::from_millis(timeout_ms));
            let first = baseline(None, 100, &probed(p99_ms * 1e3), timeout).expect("there is a probe");
            assert_eq!(first.allowed_us, allowed_ms * 1e3, "{p99_ms} of {timeout_ms}");
        };
        check(300.0, 10_000, 1_500.0);
        check(1_600.0, 10_000, 5_000.0);
        // Not below the baseline itself.
        check(5_600.0, 10_000, 5_620.0);
        check(9_990.0, 10_000, 10_000.0);
    }
}

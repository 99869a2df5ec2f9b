//! The text of a search: a line for each step, the curve of latency over load, and the result.

mod curve;
mod junit;

pub use junit::find_junit;

use samples::{Baseline, Cause, FindOutcome, FindSummary, Limit, Point, Side};
use units::{Count, Nanos, percent};

use crate::summary::time;

/// The line of a step: `  32,000 connections   pass  latency p99 1.2 ms  probe.held p99 340 µs`. Columns are named like the figures
/// of thresholds: `probe.held.p99` rather than `probe.p99`, which includes the ramp.
pub fn find_line(point: &Point, unit: &str) -> String {
    let shown = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| time(us, false));
    let without = |share: f64, end| match share {
        0.0 => String::new(),
        share => format!(" ({} without a {end})", percent(share)),
    };
    let verdict = match (point.pass, point.invalid) {
        (true, _) => "pass",
        (false, true) => "invalid",
        (false, false) => "fail",
    };
    let unit = unit_of(point.load, unit);
    let mut line = format!("  {:>10} {unit}  {verdict}", Count(point.load).to_string());
    // A step that only holds connections sends no request at full load, and does not dial the connections of the step before again.
    if point.latency_p99_us.is_some() || point.no_response > 0.0 {
        let [p50, p95, p99] = [point.latency_p50_us, point.latency_p95_us, point.latency_p99_us].map(shown);
        line += &format!("  latency p50 {p50} p95 {p95} p99 {p99}");
        line += &without(point.no_response, "response");
    }
    if point.connect_p99_us.is_some() || point.connect_no_response > 0.0 {
        line += &format!("  connect p99 {}", shown(point.connect_p99_us));
        line += &without(point.connect_no_response, "connection");
    }
    if point.probe_p99_us.is_some() || point.probe_no_response > 0.0 {
        line += &format!("  probe.held p99 {}", shown(point.probe_p99_us));
        line += &without(point.probe_no_response, "correct response");
    }
    if let Some(why) = point.reasons.first() {
        line += &format!("  ({why})");
    }
    line
}

/// The line before a step: its load, what is known, and the remaining time: `  next 2,000 connections; 500 passed, 4,000 did not;
/// 2m10s left at most`.
pub fn find_next(load: u64, known: (Option<u64>, Option<u64>), left: Nanos, unit: &str) -> String {
    let known = match known {
        (None, None) => String::new(),
        (Some(passed), None) => format!("; {} passed", Count(passed)),
        (None, Some(failed)) => format!("; {} did not pass", Count(failed)),
        (Some(passed), Some(failed)) => format!("; {} passed, {} did not", Count(passed), Count(failed)),
    };
    let left = Nanos::from_secs(left.secs_f64().round() as u64);
    format!("  next {}{known}; {left} left at most", load_of(load, unit))
}

/// A load with its unit: `1 connection`, `20 requests/s`.
fn load_of(load: u64, unit: &str) -> String {
    format!("{} {}", Count(load), unit_of(load, unit))
}

/// The unit in singular or plural.
fn unit_of(load: u64, unit: &str) -> String {
    match (load, unit.split_once("s/")) {
        // A path in a scenario file has no plural.
        _ if unit.contains('.') => unit.to_owned(),
        (1, Some((one, per))) => format!("{one}/{per}"),
        (1, None) => unit.strip_suffix('s').unwrap_or(unit).to_owned(),
        _ => unit.to_owned(),
    }
}

/// The text of the result: the curve, the baseline, and finally the line `max 50,000 ± 1,000 connections; the target ran out of open
/// files: 1,024 of 1,024 used; raise …`. Each part of this line contains figures of one load, which it names.
pub fn find_text(found: &FindSummary, unit: &str) -> String {
    let baseline = found.baseline.map(|baseline| baseline_text(found, baseline, unit)).unwrap_or_default();
    curve::curve(found) + &baseline + &result(found, unit)
}

/// The line of the result.
pub(crate) fn sentence(found: &FindSummary) -> String {
    result(found, &found.unit).trim_end().to_owned()
}

/// The line of the baseline: `baseline: probe.held p99 2.4 ms at 5 connections, the lowest; limit per step 22 ms`. It contains a
/// warning if the limit is so high that a target which is far too slow passes, or if there was nothing to compare.
fn baseline_text(found: &FindSummary, baseline: Baseline, unit: &str) -> String {
    let Baseline { load, probe_p99_us, allowed_us } = baseline;
    let is_only = found.curve.iter().all(|point| point.load == load);
    let (load, [p99, allowed]) = (load_of(load, unit), [probe_p99_us, allowed_us].map(|us| time(us, false)));
    let text = format!("baseline: probe.held p99 {p99} at {load}, the lowest; limit per step {allowed}\n");
    match is_only {
        true => text + ONLY,
        false if allowed_us > SLOW_US => text + SLOW,
        false => text,
    }
}

const ONLY: &str = "only this load was measured, so there is no baseline for its latency\n";

/// Users who wait for longer than a second lose their train of thought (J. Nielsen, Usability Engineering, 1993); microseconds.
const SLOW_US: f64 = 1e6;
const SLOW: &str = "warning: the target is already slow at the baseline; set a limit, e.g. \
--threshold 'probe.held.p99 < 100ms'\n";

fn result(found: &FindSummary, unit: &str) -> String {
    let limited = match &found.limit {
        Some(limit) => limited(found, limit),
        None if found.outcome == FindOutcome::NotReached => String::new(),
        None => "; the limit is not known".to_owned(),
    };
    let criterion = found.criterion.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let why = match found.failed {
        Some(failed) => {
            format!("; {} did not pass{criterion}{}", Count(failed), passed_before(found, failed))
        }
        None => String::new(),
    };
    let beside = beside(found);
    let once = if was_not_repeated(found) { " (not confirmed)" } else { "" };
    // The load at which the search began, if it is the only one that was tried.
    let only = found
        .failed
        .filter(|failed| !found.curve.is_empty() && found.curve.iter().all(|point| point.load == *failed));
    let passed = match found.max {
        0 => "no load passed".to_owned(),
        max => format!("{} passed", load_of(max, unit)),
    };
    match found.outcome {
        _ if found.interrupted => match &found.ended {
            Some(ended) => format!("the search ended: {ended}; {passed}{why}{limited}\n"),
            None => format!("interrupted: {passed}{why}{limited}\n"),
        },
        FindOutcome::Found => {
            let late = late_between(found);
            let (max, error) = (Count(found.max), Count(found.error));
            let think = found.idle.map(|idle| format!("; {idle}")).unwrap_or_default();
            format!("max {max} ± {error} {unit}{beside}{once}{why}{late}{limited}{think}\n")
        }
        FindOutcome::Unsettled => {
            // The error of what passed, if it is known to be less than the load itself.
            let is_known = (1..=found.max).contains(&found.error);
            let error = if is_known { format!(" ± {}", Count(found.error)) } else { String::new() };
            let ended = found.ended.as_ref().map(|why| format!("{why}; ")).unwrap_or_default();
            format!("unsettled: {ended}{passed}{error}{why}{limited}{SETTLE}\n")
        }
        FindOutcome::NotReached if found.invalid => {
            let max = load_of(found.max, unit);
            let what = match &found.limit {
                Some(limit) if limit.cause == Cause::TooFewConnections => "the number of connections",
                _ => "throng itself",
            };
            format!("at least {max}{beside}{once}: beyond that, {what} was the limit{why}{limited}\n")
        }
        FindOutcome::NotReached => {
            let max = load_of(found.max, unit);
            let why = found.ended.as_deref().unwrap_or("nothing larger was tried");
            format!("limit not reached: {max}{beside} pass; {why}\n")
        }
        // If throng itself was the limit, smaller loads were not tried.
        FindOutcome::Impossible if found.limit.as_ref().is_some_and(is_of_this_machine) => {
            format!("impossible on this machine: no load passed{why}{limited}\n")
        }
        FindOutcome::Impossible => match only {
            Some(first) => {
                let first = load_of(first, unit);
                format!("impossible: the first load, {first}, did not pass{criterion}{limited}\n")
            }
            None => format!("impossible: not even the smallest load passes{why}{limited}\n"),
        },
    }
}

/// The fix for a search without a result.
const SETTLE: &str = "; to settle it, give it more time (--max-time 10m), longer steps (-d 10s) or a range that ends sooner (--max)";

/// `; 113 and 137 had passed before`: loads at least as large as the one that failed. Either the target no longer sustains them, or
/// they had passed by chance.
fn passed_before(found: &FindSummary, failed: u64) -> String {
    let mut loads: Vec<u64> = found
        .curve
        .iter()
        .filter(|point| point.pass && point.load >= failed)
        .map(|point| point.load)
        .collect();
    loads.dedup();
    let loads = match loads[..] {
        [] => return String::new(),
        [one] => Count(one).to_string(),
        [one, other] => format!("{} and {}", Count(one), Count(other)),
        [first, .., last] => format!("{} loads from {} to {}", loads.len(), Count(first), Count(last)),
    };
    format!("; {loads} had passed before")
}

/// The load of the probe, which a search by arrival does not include in its unit.
fn beside(found: &FindSummary) -> String {
    match found.by == "arrival" && found.probe_per_s > 0.0 {
        true => {
            let rate = (1e3 * found.probe_per_s).round() / 1e3;
            format!(", plus the probe's {rate} requests/s, half on new connections")
        }
        false => String::new(),
    }
}

/// Whether the result passed only once, because throng itself was the limit in other steps at or near it.
fn was_not_repeated(found: &FindSummary) -> bool {
    let at_max = || found.curve.iter().filter(|point| point.load == found.max);
    let was_late = found.invalid || at_max().any(|point| point.invalid);
    was_late && at_max().filter(|point| point.pass).count() == 1
}

/// A note that the steps between the result and the failed load are invalid, if throng itself was their limit.
fn late_between(found: &FindSummary) -> &'static str {
    let is_between = |load: u64| found.max < load && found.failed.is_some_and(|failed| load < failed);
    let is_late = found.curve.iter().any(|point| point.invalid && is_between(point.load));
    if is_late { "; steps in between are invalid" } else { "" }
}

/// The limit. Its sentence is omitted if the criterion that the failed load missed, which precedes it, is the same.
fn limited(found: &FindSummary, limit: &Limit) -> String {
    match found.limit_load {
        load if load == found.failed && found.criterion.as_ref() == Some(&limit.sentence) => {
            format!("; {}", limit.fix)
        }
        Some(load) if found.failed != Some(load) => {
            format!("; at {}: {}", Count(load), limit.sentence_with_fix())
        }
        _ => format!("; {}", limit.sentence_with_fix()),
    }
}

/// Whether the limit is this machine's. Too few connections for a rate are not: they are what the user requested.
fn is_of_this_machine(limit: &Limit) -> bool {
    limit.side == Side::Host && limit.cause != Cause::TooFewConnections
}

#[cfg(test)]
mod tests;

//! Figures of a summary by their path in its JSON, for thresholds and comparisons. Judged figures treat requests without a response as
//! longer than all others.

use serde_json::Value;

use crate::quantiles::Stalled;

/// The value at a path in a summary's JSON, such as `latency_us.censored`.
pub fn at<'a>(summary: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|key| !key.is_empty()).try_fold(summary, |value, key| value.get(key))
}

/// The number at a path in a summary's JSON, such as `latency_us.p99`; `None` if nothing was measured. For a list of counts it is their
/// sum; a status without responses counts 0.
pub fn measured(summary: &Value, path: &str) -> Option<f64> {
    let (of, name) = path.rsplit_once('.').unwrap_or(("", path));
    let within = at(summary, of);
    // An empty distribution has no other figures. `of` is known even if nothing was counted: no errors among 1,000 requests.
    if !["count", "of"].contains(&name) && within.is_some_and(|within| within["count"].as_u64() == Some(0)) {
        return None;
    }
    match within.and_then(|within| within.get(name)) {
        // Starts at 0.0, because an empty sum of floats is -0.0.
        Some(Value::Array(counts)) => {
            Some(counts.iter().filter_map(|one| one["count"].as_f64()).fold(0.0, |sum, n| sum + n))
        }
        Some(value) => value.as_f64(),
        None => is_zero_where_absent(path).then_some(0.0),
    }
}

/// Whether a summary omits this figure if it is zero.
fn is_zero_where_absent(path: &str) -> bool {
    const ACCOUNTS: [&str; 4] =
        ["connections.arriving", "connections.given_up", "connections.lost", "requests.lost"];
    path.contains("requests.status.") || ACCOUNTS.iter().any(|account| path.ends_with(account))
}

/// The number at a path as it is judged: requests without a response (or dials without a connection) count as longer than every measured
/// time. `None` if the figure lies among them, and for mean, deviation and maximum, which then have no bound. Among faults they count as
/// such, whether a fault ended them or not.
pub fn judged(summary: &Value, path: &str) -> Option<f64> {
    const UNAFFECTED: [&str; 2] = ["count", "min"];
    if let Some(without) = without_fault(summary, path) {
        return Some(measured(summary, path)? + without);
    }
    match censored(summary, path).filter(|(_, name)| !UNAFFECTED.contains(name)) {
        Some((censored, name)) => censored[name].as_f64(),
        None => measured(summary, path),
    }
}

/// Requests without a response that no fault ended (not sent, or outstanding at the end), given the path of the faults; `None` for other
/// figures.
pub fn without_fault(summary: &Value, path: &str) -> Option<f64> {
    let requests = &at(summary, path.strip_suffix("faults")?)?["requests"];
    let of = |account: &str| requests[account].as_f64().unwrap_or(0.0);
    Some(of("unanswered") + of("missed"))
}

/// The share (0..=1) of a distribution without a time, given the path of any of its figures; `None` if all events have a time.
pub fn censored_share(summary: &Value, path: &str) -> Option<f64> {
    censored(summary, path)?.0["share"].as_f64()
}

/// Whether a figure lies among events without a time, even if `without` of them are left out.
pub fn lacks(summary: &Value, path: &str, without: u64) -> bool {
    let lacks = || {
        let (censored, name) = censored(summary, path)?;
        let (never, share) = (censored["count"].as_u64()?, share(name)?);
        let ended = at(summary, path.rsplit_once('.')?.0)?["count"].as_u64()?;
        Some(never > without && Stalled::reaches(never - without, ended + never - without, share))
    };
    lacks().unwrap_or(false)
}

/// The upper bound of a time as it is [judged], in microseconds: if throng stalled, the longest stall that was subtracted is added again.
/// `None` if the time is exact.
pub fn at_most(summary: &Value, path: &str) -> Option<f64> {
    let (of, name) = path.rsplit_once('.')?;
    let times = at(summary, of)?;
    let (stalled, count) = (times["stalled"]["count"].as_u64()?, times["count"].as_u64()?);
    let censored = times["censored"]["count"].as_u64().unwrap_or(0);
    let share = share(name)?;
    // Events without an end are longer than all others, so they precede the stalled times in rank.
    let is_reached = Stalled::reaches(stalled + censored, count + censored, share);
    is_reached.then(|| Some(judged(summary, path)? + times["stalled"]["most"].as_f64()?))?
}

/// The lower bound of a time as it is [judged], in microseconds, if `late` of the times may include a delay by throng of at most `most`.
/// `None` if the figure includes none of them.
pub fn at_least(summary: &Value, path: &str, late: u64, most: f64) -> Option<f64> {
    let (of, name) = path.rsplit_once('.')?;
    let (times, share) = (at(summary, of)?, share(name)?);
    let count = times["count"].as_u64()?;
    let censored = times["censored"]["count"].as_u64().unwrap_or(0);
    if late == 0 || !Stalled::reaches(late + censored, count + censored, share) {
        return None;
    }
    // Without the delay they may be the shortest times, which moves the others up in rank.
    let below = share - late as f64 / (count + censored) as f64;
    let others = QUANTILES.iter().rev().find(|(_, share)| *share <= below).map_or("min", |(name, _)| *name);
    Some((judged(summary, path)? - most).max(times[others].as_f64()?))
}

const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
    ("p9999", 0.9999),
];

/// The share of the times that a figure depends on.
fn share(name: &str) -> Option<f64> {
    if matches!(name, "max" | "mean") {
        return Some(1.0);
    }
    QUANTILES.iter().find(|(own, _)| *own == name).map(|(_, share)| *share)
}

fn censored<'a>(summary: &'a Value, path: &'a str) -> Option<(&'a Value, &'a str)> {
    let (of, name) = path.rsplit_once('.')?;
    let censored = at(summary, of)?.get("censored")?;
    (!censored.is_null()).then_some((censored, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn subtracted_stalls_may_belong_to_the_figure() {
        let stalled = json!({ "count": 20, "share": 0.02, "most": 40.0 });
        let times = json!({ "count": 1_000, "mean": 3.0, "p90": 4.0, "p99": 5.0, "max": 9.0, "stalled": stalled.clone() });
        let summary = json!({ "a": { "connect_us": times }, "latency_us": { "count": 9, "p99": 1.0, "stalled": null } });
        let check = |path, expected| assert_eq!(at_most(&summary, path), expected, "{path}");
        check("a.connect_us.p90", None);
        check("a.connect_us.p99", Some(45.0));
        check("a.connect_us.max", Some(49.0));
        check("a.connect_us.mean", Some(43.0));
        check("a.connect_us.count", None);
        check("latency_us.p99", None);
        check("seed", None);
        // If some events never ended, another time is judged.
        let censored = json!({ "count": 90, "share": 0.08, "p90": 9.0, "p99": null });
        let times =
            json!({ "count": 1_000, "p90": 4.0, "p99": 5.0, "stalled": stalled, "censored": censored });
        let summary = json!({ "connect_us": times });
        assert_eq!(
            ["connect_us.p90", "connect_us.p99"].map(|path| at_most(&summary, path)),
            [Some(49.0), None]
        );
    }

    #[test]
    fn delays_of_our_own_may_belong_to_the_figure() {
        let times = json!({ "count": 1_000, "min": 2.0, "p50": 3.0, "p75": 3.5, "p90": 4.0, "p95": 5.0, "p99": 900.0, "max": 990.0 });
        let summary = json!({ "connect_us": times });
        let check = |name, late, most, expected| {
            assert_eq!(
                at_least(&summary, &format!("connect_us.{name}"), late, most),
                expected,
                "{name} {late}"
            );
        };
        check("p99", 20, 800.0, Some(100.0));
        // Not shorter than 95 % of the others, which were not delayed.
        check("p99", 20, 1_000.0, Some(5.0));
        check("p99", 100, 1_000.0, Some(3.5));
        check("p99", 900, 1_000.0, Some(2.0));
        check("max", 2, 980.0, Some(900.0));
        check("p99", 10, 1_000.0, None);
        check("p90", 20, 1_000.0, None);
        check("max", 0, 1_000.0, None);
        check("count", 20, 1_000.0, None);
    }

    #[test]
    fn requests_without_a_response_count_in_judged_figures() {
        let censored = json!({ "count": 5, "share": 0.5, "p50": 9.0, "p99": null });
        let summary = json!({
            "latency_us": { "count": 5, "mean": 3.0, "min": 1.0, "p50": 3.0, "p99": 8.0, "max": 9.0, "censored": censored },
            "connect_us": { "count": 2, "p99": 5.0, "max": 6.0, "censored": null },
            "populations": { "a": { "latency_us": { "count": 0, "p50": 0.0, "censored": { "count": 1, "p50": null } } } },
            "requests": { "per_s": 7.0 },
        });
        let check = |path, expected| assert_eq!(judged(&summary, path), expected, "{path}");
        check("latency_us.p50", Some(9.0));
        check("latency_us.p99", None);
        check("latency_us.mean", None);
        check("latency_us.max", None);
        check("latency_us.count", Some(5.0));
        check("latency_us.min", Some(1.0));
        check("connect_us.p99", Some(5.0));
        check("connect_us.max", Some(6.0));
        check("populations.a.latency_us.p50", None);
        check("requests.per_s", Some(7.0));
        let share = |path| censored_share(&summary, path);
        assert_eq!(
            [share("latency_us.p99"), share("connect_us.p99"), share("seed")],
            [Some(0.5), None, None]
        );
    }

    #[test]
    fn figures_are_found_by_their_paths() {
        let summary = json!({
            "ramp_s": 1.5,
            "faults": [{ "kind": "reset", "count": 3 }, { "kind": "timeout", "count": 4 }],
            "requests": { "status": { "200": 7 }, "unanswered": 5, "missed": 2 },
            "latency_us": { "count": 2, "p99": 5.0 },
            "connect_us": { "count": 0, "p99": 0.0 },
            "probe": null,
        });
        let check = |path, expected| assert_eq!(measured(&summary, path), expected, "{path}");
        check("ramp_s", Some(1.5));
        check("faults", Some(7.0));
        assert_eq!(judged(&summary, "faults"), Some(14.0));
        check("requests.status.200", Some(7.0));
        check("requests.status.404", Some(0.0));
        check("connections.given_up", Some(0.0));
        check("populations.a.requests.lost", Some(0.0));
        check("latency_us.p99", Some(5.0));
        check("connect_us.p99", None);
        check("connect_us.count", Some(0.0));
        check("probe.latency_us.p99", None);
        check("weather", None);
        assert_eq!(measured(&json!({ "faults": [] }), "faults").map(f64::is_sign_positive), Some(true));
    }
}

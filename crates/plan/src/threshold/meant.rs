//! Guesses the figure that was meant: from a quantile alone, a distribution alone, or another tool's name.

use samples::{Statistic, TIMES};

/// Names used by k6 and by most people, and throng's figure for each.
const ELSEWHERE: [(&str, &str); 25] = [
    ("http_req_duration", "latency.p95"),
    ("iteration_duration", "latency.p95"),
    ("response_time", "latency.p95"),
    ("http_req_waiting", "first_byte.p95"),
    ("ttfb", "first_byte.p95"),
    ("http_req_connecting", "connect.p95"),
    ("http_req_tls_handshaking", "tls.p95"),
    ("ws_connecting", "handshake.p95"),
    ("ws_session_duration", "duration"),
    ("http_req_failed", "errors"),
    ("checks", "errors"),
    ("error", "errors"),
    ("error_rate", "errors"),
    ("failures", "errors"),
    ("success", "errors"),
    ("http_reqs", "per_s"),
    ("iterations", "answered"),
    ("rps", "per_s"),
    ("qps", "per_s"),
    ("throughput", "per_s"),
    ("dropped_iterations", "missed"),
    ("vus", "held"),
    ("connections", "held"),
    ("requests", "answered"),
    ("responses", "answered"),
];

/// Other names of quantiles.
const QUANTILES_ELSEWHERE: [(&str, &str); 5] =
    [("avg", "mean"), ("average", "mean"), ("median", "p50"), ("med", "p50"), ("maximum", "max")];

/// The figure that was probably meant: of latency if only a quantile is named, and p95 if only a distribution is.
pub(super) fn meant(name: &str) -> Option<String> {
    // k6 writes p(95), and some write p99.9 for p999.
    let name = name.to_ascii_lowercase().replace(['(', ')'], "");
    let (of, quantile) = split(&name);
    let of = match of {
        "" if quantile.is_some() => "latency",
        of if is_distribution(of) => of,
        of => {
            let (_, ours) = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == of)?;
            match ours.split_once('.') {
                Some((of, _)) => of,
                None => return Some((*ours).to_owned()),
            }
        }
    };
    Some(format!("{of}.{}", quantile.unwrap_or_else(|| "p95".to_owned())))
}

/// Splits a name into a distribution and a valid quantile: `latency.p99.9` into `latency` and `p999`.
fn split(name: &str) -> (&str, Option<String>) {
    let begins = name.match_indices('.').map(|(at, _)| (&name[..at], &name[at + 1..]));
    let all = [("", name)].into_iter().chain(begins);
    let mut found = all.filter_map(|(of, rest)| Some((of, quantile(rest)?)));
    match found.next() {
        Some((of, quantile)) => (of, Some(quantile)),
        None => match name.rsplit_once('.') {
            // A quantile that no distribution has is dropped.
            Some((of, rest)) if rest.starts_with('p') && is_distribution(of) => (of, None),
            _ => (name, None),
        },
    }
}

fn quantile(text: &str) -> Option<String> {
    let plain = text.replace('.', "");
    let ours = QUANTILES_ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == plain).map(|(_, ours)| *ours);
    let ours = ours.unwrap_or(&plain);
    Statistic::named(ours).is_some_and(|own| own != Statistic::Count).then(|| ours.to_owned())
}

fn is_distribution(name: &str) -> bool {
    TIMES.iter().any(|times| [times.path, times.short].contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threshold::Names;

    #[test]
    fn what_was_meant_exists() {
        for (name, expected) in [
            ("p99", Some("latency.p99")),
            ("p95", Some("latency.p95")),
            ("P(95)", Some("latency.p95")),
            ("max", Some("latency.max")),
            ("avg", Some("latency.mean")),
            ("p99.9", Some("latency.p999")),
            ("latency", Some("latency.p95")),
            ("connect", Some("connect.p95")),
            ("latency.p98", Some("latency.p95")),
            ("latency.p99.9", Some("latency.p999")),
            ("latency.median", Some("latency.p50")),
            ("probe.fresh.avg", Some("probe.fresh.mean")),
            ("http_req_duration", Some("latency.p95")),
            ("http_req_duration.p(99)", Some("latency.p99")),
            ("http_req_failed", Some("errors")),
            ("rps", Some("per_s")),
            ("count", None),
            ("latncy.p99", None),
            ("users.latency.p98", None),
            ("quite something", None),
            ("", None),
        ] {
            assert_eq!(meant(name).as_deref(), expected, "{name}");
        }
        for (elsewhere, ours) in ELSEWHERE {
            assert!(Names::made_up(&[]).figure(ours).is_ok(), "{ours}");
            assert!(Names::made_up(&[]).figure(elsewhere).is_err(), "{elsewhere} is a figure");
        }
    }
}

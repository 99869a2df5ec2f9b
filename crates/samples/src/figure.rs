//! Figures of a summary by their path: what thresholds are judged by, and what runs are compared by.

use serde_json::Value;

/// A number of a summary's JSON, `latency_us.p99`; none where there was nothing to measure. Of a list of counts it is
/// their sum; a status that no answer had was had by none.
pub fn measured(summary: &Value, path: &str) -> Option<f64> {
    let (of, name) = path.rsplit_once('.').unwrap_or(("", path));
    let within = of.split('.').filter(|key| !key.is_empty()).try_fold(summary, |value, key| value.get(key));
    // A distribution of nothing says nothing but that.
    if name != "count" && within.is_some_and(|within| within["count"].as_u64() == Some(0)) {
        return None;
    }
    match within.and_then(|within| within.get(name)) {
        Some(Value::Array(counts)) => {
            // From a zero of its own: the sum of nothing is -0.
            Some(counts.iter().filter_map(|one| one["count"].as_f64()).fold(0.0, |sum, n| sum + n))
        }
        Some(value) => value.as_f64(),
        None => path.contains("requests.status.").then_some(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_found_by_their_paths() {
        let summary = json!({
            "ramp_s": 1.5,
            "faults": [{ "kind": "reset", "count": 3 }, { "kind": "timeout", "count": 4 }],
            "requests": { "status": { "200": 7 } },
            "latency_us": { "count": 2, "p99": 5.0 },
            "connect_us": { "count": 0, "p99": 0.0 },
            "probe": null,
        });
        let check = |path, expected| assert_eq!(measured(&summary, path), expected, "{path}");
        check("ramp_s", Some(1.5));
        check("faults", Some(7.0));
        check("requests.status.200", Some(7.0));
        check("requests.status.404", Some(0.0));
        check("latency_us.p99", Some(5.0));
        check("connect_us.p99", None);
        check("connect_us.count", Some(0.0));
        check("probe.latency_us.p99", None);
        check("weather", None);
        assert_eq!(measured(&json!({ "faults": [] }), "faults").map(f64::is_sign_positive), Some(true));
    }
}

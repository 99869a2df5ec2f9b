//! The figures that are compared.

use samples::{Latency, at, censored_share, judged, measured};
use serde_json::Value;
use units::Unit;

/// A figure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name in reports.
    pub name: String,
    /// Path in the summary's JSON, or below `equal_load_us`.
    pub path: String,
    /// Its unit.
    pub unit: Unit,
}

/// Figures of every comparison: name, JSON path and unit.
const USUAL: &[(&str, &str, Unit)] = &[
    ("connections held", "connections.held", Unit::Count),
    ("peak connections", "connections.peak", Unit::Count),
    ("memory per connection, throng", "generator.user_bytes_per_connection", Unit::Bytes),
    ("memory per connection, target", "target_cost.user_bytes_per_connection", Unit::Bytes),
    ("memory per connection, kernel", "kernel_bytes_per_connection.value", Unit::Bytes),
    ("connection rate", "connections.open_per_s", Unit::PerSecond),
    ("response rate", "requests.per_s", Unit::PerSecond),
    ("latency p99 at equal load", "equal_load_us.p99", Unit::Micros),
    ("latency p50", "latency_us.p50", Unit::Micros),
    ("latency p95", "latency_us.p95", Unit::Micros),
    ("latency p99", "latency_us.p99", Unit::Micros),
    ("no response", "latency_us.censored.share", Unit::Share),
    ("connect p99", "connect_us.p99", Unit::Micros),
    ("probe p99", "probe.latency_us.p99", Unit::Micros),
    ("faults", FAULTS, Unit::Count),
    ("CPU per request, throng", "cost.generator_cpu_us_per_request.value", Unit::Micros),
    ("CPU per request, target", "cost.target_cpu_us_per_request.value", Unit::Micros),
];

const FAULTS: &str = "faults";
/// Path below a distribution: the share of it without a time.
const NO_RESPONSE: &str = ".censored.share";

impl Figure {
    /// The figures of every comparison.
    pub fn usual() -> Vec<Figure> {
        let figure = |(name, path, unit): &(&str, &str, Unit)| Figure {
            name: (*name).to_owned(),
            path: (*path).to_owned(),
            unit: *unit,
        };
        USUAL.iter().map(figure).collect()
    }

    /// The figure of a run; `None` if it was not measured, or is within its noise.
    pub fn of(&self, figures: &Value) -> Option<f64> {
        if let Some(times) = self.path.strip_suffix(NO_RESPONSE) {
            return no_response(figures, times);
        }
        let value = measured(figures, &self.path)?;
        // The same rule as `samples::Fit::is_known`.
        let fit = self.path.strip_suffix(".value");
        let error = fit.and_then(|fit| measured(figures, &format!("{fit}.error"))).unwrap_or(0.0);
        // For a slope, 0 means that it is not known.
        let is_slope = fit.is_some() || self.path.ends_with("user_bytes_per_connection");
        (!is_slope || value > 2.0 * error).then_some(value)
    }

    /// The figure as thresholds judge it: requests without a response count as slower than all others. `None` if that places the
    /// figure among
    /// them.
    pub(super) fn judged(&self, figures: &Value) -> Option<f64> {
        let value = self.of(figures)?;
        match censored_share(figures, &self.path) {
            None if !self.is_faults() => Some(value),
            _ => judged(figures, &self.path),
        }
    }

    /// The reported percentile, with its value if requests without a response count as slower than all others (`None` if it lies
    /// among them). `None` if that makes no difference.
    pub(super) fn survivors_only(&self, figures: &Value) -> Option<(f64, Option<f64>)> {
        let value = self.of(figures).filter(|_| self.path.contains("_us.p"))?;
        let judged = self.judged(figures);
        let is_same = judged.is_some_and(|judged| judged <= value * (1.0 + self.grain(&[value])));
        (!is_same).then_some((value, judged))
    }

    /// Whether values are compared exactly instead of by logarithms: if some are not positive, or if they count faults, which are not
    /// expected at all.
    pub(super) fn is_as_such(&self, values: &[f64]) -> bool {
        self.is_faults() || values.iter().any(|value| *value <= 0.0)
    }

    fn is_faults(&self) -> bool {
        self.path == FAULTS || self.path.ends_with(".faults")
    }

    /// Resolution of values of this size that results from their measurement, as a share.
    pub(super) fn grain(&self, values: &[f64]) -> f64 {
        // CPU times do not come from a histogram.
        let is_time = self.unit == Unit::Micros && !self.path.ends_with(".value");
        values.iter().filter(|_| is_time).map(|us| Latency::grain(*us)).fold(0.0, f64::max)
    }
}

/// The share of a distribution's requests without a response: 0 if all have one; `None` for an empty distribution, and for versions
/// that did not record it.
fn no_response(figures: &Value, times: &str) -> Option<f64> {
    let times = at(figures, times)?;
    match times.get("censored")? {
        Value::Null => times["count"].as_u64().filter(|count| *count > 0).map(|_| 0.0),
        censored => censored["share"].as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_figures_of_a_run_are_none() {
        let figures = json!({
            "latency_us": { "count": 5, "p99": 7.0 },
            "connect_us": { "count": 0, "p99": 0.0 },
            "generator": { "user_bytes_per_connection": 0.0 },
            "kernel_bytes_per_connection": { "value": 8_000.5, "both_ends": true },
            "cost": {
                "target_cpu_us_per_request": { "value": 10.0, "error": 6.0, "r2": 0.1 },
                "generator_cpu_us_per_request": { "value": 10.0, "error": 1.0, "r2": 0.9 },
            },
            "faults": [],
        });
        let check = |path: &str, expected| {
            let figure = Figure::usual().into_iter().find(|figure| figure.path == path).unwrap();
            assert_eq!(figure.of(&figures), expected, "{path}");
        };
        check("latency_us.p99", Some(7.0));
        check("connect_us.p99", None);
        check("probe.latency_us.p99", None);
        check("generator.user_bytes_per_connection", None);
        check("kernel_bytes_per_connection.value", Some(8_000.5));
        check("cost.target_cpu_us_per_request.value", None);
        check("cost.generator_cpu_us_per_request.value", Some(10.0));
        check("faults", Some(0.0));
    }

    #[test]
    fn the_share_without_a_response_is_known_or_zero_or_not_known() {
        let check = |latency, expected: Option<f64>| {
            let figure = Figure::usual().into_iter().find(|figure| figure.name == "no response").unwrap();
            assert_eq!(figure.of(&json!({ "latency_us": latency })), expected);
        };
        check(json!({ "count": 9, "p99": 7.0, "censored": { "count": 1, "share": 0.1 } }), Some(0.1));
        check(json!({ "count": 0, "p99": 0.0, "censored": { "count": 1, "share": 1.0 } }), Some(1.0));
        check(json!({ "count": 9, "p99": 7.0, "censored": null }), Some(0.0));
        check(json!({ "count": 0, "p99": 0.0, "censored": null }), None);
        // From a version that did not count missing responses.
        check(json!({ "count": 9, "p99": 7.0 }), None);
    }

    #[test]
    fn a_percentile_of_survivors_is_one_that_the_others_would_change() {
        let check = |censored, expected: Option<(f64, Option<f64>)>| {
            let figure = Figure::usual().into_iter().find(|figure| figure.path == "latency_us.p99").unwrap();
            let figures = json!({ "latency_us": { "count": 9, "p99": 700.0, "censored": censored } });
            assert_eq!(figure.survivors_only(&figures), expected);
        };
        check(Value::Null, None);
        check(json!({ "share": 0.1, "p99": null }), Some((700.0, None)));
        check(json!({ "share": 0.1, "p99": 800.0 }), Some((700.0, Some(800.0))));
        // Within the resolution of the histogram.
        check(json!({ "share": 0.000_1, "p99": 700.5 }), None);
        let held = Figure::usual().into_iter().find(|figure| figure.path == "connections.held").unwrap();
        assert_eq!(held.survivors_only(&json!({ "connections": { "held": 5 } })), None);
    }

    #[test]
    fn only_times_of_histograms_have_a_grain() {
        let grain = |path: &str, value| {
            Figure::usual().into_iter().find(|figure| figure.path == path).unwrap().grain(&[value, value])
        };
        assert_eq!(grain("latency_us.p99", 1_000.0), 0.001);
        assert_eq!(grain("latency_us.p50", 6.4), 0.01);
        assert_eq!(grain("cost.target_cpu_us_per_request.value", 6.4), 0.0);
        assert_eq!(grain("requests.per_s", 6.4), 0.0);
    }
}

//! OpenTelemetry's metrics as JSON: OTLP/HTTP with `application/json` (OTLP specification 1.x, "JSON Protobuf Encoding":
//! names in lowerCamelCase, 64-bit integers as strings, enumerations as numbers).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use samples::Header;
use serde_json::{Value as Json, json};

use crate::metrics::{BOUNDS, Kind, Metric, Sample, Snapshot, TABLE, Value, plain};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u8 = 2;

/// The body of an export request: one or more seconds of a run.
pub(super) fn body(header: &Header, rows: &[Arc<Snapshot>]) -> String {
    let seed = header.seed.to_string();
    let attributes =
        [("service.name", "throng"), ("target", header.target.as_str()), ("seed", seed.as_str())];
    let metrics: Vec<Json> = TABLE.iter().enumerate().filter_map(|(row, of)| metric(row, of, rows)).collect();
    let scope = json!({ "name": "throng", "version": env!("CARGO_PKG_VERSION") });
    json!({
        "resourceMetrics": [{
            "resource": { "attributes": attributes.map(attribute) },
            "scopeMetrics": [{ "scope": scope, "metrics": metrics }],
        }],
    })
    .to_string()
}

/// A metric with its points; `None` if it was not observed in these seconds.
fn metric(row: usize, of: &Metric, rows: &[Arc<Snapshot>]) -> Option<Json> {
    let own = |snapshot: &Arc<Snapshot>| {
        let samples = snapshot.samples.iter().filter(|sample| sample.row == row);
        samples.filter_map(|sample| point(sample, of, snapshot)).collect::<Vec<_>>()
    };
    let points: Vec<Json> = rows.iter().flat_map(own).collect();
    let data = match of.kind {
        Kind::Gauge => ("gauge", json!({ "dataPoints": points })),
        Kind::Counter => (
            "sum",
            json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true }),
        ),
        Kind::Histogram => {
            ("histogram", json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE }))
        }
    };
    let mut metric = json!({ "name": of.name, "description": of.help, "unit": unit(of.name) });
    metric[data.0] = data.1;
    (!points.is_empty()).then_some(metric)
}

fn point(sample: &Sample, of: &Metric, snapshot: &Snapshot) -> Option<Json> {
    let ns = |ms: u64| (u128::from(ms) * 1_000_000).to_string();
    let attributes: Vec<Json> =
        sample.labels.iter().map(|(name, says)| attribute((name, says.as_str()))).collect();
    let mut point = json!({ "attributes": attributes, "timeUnixNano": ns(snapshot.at.0) });
    // Counters of the target and of hosts began at an unknown time, so they have no start time.
    if of.kind != Kind::Gauge
        && !["throng_target_", "throng_host_"].iter().any(|of_others| of.name.starts_with(of_others))
    {
        point["startTimeUnixNano"] = ns(snapshot.at.0 - snapshot.elapsed.0 / 1_000_000).into();
    }
    match &sample.value {
        Value::Unknown => return None,
        Value::Number(n) => point["asDouble"] = plain(*n).into(),
        Value::Times(times) => {
            // OTLP's bucket counts are not cumulative, and the last bucket holds the values above all bounds.
            let up_to = times.up_to.iter().chain([&times.count]);
            let below = [0].iter().chain(&times.up_to);
            let counts: Vec<String> =
                up_to.zip(below).map(|(up_to, below)| (up_to - below).to_string()).collect();
            point["count"] = times.count.to_string().into();
            point["sum"] = plain(times.sum).into();
            point["bucketCounts"] = counts.into();
            point["explicitBounds"] = BOUNDS.map(|bound| bound.secs_f64()).to_vec().into();
        }
    }
    Some(point)
}

fn attribute((name, says): (&str, &str)) -> Json {
    json!({ "key": name, "value": { "stringValue": says } })
}

/// The unit of a metric in UCUM notation.
fn unit(name: &str) -> &'static str {
    let name = name.trim_end_matches("_total");
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "1",
    }
}

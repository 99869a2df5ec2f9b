//! A run over time, read from the metrics that throng writes each second (`--jsonl`) and condensed to intervals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stats::median;

/// The metrics of one second; their names are those of `docs/reference/metrics.md`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Second {
    /// The time of day at its end, UTC (RFC 3339).
    pub(crate) time: String,
    metrics: BTreeMap<String, f64>,
}

/// The metric that is 1 at full load.
const HOLD: &str = "throng_phase{phase=\"hold\"}";
/// Prefixes of the metrics that are added when several clients are combined.
const ADDED: &[&str] =
    &["throng_connections_", "throng_requests_", "throng_answers_", "throng_generator_resident_bytes"];
/// Prefixes of the metrics that are kept.
const USED: &[&str] = &[
    "elapsed_s",
    HOLD,
    "throng_connections_open",
    "throng_connections_dropped_total",
    "throng_answers_total",
    "throng_latency_seconds_p50",
    "throng_latency_seconds_p99",
    "throng_latency_seconds_max",
    "throng_generator_resident_bytes",
    "throng_target_resident_bytes",
    "throng_target_jvm_gc_pause_seconds_total",
];

/// Consecutive seconds of a run, combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Interval {
    /// End of the interval, in seconds since the first dial.
    pub(crate) at_s: f64,
    /// Length in seconds.
    pub(crate) time_s: f64,
    /// Open connections at its end.
    pub(crate) open: f64,
    /// Responses per second.
    pub(crate) answers_per_s: f64,
    /// Median of the seconds' median latencies, in microseconds.
    pub(crate) p50_us: Option<f64>,
    /// Median of the seconds' 99th percentiles of latency, in microseconds.
    pub(crate) p99_us: Option<f64>,
    /// The longest latency, in microseconds.
    pub(crate) max_us: Option<f64>,
    /// Number of connections lost.
    pub(crate) dropped: f64,
    /// Memory of the server at its end, in bytes.
    pub(crate) target_bytes: Option<f64>,
    /// Memory of throng, in bytes.
    pub(crate) own_bytes: Option<f64>,
    /// Time spent in garbage collection, in milliseconds.
    pub(crate) gc_pause_ms: Option<f64>,
}

impl Second {
    /// Parses a line. Only the metrics used here are kept, because a day has 86,400 lines.
    ///
    /// # Errors
    /// The line is not a JSON object.
    pub(crate) fn parse(line: &str) -> Result<Second, serde_json::Error> {
        let all: Map<String, Value> = serde_json::from_str(line)?;
        let time = all.get("time").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_used = |key: &str| USED.iter().any(|name| key.starts_with(name));
        let used = all.into_iter().filter(|(key, _)| is_used(key));
        let metrics = used.filter_map(|(key, value)| Some((key, value.as_f64()?))).collect();
        Ok(Second { time, metrics })
    }

    /// Whether the whole load was applied.
    pub(crate) fn is_at_full_load(&self) -> bool {
        self.metrics.get(HOLD) == Some(&1.0)
    }

    /// Seconds since the first dial.
    pub(crate) fn at_s(&self) -> f64 {
        self.metrics.get("elapsed_s").copied().unwrap_or_default()
    }

    /// Open connections at its end.
    pub(crate) fn open(&self) -> f64 {
        self.sum("throng_connections_open")
    }

    /// The longest latency of requests due at full load, microseconds.
    pub(crate) fn longest_us(&self) -> Option<f64> {
        self.most("throng_latency_seconds_max").map(|s| s * 1e6)
    }

    /// Combines the seconds of several clients that began at the same time. Counts of connections and requests, and throng's memory,
    /// are added; of all other metrics, including latencies, the maximum is used; full load requires that all clients are at full
    /// load. The result is as long as the shortest list.
    pub(crate) fn together(mut clients: Vec<Vec<Second>>) -> Vec<Second> {
        let Some(mut first) = clients.pop() else { return Vec::new() };
        for other in clients {
            first.truncate(other.len());
            first.iter_mut().zip(other).for_each(|(second, other)| second.add(other));
        }
        first
    }

    fn add(&mut self, other: Second) {
        self.time = other.time;
        for (key, theirs) in other.metrics {
            let both: fn(f64, f64) -> f64 = match key.as_str() {
                HOLD => f64::min,
                _ if ADDED.iter().any(|name| key.starts_with(name)) => |ours, theirs| ours + theirs,
                _ => f64::max,
            };
            self.metrics.entry(key).and_modify(|ours| *ours = both(*ours, theirs)).or_insert(theirs);
        }
    }

    /// The values of a metric for each set of its labels, such as one per population.
    fn series<'a>(&'a self, name: &'a str) -> impl Iterator<Item = f64> + 'a {
        let is = move |key: &str| {
            key.strip_prefix(name).is_some_and(|labels| labels.is_empty() || labels.starts_with('{'))
        };
        self.metrics.iter().filter(move |(key, _)| is(key)).map(|(_, value)| *value)
    }

    fn sum(&self, name: &str) -> f64 {
        self.series(name).sum()
    }

    fn most(&self, name: &str) -> Option<f64> {
        self.series(name).reduce(f64::max)
    }
}

/// Divides seconds into at most `most` intervals of about equal length.
pub(crate) fn intervals(seconds: &[Second], most: usize) -> Vec<Interval> {
    let each = seconds.len().div_ceil(most.max(1)).max(1);
    let mut before = None;
    let interval = |seconds: &[Second]| {
        let interval = Interval::of(before.as_ref(), seconds);
        before = seconds.last().cloned();
        interval
    };
    seconds.chunks(each).map(interval).collect()
}

impl Interval {
    /// The interval of these seconds. `before` is the second before them, `None` at the beginning of the run.
    ///
    /// # Panics
    /// `seconds` is empty.
    pub(crate) fn of(before: Option<&Second>, seconds: &[Second]) -> Interval {
        let last = seconds.last().expect("at least one second");
        let since = |name: &str| last.sum(name) - before.map_or(0.0, |before| before.sum(name));
        let time = last.at_s() - before.map_or(0.0, Second::at_s);
        let latency = |figure: &str| {
            let name = format!("throng_latency_seconds_{figure}");
            median(seconds.iter().filter_map(|second| second.most(&name)).map(|s| s * 1e6))
        };
        let pauses = "throng_target_jvm_gc_pause_seconds_total";
        let is_java = last.most(pauses).is_some() && before.is_some();
        Interval {
            at_s: rounded(last.at_s(), 1e3),
            time_s: rounded(time, 1e3),
            open: last.open(),
            answers_per_s: if time > 0.0 { rounded(since("throng_answers_total") / time, 10.0) } else { 0.0 },
            p50_us: latency("p50"),
            p99_us: latency("p99"),
            max_us: seconds.iter().filter_map(Second::longest_us).reduce(f64::max),
            dropped: since("throng_connections_dropped_total"),
            target_bytes: last.most("throng_target_resident_bytes"),
            own_bytes: last.most("throng_generator_resident_bytes"),
            gc_pause_ms: is_java.then(|| rounded(since(pauses) * 1e3, 1e3)),
        }
    }
}

fn rounded(x: f64, parts: f64) -> f64 {
    (x * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn second(at: u64, answered: u64, p99: f64, java: bool) -> Second {
        let mut line = json!({
            "time": "2026-11-21T10:00:00.000Z",
            "elapsed_s": at as f64,
            "throng_phase{phase=\"hold\"}": 1,
            "throng_connections_open{population=\"a\"}": 10,
            "throng_connections_open{population=\"b\"}": at,
            "throng_connections_opened_total": 77,
            "throng_answers_total": answered,
            "throng_connections_dropped_total": at / 3,
            "throng_latency_seconds_p99{population=\"a\"}": p99,
            "throng_latency_seconds_p99{population=\"b\"}": p99 / 2.0,
            "throng_latency_seconds_max": p99 * 2.0,
            "throng_target_resident_bytes": 1000 * at,
        });
        if java {
            line["throng_target_jvm_gc_pause_seconds_total"] = json!(at as f64 / 100.0);
        }
        Second::parse(&line.to_string()).unwrap()
    }

    #[test]
    fn seconds_are_taken_together() {
        let seconds: Vec<Second> =
            (1..=4).map(|at| second(at, at * at * 10, at as f64 / 1e3, true)).collect();
        assert!(seconds[0].is_at_full_load());
        assert_eq!(seconds[0].time, "2026-11-21T10:00:00.000Z");
        let all = intervals(&seconds, 2);
        let expected = [
            Interval {
                at_s: 2.0,
                time_s: 2.0,
                open: 12.0,
                answers_per_s: 20.0,
                p50_us: None,
                p99_us: Some(1500.0),
                max_us: Some(4000.0),
                dropped: 0.0,
                target_bytes: Some(2000.0),
                own_bytes: None,
                gc_pause_ms: None,
            },
            Interval {
                at_s: 4.0,
                time_s: 2.0,
                open: 14.0,
                answers_per_s: 60.0,
                p50_us: None,
                p99_us: Some(3500.0),
                max_us: Some(8000.0),
                dropped: 1.0,
                target_bytes: Some(4000.0),
                own_bytes: None,
                gc_pause_ms: Some(20.0),
            },
        ];
        assert_eq!(all, expected);
        assert_eq!(intervals(&[], 2), []);
        assert_eq!(intervals(&seconds, 3).len(), 2);
        assert_eq!(intervals(&[second(1, 5, 0.1, false)], 3)[0].gc_pause_ms, None);
        assert!(Second::parse("[]").is_err());
    }

    #[test]
    fn seconds_of_several_clients_are_one() {
        let client = |n: u64, p99: f64| -> Vec<Second> {
            (1..=n).map(|at| second(at, at * 100, p99, false)).collect()
        };
        let both = intervals(&Second::together(vec![client(3, 0.001), client(2, 0.004)]), 10);
        assert_eq!(both.len(), 2);
        assert_eq!((both[1].at_s, both[1].open, both[1].answers_per_s), (2.0, 24.0, 200.0));
        assert_eq!((both[1].p99_us, both[1].target_bytes), (Some(4000.0), Some(2000.0)));
        assert_eq!(Second::together(Vec::new()), []);
    }
}

//! Tables of published and current figures.

use std::collections::BTreeMap;

use crate::{
    experiment::Then,
    figure::{NONE, shown},
    group::Spread,
    outcome::Outcome,
    table::Row,
};

/// The figures that are always shown: path in the summary, and displayed name.
pub(crate) const FIGURES: &[(&str, &str)] = &[
    ("max", "found"),
    ("connections.peak", "connections"),
    ("connections.open_per_s", "connects/s"),
    ("requests.per_s", "requests/s"),
    ("latency_us.p50", "latency p50"),
    ("latency_us.p99", "latency p99"),
    ("latency_us.max", "longest response"),
    ("pauses.longest_ms", "longest garbage collection pause"),
    ("target_cost.user_bytes_per_connection", "resident memory per connection"),
    ("cost.target_live_bytes", "live heap per connection"),
    ("target_cost.rss_bytes", "memory of the server"),
    ("target_cost.processes.least", "smallest process"),
    ("target_cost.processes.most", "largest process"),
    ("target_cost.cpu_s", "CPU of the server"),
];

/// A column: its heading, and outcomes that are repetitions of the same trial.
pub(crate) type Column<'a> = (String, Vec<&'a Outcome>);

/// A table with a row for each figure: its name, the published value, and a value for each column. Published values that are
/// proportional to the scale are shown both at the current scale and as published.
pub(crate) fn side_by_side(then: &BTreeMap<String, Then>, columns: &[Column]) -> Vec<Row> {
    let scale = common_scale(columns).unwrap_or(1.0);
    let heads = columns.iter().map(|(head, _)| head.clone());
    let head = [String::new(), "then".to_owned()].into_iter().chain(heads).collect();
    let more = then.keys().filter(|path| FIGURES.iter().all(|(always, _)| always != path));
    let paths = FIGURES.iter().copied().chain(more.map(|path| (path.as_str(), path.as_str())));
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let row = |(path, name): (&str, &str)| {
        let spread = |(_, outcomes): &Column| Spread::of(outcomes, path);
        let now: Vec<Option<Spread>> = columns.iter().map(spread).collect();
        let is_shown = then.contains_key(path) || now.iter().flatten().any(|now| now.most > 0.0);
        let now = now.into_iter().map(|now| or_none(now.map(|now| now.text(path))));
        let then = or_none(then.get(path).map(|then| then.at(path, scale)));
        is_shown.then(|| [name.to_owned(), then].into_iter().chain(now).collect())
    };
    [head].into_iter().chain(paths.filter_map(row)).collect()
}

/// The scale that all outcomes have in common; `None` if they differ.
pub(crate) fn common_scale(columns: &[Column]) -> Option<f64> {
    let mut scales = columns.iter().flat_map(|(_, outcomes)| outcomes).map(|outcome| outcome.subject.scale);
    let first = scales.next()?;
    scales.all(|scale| scale == first).then_some(first)
}

impl Then {
    /// The published value at this scale, followed by the value at scale 1 if that differs.
    fn at(self, path: &str, scale: f64) -> String {
        let was = shown(path, self.value);
        if !self.scales || scale == 1.0 {
            return was;
        }
        format!("{} ({was} at scale 1)", shown(path, self.value * scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn then_and_now_are_in_the_same_units() {
        let then = BTreeMap::from([
            ("requests.per_s".to_owned(), 32_047.0.into()),
            ("latency_us.p50".to_owned(), 570.0.into()),
            ("latency_us.p999".to_owned(), 5_290.0.into()),
        ]);
        let now = json!({
            "connections": {"peak": 400},
            "requests": {"per_s": 19_400.4},
            "latency_us": {"p50": 1_234.5},
            "target_cost": {
                "rss_bytes": 10_485_760, "cpu_s": 3.25, "user_bytes_per_connection": 0,
                "processes": [{"rss_bytes": 2_097_152}, {"rss_bytes": 8_388_608}, {"rss_bytes": 4_194_304}],
            },
        });
        let outcome = |summary: serde_json::Value| Outcome { summary, ..Outcome::default() };
        let (old, now) = (outcome(json!({})), outcome(now));
        let rows = side_by_side(&then, &[("now".to_owned(), vec![&now])]);
        let expected = [
            ["", "then", "now"],
            ["connections", "–", "400"],
            ["requests/s", "32,047", "19,400"],
            ["latency p50", "570 µs", "1.2 ms"],
            ["memory of the server", "–", "10.0 MiB"],
            ["smallest process", "–", "2.0 MiB"],
            ["largest process", "–", "8.0 MiB"],
            ["CPU of the server", "–", "3.2 s"],
            ["latency_us.p999", "5.3 ms", "–"],
        ];
        assert_eq!(rows, expected.map(|row| row.map(str::to_owned)));
        let several = [19_000.0, 21_000.0, 20_000.0].map(|n| outcome(json!({"requests": {"per_s": n}})));
        let columns = [(String::new(), vec![&old]), (String::new(), several.iter().collect())];
        let rows = side_by_side(&then, &columns);
        assert_eq!(rows[1], ["requests/s", "32,047", "–", "20,000 (19,000 to 21,000)"].map(str::to_owned));
    }

    #[test]
    fn published_figures_are_at_the_current_scale() {
        let then = BTreeMap::from([
            ("connections.peak".to_owned(), Then { value: 400_000.0, scales: true }),
            ("latency_us.p50".to_owned(), 570.0.into()),
        ]);
        let check = |scales: &[f64], expected: &str| {
            let outcome = |scale: &f64| {
                let mut outcome =
                    Outcome { summary: json!({"connections": {"peak": 7}}), ..Outcome::default() };
                outcome.subject.scale = *scale;
                outcome
            };
            let outcomes: Vec<Outcome> = scales.iter().map(outcome).collect();
            let rows = side_by_side(&then, &[(String::new(), outcomes.iter().collect())]);
            assert_eq!((rows[1][1].as_str(), rows[2][1].as_str()), (expected, "570 µs"), "{scales:?}");
        };
        check(&[1.0], "400,000");
        check(&[0.1, 0.1], "40,000 (400,000 at scale 1)");
        check(&[0.1, 0.2], "400,000");
    }
}

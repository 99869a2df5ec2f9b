//! Published and current figures, side by side.

use std::collections::BTreeMap;

use crate::{
    experiment::Then,
    figure::{NONE, shown},
    outcome::Outcome,
};
use stats::median;

/// Figures that are always shown: path in the summary, and displayed name.
const ALWAYS: &[(&str, &str)] = &[
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

/// The paths of the figures that are always shown.
pub(crate) fn figures() -> impl Iterator<Item = &'static str> {
    ALWAYS.iter().map(|(path, _)| *path)
}

/// A figure of several repetitions.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    /// Of those repetitions that have it.
    pub(crate) fn of(values: Vec<f64>) -> Option<Spread> {
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        Some(Spread { median: median(values)?, least, most })
    }

    /// The median, and the range of the others.
    fn text(self, path: &str) -> String {
        let [least, median, most] = [self.least, self.median, self.most].map(|n| shown(path, n));
        if least == most { median } else { format!("{median} ({least} to {most})") }
    }
}

/// A row for each figure: its name, as published, and now, of one outcome or of several that repeat each other.
/// Published figures that are proportional to the size are shown at the current scale, and as they were.
pub(crate) fn then_and_now(then: &BTreeMap<String, Then>, now: &[&Outcome]) -> Vec<[String; 3]> {
    let three = |row: Vec<String>| row.try_into().expect("a name, then, now");
    side_by_side(then, &[now]).into_iter().map(three).collect()
}

/// The same with a column for each of several.
pub(crate) fn side_by_side(then: &BTreeMap<String, Then>, groups: &[&[&Outcome]]) -> Vec<Vec<String>> {
    let scale = common_scale(groups).unwrap_or(1.0);
    let more = then.keys().filter(|path| ALWAYS.iter().all(|(always, _)| always != path));
    let paths = ALWAYS.iter().copied().chain(more.map(|path| (path.as_str(), path.as_str())));
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let row = |(path, name): (&str, &str)| {
        let spread = |group: &&[&Outcome]| {
            Spread::of(group.iter().filter_map(|outcome| outcome.figure(path)).collect())
        };
        let now: Vec<Option<Spread>> = groups.iter().map(spread).collect();
        let is_shown = then.contains_key(path) || now.iter().flatten().any(|now| now.most > 0.0);
        let now = now.into_iter().map(|now| or_none(now.map(|now| now.text(path))));
        let then = or_none(then.get(path).map(|then| then.at(path, scale)));
        is_shown.then(|| [name.to_owned(), then].into_iter().chain(now).collect())
    };
    paths.filter_map(row).collect()
}

/// The scale that all of them have.
pub(crate) fn common_scale(groups: &[&[&Outcome]]) -> Option<f64> {
    let mut scales = groups.iter().copied().flatten().map(|outcome| outcome.subject.scale);
    let first = scales.next()?;
    scales.all(|scale| scale == first).then_some(first)
}

/// The head of current figures at this scale.
pub(crate) fn now_head(scale: f64) -> String {
    if scale == 1.0 { "now".to_owned() } else { format!("now, at scale {scale}") }
}

impl Then {
    /// At this scale, and as it was.
    fn at(self, path: &str, scale: f64) -> String {
        let was = shown(path, self.value);
        if !self.scales || scale == 1.0 {
            return was;
        }
        format!("{} ({was} at scale 1)", shown(path, self.value * scale))
    }
}

/// Rows as lines, columns aligned, under a head.
pub(crate) fn aligned<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().cloned());
    let widths: [usize; N] =
        std::array::from_fn(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0));
    let cell = |(at, text): (usize, &String)| match at {
        0 => format!("{text:<width$}", width = widths[at]),
        _ => format!("{text:>width$}", width = widths[at]),
    };
    let line = |line: &[String; N]| {
        let cells: Vec<String> = line.iter().enumerate().map(cell).collect();
        format!("  {}\n", cells.join("  ").trim_end())
    };
    lines.iter().map(line).collect()
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
        let rows = then_and_now(&then, &[&outcome(now)]);
        let expected = [
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
        let text = aligned(["", "then", "now"], &rows[..2]);
        assert_eq!(
            text,
            "                 then     now\n  connections       –     400\n  requests/s   32,047  19,400\n"
        );
        let several = [19_000.0, 21_000.0, 20_000.0].map(|n| outcome(json!({"requests": {"per_s": n}})));
        let rows = then_and_now(&then, &several.iter().collect::<Vec<_>>());
        assert_eq!(rows[0], ["requests/s", "32,047", "20,000 (19,000 to 21,000)"].map(str::to_owned));
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
            let rows = then_and_now(&then, &outcomes.iter().collect::<Vec<_>>());
            assert_eq!((rows[0][1].as_str(), rows[1][1].as_str()), (expected, "570 µs"), "{scales:?}");
        };
        check(&[1.0], "400,000");
        check(&[0.1, 0.1], "40,000 (400,000 at scale 1)");
        check(&[0.1, 0.2], "400,000");
        assert_eq!((now_head(1.0), now_head(0.1)), ("now".to_owned(), "now, at scale 0.1".to_owned()));
    }
}

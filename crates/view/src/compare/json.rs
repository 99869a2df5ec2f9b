//! A comparison as JSON: `throng.compare/1`.

use serde_json::{Value, json};
use stats::compare::{ComparedFigure, Comparison, Group, Judged, Run, Side, names};
use units::Unit;

/// The comparison as JSON, followed by a line break.
pub fn json(comparison: &Comparison) -> String {
    let names = names(&comparison.groups);
    let document = json!({
        "schema": "throng.compare/1",
        "confidence": 0.95,
        "equal_load_connections": comparison.load.map(|load| load.connections()),
        "groups": names.iter().zip(&comparison.groups).map(group).collect::<Vec<_>>(),
        "figures": comparison.figures.iter().map(figure).collect::<Vec<_>>(),
        "fail_if": comparison.judged.iter().map(judged).collect::<Vec<_>>(),
        "warnings": comparison.warnings,
        "notes": comparison.notes,
    });
    format!("{document:#}\n")
}

fn group((name, group): (&String, &Group)) -> Value {
    let run = |run: &Run| json!({ "id": run.id, "verdict": run.verdict() });
    json!({ "name": name, "runs": group.runs.iter().map(run).collect::<Vec<_>>() })
}

fn figure(compared: &ComparedFigure) -> Value {
    let side = |side: &Side| {
        json!({
            "values": side.values,
            "mean": side.mean,
            "ratio": side.change.and_then(|change| change.ratio),
            "interval": side.change.and_then(|change| change.interval),
            "difference": side.change.map(|change| change.standing.name()),
        })
    };
    let named = &compared.named;
    json!({
        "figure": named.figure.path(),
        "name": named.name,
        "unit": unit(named.figure.unit),
        "groups": compared.sides.iter().map(side).collect::<Vec<_>>(),
    })
}

fn judged(judged: &Judged) -> Value {
    json!({
        "expr": judged.text,
        "group": judged.group,
        "failed": judged.failed,
        "void": judged.void,
        "detail": judged.detail,
    })
}

/// A unit as in the suffixes of the summary's names.
pub(crate) const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Micros => "us",
        Unit::Seconds => "s",
        Unit::PerSecond => "per_s",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes_per_s",
        Unit::Share => "share",
        Unit::Number => "number",
    }
}

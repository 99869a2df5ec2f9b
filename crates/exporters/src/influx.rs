//! Serialises metrics in InfluxDB's line protocol, versions 1 and 2.

#[cfg(test)]
mod tests;

use std::{fmt::Write, sync::Arc};

use samples::Header;

use crate::metrics::{Kind, Snapshot, plain};

/// The body of a request: one or more seconds of a run as points.
pub(super) fn body(header: &Header, rows: &[Arc<Snapshot>]) -> String {
    let tags = tags(header);
    rows.iter().map(|row| points(row, &tags)).collect()
}

/// The tags that identify the points of a run.
fn tags(header: &Header) -> String {
    tag("target", &header.target) + &tag("seed", &header.seed.to_string())
}

/// A tag, preceded by a comma; empty if its value is.
fn tag(name: &str, says: &str) -> String {
    // "Line protocol", special characters: a backslash at the end would escape the next character.
    let says = says.replace(['\n', '\r'], " ");
    let says = says.trim_end_matches('\\').replace(',', "\\,").replace('=', "\\=").replace(' ', "\\ ");
    if says.is_empty() { String::new() } else { format!(",{name}={says}") }
}

/// The points of one second: a measurement for each series with the field `value`, or for a histogram a field for each of its parts.
fn points(snapshot: &Snapshot, tags: &str) -> String {
    let mut points = String::new();
    for sample in &snapshot.samples {
        let metric = sample.metric();
        let parts = sample.value.parts(metric.kind).into_iter();
        let field =
            |ending: &'static str| if metric.kind == Kind::Histogram { &ending[1..] } else { "value" };
        let fields: Vec<String> =
            parts.filter_map(|(ending, n)| Some(format!("{}={}", field(ending), plain(n?)))).collect();
        if fields.is_empty() {
            continue;
        }
        let own = sample.labels.iter().filter(|(name, _)| !matches!(*name, "target" | "seed"));
        let own: String = own.map(|(name, says)| tag(name, says)).collect();
        let (name, fields, ns) = (metric.name, fields.join(","), u128::from(snapshot.at.0) * 1_000_000);
        writeln!(points, "{name}{tags}{own} {fields} {ns}").expect("a String takes it");
    }
    points
}

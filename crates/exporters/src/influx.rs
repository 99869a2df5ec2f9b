//! InfluxDB's line protocol, versions 1 and 2.

#[cfg(test)]
mod tests;

use std::{fmt::Write, sync::Arc};

use samples::Header;

use crate::metrics::{Kind, Snapshot, plain};

/// These seconds of a run as points.
pub(super) fn body(header: &Header, rows: &[Arc<Snapshot>]) -> String {
    let tags = tags(header);
    rows.iter().map(|row| points(row, &tags)).collect()
}

/// The tags that identify the points of a run.
fn tags(header: &Header) -> String {
    tag("target", &header.target) + &tag("seed", &header.seed.to_string())
}

/// A tag with a comma before it; an empty one is omitted.
fn tag(name: &str, says: &str) -> String {
    // "Line protocol", special characters: a backslash at the end would escape what follows it.
    let says = says.replace(['\n', '\r'], " ");
    let says = says.trim_end_matches('\\').replace(',', "\\,").replace('=', "\\=").replace(' ', "\\ ");
    if says.is_empty() { String::new() } else { format!(",{name}={says}") }
}

/// All of a second: a measurement for each metric, its field `value`; of a histogram the fields are its parts.
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

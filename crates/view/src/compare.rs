//! The text of a comparison, for a terminal, for Markdown and for a page.

mod json;
#[cfg(test)]
mod tests;

use std::iter;

use stats::compare::{ComparedFigure, Comparison, Group, Side, interval, names, percent};
use units::Count;

use crate::table::aligned;

pub use json::json;
pub(crate) use json::unit;

/// A row: figure, base, group, change, interval, significance.
type Row = [String; 6];

/// The text for a missing value.
const NONE: &str = "–";

/// A table for each group but the base: headings, and a row for each figure that was measured.
fn tables(comparison: &Comparison) -> Vec<Vec<Row>> {
    let names = names(&comparison.groups);
    let table = |nth: usize| {
        let head = ["", &*names[0], &*names[nth], "change", "95 % interval", "difference"].map(str::to_owned);
        let rows = comparison.figures.iter().filter_map(|compared| row(compared, nth));
        [head].into_iter().chain(rows).collect()
    };
    (1..comparison.groups.len()).map(table).collect()
}

/// The compared runs and the equal load: names and descriptions.
fn facts(comparison: &Comparison) -> Vec<[String; 2]> {
    let names = names(&comparison.groups);
    let of = |(name, group): (&String, &Group)| [name.clone(), runs(group)];
    let mut facts: Vec<_> = names.iter().zip(&comparison.groups).map(of).collect();
    facts[0][1] += ": the base";
    if let Some(load) = comparison.load {
        let connections = Count(load.connections()).of("connection");
        let most = format!("{connections}, the largest load that every run held");
        facts.push(["equal load".to_owned(), most]);
    }
    facts
}

/// Remarks: warnings, notes, and results of `--fail-if`.
fn remarks(comparison: &Comparison) -> Vec<String> {
    let judged = comparison.judged.iter().map(|judged| {
        let how = match (judged.void, judged.failed) {
            (true, _) => "cannot be judged",
            (false, true) => "failed",
            (false, false) => "not failed",
        };
        format!("fail-if {}: {how}: {}", judged.text, judged.detail)
    });
    let warnings = comparison.warnings.iter().map(|warning| format!("warning: {warning}"));
    warnings.chain(comparison.notes.iter().cloned()).chain(judged).collect()
}

/// The comparison for a page: `Comparison` in `web/src/model/report.ts`.
pub(crate) fn as_text(comparison: &Comparison) -> serde_json::Value {
    let tables = tables(comparison);
    let tables = tables.iter().map(|rows| serde_json::json!({ "head": rows[0], "rows": rows[1..] }));
    serde_json::json!({ "facts": facts(comparison), "tables": tables.collect::<Vec<_>>(), "remarks": remarks(comparison) })
}

/// The comparison for a terminal.
pub fn text(comparison: &Comparison) -> String {
    let tables = tables(comparison).into_iter().map(|rows| aligned(&rows, &[0, 5]));
    page(aligned(&facts(comparison), &[0, 1]), tables, remarks(comparison))
}

/// The comparison in GitHub's Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    let fact = |[name, what]: [String; 2]| format!("- **{name}**: {what}");
    let table = |rows: Vec<Row>| {
        let mut lines: Vec<String> = rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
        lines.insert(1, "| --- | ---: | ---: | ---: | ---: | --- |".to_owned());
        lines
    };
    let facts = facts(comparison).into_iter().map(fact).collect();
    let remarks = remarks(comparison).iter().map(|remark| format!("- {remark}")).collect();
    page(facts, tables(comparison).into_iter().map(table), remarks)
}

/// Joins facts, tables and remarks with blank lines.
fn page(facts: Vec<String>, tables: impl Iterator<Item = Vec<String>>, remarks: Vec<String>) -> String {
    let parts = iter::once(facts).chain(tables).chain([remarks]).filter(|lines| !lines.is_empty());
    parts.map(|lines| lines.join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

/// The row of a figure; `None` if neither side has it.
fn row(compared: &ComparedFigure, nth: usize) -> Option<Row> {
    let (base, side) = (&compared.sides[0], &compared.sides[nth]);
    (base.mean.is_some() || side.mean.is_some()).then(|| {
        let unit = compared.named.figure.unit;
        let value = |side: &Side| side.mean.map_or(NONE.to_owned(), |mean| unit.brief(mean));
        let none = || NONE.to_owned();
        let ratio = side.change.and_then(|change| change.ratio);
        let within = side.change.and_then(|change| change.interval);
        [
            compared.named.name.clone(),
            value(base),
            value(side),
            ratio.map_or_else(none, percent),
            within.map_or_else(none, interval),
            side.change.map_or("not measured", |change| change.standing.description()).to_owned(),
        ]
    })
}

/// The runs of a group, as far as they fit a line: `3 runs a, b, c`.
fn runs(group: &Group) -> String {
    const SHOWN: usize = 8;
    let ids: Vec<&str> = group.runs.iter().take(SHOWN).map(|run| run.id.as_str()).collect();
    let more = if group.runs.len() > SHOWN { ", …" } else { "" };
    match group.runs.len() {
        1 => format!("run {}", ids[0]),
        n => format!("{} runs {}{more}", Count(n as u64), ids.join(", ")),
    }
}

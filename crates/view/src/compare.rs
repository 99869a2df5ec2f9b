//! A comparison as tables of text, for a terminal, for Markdown and for a page.

mod json;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use stats::compare::{ComparedFigure, Comparison, Group, Side, interval, names, percent};
use units::Count;

pub use json::json;

/// One group against the base, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The title of each column; the first has none.
    pub head: [String; COLUMNS],
    /// A row for each figure that was measured.
    pub rows: Vec<[String; COLUMNS]>,
}

/// Figure, base, group, change, interval, what it is worth.
const COLUMNS: usize = 6;

/// Where there is nothing to show.
const NONE: &str = "–";

/// A table for each group but the base.
pub fn tables(comparison: &Comparison) -> Vec<Table> {
    let names = names(&comparison.groups);
    let table = |nth: usize| Table {
        head: ["", &*names[0], &*names[nth], "change", "95 % interval", "difference"].map(str::to_owned),
        rows: comparison.figures.iter().filter_map(|compared| row(compared, nth)).collect(),
    };
    (1..comparison.groups.len()).map(table).collect()
}

/// What is compared: a name, and its meaning.
pub fn facts(comparison: &Comparison) -> Vec<[String; 2]> {
    let names = names(&comparison.groups);
    let of = |(name, group): (&String, &Group)| [name.clone(), runs(group)];
    let mut facts: Vec<_> = names.iter().zip(&comparison.groups).map(of).collect();
    facts[0][1] += ": the base";
    if let Some(load) = comparison.load {
        let most = format!("{} connections, the largest load that every run held", Count(load.connections()));
        facts.push(["equal load".to_owned(), most]);
    }
    facts
}

/// Remarks: warnings, what is not known, results of `--fail-if`.
pub fn remarks(comparison: &Comparison) -> Vec<String> {
    let judged = comparison.judged.iter().map(|judged| {
        let how = if judged.failed { "failed" } else { "not failed" };
        format!("fail-if {}: {how}: {}", judged.text, judged.detail)
    });
    let warnings = comparison.warnings.iter().map(|warning| format!("warning: {warning}"));
    warnings.chain(comparison.notes.iter().cloned()).chain(judged).collect()
}

/// For a page: `Comparison` of `web/src/model/report.ts`.
pub(crate) fn as_text(comparison: &Comparison) -> serde_json::Value {
    let tables = tables(comparison)
        .into_iter()
        .map(|Table { head, rows }| serde_json::json!({ "head": head, "rows": rows }));
    serde_json::json!({ "facts": facts(comparison), "tables": tables.collect::<Vec<_>>(), "remarks": remarks(comparison) })
}

/// For a terminal.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    let facts = facts(comparison);
    let width = facts.iter().map(|[name, _]| name.chars().count()).max().unwrap_or(0);
    for [name, what] in &facts {
        let _ = writeln!(out, "{name:<width$}  {what}");
    }
    for table in tables(comparison) {
        out.push('\n');
        aligned(&table, &mut out);
    }
    let remarks = remarks(comparison);
    if !remarks.is_empty() {
        out.push('\n');
    }
    remarks.iter().for_each(|remark| out += &format!("{remark}\n"));
    out
}

/// For GitHub and others that read its Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::new();
    let list = |out: &mut String, lines: &mut dyn Iterator<Item = String>| {
        lines.for_each(|line| *out += &format!("- {line}\n"));
    };
    list(&mut out, &mut facts(comparison).iter().map(|[name, what]| format!("**{name}**: {what}")));
    for table in tables(comparison) {
        let cells = |row: &[String; COLUMNS]| format!("| {} |\n", row.join(" | "));
        out += &format!("\n{}| --- | ---: | ---: | ---: | ---: | --- |\n", cells(&table.head));
        table.rows.iter().for_each(|row| out += &cells(row));
    }
    let remarks = remarks(comparison);
    if !remarks.is_empty() {
        out.push('\n');
    }
    list(&mut out, &mut remarks.into_iter());
    out
}

/// None where neither has it.
fn row(compared: &ComparedFigure, nth: usize) -> Option<[String; COLUMNS]> {
    let (base, side) = (&compared.sides[0], &compared.sides[nth]);
    (base.mean.is_some() || side.mean.is_some()).then(|| {
        let unit = compared.figure.unit;
        let value = |side: &Side| side.mean.map_or(NONE.to_owned(), |mean| unit.brief(mean));
        let none = || NONE.to_owned();
        let ratio = side.change.and_then(|change| change.ratio);
        let within = side.change.and_then(|change| change.interval);
        [
            compared.figure.name.clone(),
            value(base),
            value(side),
            ratio.map_or_else(none, percent),
            within.map_or_else(none, interval),
            side.change.map_or("not measured", |change| change.standing.description()).to_owned(),
        ]
    })
}

/// `3 runs a, b, c`, and no more than fit a line.
fn runs(group: &Group) -> String {
    const SHOWN: usize = 8;
    let ids: Vec<&str> = group.runs.iter().take(SHOWN).map(|run| run.id.as_str()).collect();
    let more = if group.runs.len() > SHOWN { ", …" } else { "" };
    match group.runs.len() {
        1 => format!("run {}", ids[0]),
        n => format!("{} runs {}{more}", Count(n as u64), ids.join(", ")),
    }
}

/// Columns as wide as they must be: words to the left, numbers to the right.
fn aligned(table: &Table, out: &mut String) {
    let all = || std::iter::once(&table.head).chain(&table.rows);
    let widths: Vec<usize> =
        (0..COLUMNS).map(|column| all().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    for row in all() {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for column in 1..COLUMNS - 1 {
            let _ = write!(line, "  {:>width$}", row[column], width = widths[column]);
        }
        let _ = write!(line, "  {}", row[COLUMNS - 1]);
        *out += line.trim_end();
        out.push('\n');
    }
}

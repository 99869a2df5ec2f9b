//! A comparison as tables of text, for a terminal, for Markdown and for a page.

use std::fmt::Write;

use serde_json::json;
use units::Count;

use super::{ComparedFigure, Comparison, Group, Side, names};

/// One group against the base, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What stands over each column; the first has none.
    pub head: [String; COLUMNS],
    /// A row for each figure that was measured.
    pub rows: Vec<[String; COLUMNS]>,
}

/// Figure, base, group, change, interval, what it is worth.
const COLUMNS: usize = 6;

/// Where there is nothing to show.
const NONE: &str = "–";

impl Comparison {
    /// A table for each group but the base.
    pub fn tables(&self) -> Vec<Table> {
        let names = names(&self.groups);
        let table = |nth: usize| Table {
            head: ["", &*names[0], &*names[nth], "change", "95 % interval", "difference"].map(str::to_owned),
            rows: self.figures.iter().filter_map(|compared| row(compared, nth)).collect(),
        };
        (1..self.groups.len()).map(table).collect()
    }

    /// What is compared: a name, and what it stands for.
    pub fn facts(&self) -> Vec<[String; 2]> {
        let names = names(&self.groups);
        let of = |(name, group): (&String, &Group)| [name.clone(), runs(group)];
        let mut facts: Vec<_> = names.iter().zip(&self.groups).map(of).collect();
        facts[0][1] += ": the base";
        if let Some(load) = self.load {
            let most =
                format!("{} connections, the largest load that every run held", Count(load.connections()));
            facts.push(["equal load".to_owned(), most]);
        }
        facts
    }

    /// What to know beside the tables: warnings, what is not known, how `--fail-if` went.
    pub fn remarks(&self) -> Vec<String> {
        let judged = self.judged.iter().map(|judged| {
            let how = if judged.failed { "failed" } else { "not failed" };
            format!("fail-if {}: {how}: {}", judged.text, judged.detail)
        });
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        warnings.chain(self.notes.iter().cloned()).chain(judged).collect()
    }

    /// For a page: `Comparison` of `web/src/model/report.ts`.
    pub(crate) fn as_text(&self) -> serde_json::Value {
        let tables =
            self.tables().into_iter().map(|Table { head, rows }| json!({ "head": head, "rows": rows }));
        json!({ "facts": self.facts(), "tables": tables.collect::<Vec<_>>(), "remarks": self.remarks() })
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let facts = self.facts();
        let width = facts.iter().map(|[name, _]| name.chars().count()).max().unwrap_or(0);
        for [name, what] in &facts {
            let _ = writeln!(out, "{name:<width$}  {what}");
        }
        for table in self.tables() {
            out.push('\n');
            aligned(&table, &mut out);
        }
        let remarks = self.remarks();
        if !remarks.is_empty() {
            out.push('\n');
        }
        remarks.iter().for_each(|remark| out += &format!("{remark}\n"));
        out
    }

    /// For GitHub and others that read its Markdown.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let list = |out: &mut String, lines: &mut dyn Iterator<Item = String>| {
            lines.for_each(|line| *out += &format!("- {line}\n"));
        };
        list(&mut out, &mut self.facts().iter().map(|[name, what]| format!("**{name}**: {what}")));
        for table in self.tables() {
            let cells = |row: &[String; COLUMNS]| format!("| {} |\n", row.join(" | "));
            out += &format!("\n{}| --- | ---: | ---: | ---: | ---: | --- |\n", cells(&table.head));
            table.rows.iter().for_each(|row| out += &cells(row));
        }
        let remarks = self.remarks();
        if !remarks.is_empty() {
            out.push('\n');
        }
        list(&mut out, &mut remarks.into_iter());
        out
    }
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
            side.change.map_or("not measured", |change| change.standing.words()).to_owned(),
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

/// `+12.3 %` for 1.123, `+0.12 %` for 1.0012.
pub(super) fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent.abs() {
        ..0.005 => "0.0 %".to_owned(),
        ..0.995 => format!("{percent:+.2} %"),
        _ => format!("{percent:+.1} %"),
    }
}

/// `+5.0 % to +20.0 %`.
pub(super) fn interval([from, to]: [f64; 2]) -> String {
    format!("{} to {}", percent(from), percent(to))
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

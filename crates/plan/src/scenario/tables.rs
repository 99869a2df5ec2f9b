//! The tables of values of a scenario file.

use super::document::{Notes, Section};
use super::name;
use crate::csv::Take;
use crate::{Csv, Plan, Segment, Source};
use units::Count;

/// Opens another file that the scenario names.
pub(super) type Open<'a> = &'a dyn Fn(&str) -> Result<Source, String>;

/// Refuses loads that would use a row twice of a table whose rows are for one use.
pub(super) fn rows_for_one_use(notes: &mut Notes, top: &Section, plan: &Plan) {
    for (scalar, section) in top.named("csv") {
        let Some(table) = plan.tables.iter().find(|table| table.name == scalar.text && table.once) else {
            continue;
        };
        for (nth, population) in plan.populations.iter().enumerate() {
            let mut own = population.clone();
            let is_used = own.texts().iter().any(|(text, _)| {
                text.all()
                    .iter()
                    .any(|one| matches!(one, Segment::Csv(column) if column.table() == table.name))
            });
            if !is_used {
                continue;
            }
            let comes = population.comes_and_goes();
            let (used, what, fix) = match table.take {
                Take::Connection if comes => (population.load.wanted().map(u64::from), "arrivals", "total"),
                Take::Connection => (Some(plan.connections(nth as u16)), "connections", "connections"),
                Take::Request | Take::Random => (population.requests, "requests", "requests"),
            };
            let (name, rows) = (&population.name, table.rows());
            match used {
                Some(used) if used <= rows.into() => {}
                Some(used) => {
                    let why = format!(
                        "{} rows for {} {what} of {name}; use {fix} = {rows}, or more rows",
                        Count(rows.into()),
                        Count(used)
                    );
                    section.note(notes, "once", why);
                }
                None => section.note(notes, "once", format!("needs an end to {name}; use {fix} = {rows}")),
            }
        }
    }
}

/// The tables of values; one that cannot be read is included without columns.
pub(super) fn tables(notes: &mut Notes, top: &Section, open: Open) -> Vec<Csv> {
    let mut tables = Vec::new();
    for (scalar, section) in top.named("csv") {
        if let Err(why) = name(&scalar.text) {
            notes.add(scalar.at, "csv", why);
        }
        if !section.has("file") {
            notes.add(scalar.at, &section.path, "missing file; use file = \"users.csv\"");
        }
        let table = section.read(notes, "file", |file| {
            let read = match open(file).map_err(|why| format!("{file:?} cannot be read: {why}"))? {
                Source::Text(text) => Csv::parse(&scalar.text, file, &text),
                Source::Head(head) => Csv::of_head(&scalar.text, file, &head),
            };
            read.map_err(|why| format!("{file:?}: {why}"))
        });
        let take = section.read(notes, "take", Take::parse).unwrap_or_default();
        let once = section.truth("once").unwrap_or_default();
        if once && take == Take::Random {
            section.note(notes, "once", "cannot be used with take = \"random\"; remove one of the two");
        }
        tables.push(table.unwrap_or_else(|| Csv::unread(&scalar.text)).taken(take, once));
    }
    tables
}

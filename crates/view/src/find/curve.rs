//! The curve of a search for a terminal: latency over load in block characters, with the errors and the target's CPU for each load
//! below.

use std::collections::BTreeSet;

use samples::{FindOutcome, FindSummary, Point};
use units::{Count, percent};

use crate::{
    summary::time,
    terminal::curve::{Column, lines},
};

/// Maximum width in columns.
const WIDTH: usize = 80;
/// Height of the curve in rows.
const ROWS: u16 = 4;
/// Columns between two loads.
const GAP: usize = 2;
/// Minimum number of loads with a latency.
const FEWEST: usize = 3;
/// Maximum length of a unit that names the row of loads.
const LONGEST: usize = 14;

/// Reads a figure from a step; `None` if it was not measured.
type Figure = fn(&Point) -> Option<f64>;

/// The latencies of a step, named like the figures of thresholds. The first one that most loads have is drawn.
const TIMES: [(&str, Figure); 3] = [
    ("latency p99", |point| point.latency_p99_us),
    ("probe.held p99", |point| point.probe_p99_us),
    ("connect p99", |point| point.connect_p99_us),
];

/// A load with its last step (`None` if it is a result that was not tried), and the outcome of its steps.
struct Load<'a> {
    load: u64,
    step: Option<&'a Point>,
    result: &'static str,
}

impl Load<'_> {
    fn figure(&self, of: Figure) -> Option<f64> {
        self.step.and_then(of)
    }
}

/// The curve, up to ten lines of 80 columns; empty if fewer than three loads have a latency.
pub(super) fn curve(found: &FindSummary) -> String {
    let mut loads = loads(found);
    let count = |(_, of): &(&str, Figure)| loads.iter().filter(|load| load.figure(*of).is_some()).count();
    let time = TIMES.into_iter().rev().max_by_key(count).expect("there are some");
    if count(&time) < FEWEST {
        return String::new();
    }
    loop {
        let rows = rows(&loads, &found.unit, time);
        let [name, cell] = widths(&rows);
        if name + cell * loads.len() <= WIDTH || !has_thinned(&mut loads, found) {
            return drawn(&loads, time.1, &rows, [name, cell]);
        }
    }
}

/// The loads that were tried and the result, ascending.
fn loads(found: &FindSummary) -> Vec<Load<'_>> {
    let max = (found.outcome == FindOutcome::Found).then_some(found.max);
    let all: BTreeSet<u64> = found.curve.iter().map(|point| point.load).chain(max).collect();
    let load = |load| {
        let steps = || found.curve.iter().filter(move |point| point.load == load);
        let result = match (steps().any(|step| step.pass), steps().all(|step| step.pass)) {
            _ if max == Some(load) => "max",
            (true, true) => "pass",
            (true, false) => "mixed",
            _ if steps().all(|step| step.invalid) => "invalid",
            _ => "fail",
        };
        Load { load, step: steps().max_by_key(|point| point.step), result }
    };
    all.into_iter().map(load).collect()
}

/// Removes the load that is closest to its neighbours, but neither the first or last one nor one that the result names; returns false
/// if there is none.
fn has_thinned(loads: &mut Vec<Load>, found: &FindSummary) -> bool {
    let is_named = |load: u64| load == found.max || Some(load) == found.failed;
    let distance = |at: &usize| loads[at + 1].load as f64 / loads[at - 1].load.max(1) as f64;
    let may_go = (1..loads.len().saturating_sub(1)).filter(|at| !is_named(loads[*at].load));
    let closest = may_go.min_by(|one, other| distance(one).total_cmp(&distance(other)));
    closest.map(|at| loads.remove(at)).is_some()
}

/// The rows below the curve: name, and a cell for each load.
fn rows(loads: &[Load], unit: &str, (name, of): (&'static str, Figure)) -> Vec<(String, Vec<String>)> {
    let each = |cell: &dyn Fn(&Load) -> String| loads.iter().map(cell).collect::<Vec<_>>();
    let figures = |shown: &dyn Fn(&Point) -> Option<String>| {
        each(&|load| load.step.and_then(shown).unwrap_or_else(|| "-".to_owned()))
    };
    let cpu = |point: &Point| {
        let limit = point.target_cores_limit.map(|limit| format!("/{limit}")).unwrap_or_default();
        Some(format!("{:.2}{limit}", point.target_cores?))
    };
    let unit = if unit.len() <= LONGEST { unit } else { "load" };
    let rows = [
        (name, figures(&|point| of(point).map(|us| time(us, false)))),
        (unit, each(&|load| Count(load.load).to_string())),
        ("errors", figures(&|point| point.errors.map(percent))),
        ("target CPU", figures(&cpu)),
        ("busiest thread", figures(&|point| point.target_thread.map(percent))),
        ("result", each(&|load| load.result.to_owned())),
    ];
    let is_known = |(_, cells): &(&str, Vec<String>)| cells.iter().any(|cell| cell != "-");
    rows.into_iter().filter(is_known).map(|(name, cells)| (name.to_owned(), cells)).collect()
}

/// The width of the names, and of the cells with the gap before each.
fn widths(rows: &[(String, Vec<String>)]) -> [usize; 2] {
    let most = |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max();
    let name = most(&mut rows.iter().map(|(name, _)| name)).unwrap_or(0);
    let cell = most(&mut rows.iter().flat_map(|(_, cells)| cells)).unwrap_or(0);
    [name, cell + GAP]
}

fn drawn(loads: &[Load], of: Figure, rows: &[(String, Vec<String>)], [name, cell]: [usize; 2]) -> String {
    let top = loads.iter().filter_map(|load| load.figure(of)).fold(0.0, f64::max);
    let column = |value| Column { value, line: None, style: Default::default() };
    let bar = |load: &Load| {
        let value = load.figure(of);
        let cells = std::iter::repeat_n(value, cell - GAP);
        std::iter::repeat_n(None, GAP).chain(cells).map(column).collect::<Vec<_>>()
    };
    let columns: Vec<Column> = loads.iter().flat_map(bar).collect();
    let blocks = lines(&columns, top, ROWS).into_iter().map(|line| format!("{:name$}{line}", ""));
    let figures = rows.iter().map(|(of, cells)| {
        let cells: String = cells.iter().map(|text| format!("{text:>cell$}")).collect();
        format!("{of:name$}{cells}")
    });
    blocks.chain(figures).map(|line| line.trim_end().to_owned() + "\n").collect()
}

//! Compares groups of runs: which figures differ, and whether by more than repetitions of the same run do. The results are
//! explained in `docs/reference/compare.md`.

mod alike;
mod change;
mod figure;
mod load;
mod survivors;
mod tolerance;

use std::iter;

use samples::{Latency, RunRecord, Summary, Verdict};
use units::Count;

pub use change::{Change, Standing, interval, percent};
pub use figure::Named;
pub use load::EqualLoad;
pub use tolerance::{FigureTolerance, Judged};

/// Runs that are repetitions of the same thing.
#[derive(Clone, Debug)]
pub struct Group {
    /// The user's name for the group: an id, `latest`, `tag:before`.
    pub name: String,
    /// At least one.
    pub runs: Vec<Run>,
}

/// The part of a run that is compared.
#[derive(Clone, Debug)]
pub struct Run {
    /// Id in the store.
    pub id: String,
    record: RunRecord,
    /// Its summary, with the latencies at equal load if there were enough responses.
    pub summary: Summary,
    /// Whether it has ended; otherwise its summary is empty.
    pub is_finished: bool,
    /// Responses at equal load.
    responses: u64,
}

/// Minimum number of responses for a 99th percentile at equal load: with 1,000, in 19 of 20 cases it lies between the true percentiles 98.2
/// and 99.4 (beta distribution of the 990th value).
const MIN_RESPONSES: u64 = 1_000;

impl Run {
    /// A stored run; `summary`: `None` if it is unfinished. `at_load`: latencies at equal load.
    pub fn new(id: String, record: RunRecord, summary: Option<Summary>, at_load: &Latency) -> Run {
        let (is_finished, mut summary) = (summary.is_some(), summary.unwrap_or_default());
        summary.equal_load_us = (at_load.count() >= MIN_RESPONSES).then(|| at_load.quantiles());
        Run { id, record, summary, is_finished, responses: at_load.count() }
    }

    /// The verdict; `None` if it is unfinished.
    pub fn verdict(&self) -> Option<Verdict> {
        self.is_finished.then_some(self.summary.verdict)
    }

    /// Whether the run ended normally and its figures are the target's: the verdict is pass or fail.
    fn is_valid(&self) -> bool {
        matches!(self.verdict(), Some(Verdict::Pass | Verdict::Fail))
    }
}

/// A comparison of groups of runs with the first group, the base.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The first is the base.
    pub groups: Vec<Group>,
    /// The load at which all runs can be compared; `None` if there is none.
    pub load: Option<EqualLoad>,
    /// The compared figures.
    pub figures: Vec<ComparedFigure>,
    /// The result of each tolerance for each group.
    pub judged: Vec<Judged>,
    /// Reasons why the runs may not be comparable.
    pub warnings: Vec<String>,
    /// What is unknown, and how to find out.
    pub notes: Vec<String>,
}

/// One figure for all groups.
#[derive(Clone, Debug)]
pub struct ComparedFigure {
    /// The figure.
    pub named: Named,
    /// In the order of the groups; the first is the base.
    pub sides: Vec<Side>,
}

/// One figure of one group.
#[derive(Clone, Debug)]
pub struct Side {
    /// One value per run; `None` where it was not measured.
    pub values: Vec<Option<f64>>,
    /// The mean of these values: geometric, or arithmetic for figures compared without logarithms.
    pub mean: Option<f64>,
    /// The change against the base; `None` for the base itself, and if either was not measured.
    pub change: Option<Change>,
}

impl Comparison {
    /// Compares at least two groups; the first is the base. `load_args` selects those arguments of a command line that define the
    /// load.
    pub fn new(
        groups: Vec<Group>,
        load: Option<EqualLoad>,
        tolerances: &[FigureTolerance],
        load_args: &dyn Fn(&[String]) -> Vec<String>,
    ) -> Comparison {
        let mut wanted = Named::usual();
        for tolerance in tolerances {
            if !wanted.iter().any(|own| own.figure == tolerance.named.figure) {
                wanted.push(tolerance.named.clone());
            }
        }
        let compared = |named| compared(named, &groups, Named::of);
        let figures: Vec<_> = wanted.into_iter().map(compared).collect();
        let judged = tolerance::judge(tolerances, &groups);
        let mut warnings = alike::warnings(&groups, load_args);
        warnings.extend(survivors::warnings(&figures, &groups));
        let notes = notes(&groups, load);
        Comparison { groups, load, figures, judged, warnings, notes }
    }
}

fn compared(named: Named, groups: &[Group], value: fn(&Named, &Summary) -> Option<f64>) -> ComparedFigure {
    let of = |group: &Group| group.runs.iter().map(|run| value(&named, &run.summary)).collect();
    let values: Vec<Vec<Option<f64>>> = groups.iter().map(of).collect();
    let known = |values: &[Option<f64>]| values.iter().flatten().copied().collect::<Vec<f64>>();
    let as_such = named.is_as_such(&known(&values.concat()));
    let base = known(&values[0]);
    let side = |(nth, values): (usize, Vec<Option<f64>>)| {
        let own = known(&values);
        let change = match as_such {
            true => Change::as_such(&base, &own),
            false => Change::between(&base, &own, named.grain(&base)),
        };
        let mean = if as_such { change::mean(&own) } else { change::geometric_mean(&own) };
        Side { values, mean, change: change.filter(|_| nth > 0) }
    };
    let sides = values.into_iter().enumerate().map(side).collect();
    ComparedFigure { named, sides }
}

fn notes(groups: &[Group], load: Option<EqualLoad>) -> Vec<String> {
    let names = names(groups);
    let mut notes: Vec<String> = match load {
        None => vec!["p99 at equal load is not known: no load was held by every run".to_owned()],
        Some(load) => {
            iter::zip(&names, groups).filter_map(|(name, group)| too_few(name, group, load)).collect()
        }
    };
    let alone: Vec<&str> = iter::zip(&names, groups)
        .filter_map(|(name, group)| (group.runs.len() == 1).then_some(name.as_str()))
        .collect();
    if !alone.is_empty() {
        notes.push(format!(
            "the noise of a single run is not known; repeat it with `throng run … --tag NAME`, and compare \
            tag:NAME: {}",
            alone.join(", "),
        ));
    }
    notes
}

/// The note on runs of a group with too few responses at equal load.
fn too_few(name: &str, group: &Group, load: EqualLoad) -> Option<String> {
    let few = group.runs.iter().filter(|run| run.responses < MIN_RESPONSES);
    let few: Vec<String> = few.map(|run| format!("{} {}", run.id, Count(run.responses))).collect();
    (!few.is_empty()).then(|| {
        format!(
            "p99 at equal load is not known for all of {name}, fewer than {} responses at {} connections: \
            {}",
            Count(MIN_RESPONSES),
            Count(load.connections()),
            few.join(", "),
        )
    })
}

/// A distinct name for each group; equal names are numbered.
pub fn names(groups: &[Group]) -> Vec<String> {
    iter::zip(1.., groups)
        .map(|(nth, group)| {
            let is_twice = groups.iter().filter(|other| other.name == group.name).count() > 1;
            if is_twice { format!("{} ({nth})", group.name) } else { group.name.clone() }
        })
        .collect()
}

//! Coverage of the intervals: a hundred seeded searches of simulated targets of each kind.
//!
//! The truth is the load that the target sustains half of the time *at the end of the search*: if the capacity changes, that is what the
//! next user meets. Only `Found` can be wrong. `cargo test -p search --test coverage -- --nocapture` prints the tables.

use search::{Answer, Range, Search};
use target::{
    Kind::{self, Autoscaling, Drift, Fixed, Hard, Hysteresis, Knee, Lapses, Spares, Spread, WarmUp},
    Sustained, Target,
};

mod target;

/// Number of searches of each kind.
const RUNS: u32 = 100;
/// Maximum number of wrong intervals among them, for intervals of 95 %.
const WRONG: u32 = 5;

/// Outcomes of the searches of one kind, as counts; and the steps of each search, ascending.
#[derive(Debug, Default)]
struct Tally {
    found: u32,
    wrong: u32,
    within_2_percent: u32,
    unsettled: u32,
    steps: Vec<u32>,
    /// For each search that was ever `Found`, the first step after which it was.
    first: Vec<u32>,
}

fn tally(kind: Kind, sustained: Sustained, how: fn(Search) -> Search) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..RUNS {
        let mut target = Target::new(kind, sustained, seed.into());
        let mut search = how(Search::new(Range { least: 1, most: 1_000_000 }, 0.02).with_baseline(5));
        let (mut steps, mut first) = (0, None);
        while let Some(proposal) = search.propose() {
            search.learn(proposal.load, target.step(proposal));
            steps += 1;
            let is_found = matches!(search.answer(), Answer::Found { .. });
            first = first.or(is_found.then_some(steps));
        }
        tally.steps.push(steps);
        tally.first.extend(first);
        let truth = target.capacity() as u64;
        match search.answer() {
            Answer::Found { max, interval } => {
                tally.found += 1;
                tally.wrong += u32::from(!(interval.low..=interval.high).contains(&truth));
                tally.within_2_percent += u32::from(max.abs_diff(truth) * 50 <= truth);
            }
            Answer::Unsettled { .. } => tally.unsettled += 1,
            answer => panic!("{kind:?} {seed}: {answer:?} of {truth}"),
        }
    }
    tally.steps.sort_unstable();
    tally.first.sort_unstable();
    tally
}

/// As a search by rate.
fn by_four(search: Search) -> Search {
    search.climbing_from(100, 4)
}

/// As a search by connections.
fn holding(search: Search) -> Search {
    search.climbing_from(500, 4).that_holds()
}

/// `rows`: for each kind, the minimum number of results `Found`, and the maximum of the median number of steps.
fn check(title: &str, sustained: Sustained, how: fn(Search) -> Search, rows: &[(Kind, u32, u32)]) {
    let mut table = format!(
        "\n| {title} | found | wrong | max ± 2 % | unsettled | steps: median | 95 % | first found after |\n|---|---|---|---|---|---|---|---|\n"
    );
    let mut failures = Vec::new();
    for (kind, found, steps) in rows {
        let t = tally(*kind, sustained, how);
        let (median, most) = (t.steps[RUNS as usize / 2], t.steps[RUNS as usize * 95 / 100]);
        let first = t.first.get(t.first.len() / 2).map_or("–".to_owned(), u32::to_string);
        table += &format!(
            "| {kind:?} | {} | {} | {} | {} | {median} | {most} | {first} |\n",
            t.found, t.wrong, t.within_2_percent, t.unsettled
        );
        if t.wrong > WRONG || t.found < *found || median > *steps {
            failures.push(format!("{kind:?}: {found} found in {steps} steps expected"));
        }
    }
    print_table(&table);
    assert!(failures.is_empty(), "{failures:?}\n{table}");
}

#[allow(clippy::print_stdout, reason = "the table of the decision that chose the method")]
fn print_table(table: &str) {
    println!("{table}");
}

#[test]
fn a_climb_that_measures() {
    let rows = [
        (Hard, 100, 8),
        (Fixed, 100, 6),
        (Knee(2), 99, 14),
        (Knee(8), 97, 16),
        (Knee(25), 0, 30),
        (Spread(2), 99, 14),
        (Spread(8), 97, 16),
        (Spread(25), 0, 30),
        (Lapses(1), 99, 8),
        (Lapses(5), 99, 9),
        (Lapses(15), 95, 10),
        (Drift(3), 99, 15),
        (Drift(-3), 99, 15),
        (Hysteresis, 99, 8),
        (WarmUp(4), 95, 11),
        (WarmUp(8), 95, 18),
        (Autoscaling(2), 95, 13),
    ];
    check("one climb, which measures", Sustained::Measured, |search| search, &rows);
}

/// Expectations for searches that climb by a factor and get measurements.
const CLIMBING: [(Kind, u32, u32); 9] = [
    (Hard, 100, 12),
    (Fixed, 100, 12),
    (Knee(8), 95, 16),
    (Spread(2), 99, 15),
    (Spread(8), 95, 17),
    (Lapses(5), 99, 13),
    (Drift(-3), 99, 15),
    (WarmUp(8), 95, 18),
    (Autoscaling(2), 95, 19),
];

#[test]
fn climbs_by_a_factor_that_measure() {
    check("climbs by a factor, which measure", Sustained::Measured, by_four, &CLIMBING);
}

#[test]
fn what_is_held_stays() {
    let rows = [&CLIMBING[..], &[(Hysteresis, 99, 12), (Spares, 99, 12)]].concat();
    check("connections held, which measure", Sustained::Measured, holding, &rows);
}

#[test]
fn what_is_held_stays_and_measures_nothing() {
    let rows =
        [(Hard, 99, 18), (Spread(2), 90, 24), (Lapses(1), 99, 18), (Hysteresis, 95, 20), (Spares, 99, 20)];
    check("connections held, which measure nothing", Sustained::Unknown, holding, &rows);
}

#[test]
fn climbs_that_measure_nothing() {
    let rows = [
        (Hard, 99, 16),
        (Fixed, 99, 16),
        (Spread(2), 95, 22),
        // Without measurements, a noisy target may look like a quiet one: few such results are believed.
        (Spread(8), 30, 30),
        (Spread(25), 0, 30),
        (Lapses(1), 99, 18),
        (Drift(3), 85, 22),
        (WarmUp(4), 95, 18),
    ];
    check("climbs by a factor, which measure nothing", Sustained::Unknown, by_four, &rows);
}

#[test]
fn a_climb_that_misleads() {
    let rows = [(Hard, 99, 18), (Lapses(1), 99, 20), (Hysteresis, 99, 18), (Drift(-3), 90, 20)];
    check("one climb, which misleads", Sustained::Misleading, |search| search, &rows);
}

//! Each destination separately, and which of them the faults belong to.

use plan::Plan;
use samples::{Cause, DestinationSummary, Limit, MAX_DESTINATIONS, Tick, name_of, row_of};
use units::Count;

use super::limit::Sentence;

/// Destinations that have this share of all faults are named for them.
const NEARLY_ALL: f64 = 0.95;
/// More are not named one by one.
const MAX_NAMED: usize = 3;

/// Of a plan with several destinations, in the plan's order.
pub(super) fn summaries(plan: &Plan, totals: &Tick) -> Vec<DestinationSummary> {
    let counted = totals.destinations.iter();
    rows(plan).zip(counted).map(|((first, last), own)| DestinationSummary::new(first, last, own)).collect()
}

/// Names the destinations that have nearly all faults, where others serve without.
pub(super) fn name(limit: &mut Limit, all: &[DestinationSummary]) {
    let Some((bad, rest)) = at_fault(all) else { return };
    let names = match bad.len() {
        0..=MAX_NAMED => bad.iter().map(|own| own.name()).collect::<Vec<_>>().join(", "),
        n => format!("{} and {}", bad[0].name(), Count(n as u64 - 1).of("other destination")),
    };
    let faults: u64 = bad.iter().map(|own| own.fault_count()).sum();
    let total: u64 = all.iter().map(DestinationSummary::fault_count).sum();
    let serves: u64 = rest.iter().map(|own| own.opened).sum();
    if limit.cause == Cause::Refused && bad.iter().all(|own| own.opened == 0) {
        let (dials, serves) = (Count(faults).of("dial"), Count(serves));
        let were = Count(faults).one_or("was", "were");
        let others = format!("the other destinations accepted {serves}");
        limit.detail = format!("{dials} to {names} {were} refused: nothing is listening there; {others}");
        limit.sentence = Sentence::NothingListens { address: names.clone() }.to_string();
        limit.fix = format!("start the server at {names}, or check the address and port");
        return;
    }
    let share =
        if faults == total { "all".to_owned() } else { format!("{} of {}", Count(faults), Count(total)) };
    limit.detail = format!("{}; {share} faults are at {names}", limit.detail);
    limit.fix = format!("at {names}: {}", limit.fix);
}

/// The fewest destinations that have nearly all faults, and the others: none where they are most of all, unless no connection to any of them
/// was opened.
pub(super) fn at_fault(
    all: &[DestinationSummary],
) -> Option<(Vec<&DestinationSummary>, Vec<&DestinationSummary>)> {
    let total: u64 = all.iter().map(DestinationSummary::fault_count).sum();
    let mut sorted: Vec<&DestinationSummary> = all.iter().collect();
    sorted.sort_by_key(|own| std::cmp::Reverse(own.fault_count()));
    let mut sum = 0;
    let n = sorted.iter().position(|own| {
        sum += own.fault_count();
        sum as f64 >= NEARLY_ALL * total as f64
    })? + 1;
    let rest = sorted.split_off(n);
    let (few, serve) = (n * 2 <= all.len(), rest.iter().any(|own| own.opened > 0));
    let are_clear = few || sorted.iter().all(|own| own.opened == 0);
    (total > 0 && are_clear && serve).then_some((sorted, rest))
}

/// What the rows are called that a plan's destinations are counted in; none where there is only one.
pub fn names(plan: &Plan) -> Vec<String> {
    rows(plan).map(|(first, last)| name_of(&first, &last)).collect()
}

/// The first and the last destination of each row; none where there is only one.
pub fn rows(plan: &Plan) -> impl Iterator<Item = (String, String)> {
    let all = plan.destinations();
    let rows = if all.len() < 2 { 0 } else { all.len().min(MAX_DESTINATIONS) };
    (0..rows).map(move |row| {
        let last = first_of(row + 1, all.len()) - 1;
        (all[first_of(row, all.len())].to_string(), all[last].to_string())
    })
}

/// The first of `n` destinations that is counted in this row, or in a later one.
pub fn first_of(row: usize, n: usize) -> usize {
    (0..n).find(|at| row_of(*at, n) >= row).unwrap_or(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::fault;
    use samples::{Kind, Stage};

    fn at(port: u16, opened: u64, refused: u64) -> DestinationSummary {
        let faults = if refused > 0 { vec![fault(Stage::Dial, Kind::Refused, refused)] } else { Vec::new() };
        let name = format!("127.0.0.1:{port}");
        DestinationSummary { destination: name.clone(), last: name, opened, faults, ..Default::default() }
    }

    fn limit(cause: Cause) -> Limit {
        let (detail, fix) = ("50 dials were refused".to_owned(), "look at its log".to_owned());
        Limit {
            side: samples::Side::Target,
            cause,
            at_connections: 50,
            certainty: samples::Certainty::Seen,
            first_seen_s: None,
            sentence: String::new(),
            detail,
            fix,
        }
    }

    /// (detail, fix)
    fn check(cause: Cause, all: &[DestinationSummary], expected: (&str, &str)) {
        let mut limit = limit(cause);
        name(&mut limit, all);
        assert_eq!((limit.detail.as_str(), limit.fix.as_str()), expected, "{all:?}");
    }

    #[test]
    fn the_one_that_fails_is_named() {
        let (detail, fix) = ("50 dials were refused", "look at its log");
        check(
            Cause::Refused,
            &[at(1, 50, 0), at(2, 0, 50)],
            (
                "50 dials to 127.0.0.1:2 were refused: nothing is listening there; the other destinations accepted 50",
                "start the server at 127.0.0.1:2, or check the address and port",
            ),
        );
        check(
            Cause::Refused,
            &[at(1, 50, 0), at(2, 20, 30)],
            ("50 dials were refused; all faults are at 127.0.0.1:2", "at 127.0.0.1:2: look at its log"),
        );
        check(
            Cause::Closed,
            &[at(1, 50, 1), at(2, 20, 49), at(3, 50, 0)],
            ("50 dials were refused; 49 of 50 faults are at 127.0.0.1:2", "at 127.0.0.1:2: look at its log"),
        );
        // Not one connection to any of them.
        check(
            Cause::Refused,
            &[at(1, 50, 0), at(2, 0, 50), at(3, 0, 50)],
            (
                "100 dials to 127.0.0.1:2, 127.0.0.1:3 were refused: nothing is listening there; the other destinations accepted 50",
                "start the server at 127.0.0.1:2, 127.0.0.1:3, or check the address and port",
            ),
        );
        check(Cause::Refused, &[at(1, 50, 0), at(2, 1, 50), at(3, 0, 50)], (detail, fix));
        // All alike, none at fault, or no other that serves.
        check(Cause::Refused, &[at(1, 50, 25), at(2, 50, 25)], (detail, fix));
        check(Cause::Refused, &[at(1, 50, 0), at(2, 50, 0)], (detail, fix));
        check(Cause::Refused, &[at(1, 0, 0), at(2, 0, 50)], (detail, fix));
        check(Cause::Refused, &[], (detail, fix));
    }

    #[test]
    fn a_row_of_several_has_its_first_and_last() {
        let bounds: Vec<usize> = (0..=64).map(|row| first_of(row, 130)).collect();
        assert!(bounds.windows(2).all(|two| (2..=3).contains(&(two[1] - two[0]))), "{bounds:?}");
        assert_eq!((bounds[0], bounds[64]), (0, 130));
        assert_eq!((0..=5).map(|row| first_of(row, 5)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }
}

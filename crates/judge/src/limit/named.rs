//! Names the destinations that a limit is about.

use samples::{Cause, DestinationSummary, Limit};
use units::Count;

use super::Sentence;
use crate::destinations::at_fault;

/// More are not named one by one.
const MAX_NAMED: usize = 3;

/// Names the destinations that have nearly all faults, where others serve without.
pub(crate) fn at_destinations(limit: &mut Limit, all: &[DestinationSummary]) {
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
        at_destinations(&mut limit, all);
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
}

use samples::{Kind, Stage};

use super::*;
use crate::{Record, fixture::fault};

fn answers(all: &[(Experiment, bool, u64)]) -> Answers {
    let failed = Outcome::Failed(fault(Stage::Dial, Kind::Refused, 1));
    let answer = |(experiment, served, open): &(Experiment, bool, u64)| Answer {
        experiment: *experiment,
        why: String::new(),
        outcome: if *served { Outcome::Served(Nanos::from_millis(2)) } else { failed.clone() },
        open: *open,
        at: Nanos::ZERO,
        took: Nanos::ZERO,
    };
    Answers(all.iter().map(answer).collect())
}

#[test]
fn answers_tell_how_connections_were_turned_away() {
    use TurnedAway::{Broken, ByAddress, BySource, Full, Passed};
    let check = |all: &[(Experiment, bool, u64)], expected| {
        assert_eq!(answers(all).turned_away(100), expected, "{all:?}");
    };
    check(&[], None);
    check(&[(Pause, true, 100)], Some(Passed));
    check(&[(Pause, true, 90)], Some(Passed));
    check(&[(Pause, true, 89)], None);
    check(&[(Pause, false, 100)], None);
    check(&[(Pause, false, 50)], Some(Broken));
    check(&[(Pause, false, 100), (OtherSource, true, 100)], Some(BySource));
    check(&[(Pause, false, 100), (OtherSource, false, 100), (OtherAddress, true, 100)], Some(ByAddress));
    check(&[(Pause, false, 100), (OtherSource, false, 100), (Half, true, 50)], Some(Full));
    check(&[(Pause, false, 100), (Half, false, 50)], Some(Broken));
}

#[test]
fn what_is_served_in_part_decides_nothing() {
    let mixed = || Outcome::Mixed(fault(Stage::Dial, Kind::Refused, 1));
    for nth in 0..2 {
        let mut own = answers(&[(Pause, false, 100), (OtherSource, true, 100), (Half, true, 50)]);
        assert_eq!(own.turned_away(100), Some(TurnedAway::BySource));
        own.0[nth].outcome = mixed();
        assert_eq!(own.turned_away(100), [None, Some(TurnedAway::Full)][nth]);
    }
    let mut half = answers(&[(Pause, false, 100), (Half, true, 50)]);
    half.0[1].outcome = mixed();
    assert_eq!(half.turned_away(100), None);
}

#[test]
fn small_segments_help_where_others_do_not() {
    let check = |all: &[(Experiment, bool, u64)], none, expected| {
        assert_eq!(answers(all).needs_small_segments(none), expected, "{all:?} {none}");
    };
    check(&[(Pause, false, 9), (SmallSegments, true, 9)], false, true);
    check(&[(Pause, true, 9), (SmallSegments, true, 9)], false, false);
    check(&[(Pause, false, 9), (SmallSegments, false, 9)], true, false);
    check(&[(SmallSegments, true, 9)], true, true);
    check(&[(SmallSegments, true, 9)], false, false);
}

#[test]
fn what_is_decided_is_not_asked() {
    let check = |all: &[(Experiment, bool, u64)], experiment, expected| {
        assert_eq!(answers(all).have_decided(experiment), expected, "{all:?} {experiment:?}");
    };
    check(&[(Pause, true, 9)], Half, true);
    check(&[(Pause, true, 9)], OtherSource, true);
    check(&[(Pause, true, 9)], Busy, false);
    check(&[(Pause, false, 9), (OtherSource, true, 9)], Half, true);
    check(&[(Pause, false, 9), (OtherSource, true, 9)], OtherAddress, true);
    check(&[(Pause, false, 9), (OtherSource, false, 9)], Half, false);
}

#[test]
fn faster_alone_is_less_than_half() {
    let check = |median_ms: u64, expected| {
        let own = answers(&[(Alone, true, 9)]);
        assert_eq!(own.faster_alone(Nanos::from_millis(median_ms)), expected, "{median_ms}");
    };
    check(5, Some(Nanos::from_millis(2)));
    check(4, None);
    assert_eq!(answers(&[(Alone, false, 9)]).faster_alone(Nanos::from_secs(9)), None);
    assert_eq!(answers(&[]).faster_alone(Nanos::from_secs(9)), None);
}

/// Answers are stored with the run and read by later versions; records of earlier versions have none.
#[test]
fn answers_are_stored() {
    let outcomes = [
        Outcome::Served(Nanos(7)),
        Outcome::Open,
        Outcome::Unanswered,
        Outcome::Failed(fault(Stage::Dial, Kind::Refused, 1)),
        Outcome::Closed(Nanos(7)),
        Outcome::Stayed(Nanos(7)),
        Outcome::Tls(true),
    ];
    let mut all = answers(&[(Tls, true, 1); 7]);
    all.0.iter_mut().zip(outcomes).for_each(|(answer, outcome)| answer.outcome = outcome);
    let text = serde_json::to_string(&all).unwrap();
    assert_eq!(serde_json::from_str::<Answers>(&text).unwrap(), all);
    assert_eq!(serde_json::from_str::<Record>("{}").unwrap().answers, Answers::default());
}

#[test]
fn answers_are_shown_in_summary_and_marks() {
    let mut all = answers(&[(Half, true, 1), (Busy, true, 9)]);
    (all.0[0].why, all.0[0].took, all.0[0].at) = ("a, or b".to_owned(), Nanos::from_millis(1_500), Nanos(5));
    all.0[1].outcome = Outcome::Stayed(Nanos::from_millis(2_600));
    let shown = all.for_summary();
    let (what, answer) = ("half".to_owned(), "served in 2.0 ms, with 1 connection open".to_owned());
    let expected = ExperimentSummary { what, why: "a, or b".to_owned(), answer, took_s: 1.5 };
    assert_eq!((&shown[0], shown[1].answer.as_str()), (&expected, "still open after 2.6 s"));
    let marks: Vec<Mark> = all.marks().collect();
    let first = ("half: served in 2.0 ms, with 1 connection open", MarkKind::Experiment, Nanos(5));
    assert_eq!(
        (marks[0].what.as_str(), marks[0].kind, marks[0].at, marks.len()),
        (first.0, first.1, first.2, 2)
    );
}

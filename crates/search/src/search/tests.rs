use super::*;

const RANGE: Range = Range { least: 1, most: 20_000 };

/// Searches a target that sustains up to `capacity` and reports that; returns the loads tried, and the answer.
fn search(mut search: Search, capacity: u64) -> (Vec<u64>, Answer) {
    let mut loads = Vec::new();
    while let Some(proposal) = search.propose() {
        loads.push(proposal.load);
        let failed = Outcome::Failed { sustained: Some(capacity), limit: SeenLimit::None, is_certain: false };
        search.learn(proposal.load, if proposal.load <= capacity { Outcome::Passed } else { failed });
    }
    (loads, search.answer())
}

fn fail(sustained: Option<u64>) -> Outcome {
    Outcome::Failed { sustained, limit: SeenLimit::None, is_certain: false }
}

#[test]
fn a_limit_of_open_files_takes_eight_steps() {
    let (loads, answer) = search(Search::new(RANGE, 0.02).with_baseline(5), 1_020);
    assert!(loads.len() <= 8 && loads[..2] == [5, 20_000], "{loads:?}");
    let Answer::Found { max, interval } = answer else { panic!("{answer:?}") };
    assert!((1_000..=1_020).contains(&max) && interval.low <= 1_020 && 1_020 <= interval.high, "{answer:?}");
    assert!(interval.high - interval.low <= 41, "{answer:?}");
    // The result was tried, and loads slightly above and below it.
    assert!(loads.contains(&max) && loads.iter().any(|load| (1_021..1_050).contains(load)), "{loads:?}");
}

#[test]
fn climbs_by_a_factor_stay_within_it() {
    let (loads, answer) = search(Search::new(RANGE, 0.02).climbing_from(100, 4), 1_020);
    assert_eq!(loads[..3], [100, 400, 1_600]);
    assert!(
        loads.iter().all(|load| *load <= 4 * 1_020) && matches!(answer, Answer::Found { .. }),
        "{loads:?}"
    );
}

#[test]
fn the_ends_of_the_range_are_answers() {
    let (loads, answer) = search(Search::new(RANGE, 0.02).with_baseline(5), 30_000);
    assert_eq!((loads, answer), (vec![5, 20_000], Answer::NotReached { most: 20_000 }));
    let (loads, answer) = search(Search::new(Range { least: 21, most: 500 }, 0.02).with_baseline(40), 12);
    assert_eq!(answer, Answer::Impossible { least: 21 });
    assert!(loads.len() <= 6, "{loads:?}");
    let one = Range { least: 7, most: 7 };
    assert_eq!(search(Search::new(one, 0.02), 7).1, Answer::NotReached { most: 7 });
    assert_eq!(search(Search::new(one, 0.02), 6).1, Answer::Impossible { least: 7 });
}

#[test]
fn a_few_connections_are_counted_exactly() {
    let (loads, answer) = search(Search::new(RANGE, 0.02).with_baseline(2), 5);
    assert!(
        matches!(answer, Answer::Found { max: 5, interval: Interval { low: 5, high: 5 } }),
        "{answer:?} {loads:?}"
    );
}

#[test]
fn a_certain_failure_ends_it() {
    let mut search = Search::new(RANGE, 0.02).with_baseline(5);
    let certain = Outcome::Failed { sustained: None, limit: SeenLimit::None, is_certain: true };
    let mut gone = search.clone();
    search.learn(5, certain);
    assert_eq!((search.propose(), search.answer()), (None, Answer::Impossible { least: 1 }));
    // A load that passed remains so.
    gone.learn(5, Outcome::Passed);
    gone.learn(20_000, certain);
    let expected = (Some(5), Some(20_000));
    assert!(
        matches!(gone.answer(), Answer::Unsettled { passed, failed, .. } if (passed, failed) == expected)
    );
    assert_eq!(gone.propose(), None);
}

#[test]
fn what_throng_cannot_generate_bounds_the_search_and_not_the_target() {
    let mut search = Search::new(RANGE, 0.02).with_baseline(5);
    search.learn(5, Outcome::Passed);
    search.learn(20_000, Outcome::Invalid);
    assert_eq!(search.propose().map(|next| next.load), Some(10_002), "half way from what passed");
    assert!(matches!(search.answer(), Answer::Unsettled { passed: Some(5), failed: None, .. }));
    let mut others = search.clone();
    while let Some(next) = search.propose() {
        search.learn(next.load, if next.load < 20_000 { Outcome::Passed } else { Outcome::Invalid });
    }
    assert!(matches!(search.answer(), Answer::NotReached { most: 19_600..20_000 }), "{:?}", search.answer());
    // throng was late by chance.
    while let Some(next) = others.propose() {
        others.learn(next.load, Outcome::Passed);
    }
    assert_eq!(others.answer(), Answer::NotReached { most: 20_000 });
    // An invalid baseline does not bound the search, either.
    let mut search = Search::new(RANGE, 0.02).with_baseline(5).climbing_from(500, 4);
    search.learn(5, Outcome::Invalid);
    assert_eq!(search.propose().map(|next| next.load), Some(500));
    // throng cannot generate any load.
    let mut search = Search::new(Range { least: 1, most: 3 }, 0.02);
    [3, 1].into_iter().for_each(|load| search.learn(load, Outcome::Invalid));
    assert_eq!(search.propose(), None);
    assert!(matches!(search.answer(), Answer::Unsettled { passed: None, failed: None, .. }));
}

/// The next proposal after these results of the proposed steps.
fn after(mut search: Search, outcomes: &[Outcome]) -> Proposal {
    for outcome in outcomes {
        let next = search.propose().expect("the search is not over");
        search.learn(next.load, *outcome);
    }
    search.propose().expect("the search is not over")
}

#[test]
fn a_target_that_was_overloaded_may_recover_first() {
    let check = |outcomes: &[Outcome], settles: bool| {
        let next = after(Search::new(RANGE, 0.02), outcomes);
        assert_eq!(next.settle, settles.then_some((next.load as f64 * 0.4) as u64), "{next:?}");
    };
    check(&[], false);
    check(&[fail(Some(1_000))], true);
    check(&[fail(None)], true);
    check(&[fail(None), Outcome::Passed], false);
}

#[test]
fn a_first_failure_counts_when_no_more_is_sustained_the_next_time() {
    let check = |sustained: &[u64], is_repeated: bool| {
        let outcomes: Vec<Outcome> = sustained.iter().map(|part| fail(Some(*part))).collect();
        let next = after(Search::new(RANGE, 0.02).that_holds(), &outcomes);
        assert_eq!(next.load == RANGE.most, is_repeated, "{sustained:?}: {next:?}");
    };
    check(&[], true);
    check(&[100], true);
    // A cold target sustains more each time.
    check(&[100, 106], true);
    check(&[100, 105], false);
    check(&[100, 120, 140, 160], true);
    check(&[100, 120, 140, 160, 180], false);
    // Nothing was measured.
    check(&[0], false);
    // A limit on open files counts immediately.
    let seen = Outcome::Failed { sustained: Some(100), limit: SeenLimit::Fixed, is_certain: false };
    assert!(after(Search::new(RANGE, 0.02).that_holds(), &[seen]).load < 110);
}

#[test]
fn a_failure_that_is_to_be_repeated_was_seen() {
    let mut search = Search::new(RANGE, 0.02).that_holds();
    search.learn(500, Outcome::Passed);
    search.learn(2_000, fail(Some(1_000)));
    let answer = search.answer();
    let expected = (Some(500), Some(2_000));
    assert!(matches!(answer, Answer::Unsettled { passed, failed, .. } if (passed, failed) == expected));
}

#[test]
fn of_a_first_failure_the_best_counts_that_lasts() {
    let check = |sustained: &[u64], expected: u64| {
        let outcomes: Vec<Outcome> = sustained.iter().map(|part| fail(Some(*part))).collect();
        let next = after(Search::new(RANGE, 0.02).that_holds(), &outcomes).load;
        assert!(next.abs_diff(expected) * 20 < expected, "{sustained:?}: {next}");
    };
    check(&[1_000, 1_010], 1_010);
    // The target degrades during the overload.
    check(&[1_000, 700], 1_000);
    check(&[1_000, 1_400, 1_000], 1_000);
}

/// Existing connections are kept, unless the target fails to recover that way.
#[test]
fn a_failure_right_after_an_overload_is_repeated_from_below() {
    let holds = || Search::new(RANGE, 0.02).that_holds();
    let overloads = [fail(Some(1_000)), fail(Some(1_000))];
    let first = after(holds(), &overloads);
    assert_eq!(first.settle, Some((first.load as f64 * 0.9) as u64));
    let again = after(holds(), &[&overloads[..], &[fail(Some(700))]].concat());
    assert_eq!((again.load, again.settle), (first.load, Some((first.load as f64 * 0.4) as u64)));
    // The target had not recovered, so it gets a pause from then on.
    let rested = [&overloads[..], &[fail(Some(700)), Outcome::Passed, fail(Some(1_000))]].concat();
    let next = after(holds(), &rested);
    assert_eq!(next.settle, Some((next.load as f64 * 0.4) as u64));
    // The target had recovered: it sustains as much as in the overload, or no more from below.
    for outcomes in [&[fail(Some(1_000))][..], &[fail(Some(700)), fail(Some(700))]] {
        let next = after(holds(), &[&overloads[..], outcomes].concat());
        assert_eq!(next.settle, Some((next.load as f64 * 0.9) as u64), "{outcomes:?}");
    }
}

/// A load must have passed even if the capacity was measured well.
#[test]
fn a_result_was_seen_to_pass() {
    for capacity in (950..1_050).chain([49_999]) {
        let mut search = Search::new(Range { least: 1, most: 1_000_000 }, 0.02).that_holds();
        let full =
            Outcome::Failed { sustained: Some(capacity), limit: SeenLimit::Plateau, is_certain: false };
        let mut passed = Vec::new();
        while let Some(next) = search.propose() {
            passed.extend((next.load < capacity).then_some(next.load));
            search.learn(next.load, if next.load < capacity { Outcome::Passed } else { full });
        }
        let answer = search.answer();
        assert!(
            matches!(answer, Answer::Found { max, .. } if passed.contains(&max)),
            "{passed:?} {answer:?}"
        );
    }
}

#[test]
fn a_search_climbs_and_narrows_and_confirms() {
    let mut search = Search::new(RANGE, 0.02);
    let mut seen = Vec::new();
    while let Some(next) = search.propose() {
        let is_precise = search.interval().is_within(FOUND);
        assert_eq!(next.purpose == Purpose::Confirm, is_precise);
        seen.push(next.purpose);
        search.learn(next.load, if next.load <= 1_000 { Outcome::Passed } else { fail(Some(1_000)) });
    }
    seen.dedup();
    assert_eq!(seen, [Purpose::Climb, Purpose::Narrow, Purpose::Confirm]);
}

#[test]
fn nearly_all_of_a_load_is_no_measurement() {
    let after = |sustained, limit| {
        let mut search = Search::new(RANGE, 0.02);
        let failed = Outcome::Failed { sustained, limit, is_certain: false };
        // The first failure counts when it is repeated.
        while search.failed.is_none() {
            search.learn(10_000, failed);
        }
        search.interval()
    };
    let nothing = after(None, SeenLimit::None);
    assert_eq!(after(Some(9_960), SeenLimit::None), nothing);
    assert_eq!(after(Some(0), SeenLimit::None), nothing);
    assert_ne!(after(Some(9_900), SeenLimit::None), nothing);
    // With a plateau, that part is all that the target accepts.
    assert_ne!(after(Some(9_999), SeenLimit::Plateau), nothing);
    assert_eq!(after(Some(10_000), SeenLimit::Plateau), nothing);
}

#[test]
fn results_that_contradict_each_other_are_unsettled() {
    let mut search = Search::new(Range { least: 1, most: 1_000_000 }, 0.02);
    for (load, outcome) in [(2_000, fail(None)), (1_350, Outcome::Passed), (500, fail(None))] {
        search.learn(load, outcome);
    }
    let answer = search.answer();
    assert!(matches!(answer, Answer::Unsettled { passed: Some(1_350), failed: Some(500), .. }), "{answer:?}");
}

#[test]
fn a_first_failure_of_a_cold_target_bounds_nothing() {
    let mut search = Search::new(RANGE, 0.02).with_baseline(5);
    search.learn(5, fail(None));
    while let Some(next) = search.propose() {
        search.learn(next.load, if next.load <= 3_000 { Outcome::Passed } else { fail(Some(3_000)) });
    }
    let answer = search.answer();
    assert!(matches!(answer, Answer::Found { max: 2_900..=3_000, .. }), "{answer:?}");
}

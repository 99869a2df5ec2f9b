//! Properties that hold for any results.

use proptest::prelude::*;
use search::{Answer, Interval, Outcome, Range, Search, SeenLimit};

/// Any result, most often a pass or a failure.
fn outcome() -> impl Strategy<Value = Outcome> {
    let failed = |sustained| Outcome::Failed { sustained, limit: SeenLimit::None, is_certain: false };
    prop_oneof![
        4 => Just(Outcome::Passed),
        3 => Just(failed(None)),
        3 => any::<u32>().prop_map(move |part| failed(Some(part.into()))),
        1 => Just(Outcome::Invalid),
    ]
}

/// Any search from 1 or more to a million or less.
fn search() -> impl Strategy<Value = (Range, Search)> {
    (1u64..2_000, 0u64..1_000_000, 0.0..0.2f64, any::<(bool, bool)>(), 0u64..3_000, 0u64..9).prop_map(
        |(least, more, tolerance, (has_baseline, is_ladder), first, factor)| {
            let range = Range { least, most: least + more };
            let mut search = Search::new(range, tolerance);
            search = if has_baseline { search.with_baseline(first / 50) } else { search };
            search = if is_ladder { search.climbing_from(first, factor) } else { search };
            (range, search)
        },
    )
}

fn interval(answer: Answer) -> Option<Interval> {
    match answer {
        Answer::Found { interval, .. } | Answer::Unsettled { interval, .. } => Some(interval),
        Answer::NotReached { .. } | Answer::Impossible { .. } => None,
    }
}

fn is_well_formed(answer: Answer, range: Range) -> bool {
    let is_ordered = interval(answer).is_none_or(|i| i.low <= i.high && i.high <= range.most);
    is_ordered
        && match answer {
            Answer::Found { max, interval: Interval { low, high } } => {
                low >= range.least
                    && low <= max
                    && max <= high
                    // Loads are whole numbers.
                    && (low * 10 >= max * 9 || low + 1 == max)
                    && (high * 10 <= max * 11 || high == max + 1)
            }
            Answer::NotReached { most } => most <= range.most,
            Answer::Impossible { least } => least == range.least,
            Answer::Unsettled { passed, failed, .. } => {
                passed.into_iter().chain(failed).all(|load| (range.least..=range.most).contains(&load))
            }
        }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A search ends within its range, and is deterministic.
    #[test]
    fn any_results_lead_to_an_end(
        (range, mut search) in search(),
        outcomes in proptest::collection::vec(outcome(), 31),
    ) {
        let mut second = search.clone();
        for outcome in outcomes {
            let Some(next) = search.propose() else { break };
            prop_assert_eq!(Some(next), second.propose());
            prop_assert!((range.least..=range.most).contains(&next.load), "{:?}", next);
            prop_assert!(next.settle.is_none_or(|low| (range.least..=next.load).contains(&low)), "{:?}", next);
            search.learn(next.load, outcome);
            second.learn(next.load, outcome);
            prop_assert_eq!(search.answer(), second.answer());
            prop_assert!(is_well_formed(search.answer(), range), "{:?} of {:?}", search.answer(), range);
        }
        prop_assert_eq!(search.propose(), None);
    }

    /// A target that sustains every load up to its capacity and none above.
    #[test]
    fn every_hard_limit_is_found((range, mut search) in search(), share in 0.0..1.1f64, reports: bool) {
        let capacity = (range.most as f64 * share) as u64;
        let mut steps = 0;
        while let Some(next) = search.propose() {
            let failed = Outcome::Failed { sustained: reports.then_some(capacity), limit: SeenLimit::None, is_certain: false };
            search.learn(next.load, if next.load <= capacity { Outcome::Passed } else { failed });
            steps += 1;
        }
        let is_right = match search.answer() {
            Answer::Found { interval, .. } => (interval.low..=interval.high).contains(&capacity),
            Answer::NotReached { most } => most == range.most && capacity >= most,
            Answer::Impossible { least } => capacity < least,
            // Just below the largest load, the two cannot always be distinguished.
            Answer::Unsettled { interval, .. } => (interval.low..=interval.high).contains(&capacity.min(range.most)),
        };
        prop_assert!(is_right, "{:?} of {capacity} in {:?} after {steps}", search.answer(), range);
    }
}

//! A search in JUnit's XML format. The search is a test case, and so is each step.

use samples::{FindOutcome, FindSummary, Point};
use serde_json::json;
use units::{Count, Date};

use super::{find_text, load_of, sentence};
use crate::junit::{Case, Outcome, Suite};

/// The document for a search; `began` is the date of its start. The outcome and the bracketing loads are properties of the suite.
pub fn find_junit(found: &FindSummary, began: Date) -> String {
    let mut steps: Vec<&Point> = found.curve.iter().collect();
    steps.sort_by_key(|point| point.step);
    let steps = steps.into_iter().map(|point| step(point, &found.unit));
    Suite {
        name: format!("throng find {}", found.target),
        began,
        properties: properties(found),
        cases: std::iter::once(search(found)).chain(steps).collect(),
        text: find_text(found, &found.unit),
    }
    .document()
}

/// The result as properties: `max` is the largest load that passed, `failed` the smallest that did not.
fn properties(found: &FindSummary) -> Vec<(&'static str, String)> {
    let known = [
        ("by", Some(found.by.to_string())),
        ("unit", Some(found.unit.to_string())),
        ("outcome", json!(found.outcome).as_str().map(str::to_owned)),
        ("max", Some(found.max.to_string())),
        ("error", Some(found.error.to_string())),
        ("failed", found.failed.map(|load| load.to_string())),
        ("criterion", found.criterion.clone()),
        ("limit", found.limit.as_ref().map(|limit| limit.sentence_with_fix())),
        ("seed", Some(found.seed.to_string())),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The search as a test case, with the outcome that determines its exit status. Its duration is 0, because the suite adds up the
/// steps' durations.
fn search(found: &FindSummary) -> Case {
    let outcome = match found.outcome {
        _ if found.interrupted || found.invalid => Outcome::Error(sentence(found)),
        FindOutcome::Found | FindOutcome::NotReached => Outcome::Passed,
        FindOutcome::Unsettled | FindOutcome::Impossible => Outcome::Failed(sentence(found)),
    };
    Case { name: format!("search by {}", found.by), time_s: 0.0, outcome }
}

/// A step as a test case. A load that does not pass is part of the search and not a failure, so its step is skipped, with the
/// reasons.
fn step(point: &Point, unit: &str) -> Case {
    let did_not = if point.invalid { "invalid" } else { "did not pass" };
    let outcome = match point.pass {
        true => Outcome::Passed,
        false => Outcome::Skipped(format!("{did_not}: {}", point.reasons.join("; "))),
    };
    let Point { step, load, elapsed_s, .. } = point;
    Case {
        name: format!("step {} at {}", Count(u64::from(*step)), load_of(*load, unit)),
        time_s: *elapsed_s,
        outcome,
    }
}

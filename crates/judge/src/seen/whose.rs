//! The part of the run that faults belong to: a step or a population, if there are several.

use samples::{FaultCount, PopulationSummary};

use crate::{
    case::Case,
    trouble::{Trouble, is_response, trouble_of},
};
use record::tolerances::NEARLY_ALL;

/// Appends the step or population with nearly all of the trouble, if there are several: `…, all in step look`.
pub(super) fn name(case: &Case, sentence: String) -> String {
    let is_alone = case.summary.populations.len() < 2;
    let of_populations: Vec<(&str, u64)> =
        case.populations().map(|(name, own)| (name, count_of(case, own))).collect();
    let all: u64 = of_populations.iter().map(|(_, n)| n).sum();
    let is_most = |n: u64| n > 0 && n as f64 >= NEARLY_ALL * all as f64;
    let steps = case.populations().flat_map(|(name, own)| {
        let place =
            move |step: &str| if is_alone { format!("step {step}") } else { format!("step {name}.{step}") };
        let steps = own.steps.iter().filter(|(step, _)| case.scope.step.is_none_or(|of| of == step.as_str()));
        steps.map(move |(step, figures)| (place(step), count(case, &figures.faults)))
    });
    let of_step = steps.filter(|(_, n)| is_most(*n)).max_by_key(|(_, n)| *n);
    let population = || of_populations.iter().find(|(_, n)| !is_alone && is_most(*n));
    let found = of_step.or_else(|| population().map(|(name, n)| (format!("population {name}"), *n)));
    match found {
        None => sentence,
        Some((place, 1)) => format!("{sentence}, in {place}"),
        Some((place, n)) if n == all => format!("{sentence}, all in {place}"),
        Some((place, _)) => format!("{sentence}, nearly all in {place}"),
    }
}

/// Requests sent by the populations that have this trouble.
pub(super) fn sent(case: &Case) -> u64 {
    let met = case.populations().filter(|(_, own)| count(case, &own.faults) > 0);
    match case.summary.populations.len() {
        0 | 1 => case.requests().sent,
        _ => met.map(|(_, own)| own.requests.sent).sum(),
    }
}

/// Number of faults of a population. Requests outstanding at the end are not counted by step.
fn count_of(case: &Case, own: &PopulationSummary) -> u64 {
    let unanswered = if case.trouble == Trouble::Waiting { own.requests.unanswered } else { 0 };
    let of_step = case.scope.step.and_then(|step| own.steps.get(step));
    count(case, of_step.map_or(&own.faults, |step| &step.faults)) + unanswered
}

/// Number of faults of the case's kind of trouble.
fn count(case: &Case, faults: &[FaultCount]) -> u64 {
    let is_one = |f: &&FaultCount| {
        trouble_of(f) == case.trouble && (case.trouble != Trouble::WrongAnswer || is_response(f))
    };
    faults.iter().filter(is_one).map(|f| f.count).sum()
}

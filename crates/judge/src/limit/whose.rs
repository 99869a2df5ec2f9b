//! Whose the faults are: a step's, or a population's, where there are several.

use samples::{FaultCount, PopulationSummary};

use super::{Case, Sentence, Trouble, sentence::HowMany, trouble_of, wrong};

/// What has this share of all faults is named.
const NEARLY_ALL: f64 = 0.95;

/// The sentence, and the step that has nearly all of what went wrong, or the population, of several.
pub(super) fn name(case: &Case, sentence: Sentence) -> Sentence {
    let populations = &case.summary.populations;
    let of_populations: Vec<(&str, u64)> =
        populations.iter().map(|(name, own)| (name.as_str(), count_of(case, own))).collect();
    let all: u64 = of_populations.iter().map(|(_, n)| n).sum();
    let is_most = |n: u64| n > 0 && n as f64 >= NEARLY_ALL * all as f64;
    let is_alone = populations.len() < 2;
    let steps = populations.iter().flat_map(|(name, own)| {
        let place =
            move |step: &str| if is_alone { format!("step {step}") } else { format!("step {name}.{step}") };
        own.steps.iter().map(move |(step, figures)| (place(step), count(case, &figures.faults)))
    });
    let of_step = steps.filter(|(_, n)| is_most(*n)).max_by_key(|(_, n)| *n);
    let population = || of_populations.iter().find(|(_, n)| !is_alone && is_most(*n));
    let found = of_step.or_else(|| population().map(|(name, n)| (format!("population {name}"), *n)));
    let Some((place, n)) = found else { return sentence };
    let how_many = match n {
        1 => HowMany::One,
        n if n == all => HowMany::All,
        _ => HowMany::NearlyAll,
    };
    Sentence::Whose { sentence: Box::new(sentence), place, how_many }
}

/// Requests sent by those that have any of it.
pub(super) fn sent(case: &Case) -> u64 {
    let s = case.summary;
    let met = s.populations.values().filter(|own| count(case, &own.faults) > 0);
    if s.populations.len() > 1 { met.map(|own| own.requests.sent).sum() } else { s.requests.sent }
}

/// Those of a population. What waits still when the run ends is no step's.
fn count_of(case: &Case, own: &PopulationSummary) -> u64 {
    let unanswered = if case.trouble == Trouble::Waiting { own.requests.unanswered } else { 0 };
    count(case, &own.faults) + unanswered
}

/// Those of the kind that the case is about.
fn count(case: &Case, faults: &[FaultCount]) -> u64 {
    let is_one = |f: &&FaultCount| match trouble_of(f) {
        Trouble::WrongAnswer => case.trouble == Trouble::WrongAnswer && wrong::is_response(f),
        trouble => trouble == case.trouble,
    };
    faults.iter().filter(is_one).map(|f| f.count).sum()
}

//! Whose the faults are: a step's, or a population's, where there are several.

use samples::{FaultCount, Summary};

use super::{Case, Sentence, Trouble, sentence::HowMany, trouble_of, wrong};

/// What has this share of all faults is named.
const NEARLY_ALL: f64 = 0.95;

/// The sentence, and the step or the population that has nearly all of what went wrong.
pub(super) fn name(case: &Case, sentence: Sentence) -> Sentence {
    let places = places(case);
    let all: u64 = places.iter().map(|(_, n)| n).sum();
    match places.into_iter().max_by_key(|(_, n)| *n) {
        Some((Some(place), n)) if n > 0 && n as f64 >= NEARLY_ALL * all as f64 => {
            let how_many = match n {
                1 => HowMany::One,
                n if n == all => HowMany::All,
                _ => HowMany::NearlyAll,
            };
            Sentence::Whose { sentence: Box::new(sentence), place, how_many }
        }
        _ => sentence,
    }
}

/// Requests sent by those that have any of it.
pub(super) fn sent(case: &Case) -> u64 {
    let s = case.summary;
    let met = s.populations.values().filter(|own| count(case, &own.faults) > 0);
    if s.populations.len() > 1 { met.map(|own| own.requests.sent).sum() } else { s.requests.sent }
}

/// Each step, and what of each population is no step's, with its count; without a name where there is no other.
fn places(case: &Case) -> Vec<(Option<String>, u64)> {
    let populations = &case.summary.populations;
    let has_others = populations.len() > 1;
    let of = |(name, own): (&String, &samples::PopulationSummary)| {
        let step = |(step, figures): (&String, &samples::StepSummary)| {
            let step = if has_others { format!("step {name}.{step}") } else { format!("step {step}") };
            (Some(step), count(case, &figures.faults))
        };
        let mut places: Vec<_> = own.steps.iter().map(step).collect();
        let of_steps: u64 = places.iter().map(|(_, n)| n).sum();
        let unanswered = if case.trouble == Trouble::Waiting { own.requests.unanswered } else { 0 };
        let rest = (count(case, &own.faults) + unanswered).saturating_sub(of_steps);
        places.push((has_others.then(|| format!("population {name}")), rest));
        places
    };
    populations.iter().flat_map(of).collect()
}

/// Those of the kind that the case is about.
fn count(case: &Case, faults: &[FaultCount]) -> u64 {
    let is_one = |f: &&FaultCount| match trouble_of(f) {
        Trouble::WrongAnswer => case.trouble == Trouble::WrongAnswer && wrong::is_response(f),
        trouble => trouble == case.trouble,
    };
    faults.iter().filter(is_one).map(|f| f.count).sum()
}

/// A summary in which only this population has faults and requests: what others met is not why it was slow, or failed.
pub(super) fn of_population(s: &Summary, name: &str) -> Option<Summary> {
    let mut s = s.clone();
    let own = s.populations.get(name)?.figures.clone();
    (s.faults, s.requests, s.latency_us) = (own.faults, own.requests, own.latency_us);
    for (_, other) in s.populations.iter_mut().filter(|(other, _)| *other != name) {
        other.faults.clear();
        other.requests = samples::Requests::default();
        other.steps.values_mut().for_each(|step| step.faults.clear());
    }
    Some(s)
}

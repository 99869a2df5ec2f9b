//! Texts and JSON about outcomes: published and current figures side by side.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    across::across,
    file::Lab,
    group::{Spread, groups},
    outcome::Outcome,
    side_by_side::{FIGURES, side_by_side},
    table::aligned,
};

/// The text about one trial.
pub fn trial_text(lab: &Lab, outcome: &Outcome) -> String {
    let mut text = text(lab, &outcome.title(lab), outcome, vec![outcome]);
    let experiment = lab.experiment(&outcome.subject.experiment);
    let look = experiment.and_then(|experiment| experiment.look.as_ref());
    text.extend(look.map(|look| format!("  look at: {look}\n")));
    text
}

/// The text about all trials, with repetitions combined, followed by a table of all servers.
///
/// # Panics
/// An outcome belongs to none of these labs.
pub fn compare_text(labs: &[Lab], outcomes: &[Outcome]) -> String {
    let mut all = String::new();
    for group in groups(outcomes) {
        let lab = labs.iter().find(|lab| lab.name == group.subject.lab).expect("a lab of its own");
        let title = format!("{}, {} times", group.last().title(lab), group.outcomes.len());
        all += &text(lab, &title, group.last(), group.counted());
    }
    all + &aligned(&across(outcomes))
}

/// The figures of repetitions, and how the last one ended.
fn text(lab: &Lab, title: &str, last: &Outcome, counted: Vec<&Outcome>) -> String {
    let then = lab.experiment(&last.subject.experiment).map(|experiment| &experiment.then);
    let scale = last.subject.scale;
    let now = if scale == 1.0 { "now".to_owned() } else { format!("now, at scale {scale}") };
    let rows = side_by_side(then.unwrap_or(&BTreeMap::new()), &[(now, counted)]);
    format!("{title}\n{}  {}\n", aligned(&rows), last.headline())
}

/// The medians of each trial's repetitions as JSON, by their paths in the summary (schema `throng.lab.compare/1`).
pub fn compare_json(outcomes: &[Outcome]) -> String {
    let mut trials = Vec::new();
    for group in groups(outcomes) {
        let counted = group.counted();
        let median =
            |(path, _): &(&str, _)| Some(((*path).to_owned(), Spread::of(&counted, path)?.median.into()));
        let medians: Map<String, Value> = FIGURES.iter().filter_map(median).collect();
        trials.push(json!({
            "trial": group.subject,
            "times": group.outcomes.len(),
            "expected": group.outcomes.iter().all(|outcome| outcome.expected),
            "headline": group.last().headline(),
            "limit": group.last().summary["limit"],
            "medians": medians,
        }));
    }
    let all = json!({ "schema": "throng.lab.compare/1", "trials": trials });
    serde_json::to_string_pretty(&all).expect("plain fields") + "\n"
}

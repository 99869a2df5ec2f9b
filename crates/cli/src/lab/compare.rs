//! Results of labs, from the stored outcomes: then and now, and all servers in one table.

use std::fs;

use lab::{ACROSS_HEAD, Lab, Outcome, Page, across, groups, then_and_now, wide};
use serde_json::{Value, json};

use super::{table, trials};
use crate::{Failure, args::LabCompareArgs, tell};

/// Compares; returns the exit status.
pub(super) fn compare(labs: &[Lab], args: &LabCompareArgs) -> Result<u8, Failure> {
    let file = trials::results_file(args.results.as_deref())?;
    if !file.exists() {
        let cure = "run `throng lab run`, or select a file with --results";
        return Err(Failure::words([format!("no results yet; {cure}: {}", file.display())]));
    }
    let mut outcomes =
        Outcome::all(&file).map_err(|why| Failure::words([format!("{why}; remove the damaged line")]))?;
    let of_name = |lab: &&Lab| args.name.as_ref().is_none_or(|name| lab.name == *name);
    let labs: Vec<Lab> = labs.iter().filter(of_name).cloned().collect();
    outcomes.retain(|outcome| labs.iter().any(|lab| lab.name == outcome.subject.lab));
    if outcomes.is_empty() {
        return Err(Failure::words([format!("no results of this lab yet: {}", file.display())]));
    }
    let mut text = String::new();
    for group in groups(&outcomes) {
        let last = group.last();
        let lab = labs.iter().find(|lab| lab.name == group.subject.lab).expect("others were left out");
        let then = lab.experiment(&group.subject.experiment).map(|experiment| &experiment.then);
        let rows = then_and_now(then.unwrap_or(&std::collections::BTreeMap::new()), &group.counted());
        let title = format!("{}, {} times", last.title(lab), group.outcomes.len());
        text += &table(&title, group.subject.scale, &rows);
        text += &format!("  {}\n", last.headline());
    }
    text += &wide(ACROSS_HEAD, &across(&outcomes));
    if let Some(file) = &args.markdown {
        let failed = |e: std::io::Error| Failure::machine(format!("--markdown {}: {e}", file.display()));
        let page = Page::of(&labs, &outcomes).map_err(|why| Failure::words([why]))?;
        let pictures = file.with_file_name("experiments");
        fs::create_dir_all(&pictures).map_err(failed)?;
        fs::write(file, page.text).map_err(failed)?;
        for (name, svg) in page.pictures {
            fs::write(pictures.join(name), svg).map_err(failed)?;
        }
    }
    tell(&text, args.json.as_deref(), || json(&outcomes))?;
    Ok(0)
}

/// Of each trial the medians of what its repetitions had, by the summary's paths.
fn json(outcomes: &[Outcome]) -> String {
    let one = |group: lab::Group| {
        let last = group.last();
        let mut medians = serde_json::Map::new();
        for path in lab::figures() {
            medians.extend(group.spread(path).map(|spread| (path.to_owned(), Value::from(spread.median))));
        }
        json!({
            "trial": group.subject,
            "times": group.outcomes.len(),
            "expected": group.outcomes.iter().all(|outcome| outcome.expected),
            "headline": last.headline(),
            "limit": last.summary["limit"],
            "medians": medians,
        })
    };
    let trials: Vec<Value> = groups(outcomes).into_iter().map(one).collect();
    let all = json!({ "schema": "throng.lab.compare/1", "trials": trials });
    serde_json::to_string_pretty(&all).expect("plain fields") + "\n"
}

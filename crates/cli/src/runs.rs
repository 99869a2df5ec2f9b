//! `throng runs`, and access to the run store for other commands.

use std::{env, sync::Arc};

use exporters::Backlog;
use fleet::Fleet;
use host::Root;
use samples::{Calibration, Examples, RunRecord, TickRecord};
use store::{RunFilter, Store, StoreWriter, StoredAs, StoredRun, VERDICTS, folders};
use units::{Date, Nanos};

use crate::{Failure, args::RunsArgs, message, mistakes::Mistakes, print_stdout};

/// Lists stored runs, or changes one.
pub(crate) fn runs(args: &RunsArgs) -> Result<u8, Failure> {
    let wanted = Wanted::read(args, units::date().into())?;
    let runs = match &args.run {
        Some(id) => {
            let (store, run) = find(id)?;
            match changed(args, &store, run)? {
                Some(run) if !args.json => {
                    let mut examples = Examples::default();
                    let mut each = |record: TickRecord<'static>| {
                        record.tick.examples.iter().for_each(|own| examples.add(own.clone()))
                    };
                    store.ticks(&run.id, &mut each).map_err(Failure::machine)?;
                    print_stdout(&(view::runs_text(&[run]) + &view::examples_text(&examples)))?;
                    return Ok(0);
                }
                Some(run) => vec![run],
                None => return Ok(0),
            }
        }
        None => {
            let file = folders::runs().map_err(Failure::machine)?;
            let store = Store::existing(&file).map_err(Failure::machine)?;
            let store = store.as_ref();
            let found = store.map_or(Ok(Vec::new()), |store| store.runs(&wanted.filter()));
            let mut runs = found.map_err(Failure::machine)?;
            let any = || store.map_or(Ok(Vec::new()), |store| store.latest(&RunFilter::default(), 1));
            if runs.is_empty() && !args.json && any().map_err(Failure::machine)?.is_empty() {
                message(&format!("no stored runs in {}", file.display()));
                return Ok(0);
            }
            runs.retain(|run| wanted.is_since(&run.record));
            runs
        }
    };
    print_stdout(&if args.json { view::runs_json(&runs) } else { view::runs_text(&runs) })?;
    Ok(0)
}

/// Finds a run by its identifier or as `latest`; also returns the store.
pub(crate) fn find(id: &str) -> Result<(Store, StoredRun), Failure> {
    let store = store()?;
    let found = store.as_ref().map(|store| store.run(id)).transpose().map_err(Failure::machine)?;
    store.zip(found.flatten()).ok_or_else(|| Failure::usage([store::missing(id)]))
}

/// The store; `None` if there is none yet.
pub(crate) fn store() -> Result<Option<Store>, Failure> {
    Store::existing(&folders::runs().map_err(Failure::machine)?).map_err(Failure::machine)
}

/// Applies the requested changes; returns the changed run, or `None` if it was deleted.
fn changed(args: &RunsArgs, store: &Store, run: StoredRun) -> Result<Option<StoredRun>, Failure> {
    if args.delete {
        if run.is_under_way(units::date().into()) {
            let id = &run.id;
            return Err(Failure::usage([format!("--delete: run {id} is in progress; stop it first")]));
        }
        store.delete(&run.id).map_err(Failure::machine)?;
        message(&format!("deleted run {}", run.id));
        return Ok(None);
    }
    if args.tag.is_none() && args.untag.is_none() {
        return Ok(Some(run));
    }
    let mut tags = run.record.tags.clone();
    tags.retain(|tag| Some(tag) != args.untag.as_ref() && Some(tag) != args.tag.as_ref());
    tags.extend(args.tag.clone());
    store.tag(&run, tags).map(Some).map_err(Failure::machine)
}

/// The conditions for the runs to list.
struct Wanted<'a> {
    args: &'a RunsArgs,
    /// The earliest start.
    since: Since,
}

enum Since {
    Ever,
    Moment(Date),
    /// A day, as text with which dates begin.
    Day(String),
}

impl Wanted<'_> {
    /// Parses the arguments; reports all mistakes at once.
    fn read(args: &RunsArgs, now: Date) -> Result<Wanted<'_>, Failure> {
        let mut mistakes = Mistakes::default();
        mistakes.read("--verdict", args.verdict.as_deref(), |verdict| {
            let is_known = VERDICTS.contains(&verdict).then_some(());
            is_known.ok_or_else(|| format!("use {}: {verdict:?}", VERDICTS.join(", ")))
        });
        mistakes.read("--tag", args.tag.as_deref(), plan::tag);
        let since = mistakes.read("--since", args.since.as_deref(), |text| {
            let why = || format!("not a date or a time; use 2026-11-20 or 12h: {text:?}");
            since(text, now).ok_or_else(why)
        });
        mistakes.end(Wanted { args, since: since.unwrap_or(Since::Ever) })
    }

    /// The conditions that the store can check.
    fn filter(&self) -> RunFilter {
        let RunsArgs { target, verdict, tagged, .. } = self.args;
        RunFilter { target: target.clone(), verdict: verdict.clone(), tag: tagged.clone(), before: None }
    }

    fn is_since(&self, record: &RunRecord) -> bool {
        match &self.since {
            Since::Ever => true,
            Since::Moment(then) => record.began_ms >= *then,
            Since::Day(day) => record.began_ms.day() >= *day,
        }
    }
}

fn since(text: &str, now: Date) -> Option<Since> {
    if let Ok(ago) = Nanos::parse(text) {
        return Some(Since::Moment(Date(now.0.saturating_sub(ago.0 / 1_000_000))));
    }
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let number = |from: usize| text[from..from + 2].parse().unwrap_or(0u8);
    let is_day = shape == "0000-00-00" && (1..=12).contains(&number(5)) && (1..=31).contains(&number(8));
    is_day.then(|| Since::Day(text.to_owned()))
}

/// The record of a run that starts now; `scenario` is the text of its scenario file.
pub(crate) fn record(began: Date, scenario: Option<&str>, tags: &[String]) -> RunRecord {
    let root = Root::real();
    RunRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        // Records are stored and included in reports, so secrets are removed: passwords in URLs and secret headers.
        words: plan::args_without_secrets(
            env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()),
        ),
        began_ms: began,
        host: host::facts(&root),
        settings: host::settings(&root),
        // Secret headers are removed, as above.
        scenario: scenario.map(plan::scenario::without_secrets),
        tags: tags.to_vec(),
        ..RunRecord::default()
    }
}

/// The record of a run on a fleet. It contains the fleet's identifier of the run, by which a later process of the coordinator finds
/// it.
pub(crate) fn on(fleet: Option<&Fleet>, record: RunRecord) -> RunRecord {
    match fleet {
        Some(fleet) => {
            RunRecord { fleet_run: Some(fleet.id().to_owned()), fleet_term: fleet.term(), ..record }
        }
        None => record,
    }
}

/// The sink that stores a run; `None` if there is no folder for the store, which is reported.
pub(crate) fn store_writer(run: &RunRecord) -> Option<StoreWriter> {
    let file = folders::runs().map_err(|why| message(&format!("this run is not stored: {why}"))).ok()?;
    Some(StoreWriter::new(file, run.clone(), Arc::new(message)))
}

/// The calibrations of this machine, latest first. Empty if the store cannot be read, which the store writer reports.
pub(crate) fn calibrations() -> Vec<Calibration> {
    let store = store().ok().flatten();
    store.and_then(|store| store.calibrations(&host::facts(&Root::real())).ok()).unwrap_or_default()
}

/// Sends the metrics that a server did not accept during the run from the store; returns a message with the result.
pub(crate) fn make_up(behind: Backlog, kept: Option<&StoredAs>) -> String {
    let store = store().ok().flatten();
    let run = store.as_ref().zip(kept).and_then(|(store, kept)| store.run(&kept.id).ok()?);
    behind.make_up(store.as_ref().zip(run.as_ref()))
}

/// The message that names a stored run.
pub(crate) fn kept(StoredAs { id, missed }: &StoredAs) -> String {
    match missed {
        0 => format!("stored as run {id}"),
        missed => format!("stored as run {id}, without {missed} of its ticks"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_ago_and_a_day_are_moments() {
        let now = Date(1_800_000_000_000);
        assert!(matches!(since("12h", now), Some(Since::Moment(Date(1_799_956_800_000)))));
        assert!(matches!(since("2026-11-20", now), Some(Since::Day(day)) if day == "2026-11-20"));
        for wrong in
            ["2026-13-01", "2026-00-10", "2026-11-32", "2026-11", "20.11.2026", "yesterday", "2026-1é-01"]
        {
            assert!(since(wrong, now).is_none(), "{wrong}");
        }
    }
}

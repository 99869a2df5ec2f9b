//! The run store as the verbs use it, and `throng runs`.

use std::{env, path::PathBuf, sync::Arc};

use host::Root;
use samples::{Calibration, RunRecord};
use sinks::{Keeper, Kept, Store};
use units::Date;

use crate::{Failure, answer, args::RunsArgs, folders, say};

/// Lists what is stored.
pub(crate) fn runs(args: &RunsArgs) -> Result<u8, Failure> {
    let file = file().map_err(Failure::machine)?;
    let store = Store::existing(&file).map_err(Failure::machine)?;
    let runs = match (&store, &args.run) {
        (None, None) => Vec::new(),
        (Some(store), None) => store.runs().map_err(Failure::machine)?,
        (store, Some(id)) => {
            let found = store.as_ref().map(|store| store.run(id)).transpose().map_err(Failure::machine)?;
            let none = || Failure::words([format!("no such run: `throng runs` lists them: {id}")]);
            vec![found.flatten().ok_or_else(none)?]
        }
    };
    if args.json {
        answer(&sinks::runs_json(&runs))?;
    } else if runs.is_empty() {
        say(&format!("throng: no run is kept yet in {}", file.display()));
    } else {
        answer(&sinks::runs_text(&runs))?;
    }
    Ok(0)
}

/// The store: `$XDG_DATA_HOME/throng/runs.db`, by default below `~/.local/share`.
pub(crate) fn file() -> Result<PathBuf, String> {
    let folder =
        folders::data().ok_or("no place for the run store: set HOME or XDG_DATA_HOME to a folder")?;
    Ok(folder.join("runs.db"))
}

/// The sink that keeps a run that begins now, unless there is no place for it.
pub(crate) fn keeper(began: Date) -> Option<Keeper> {
    let tell = |line: &str| say(&format!("throng: {line}"));
    let file = file().map_err(|why| tell(&format!("this run is not kept: {why}"))).ok()?;
    let run = RunRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        words: env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect(),
        began_ms: began,
        host: host::facts(&Root::real()),
        ..RunRecord::default()
    };
    Some(Keeper::new(file, run, Arc::new(tell)))
}

/// What this machine did when it was calibrated, the latest first. A store that cannot be read has none: the keeper
/// says so.
pub(crate) fn calibrations() -> Vec<Calibration> {
    let store = file().ok().and_then(|file| Store::existing(&file).ok()?);
    store.and_then(|store| store.calibrations(&host::facts(&Root::real())).ok()).unwrap_or_default()
}

/// How a kept run is found again.
pub(crate) fn kept(Kept { id, missed }: &Kept) -> String {
    match missed {
        0 => format!("throng: kept as run {id}"),
        missed => format!("throng: kept as run {id}, without {missed} of its ticks"),
    }
}

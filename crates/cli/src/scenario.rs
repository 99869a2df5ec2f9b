//! Scenario files: the words of a run in a file.

use std::{fs, path::Path};

use plan::{Flags, Plan, Surroundings};

use crate::{Failure, run};

/// Reads a scenario file and all that it names, with what `flags` say of the run; all mistakes at once. Also its text.
pub(crate) fn read(file: &str, flags: &Flags) -> Result<(Plan, String), Failure> {
    let text = text(Path::new(file))
        .map_err(|why| Failure::words([format!("target: the scenario {file:?} cannot be read: {why}")]))?;
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let open = |name: &str| self::text(&folder.join(name));
    let (cores, seed) = (run::cores(), run::seed());
    let around = Surroundings { cores, seed, resolve: &run::resolve };
    let plan = plan::scenario::read(file, &text, flags, &around, &open).map_err(Failure::words)?;
    Ok((run::settled(plan, true), text))
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| e.to_string())
}

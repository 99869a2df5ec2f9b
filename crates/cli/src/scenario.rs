//! `throng run X.toml`: reads and checks the file. What it says is not carried out yet.

use std::{fs, path::Path};

use plan::{Surroundings, scenario::Scenario};

use crate::{Failure, run};

/// Reads a scenario file and all that it names; all mistakes at once.
pub(crate) fn read(file: &str) -> Result<Scenario, Failure> {
    let text = text(Path::new(file))
        .map_err(|why| Failure::words([format!("target: the scenario {file:?} cannot be read: {why}")]))?;
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let open = |name: &str| self::text(&folder.join(name));
    let (cores, seed) = (run::cores(), run::seed());
    let around = Surroundings { cores, seed, resolve: &run::resolve };
    plan::scenario::read(file, &text, &around, &open).map_err(Failure::words)
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| e.to_string())
}

//! `cargo xtask gen`: generates files from tables: Grafana's dashboards for InfluxDB and Prometheus and the guide's description of
//! their panels (from `generate/panels.rs`), the sizes of fleets, the causes of limits, and the benchmark results. A test checks
//! that the files are current.

mod causes;
mod claims;
mod dashboard;
mod figure;
mod guide;
mod panels;
mod sizes;

use crate::command::{no_words, root};
use anyhow::{Context, Result};
use figure::Source;
use std::fs;
use std::path::{Path, PathBuf};

const GUIDE: &str = "docs/guide/grafana.md";
const MACHINES: &str = "docs/guide/machines.md";
const LIMITS: &str = "docs/reference/limits.md";
const CAUSES: &str = "crates/judge/src/causes";
const CLAIMS: &str = "docs/claims.md";
const RESULTS: &str = "bench/results";
/// The measurement from which the sizes of fleets are calculated.
const HELD: &str = "bench/results/hold-1m.json";

pub(crate) fn run(words: &[String]) -> Result<()> {
    no_words(words)?;
    for (path, text) in files(&root()?)? {
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Every generated file, with its expected contents.
fn files(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut files: Vec<(PathBuf, String)> =
        Source::ALL.iter().map(|source| (root.join(source.file()), dashboard::text(*source))).collect();
    let guide = root.join(GUIDE);
    let text = fs::read_to_string(&guide).with_context(|| guide.display().to_string())?;
    files.push((guide, guide::with_panels(&text).context(GUIDE)?));
    let machines = root.join(MACHINES);
    let text = fs::read_to_string(&machines).with_context(|| machines.display().to_string())?;
    let held = fs::read_to_string(root.join(HELD)).with_context(|| HELD.to_owned())?;
    let held = serde_json::from_str(&held).with_context(|| HELD.to_owned())?;
    files.push((machines, sizes::with_sizes(&text, &held).context(MACHINES)?));
    let limits = root.join(LIMITS);
    let text = fs::read_to_string(&limits).with_context(|| LIMITS.to_owned())?;
    files.push((root.join(CLAIMS), claims::text(&root.join(RESULTS)).context(CLAIMS)?));
    files.push((limits, causes::with_causes(&text, &root.join(CAUSES)).context(LIMITS)?));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_as_the_table_says() {
        for (path, text) in files(&root().unwrap()).unwrap() {
            let there = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                there == text,
                "not what the table says, `cargo xtask gen` writes it: {}",
                path.display()
            );
        }
    }
}

//! The runs of a store, for people and for programs.

use std::fmt::Write;

use serde_json::{Value, json};
use units::{Count, Date, Nanos};

use super::StoredRun;

/// No tick for so long: the run is over, however it ended.
const QUIET_MS: u64 = 15_000;

impl StoredRun {
    /// Whether it looks as if it were still running.
    pub fn is_under_way(&self, now: Date) -> bool {
        let seen_ms = self.record.began_ms.0 + (self.elapsed_s() * 1e3) as u64;
        self.summary.is_none() && now.0 < seen_ms + QUIET_MS
    }

    /// `pass`, `fail`, … ; `None`: it did not come to its end, or has not yet.
    pub fn verdict(&self) -> Option<&str> {
        self.summary.as_ref()?["verdict"].as_str()
    }

    /// Connections at the end of the hold, or as last seen.
    pub fn held(&self) -> u64 {
        let held = self.summary.as_ref().and_then(|summary| summary["connections"]["held"].as_u64());
        held.unwrap_or_else(|| self.last.as_ref().map_or(0, |last| last.tick.open))
    }

    /// From the first dial to the end of full load, or to what was seen last; seconds.
    pub fn elapsed_s(&self) -> f64 {
        let elapsed = self.summary.as_ref().and_then(|summary| summary["elapsed_s"].as_f64());
        let seen = || self.last.as_ref().map_or(0.0, |last| last.tick.until.since(self.from).secs_f64());
        elapsed.unwrap_or_else(seen)
    }
}

/// The runs as one JSON array with a line end.
pub fn runs_json(runs: &[StoredRun]) -> String {
    let run = |run: &StoredRun| {
        let r = &run.record;
        json!({
            "id": run.id,
            "began": r.began_ms.to_string(),
            "target": r.header.target,
            "verdict": run.verdict(),
            "wanted": r.header.connections,
            "held": run.held(),
            "elapsed_s": run.elapsed_s(),
            "tags": r.tags,
            "words": r.words,
            "seed": r.header.seed,
            "io": r.header.io,
            "version": r.version,
            "host": r.host,
        })
    };
    let runs: Vec<Value> = runs.iter().map(run).collect();
    format!("{:#}\n", Value::Array(runs))
}

/// A line each, below a head.
pub fn runs_text(runs: &[StoredRun]) -> String {
    let mut out = String::new();
    let mut row = |cells: [&str; 6]| {
        let [id, began, verdict, time, held, target] = cells;
        let line = writeln!(out, "{id:<7}  {began:<20}  {verdict:<11}  {time:>8}  {held:<22}  {target}");
        line.expect("a String takes it");
    };
    row(["run", "began", "verdict", "time", "held of wanted", "target"]);
    for run in runs {
        let header = &run.record.header;
        let time = Nanos((run.elapsed_s() * 1e9) as u64).brief().to_string();
        let held = format!("{} of {}", Count(run.held()), Count(header.connections));
        let verdict = run.verdict().unwrap_or("unfinished");
        let tags: String = run.record.tags.iter().map(|tag| format!("  #{tag}")).collect();
        row([
            &run.id,
            &run.record.began_ms.to_string(),
            verdict,
            &time,
            &held,
            &(header.target.clone() + &tags),
        ]);
    }
    out
}

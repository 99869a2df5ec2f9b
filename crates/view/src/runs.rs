//! The list of stored runs, as text and as JSON.

use std::fmt::Write;

use samples::{Example, Examples, RunRecord};
use serde_json::{Value, json};
use store::StoredRun;
use units::{Count, Nanos};

/// The runs as a JSON array, followed by a line break.
pub fn runs_json(runs: &[StoredRun]) -> String {
    let run = |run: &StoredRun| value(&run.id, &run.record, run.verdict(), run.held(), run.elapsed_s());
    let runs: Vec<Value> = runs.iter().map(run).collect();
    format!("{:#}\n", Value::Array(runs))
}

/// The examples of a run's faults, each with its exchange; empty without any.
pub fn examples_text(examples: &Examples) -> String {
    let of = |example: &Example| format!("\n{}\n{}", example.fault().name(), example.text());
    examples.iter().map(of).collect()
}

/// A run in such a list.
pub(crate) fn value(id: &str, r: &RunRecord, verdict: Option<&str>, held: u64, elapsed_s: f64) -> Value {
    json!({
        "id": id,
        "began": r.began_ms.to_string(),
        "target": r.header.target,
        "verdict": verdict,
        "wanted": r.header.connections,
        "held": held,
        "elapsed_s": elapsed_s,
        "tags": r.tags,
        "words": r.words,
        "seed": r.header.seed,
        "io": r.header.io,
        "version": r.version,
        "host": r.host,
    })
}

/// The runs as a table, one line each.
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

#[cfg(test)]
mod tests {
    use samples::{Header, Tick, TickRecord};

    use super::*;

    #[test]
    fn a_run_that_did_not_end_is_unfinished() {
        let header = Header { connections: 200, ..Header::default() };
        let record = RunRecord { header, ..RunRecord::default() };
        let tick = Tick { until: Nanos::from_secs(3), open: 102, ..Tick::default() };
        let last = TickRecord { tick: std::borrow::Cow::Owned(tick), ..TickRecord::default() };
        let (id, figures) = ("0000007".to_owned(), Value::Null);
        let stored = StoredRun { id, record, summary: None, figures, last: Some(last), from: Nanos::ZERO };
        let text = runs_text(std::slice::from_ref(&stored));
        assert!(text.contains("unfinished") && text.contains(" 102 of 200 "), "{text}");
        let json: Vec<Value> = serde_json::from_str(&runs_json(&[stored])).unwrap();
        assert_eq!(
            (&json[0]["verdict"], &json[0]["held"], &json[0]["wanted"]),
            (&Value::Null, &102.into(), &200.into())
        );
        assert_eq!(json[0]["began"], "1970-01-01T00:00:00Z");
    }
}

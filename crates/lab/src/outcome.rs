//! The outcome of a trial. It is stored as a line of JSON (schema `throng.lab/1`), appended to a file.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
};

use samples::{Fit, HostFacts, at};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::{Count, Nanos};

use crate::{curve::Interval, drift::Drift, error::Error, file::Lab, pauses::Pause};

/// The schema of the lines.
pub(crate) const SCHEMA: &str = "throng.lab/1";

/// A trial, its conditions and its results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// The schema, [`SCHEMA`].
    pub(crate) schema: String,
    /// When the trial ended, UTC (RFC 3339).
    pub(crate) at: String,
    /// throng's version.
    pub(crate) throng: String,
    /// The host of throng and, as a rule, of the server.
    pub(crate) machine: HostFacts,
    /// What was tried.
    #[serde(flatten)]
    pub subject: Subject,
    /// The version that the server prints.
    pub(crate) server_version: String,
    /// Number of server processes, which depends on the limit on open files.
    pub(crate) processes: u8,
    /// Number of client processes that shared the load.
    pub(crate) clients: u8,
    /// Heap size of each Java virtual machine, in MiB.
    pub(crate) heap_mib: Option<u64>,
    /// The arguments of `throng`, without those for outputs; with several clients, those of the first.
    pub(crate) words: Vec<String>,
    /// Whether the result is what the lab expects.
    pub expected: bool,
    /// The summary of the run or search, without the samples of each second.
    pub(crate) summary: Value,
    /// The figures over time.
    pub(crate) curve: Vec<Interval>,
    /// The drifts of a soak; otherwise empty.
    pub(crate) drift: Vec<Drift>,
    /// The longest garbage collection pauses, in the order of time.
    pub(crate) pauses: Vec<Pause>,
}

/// The subject of a trial; outcomes with the same subject are repetitions.
#[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// The lab.
    pub lab: String,
    /// The experiment.
    pub(crate) experiment: String,
    /// The server.
    pub(crate) server: String,
    /// The variant of its environment.
    pub(crate) variant: Option<String>,
    /// The scale: fraction of the published size.
    pub(crate) scale: f64,
    /// Time at full load in seconds; `None` for the experiment's own.
    pub(crate) for_s: Option<f64>,
    /// Host and port of the server, if it was not started by the lab.
    pub(crate) elsewhere: Option<String>,
}

impl Subject {
    /// The names of server and variant: `nginx, 8 workers`.
    pub(crate) fn name(&self) -> String {
        let variant = self.variant.as_ref().map_or(String::new(), |variant| format!(", {variant}"));
        format!("{}{variant}", self.server)
    }
}

impl Outcome {
    /// A title: `nginx · hold · nginx, 8 workers (scale 0.1): one line about it`.
    pub(crate) fn title(&self, lab: &Lab) -> String {
        let Subject { experiment, .. } = &self.subject;
        let title = lab.experiment(experiment).map_or("", |experiment| &experiment.title);
        let (name, how) = (self.subject.name(), self.how(lab).join(", "));
        format!("{} · {experiment} · {name} ({how}): {title}", lab.name)
    }

    /// The conditions of the trial: scale, time, processes and heap.
    pub(crate) fn how(&self, lab: &Lab) -> Vec<String> {
        let full = lab.server(&self.subject.server).and_then(|server| server.heap.as_ref());
        let heap = self.heap_mib.zip(full).map(|(mib, full)| {
            let each = if self.processes > 1 { " each" } else { "" };
            format!("heap of {mib} MiB{each}, {full} at scale 1")
        });
        [
            Some(format!("scale {}", self.subject.scale)),
            self.subject.for_s.map(|s| format!("for {}", Nanos::from_secs(s.round() as u64))),
            (self.processes > 1).then(|| format!("{} processes", self.processes)),
            (self.clients > 1).then(|| format!("{} clients", self.clients)),
            heap,
            self.subject.elsewhere.as_ref().map(|url| format!("at {url}")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// A text of the summary, by its path.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        at(&self.summary, path)?.as_str()
    }

    /// A number of the summary, by its path. There are two kinds of additional paths: `target_cost.processes.least` and `most` are
    /// the memory of the smallest and the largest of several processes, and `pauses.longest_ms` is the longest garbage collection
    /// pause.
    pub(crate) fn figure(&self, path: &str) -> Option<f64> {
        if let Some(which) = path.strip_prefix("target_cost.processes.") {
            let each = at(&self.summary, "target_cost.processes")?.as_array()?;
            let sizes =
                each.iter().filter(|_| each.len() > 1).filter_map(|process| process["rss_bytes"].as_f64());
            return match which {
                "least" => sizes.reduce(f64::min),
                _ => sizes.reduce(f64::max),
            };
        }
        if path == "pauses.longest_ms" {
            return self.pauses.iter().map(|pause| pause.ms).reduce(f64::max);
        }
        let figure = at(&self.summary, path)?.as_f64();
        let is_slope = path == "target_cost.user_bytes_per_connection";
        figure.filter(|n| !is_slope || *n > 0.0 && self.carries_memory())
    }

    /// Whether the slope of the target's memory is reliable enough to be shown: older versions stored any slope.
    fn carries_memory(&self) -> bool {
        let fit = at(&self.summary, "cost.target_bytes").and_then(|fit| Fit::deserialize(fit).ok());
        fit.is_none_or(|fit| fit.is_carried())
    }

    /// Whether the figures describe the server, that is unless throng was the limit or was interrupted.
    pub(crate) fn is_valid(&self) -> bool {
        !["invalid", "interrupted"].contains(&self.text("verdict").unwrap_or_default())
    }

    /// The headline of the summary; for a search, its result.
    pub fn headline(&self) -> String {
        if let Some(headline) = self.text("headline") {
            return headline.to_owned();
        }
        let text = |path: &str| self.text(path).unwrap_or("unknown");
        let outcome = text("outcome");
        let found = format!("{outcome}: {}", Count(self.figure("max").unwrap_or(0.0) as u64));
        if self.summary["limit"].is_null() {
            return found;
        }
        // Earlier versions did not store `sentence`.
        let what =
            self.text("limit.sentence").filter(|said| !said.is_empty()).unwrap_or(text("limit.detail"));
        format!("{found}; {what}; {}", text("limit.cure"))
    }

    /// Appends the outcome to a file, which is created if necessary.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, file: &Path) -> std::io::Result<()> {
        let line = serde_json::to_string(self).expect("an outcome has only plain fields") + "\n";
        Outcome::open(file)?.write_all(line.as_bytes())
    }

    /// Opens a file for appending, and creates it if necessary.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(file: &Path) -> std::io::Result<File> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().create(true).append(true).open(file)
    }

    /// All outcomes in a file, oldest first.
    ///
    /// # Errors
    /// The file cannot be read, or contains a line that is not an outcome.
    pub fn all(file: &Path) -> Result<Vec<Outcome>, Error> {
        let damaged =
            |what: String| Error::usage(format!("{}: {what}; remove the damaged line", file.display()));
        let text = fs::read_to_string(file).map_err(|e| damaged(e.to_string()))?;
        let read = |(nth, line): (usize, &str)| match serde_json::from_str::<Outcome>(line) {
            Ok(outcome) if outcome.schema == SCHEMA => Ok(outcome),
            Ok(Outcome { schema, .. }) => Err(damaged(format!("line {}: not {SCHEMA}: {schema:?}", nth + 1))),
            Err(e) => Err(damaged(format!("line {}: {e}", nth + 1))),
        };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_and_a_search_have_a_headline() {
        let check = |summary: Value, expected: &str| {
            assert_eq!(Outcome { summary, ..Outcome::default() }.headline(), expected);
        };
        check(json!({"headline": "pass: all"}), "pass: all");
        check(json!({"outcome": "not-reached", "max": 10_000, "limit": null}), "not-reached: 10,000");
        let says = "the target's accept queue of 128 was full";
        let limit = json!({"cause": "accept-queue", "sentence": says, "cure": "raise somaxconn"});
        let expected = "found: 4,096; the target's accept queue of 128 was full; raise somaxconn";
        check(json!({"outcome": "found", "max": 4_096, "limit": limit}), expected);
    }

    #[test]
    fn processes_are_distinguished_where_there_are_several() {
        let outcome = |sizes: &[u64]| {
            let each: Vec<Value> = sizes.iter().map(|size| json!({"pid": 1, "rss_bytes": size})).collect();
            Outcome { summary: json!({"target_cost": {"processes": each}}), ..Outcome::default() }
        };
        let figure =
            |sizes: &[u64], which: &str| outcome(sizes).figure(&format!("target_cost.processes.{which}"));
        assert_eq!((figure(&[7, 3, 5], "least"), figure(&[7, 3, 5], "most")), (Some(3.0), Some(7.0)));
        assert_eq!(figure(&[7], "most"), None);
        assert_eq!(Outcome::default().figure("target_cost.processes.least"), None);
    }

    #[test]
    fn a_slope_that_is_not_carried_is_no_figure() {
        let figure = |r2: f64, error: f64| {
            let summary = json!({
                "target_cost": {"user_bytes_per_connection": 4_700.0},
                "cost": {"target_bytes": {"value": 4_700.0, "error": error, "r2": r2}},
            });
            Outcome { summary, ..Outcome::default() }.figure("target_cost.user_bytes_per_connection")
        };
        assert_eq!(
            [figure(0.95, 100.0), figure(0.585, 100.0), figure(0.95, 500.0)],
            [Some(4_700.0), None, None]
        );
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let file = std::env::temp_dir().join(format!("throng-lab-outcome-{}/all.jsonl", std::process::id()));
        let outcome = Outcome {
            schema: SCHEMA.to_owned(),
            subject: Subject {
                lab: "l".to_owned(),
                scale: 0.1,
                variant: Some("v".to_owned()),
                ..Subject::default()
            },
            curve: vec![Interval { at_s: 1.5, p99_us: Some(7.25), ..Interval::default() }],
            ..Outcome::default()
        };
        outcome.store(&file).unwrap();
        outcome.store(&file).unwrap();
        assert_eq!(Outcome::all(&file).unwrap(), [outcome.clone(), outcome]);
        fs::write(&file, "{\"schema\":\"throng.lab/2\"}\n").unwrap();
        let why = "line 1: not throng.lab/1: \"throng.lab/2\"; remove the damaged line";
        let why = Error::usage(format!("{}: {why}", file.display()));
        assert_eq!(Outcome::all(&file).unwrap_err(), why);
        fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }
}

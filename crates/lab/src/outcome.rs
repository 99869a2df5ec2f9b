//! What a trial came to, as it is kept: a line of JSON, added to a file.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{curve::Stretch, drift::Drift, file::Lab, pauses::Pause};

/// The version of these lines.
pub const SCHEMA: &str = "throng.lab/1";

/// A trial, where and how it was done, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: String,
    /// When it ended, UTC (RFC 3339).
    pub at: String,
    /// throng's version.
    pub throng: String,
    /// Where.
    pub machine: Machine,
    /// What was tried.
    #[serde(flatten)]
    pub subject: Subject,
    /// What the server says of its version.
    pub server_version: String,
    /// As many as open files asked for.
    pub processes: u8,
    /// `throng run` at the same time, each with its part of the load.
    pub clients: u8,
    /// Of each Java virtual machine, MiB.
    pub heap_mib: Option<u64>,
    /// Words of `throng` without outputs; of several clients the first one's.
    pub words: Vec<String>,
    /// Whether all went as the lab expects.
    pub expected: bool,
    /// The summary of the run, or of the search, without what was looked at every second.
    pub summary: Value,
    /// Its course.
    pub curve: Vec<Stretch>,
    /// What changed over a soak; else empty.
    pub drift: Vec<Drift>,
    /// The garbage collector's longest.
    pub pauses: Vec<Pause>,
}

/// What figures may be held against each other.
#[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// The lab.
    pub lab: String,
    /// The experiment.
    pub experiment: String,
    /// The server.
    pub server: String,
    /// Another environment of it.
    pub variant: Option<String>,
    /// Of the text's size.
    pub scale: f64,
    /// Where that was not the lab's own server.
    pub elsewhere: Option<String>,
}

/// The host that throng, and as a rule the server, ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Its release.
    pub kernel: String,
    /// Processors.
    pub cores: u64,
    /// Memory.
    pub memory_bytes: u64,
}

impl Subject {
    /// As it is told: `nginx · hold · nginx, 8 workers`.
    pub fn title(&self) -> String {
        let variant = self.variant.as_ref().map_or(String::new(), |variant| format!(", {variant}"));
        format!("{} · {} · {}{variant}", self.lab, self.experiment, self.server)
    }
}

impl Outcome {
    /// What was tried, and how, on a line.
    pub fn title(&self, lab: &Lab) -> String {
        let title = lab.experiment(&self.subject.experiment).map_or("", |experiment| &experiment.title);
        format!("{} ({}): {title}", self.subject.title(), self.how(lab).join(", "))
    }

    /// How large, on how many processes.
    pub fn how(&self, lab: &Lab) -> Vec<String> {
        let full = lab.server(&self.subject.server).and_then(|server| server.heap.as_ref());
        let heap = self.heap_mib.zip(full).map(|(mib, full)| {
            let each = if self.processes > 1 { " each" } else { "" };
            format!("heap of {mib} MiB{each}, {full} at scale 1")
        });
        [
            Some(format!("scale {}", self.subject.scale)),
            (self.processes > 1).then(|| format!("{} processes", self.processes)),
            (self.clients > 1).then(|| format!("{} clients", self.clients)),
            heap,
            self.subject.elsewhere.as_ref().map(|url| format!("at {url}")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// A figure of the summary by its path.
    pub fn figure(&self, path: &str) -> Option<f64> {
        self.summary.pointer(&format!("/{}", path.replace('.', "/"))).and_then(Value::as_f64)
    }

    /// The summary's last line.
    pub fn headline(&self) -> &str {
        self.summary["headline"].as_str().unwrap_or_default()
    }

    /// Adds it to a file, which is made if need be.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, file: &Path) -> std::io::Result<()> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        let line = serde_json::to_string(self).expect("an outcome has only plain fields") + "\n";
        OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
    }

    /// All that a file has, the oldest first.
    ///
    /// # Errors
    /// It cannot be read, or a line of it is no outcome: with the place.
    pub fn all(file: &Path) -> Result<Vec<Outcome>, String> {
        let placed = |what: String| format!("{}: {what}", file.display());
        let text = fs::read_to_string(file).map_err(|e| placed(e.to_string()))?;
        let read = |(nth, line): (usize, &str)| {
            let outcome = serde_json::from_str(line).map_err(|e| e.to_string()).and_then(is_ours);
            outcome.map_err(|e| placed(format!("line {}: {e}", nth + 1)))
        };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(read).collect()
    }
}

fn is_ours(outcome: Outcome) -> Result<Outcome, String> {
    match outcome.schema.as_str() {
        SCHEMA => Ok(outcome),
        other => Err(format!("not {SCHEMA}: {other:?}")),
    }
}

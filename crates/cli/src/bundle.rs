//! `--out DIR`: all that there is of a run in one folder, to pass on.

use std::path::{Path, PathBuf};

use crate::{Failure, files::Files};

const REPORTS: [&str; 3] = ["report.html", "report.md", "report.json"];
const METRICS: &str = "metrics.csv";
const HISTOGRAMS: &str = "histograms.hlog";
const SUMMARY: &str = "summary.json";

/// A folder of a run's own.
pub(crate) struct Bundle {
    folder: PathBuf,
}

impl Bundle {
    /// Makes the folder and its files; one that has something in it is left alone.
    pub(crate) fn open(folder: &str, files: &mut Files) -> Result<Bundle, Failure> {
        let names = [&REPORTS[..], &[METRICS, HISTOGRAMS, SUMMARY]].concat();
        files.folder("--out", Path::new(folder), &names)?;
        Ok(Bundle { folder: Path::new(folder).to_owned() })
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// The page, the Markdown and the data of both.
    pub(crate) fn reports(&self) -> Vec<String> {
        REPORTS.map(|name| self.file(name)).to_vec()
    }

    /// Metrics of each second.
    pub(crate) fn csv(&self) -> String {
        self.file(METRICS)
    }

    /// Histograms of each second.
    pub(crate) fn hlog(&self) -> String {
        self.file(HISTOGRAMS)
    }

    /// The summary.
    pub(crate) fn summary(&self) -> String {
        self.file(SUMMARY)
    }
}

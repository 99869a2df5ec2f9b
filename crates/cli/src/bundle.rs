//! `--out DIR`: all that there is of a run in one folder, to pass on.

use std::path::Path;

use crate::{Failure, files::Files};

/// The files of a folder of a run's own.
pub(crate) struct Bundle {
    /// The page, the Markdown and the data of both.
    pub(crate) reports: [String; 3],
    /// Metrics of each second.
    pub(crate) csv: String,
    /// Histograms of each second.
    pub(crate) hlog: String,
    /// The summary.
    pub(crate) summary: String,
}

impl Bundle {
    /// Makes the folder and its files; one that has something in it is left alone.
    pub(crate) fn open(folder: &str, files: &mut Files) -> Result<Bundle, Failure> {
        let names =
            ["report.html", "report.md", "report.json", "metrics.csv", "histograms.hlog", "summary.json"];
        let folder = Path::new(folder);
        files.folder("--out", folder, &names)?;
        let [html, markdown, json, csv, hlog, summary] =
            names.map(|name| folder.join(name).to_string_lossy().into_owned());
        Ok(Bundle { reports: [html, markdown, json], csv, hlog, summary })
    }
}

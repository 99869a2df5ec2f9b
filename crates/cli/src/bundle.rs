//! `--out DIR`: writes all outputs of a run to one folder that can be passed on.

use std::path::Path;

use samples::Summary;

use crate::{
    Failure,
    files::Files,
    output::{self, STDOUT},
};

/// The files of the folder.
pub(crate) struct Bundle {
    /// The report as HTML, Markdown and JSON.
    pub(crate) reports: [String; 3],
    /// Metrics of each second.
    pub(crate) csv: String,
    /// Histograms of each second.
    pub(crate) hlog: String,
    /// The summary.
    pub(crate) summary: String,
}

impl Bundle {
    /// Creates the folder and the files that are written during the run; an existing folder must be empty.
    pub(crate) fn open(folder: &str, files: &mut Files) -> Result<Bundle, Failure> {
        let (streams, wholes) =
            (["metrics.csv", "histograms.hlog"], ["report.html", "report.md", "report.json", "summary.json"]);
        let folder = Path::new(folder);
        files.folder("--out", folder, &streams)?;
        let named = |name| folder.join(name).to_string_lossy().into_owned();
        let ([csv, hlog], [html, markdown, json, summary]) = (streams.map(named), wholes.map(named));
        Ok(Bundle { reports: [html, markdown, json], csv, hlog, summary })
    }

    /// Writes the summary.
    pub(crate) fn write_summary(&self, summary: &Summary) -> Result<(), Failure> {
        output::write("--out", &self.summary, &view::json(summary))
    }

    /// Copies the histogram log, if `--hlog` writes it elsewhere; `is_whole` is whether it is complete.
    pub(crate) fn copy_log(&self, log: Option<&str>, is_whole: bool) -> Result<(), Failure> {
        match log.filter(|file| *file != STDOUT) {
            None => Ok(()),
            Some(file) if is_whole => output::copy("--out", &self.hlog, file),
            Some(_) => {
                Err(Failure::machine(format!("--out {}: not written: --hlog is incomplete", self.hlog)))
            }
        }
    }
}

//! `--out DIR`: all that there is of a run in one folder, to pass on.

use std::path::Path;

use samples::Summary;

use crate::{
    Failure,
    files::Files,
    output::{self, STDOUT},
};

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
    /// Makes the folder, and the files that are written while the run lasts; a folder that has something in it is left alone.
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

    /// Copies the histogram log, where it was to go elsewhere; `is_whole`: whether it is all there.
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

//! `--out DIR`: all that there is of a run in one folder, to pass on.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::Failure;

/// A folder of a run's own.
pub(crate) struct Bundle {
    folder: PathBuf,
    /// The run did begin: what is in it stays.
    is_kept: bool,
}

impl Bundle {
    /// Makes the folder; one that has something in it is left alone.
    pub(crate) fn open(folder: &str) -> Result<Bundle, Failure> {
        let failed = |e: std::io::Error| Failure::machine(format!("--out {folder}: {e}"));
        fs::create_dir_all(folder).map_err(failed)?;
        if fs::read_dir(folder).map_err(failed)?.next().is_some() {
            return Err(Failure::words([format!(
                "--out: there is something in it, write a new folder: {folder:?}"
            )]));
        }
        Ok(Bundle { folder: Path::new(folder).to_owned(), is_kept: false })
    }

    /// The run has begun.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// The page, the Markdown and the data of both.
    pub(crate) fn reports(&self) -> Vec<String> {
        ["report.html", "report.md", "report.json"].map(|name| self.file(name)).to_vec()
    }

    /// Metrics of each second.
    pub(crate) fn csv(&self) -> String {
        self.file("metrics.csv")
    }

    /// Histograms of each second.
    pub(crate) fn hlog(&self) -> String {
        self.file("histograms.hlog")
    }

    /// The summary.
    pub(crate) fn summary(&self) -> String {
        self.file("summary.json")
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        if !self.is_kept {
            // There was nothing in it, and what was begun is empty: the same words may be tried again.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

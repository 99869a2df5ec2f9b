//! `--junit` and `--markdown`: what CI shows of a run. Both are written after it.

use std::{fs, fs::OpenOptions, io, io::Write};

use plan::Outputs;
use samples::{RunRecord, Summary};
use store::StoredRun;

use crate::{
    Failure,
    files::{Files, Refused},
};

/// The files of a run that is about to begin.
pub(crate) struct Judged {
    junit: Option<String>,
    markdown: Option<String>,
}

impl Judged {
    /// Checks that both can be written.
    pub(crate) fn open(outputs: &Outputs, files: &mut Files) -> Result<Judged, Failure> {
        let mut refused = Refused::default();
        for (flag, file) in [("--junit", &outputs.junit), ("--markdown", &outputs.markdown)] {
            if let Some(file) = file {
                refused.note(files.whole(flag, file));
            }
        }
        refused.end(Some(Judged { junit: outputs.junit.clone(), markdown: outputs.markdown.clone() }))
    }

    /// Writes them.
    pub(crate) fn write(&self, run: &RunRecord, summary: &Summary) -> Result<(), Failure> {
        let failed = |flag: &str, file: &str, e: io::Error| Failure::machine(format!("{flag} {file}: {e}"));
        if let Some(file) = &self.junit {
            fs::write(file, view::junit(run, summary)).map_err(|e| failed("--junit", file, e))?;
        }
        if let Some(file) = &self.markdown {
            append(file, &view::job_summary(run, summary)).map_err(|e| failed("--markdown", file, e))?;
        }
        Ok(())
    }

    /// Writes those of a stored run.
    pub(crate) fn write_stored(&self, stored: &StoredRun) -> Result<(), Failure> {
        let flags = [("--junit", &self.junit), ("--markdown", &self.markdown)];
        match (&stored.summary, flags.iter().find(|(_, file)| file.is_some())) {
            (Some(summary), _) => self.write(&stored.record, summary),
            (None, None) => Ok(()),
            (None, Some((flag, _))) => {
                Err(Failure::machine(format!("{flag}: this run has no summary: {}", stored.id)))
            }
        }
    }
}

/// A job's summary has what its earlier steps wrote.
fn append(file: &str, text: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(file)?.write_all(text.as_bytes())
}

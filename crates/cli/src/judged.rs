//! `--junit` and `--markdown`: results of a run for CI, written after the run.

use plan::Outputs;
use samples::{RunRecord, Summary};
use store::StoredRun;

use crate::{
    Failure,
    files::{Files, Refused},
    output,
};

/// The files for the results of a run.
pub(crate) struct Judged {
    junit: Option<String>,
    markdown: Option<String>,
}

impl Judged {
    /// Checks that the files can be written.
    pub(crate) fn open(outputs: &Outputs, files: &mut Files) -> Result<Judged, Failure> {
        let mut refused = Refused::default();
        for (flag, file) in [("--junit", &outputs.junit), ("--markdown", &outputs.markdown)] {
            if let Some(file) = file {
                refused.note(files.whole(flag, file));
            }
        }
        refused.end(Some(Judged { junit: outputs.junit.clone(), markdown: outputs.markdown.clone() }))
    }

    /// Writes the files.
    pub(crate) fn write(&self, run: &RunRecord, summary: &Summary) -> Result<(), Failure> {
        let mut missing = Refused::default();
        if let Some(file) = &self.junit {
            missing.note(output::write("--junit", file, &view::junit(run, summary)));
        }
        // Appended, because the file is the summary of a CI job, to which earlier steps have written.
        if let Some(file) = &self.markdown {
            missing.note(output::append("--markdown", file, &view::job_summary(run, summary)));
        }
        missing.end(Some(()))
    }

    /// Writes the files for a stored run.
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

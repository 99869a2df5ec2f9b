//! `throng report`, and `--report` of `throng run`: write a report of a run to one file.

use std::path::Path;

use store::{Store, StoredRun};
use view::{Report, ReportFormat};

use crate::{
    Failure,
    again::with_searches,
    args::{self, ReportArgs},
    files::Files,
    message,
    output::{self, STDOUT},
    print_stdout, runs,
};

/// Writes the report of a stored run; returns the exit status.
pub(crate) fn report(wanted: &ReportArgs) -> Result<u8, Failure> {
    let ending = wanted.format.as_deref().unwrap_or("html");
    let format = ReportFormat::parse(ending).map_err(|why| Failure::usage([format!("--format: {why}")]))?;
    let (store, mut stored) = runs::find(&wanted.run)?;
    let status = if wanted.rejudge { rejudge(&store, &mut stored, wanted)? } else { 0 };
    if wanted.rejudge && wanted.file.is_none() && wanted.format.is_none() {
        return Ok(status);
    }
    let own_name = || format!("throng-{}.{ending}", stored.id);
    let file = wanted.file.clone().unwrap_or_else(own_name);
    let format =
        if wanted.format.is_some() || file == "-" { format } else { ReportFile::named(&file)?.format };
    let mut report = Report::of(&stored);
    store.replay(&stored, &mut [&mut report]).map_err(Failure::machine)?;
    if file == "-" {
        print_stdout(&format.text(&report))?;
        return Ok(status);
    }
    let done = format!("report of run {} in {file}", stored.id);
    ReportFile { flag: "--report", file, format }.write(&report)?;
    message(&done);
    Ok(status)
}

/// Judges a stored run by the rules of this version and prints the result; returns the exit status of the new verdict.
fn rejudge(store: &Store, stored: &mut StoredRun, wanted: &ReportArgs) -> Result<u8, Failure> {
    let (id, json) = (&stored.id, wanted.json.as_deref());
    let refused =
        |why: String| Failure::usage([format!("--rejudge: run {id} cannot be judged again: {why}")]);
    let not_stored = "it did not end, or an earlier version stored it without what the judge reads";
    let stored_record = store.measured(id).map_err(Failure::machine)?;
    let measured = stored_record.ok_or_else(|| refused(not_stored.to_owned()))?;
    let mut summary = run::rejudge(&measured).map_err(refused)?;
    if let Some(flags) = args::flags_of(&stored.record.words) {
        summary = with_searches(summary, &flags);
    }
    if let Some(before) = stored.summary.take() {
        // Facts that do not depend on the rules are kept: an internal error of throng, and the comparison with the machine's
        // calibration.
        if let Some(failure) = &before.failure {
            summary.fail(failure);
        }
        summary.rig = before.rig;
    }
    if ![json, wanted.file.as_deref()].contains(&Some(STDOUT)) {
        print_stdout(&view::text(&summary))?;
    }
    json.map_or(Ok(()), |file| output::write("--json", file, &view::json(&summary)))?;
    stored.figures = serde_json::to_value(&summary).unwrap_or_default();
    let status = summary.verdict.exit_status();
    stored.summary = Some(summary);
    Ok(status)
}

/// The file of a report that is written after the run.
pub(crate) struct ReportFile {
    flag: &'static str,
    file: String,
    format: ReportFormat,
}

impl ReportFile {
    /// Checks the name and that the file can be written. A report to standard output is HTML.
    pub(crate) fn open(file: &str, files: &mut Files) -> Result<ReportFile, Failure> {
        let html = || ReportFile { flag: "--report", file: file.to_owned(), format: ReportFormat::Html };
        let report = if file == STDOUT { html() } else { ReportFile::named(file)? };
        // An existing file is kept until the new report is written.
        files.whole("--report", file)?;
        Ok(report)
    }

    /// Determines the format from the extension of the name.
    pub(crate) fn named(file: &str) -> Result<ReportFile, Failure> {
        let ending = Path::new(file).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let format = ReportFormat::parse(ending).map_err(|_| {
            Failure::usage([format!("--report: unknown file extension; use .html, .md or .json: {file:?}")])
        })?;
        Ok(ReportFile { flag: "--report", file: file.to_owned(), format })
    }

    /// Marks the report as part of a bundle.
    pub(crate) fn bundled(self) -> ReportFile {
        ReportFile { flag: "--out", ..self }
    }

    /// Writes the report.
    pub(crate) fn write(self, report: &Report) -> Result<(), Failure> {
        let ReportFile { flag, file, format } = self;
        output::write(flag, &file, &format.text(report))
    }
}

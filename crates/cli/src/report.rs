//! `throng report`, and `--report` of `throng run`: one file that explains a run.

use std::path::Path;

use view::{Report, ReportFormat};

use crate::{
    Failure,
    args::ReportArgs,
    files::Files,
    message,
    output::{self, STDOUT},
    print_stdout, runs,
};

/// Writes the report of a stored run; returns the exit status.
pub(crate) fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let ending = args.format.as_deref().unwrap_or("html");
    let format = ReportFormat::parse(ending).map_err(|why| Failure::usage([format!("--format: {why}")]))?;
    let (store, stored) = runs::find(&args.run)?;
    let own_name = || format!("throng-{}.{ending}", stored.id);
    let file = args.file.clone().unwrap_or_else(own_name);
    let format = if args.format.is_some() || file == "-" { format } else { ReportFile::named(&file)?.format };
    let mut report = Report::of(&stored);
    store.replay(&stored, &mut [&mut report]).map_err(Failure::machine)?;
    if file == "-" {
        print_stdout(&format.text(&report))?;
        return Ok(0);
    }
    let done = format!("report of run {} in {file}", stored.id);
    ReportFile { flag: "--report", file, format }.write(&report)?;
    message(&done);
    Ok(0)
}

/// Where the report of a run that is about to begin goes.
pub(crate) struct ReportFile {
    flag: &'static str,
    file: String,
    format: ReportFormat,
}

impl ReportFile {
    /// Checks the name, and that there is a place for it. What goes to standard output is HTML.
    pub(crate) fn open(file: &str, files: &mut Files) -> Result<ReportFile, Failure> {
        let html = || ReportFile { flag: "--report", file: file.to_owned(), format: ReportFormat::Html };
        let report = if file == STDOUT { html() } else { ReportFile::named(file)? };
        // What is there stays until there is something better.
        files.whole("--report", file)?;
        Ok(report)
    }

    /// Checks the name, whose extension is that of a format.
    pub(crate) fn named(file: &str) -> Result<ReportFile, Failure> {
        let ending = Path::new(file).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let format = ReportFormat::parse(ending).map_err(|_| {
            Failure::usage([format!("--report: unknown file extension; use .html, .md or .json: {file:?}")])
        })?;
        Ok(ReportFile { flag: "--report", file: file.to_owned(), format })
    }

    /// One of a bundle.
    pub(crate) fn bundled(self) -> ReportFile {
        ReportFile { flag: "--out", ..self }
    }

    /// Writes it.
    pub(crate) fn write(self, report: &Report) -> Result<(), Failure> {
        let ReportFile { flag, file, format } = self;
        output::write(flag, &file, &format.text(report))
    }
}

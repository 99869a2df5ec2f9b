//! `throng report`, and `--report` of `throng run`: one file that explains a run.

use std::{fs, path::Path, slice};

use view::Report;

use crate::{Failure, args::ReportArgs, files::Files, message, print_stdout, runs};

/// Writes the report of a stored run; returns the exit status.
pub(crate) fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let ending = args.format.as_deref().unwrap_or("html");
    let form = Form::with_ending(ending).ok_or_else(|| {
        Failure::usage([format!("--format: {ending:?} is not a format; use html, md or json")])
    })?;
    let (store, stored) = runs::find(&args.run)?;
    let own_name = || format!("throng-{}.{ending}", stored.id);
    let file = args.file.clone().unwrap_or_else(own_name);
    let form = if args.format.is_some() || file == "-" { form } else { ReportFile::named(&file)?.form };
    let mut report = Report::of(&stored);
    store.replay(&stored, &mut [&mut report]).map_err(Failure::machine)?;
    if file == "-" {
        print_stdout(&form.text(&report))?;
        return Ok(0);
    }
    let done = format!("report of run {} in {file}", stored.id);
    ReportFile { file, form }.write(&report)?;
    message(&done);
    Ok(0)
}

/// Where the report of a run that is about to begin goes.
pub(crate) struct ReportFile {
    file: String,
    form: Form,
}

impl ReportFile {
    /// Checks the name, and that there is a place for it.
    pub(crate) fn open(file: &str, files: &mut Files) -> Result<ReportFile, Failure> {
        let report = ReportFile::named(file)?;
        // What is there stays until there is something better.
        files.whole("--report", file)?;
        Ok(report)
    }

    /// Checks the name, whose ending says the form.
    pub(crate) fn named(file: &str) -> Result<ReportFile, Failure> {
        let ending = Path::new(file).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let form = Form::with_ending(ending).ok_or_else(|| {
            Failure::usage([format!("--report: unknown file extension; use .html, .md or .json: {file:?}")])
        })?;
        Ok(ReportFile { file: file.to_owned(), form })
    }

    /// Writes it.
    pub(crate) fn write(self, report: &Report) -> Result<(), Failure> {
        let ReportFile { file, form } = self;
        fs::write(&file, form.text(report)).map_err(|e| Failure::machine(format!("--report {file}: {e}")))
    }
}

/// What a report is written as.
#[derive(Clone, Copy)]
enum Form {
    Html,
    Markdown,
    Json,
}

impl Form {
    fn with_ending(ending: &str) -> Option<Form> {
        match ending {
            "html" => Some(Form::Html),
            "md" => Some(Form::Markdown),
            "json" => Some(Form::Json),
            _ => None,
        }
    }

    fn text(self, report: &Report) -> String {
        let one = slice::from_ref(report);
        match self {
            Form::Html => view::report_html(one, None),
            Form::Markdown => report.markdown(),
            Form::Json => view::report_json(one, None),
        }
    }
}

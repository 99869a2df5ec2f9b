//! `throng report`, and `--report` of `throng run`: one file that explains a run.

use std::{fs, path::Path, slice};

use view::Report;

use crate::{Failure, args::ReportArgs, files::Files, message, print_stdout, runs};

/// Writes the report of a stored run; returns the exit status.
pub(crate) fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let form = args.format.as_deref().map(Form::parse).transpose().map_err(|why| Failure::usage([why]))?;
    let (store, stored) = runs::find(&args.run)?;
    let file = args
        .file
        .clone()
        .unwrap_or_else(|| format!("throng-{}.{}", stored.id, form.unwrap_or(Form::Html).ending()));
    let form = match (form, file.as_str()) {
        (Some(form), _) => form,
        (None, "-") => Form::Html,
        (None, file) => Form::of(file).map_err(|why| Failure::usage([format!("--report: {why}")]))?,
    };
    let mut report = Report::of(&stored);
    store.replay(&stored, &mut [&mut report]).map_err(Failure::machine)?;
    let text = form.text(&report);
    if file == "-" {
        print_stdout(&text)?;
        return Ok(0);
    }
    fs::write(&file, text).map_err(|e| Failure::machine(format!("--report {file}: {e}")))?;
    message(&format!("report of run {} in {file}", stored.id));
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

    /// Checks the name.
    pub(crate) fn named(file: &str) -> Result<ReportFile, Failure> {
        let form = Form::of(file).map_err(|why| Failure::usage([format!("--report: {why}")]))?;
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
    const ALL: [Form; 3] = [Form::Html, Form::Markdown, Form::Json];

    const fn ending(self) -> &'static str {
        match self {
            Form::Html => "html",
            Form::Markdown => "md",
            Form::Json => "json",
        }
    }

    fn parse(word: &str) -> Result<Form, String> {
        let known = Form::ALL.into_iter().find(|form| form.ending() == word);
        known.ok_or_else(|| format!("--format: {word:?} is not a format; use html, md or json"))
    }

    /// By the ending of its name.
    fn of(file: &str) -> Result<Form, String> {
        let ending = Path::new(file).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let known = Form::ALL.into_iter().find(|form| form.ending() == ending);
        known.ok_or_else(|| format!("unknown file extension; use .html, .md or .json: {file:?}"))
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

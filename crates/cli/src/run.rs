//! `throng run`: runs a plan and writes its outputs.

use std::{
    io,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use exporters::{Exporters, HlogFile, Leftover, background::BackgroundFile};
use fleet::Fleet;
use host::remote::Token;
use plan::{Flags, Format, Live, Outputs, Tool};
use run::Interrupt;
use samples::{RunRecord, Sink, Summary};
use view::{Dashboard, Feed, Opens, Report, Terminal, format::Whole};

use crate::{
    Failure, agent,
    apply::{Applied, Typed, apply},
    bundle::Bundle,
    cluster::Cluster,
    files::{Files, Refused},
    judged::Judged,
    listening, message, metrics,
    output::{self, STDOUT},
    plans::{self, Job},
    print_stderr, print_text,
    report::ReportFile,
    runs, signals,
};

/// Runs the plan; returns the exit status.
pub(crate) fn run(flags: &Flags) -> Result<u8, Failure> {
    let Job { mut plan, outputs, scenario } = plans::job(flags)?;
    if outputs.live == Live::Tui {
        Terminal::can_be_shown().map_err(|why| Failure::usage([format!("--live tui: {why}; use line")]))?;
    }
    if let Some(file) = plan.observe.as_ref().and_then(|observe| observe.token_file.as_ref()) {
        Token::read(file).map_err(|why| Failure::usage([format!("--observe-token-file: {why}")]))?;
    }
    let interrupt = signals::interrupt()?;
    // Dropped, and so removed, after the agents have been released.
    let cluster = Cluster::launch(&plan, flags, &interrupt)?;
    let mut members = agent::fleet(&mut plan, flags, scenario.as_ref(), cluster.as_ref(), &interrupt)?;
    let mut commands = members.as_ref().map(|m| m.fleet.commands()).transpose().map_err(Failure::machine)?;
    let mut whole = Whole::default();
    let mut files = Files::default();
    let record =
        runs::record(units::date().into(), scenario.as_ref().map(|file| file.text.as_str()), &outputs.tags);
    let Opened { bundle, report_files, judged, log, mut exporters } =
        Opened::new(&outputs, &record, &mut files)?;
    let mut report = (!report_files.is_empty()).then(|| Report::new(record.clone()));
    metrics::add_services(&mut exporters, &outputs)?;
    let mut dashboard = outputs.dashboard.as_ref().map(|page| dashboard(page, &record)).transpose()?;
    // The files are first, since they are truncated when the run begins, before other sinks write to them.
    let mut sinks: Vec<&mut dyn Sink> = vec![&mut files, &mut whole, &mut exporters];
    sinks.extend(dashboard.as_mut().map(|(_, feed)| feed as &mut dyn Sink));
    sinks.extend(commands.as_mut().map(|commands| commands as &mut dyn Sink));
    sinks.extend(report.as_mut().map(|report| report as &mut dyn Sink));
    let fleet = members.as_mut().map(|members| &mut members.fleet);
    let typed = Typed { plan: &plan, flags };
    let (Applied { summary, kept }, logged) = match log {
        None => (apply(typed, fleet, outputs.live, record.clone(), &interrupt, &mut sinks)?, Ok(())),
        Some(log) => logged(log, typed, fleet, outputs.live, record.clone(), &interrupt, &mut sinks)?,
    };
    let mut missing = Refused::default();
    // The result is printed first, because other outputs may take longer.
    print_summary(&outputs, &summary, whole, files.has_stdout(), &mut missing);
    missing.attempt(|| bundle.as_ref().map_or(Ok(()), |bundle| bundle.write_summary(&summary)));
    missing.attempt(|| judged.write(&record, &summary));
    let (log, is_logged) = (outputs.hlog.as_deref(), missing.note(logged).is_some());
    missing.attempt(|| bundle.as_ref().map_or(Ok(()), |bundle| bundle.copy_log(log, is_logged)));
    dashboard.into_iter().for_each(|(dashboard, feed)| dashboard.end(feed));
    if let Some(mut report) = report {
        report.name(kept.as_ref().map_or_else(String::new, |kept| kept.id.clone()));
        report_files.into_iter().for_each(|file| missing.attempt(|| file.write(&report)));
    }
    let Leftover { troubles, behind } = exporters.end();
    for behind in behind {
        message(&runs::make_up(behind, kept.as_ref()));
    }
    troubles.into_iter().for_each(|trouble| missing.attempt(|| Err(Failure::machine(trouble))));
    let missing = missing.end(Some(())).map_err(|failure| failure.of_stored(kept));
    output::end(summary.verdict.exit_status(), missing)
}

/// Writes the summary as JSON and as text. A file is written first, because it does not depend on a reader of standard output.
/// `is_taken`: another output goes to standard output.
fn print_summary(outputs: &Outputs, summary: &Summary, whole: Whole, is_taken: bool, missing: &mut Refused) {
    let json = |file: &str| output::write("--json", file, &view::json(summary));
    let (first, last) = match outputs.json.as_deref() {
        Some(STDOUT) => (None, Some(STDOUT)),
        file => (file, None),
    };
    missing.attempt(|| first.map_or(Ok(()), json));
    missing.attempt(|| print_text(&text(outputs.format, summary, whole), is_taken));
    missing.attempt(|| last.map_or(Ok(()), json));
    if outputs.format.tool != Tool::Throng {
        // The formats of other tools have no place for the verdict.
        print_stderr(view::verdict(summary).trim_end());
    }
}

/// The outputs that were opened before the run.
struct Opened {
    bundle: Option<Bundle>,
    report_files: Vec<ReportFile>,
    judged: Judged,
    log: Option<Log>,
    exporters: Exporters,
}

impl Opened {
    /// Opens all outputs that can be opened before the run; reports all failures at once.
    fn new(outputs: &Outputs, record: &RunRecord, files: &mut Files) -> Result<Opened, Failure> {
        let mut refused = Refused::default();
        let folder = outputs.out.as_deref();
        let bundle = folder.and_then(|folder| refused.note(Bundle::open(folder, files)));
        let report_files = report_files(outputs, bundle.as_ref(), files, &mut refused);
        refused.note(files.json(outputs.json.as_deref()));
        let judged = refused.note(Judged::open(outputs, files));
        let log = outputs.hlog.clone().or_else(|| bundle.as_ref().map(|bundle| bundle.hlog.clone()));
        let log = log.and_then(|file| refused.note(log_file(file, outputs.hlog.is_some(), files)));
        let bundled = bundle.as_ref().map(|bundle| bundle.csv.as_str());
        let exporters = refused.note(metrics::exporters(outputs, bundled, record.began_ms, files));
        let (judged, exporters) = refused.end(judged.zip(exporters))?;
        Ok(Opened { bundle, report_files, judged, log, exporters })
    }
}

/// The files of the reports, which keep their previous content until the reports are written.
fn report_files(
    outputs: &Outputs,
    bundle: Option<&Bundle>,
    files: &mut Files,
    refused: &mut Refused,
) -> Vec<ReportFile> {
    let own = outputs.report.as_deref().and_then(|file| refused.note(ReportFile::open(file, files)));
    let mut all: Vec<ReportFile> = own.into_iter().collect();
    for file in bundle.iter().flat_map(|bundle| &bundle.reports) {
        all.extend(refused.note(ReportFile::named(file)).map(ReportFile::bundled));
    }
    all
}

/// The histogram log: its flag and name, and its writer in the background.
type Log = ((&'static str, String), BackgroundFile);

/// Opens the histogram log. `is_own`: its file was given by `--hlog`, and is not that of a bundle.
fn log_file(name: String, is_own: bool, files: &mut Files) -> Result<Log, Failure> {
    let flag = if is_own { "--hlog" } else { "--out" };
    let file = files.stream(flag, &name)?;
    // Written line by line, so that it can be followed, and is complete up to the last second if throng is killed.
    let file = BackgroundFile::new(file);
    Ok(((flag, name), file.map_err(Failure::machine)?))
}

/// Starts the live page; a port in use prevents the run.
fn dashboard(page: &plan::Dashboard, record: &RunRecord) -> Result<(Dashboard, Feed), Failure> {
    let at = page.at;
    let token = page.token_file.as_deref().map(Token::read).transpose();
    let token = token.map_err(|why| Failure::usage([format!("--dashboard-token-file: {why}")]))?;
    // The token becomes part of a URL.
    let is_plain =
        |token: &Token| token.secret().bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b));
    if token.as_ref().is_some_and(|token| !is_plain(token)) {
        let why = "a token may have letters, digits, -, ., _ and ~ only; create one with openssl rand -hex \
        32";
        return Err(Failure::usage([format!("--dashboard-token-file: {why}")]));
    }
    let opens = token.map(|token| Arc::new(move |offered: &[u8]| token.is(offered)) as Opens);
    let has_token = opens.is_some();
    let started = Dashboard::start(at, record.clone(), opens);
    let (dashboard, feed, at) = started.map_err(|e| listening::refused("--dashboard", at, &e))?;
    let shown = if has_token { "#token=…" } else { "" };
    message(&format!("dashboard at http://{at}/{shown}"));
    Ok((dashboard, feed))
}

/// The summary in the requested format.
fn text(format: Format, summary: &Summary, whole: Whole) -> String {
    let form = match format.tool {
        Tool::Throng => return view::text(summary),
        Tool::Wrk => view::format::wrk,
        Tool::Fortio => view::format::fortio,
        Tool::Ab => view::format::ab,
        Tool::Httperf => view::format::httperf,
    };
    let (summary, whole) = whole.of(summary, format.of);
    form(&summary, &whole)
}

/// Runs a plan and writes the histogram log meanwhile. An error of the log does not affect the summary.
fn logged(
    ((flag, file), out): Log,
    typed: Typed,
    fleet: Option<&mut Fleet>,
    live: Live,
    record: RunRecord,
    interrupt: &Interrupt,
    sinks: &mut [&mut dyn Sink],
) -> Result<(Applied, Result<(), Failure>), Failure> {
    let failed = |e: io::Error| output::unwritten(flag, &file, &e);
    let mut hlog = HlogFile::new(out);
    let mut log = hlog.begin(UNIX_EPOCH + Duration::from_millis(record.began_ms.0)).map_err(failed)?;
    let mut sinks: Vec<&mut dyn Sink> = sinks.iter_mut().map(|sink| &mut **sink as &mut dyn Sink).collect();
    sinks.push(&mut log);
    let applied = apply(typed, fleet, live, record, interrupt, &mut sinks)?;
    let written = log.result().and_then(|()| hlog.finish());
    Ok((applied, written.map_err(failed)))
}

//! The report: one file that explains a run, as JSON (`throng.report/1`), as a page that needs no network, or as Markdown.

mod brief;
mod format;
mod markdown;
#[cfg(test)]
mod tests;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use samples::{FindSummary, Header, RunRecord, Samples, Sink, Summary, Tick, TickRecord};
use serde_json::{Value, json};
use stats::compare::Comparison;
use std::{borrow::Cow, io::Write};
use store::StoredRun;
use units::Date;

pub use brief::job_summary;
pub use format::ReportFormat;

use crate::{compare, history::History};

/// The page, with a placeholder for its data.
const PAGE: &str = include_str!("../../../web/dist/report.html");
/// The placeholder.
const PLACE: &str = "/*DATA*/";

/// The sink that collects the data of a report in bounded memory.
#[derive(Clone)]
pub struct Report {
    id: String,
    run: RunRecord,
    history: History,
    summary: Option<Summary>,
    /// The summary as JSON, as written by the version that stored it.
    figures: Value,
}

impl Report {
    /// The report of a run that is about to begin.
    pub fn new(run: RunRecord) -> Report {
        // The identifier in the API, until the run is stored.
        let (id, history) = (run.api_id.clone().unwrap_or_default(), History::default());
        Report { id, run, history, summary: None, figures: Value::Null }
    }

    /// The report of a stored run, whose ticks must be replayed to it.
    pub fn of(stored: &StoredRun) -> Report {
        Report {
            id: stored.id.clone(),
            summary: stored.summary.clone(),
            figures: stored.figures.clone(),
            ..Report::new(stored.record.clone())
        }
    }

    /// Sets the identifier of the run in the store.
    pub fn name(&mut self, id: String) {
        self.id = id;
    }

    /// Adds a tick whose times have been rounded to two digits.
    pub(crate) fn add(&mut self, tick: TickRecord<'static>) {
        self.history.add(tick);
    }

    /// Adds late measurements, rounded in the same way.
    pub(crate) fn amend(&mut self, late: &TickRecord) {
        self.history.amend(&late.tick);
    }

    /// What is known before the first tick.
    pub(crate) fn header(&self) -> &Header {
        &self.run.header
    }

    /// The data of this run for the page: `StoredRun` in `web/src/model/records.ts`.
    pub(crate) fn run_json(&self) -> String {
        let ticks = self.history.to_json();
        let (id, run) = (json!(self.id), self.run.to_json());
        let (width, count, summary) = (self.history.width(), self.history.count(), &self.figures);
        format!(
            r#"{{"id":{id},"run":{run},"width":{width},"count":{count},"ticks":{ticks},"summary":{summary}}}"#
        )
    }

    /// The report in Markdown.
    pub fn markdown(&self) -> String {
        markdown::text(&self.id, &self.run, self.summary.as_ref(), || self.history.total())
    }
}

/// Runs as JSON on one line, with their comparison.
pub fn report_json(runs: &[Report], comparison: Option<&Comparison>) -> String {
    let runs: Vec<String> = runs.iter().map(Report::run_json).collect();
    let comparison = json!(comparison.map(compare::as_text));
    let runs = runs.join(",");
    format!("{{\"schema\":\"throng.report/1\",\"runs\":[{runs}],\"comparison\":{comparison}}}\n")
}

/// Runs as a page in one file. Its data is compressed by gzip (RFC 1952) and encoded in base64. That takes a third of the space, and
/// ensures that no text in the data ends the element that contains it.
pub fn report_html(runs: &[Report], comparison: Option<&Comparison>) -> String {
    page(&report_json(runs, comparison))
}

/// A search as JSON on one line; `began` is the date of its start.
pub fn search_report_json(found: &FindSummary, began: Date) -> String {
    let search = json!({ "began_ms": began, "sentence": crate::find::sentence(found), "found": found });
    format!("{{\"schema\":\"throng.report/1\",\"runs\":[],\"comparison\":null,\"search\":{search}}}\n")
}

/// A search as a page in one file.
pub fn search_report_html(found: &FindSummary, began: Date) -> String {
    page(&search_report_json(found, began))
}

fn page(json: &str) -> String {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let packed = gzip.write_all(json.as_bytes()).and_then(|()| gzip.finish());
    PAGE.replacen(PLACE, &STANDARD.encode(packed.expect("memory takes it")), 1)
}

impl Sink for Report {
    fn begin(&mut self, header: &Header) {
        self.run.header = header.clone();
    }

    fn tick(&mut self, tick: &Tick, samples: &Samples) {
        let record = TickRecord { tick: Cow::Borrowed(tick), looks: Cow::Borrowed(samples) };
        self.add(TickRecord::coarse(&record));
    }

    fn late(&mut self, tick: &Tick) {
        self.amend(&TickRecord::coarse(&TickRecord::of(tick)));
    }

    fn finish(&mut self, summary: &Summary) {
        (self.summary, self.figures) = (Some(summary.clone()), json!(summary));
    }
}

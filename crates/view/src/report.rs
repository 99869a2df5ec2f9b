//! One file that explains a run: `throng.report/1` as JSON, as a page that needs no network, or as Markdown.

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

/// The page, with a place for what it shows.
const PAGE: &str = include_str!("../../../web/dist/report.html");
/// That place.
const PLACE: &str = "/*DATA*/";

/// The sink that gathers what a report shows, in bounded room.
#[derive(Clone)]
pub struct Report {
    id: String,
    run: RunRecord,
    history: History,
    summary: Option<Summary>,
    /// As it was written.
    figures: Value,
}

impl Report {
    /// Of a run that is about to begin.
    pub fn new(run: RunRecord) -> Report {
        // Until it is stored.
        let (id, history) = (run.api_id.clone().unwrap_or_default(), History::default());
        Report { id, run, history, summary: None, figures: Value::Null }
    }

    /// Of a stored one; its ticks are still to be replayed.
    pub fn of(stored: &StoredRun) -> Report {
        Report {
            id: stored.id.clone(),
            summary: stored.summary.clone(),
            figures: stored.figures.clone(),
            ..Report::new(stored.record.clone())
        }
    }

    /// By which the run is found in the store.
    pub fn name(&mut self, id: String) {
        self.id = id;
    }

    /// A tick, with its times to two digits already.
    pub(crate) fn add(&mut self, tick: TickRecord<'static>) {
        self.history.add(tick);
    }

    /// What came late of a tick that was added; the same.
    pub(crate) fn amend(&mut self, late: &TickRecord) {
        self.history.amend(&late.tick);
    }

    /// What is known before the first tick.
    pub(crate) fn header(&self) -> &Header {
        &self.run.header
    }

    /// What the page is given of this run: `StoredRun` of `web/src/model/records.ts`.
    pub(crate) fn run_json(&self) -> String {
        let ticks = self.history.to_json();
        let (id, run) = (json!(self.id), self.run.to_json());
        let (width, count, summary) = (self.history.width(), self.history.count(), &self.figures);
        format!(
            r#"{{"id":{id},"run":{run},"width":{width},"count":{count},"ticks":{ticks},"summary":{summary}}}"#
        )
    }

    /// As Markdown, for where a page cannot be: a ticket, a pull request.
    pub fn markdown(&self) -> String {
        markdown::text(&self.id, &self.run, self.summary.as_ref(), || self.history.total())
    }
}

/// Runs as JSON, on one line; with their `comparison`.
pub fn report_json(runs: &[Report], comparison: Option<&Comparison>) -> String {
    let runs: Vec<String> = runs.iter().map(Report::run_json).collect();
    let comparison = json!(comparison.map(compare::as_text));
    let runs = runs.join(",");
    format!("{{\"schema\":\"throng.report/1\",\"runs\":[{runs}],\"comparison\":{comparison}}}\n")
}

/// The same as a page in one file. Its data is gzip (RFC 1952) in base64, a third of the room of what it is made of: and no
/// text in it can end the element that holds it.
pub fn report_html(runs: &[Report], comparison: Option<&Comparison>) -> String {
    page(&report_json(runs, comparison))
}

/// A search that began then as JSON, on one line.
pub fn search_report_json(found: &FindSummary, began: Date) -> String {
    let search = json!({ "began_ms": began, "sentence": crate::find::sentence(found), "found": found });
    format!("{{\"schema\":\"throng.report/1\",\"runs\":[],\"comparison\":null,\"search\":{search}}}\n")
}

/// The same as a page in one file.
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

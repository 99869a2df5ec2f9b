//! A run as read from the store.

use samples::{RunRecord, Summary, TickRecord};
use serde_json::Value;
use units::Date;

/// A stored run.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// The identifier: seven letters and digits, in the order of time.
    pub id: String,
    /// What was known before the first tick.
    pub record: RunRecord,
    /// The summary (`throng.summary/1`); `None` if the run has not finished.
    pub summary: Option<Summary>,
    /// The summary as JSON, as written by the version that stored it, for callers that read figures by their paths or pass it on;
    /// null if there is none.
    pub figures: Value,
    /// The last stored tick.
    pub last: Option<TickRecord<'static>>,
    /// Start of the first tick, on the run's clock.
    pub from: units::Nanos,
}

/// A run without a tick for this time is considered ended; milliseconds.
const QUIET_MS: u64 = 15_000;

/// Whether a run may still be in progress that began at `began` and was last seen `elapsed_s` seconds later.
pub(crate) fn is_recent(began: Date, elapsed_s: f64, now: Date) -> bool {
    now.0 < began.0 + (elapsed_s * 1e3) as u64 + QUIET_MS
}

impl StoredRun {
    /// Whether the run appears to be in progress.
    pub fn is_under_way(&self, now: Date) -> bool {
        self.summary.is_none() && is_recent(self.record.began_ms, self.elapsed_s(), now)
    }

    /// `pass`, `fail`, …; `None` if the run has not finished.
    pub fn verdict(&self) -> Option<&'static str> {
        self.summary.as_ref().map(|summary| summary.verdict.name())
    }

    /// Connections at the end of the hold, or in the last tick if the run has not finished.
    pub fn held(&self) -> u64 {
        match &self.summary {
            Some(summary) => summary.connections.held,
            None => self.last.as_ref().map_or(0, |last| last.tick.open),
        }
    }

    /// Seconds from the first dial to the end of full load, or to the end of the last tick if the run has not finished.
    pub fn elapsed_s(&self) -> f64 {
        match &self.summary {
            Some(summary) => summary.elapsed_s,
            None => self.last.as_ref().map_or(0.0, |last| last.tick.until.since(self.from).secs_f64()),
        }
    }
}

//! A run as the store has it.

use samples::{RunRecord, Summary, TickRecord};
use serde_json::Value;
use units::Date;

/// A run as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// Seven letters and digits; a later run's sorts after it.
    pub id: String,
    /// What was known before its first tick.
    pub record: RunRecord,
    /// Its summary (`throng.summary/1`); `None`: it did not come to its end, or has not yet.
    pub summary: Option<Summary>,
    /// The same as it was written, by whichever version: for callers that read figures by their paths, or pass it on; else null.
    pub figures: Value,
    /// The last tick that is stored.
    pub last: Option<TickRecord<'static>>,
    /// When its first tick began, on the run's own clock.
    pub from: units::Nanos,
}

/// After this long without a tick the run has ended.
const QUIET_MS: u64 = 15_000;

/// Whether a run that began then, and was last seen `elapsed_s` after that, may still be running.
pub(crate) fn is_recent(began: Date, elapsed_s: f64, now: Date) -> bool {
    now.0 < began.0 + (elapsed_s * 1e3) as u64 + QUIET_MS
}

impl StoredRun {
    /// Whether it appears to be running.
    pub fn is_under_way(&self, now: Date) -> bool {
        self.summary.is_none() && is_recent(self.record.began_ms, self.elapsed_s(), now)
    }

    /// `pass`, `fail`, … ; `None`: it did not come to its end, or has not yet.
    pub fn verdict(&self) -> Option<&'static str> {
        self.summary.as_ref().map(|summary| summary.verdict.name())
    }

    /// Connections at the end of the hold, or as last seen.
    pub fn held(&self) -> u64 {
        match &self.summary {
            Some(summary) => summary.connections.held,
            None => self.last.as_ref().map_or(0, |last| last.tick.open),
        }
    }

    /// From the first dial to the end of full load, or to what was seen last; seconds.
    pub fn elapsed_s(&self) -> f64 {
        match &self.summary {
            Some(summary) => summary.elapsed_s,
            None => self.last.as_ref().map_or(0.0, |last| last.tick.until.since(self.from).secs_f64()),
        }
    }
}

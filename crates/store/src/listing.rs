//! Lists of stored runs, filtered and of bounded length. SQLite extracts the few figures that a line needs, so no tick is read whole.

use rusqlite::{OptionalExtension, Row, params};
use samples::{RunRecord, Summary, Verdict};
use units::Date;

use crate::{Store, StoreResult, StoredRun, stored::is_recent};

/// A filter for runs; all conditions that are set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The target contains this text.
    pub target: Option<String>,
    /// The verdict; `unfinished` selects runs without one.
    pub verdict: Option<String>,
    /// The run has this tag.
    pub tag: Option<String>,
    /// The run is earlier than the one with this identifier.
    pub before: Option<String>,
}

impl RunFilter {
    /// Selects all runs with a tag.
    pub fn of_tag(tag: &str) -> RunFilter {
        RunFilter { tag: Some(tag.to_owned()), ..RunFilter::default() }
    }
}

/// The SQL condition of a [`RunFilter`], whose fields are its first four parameters. A parameter that is null does not restrict.
const MATCHING: &str = "WHERE
    (?1 IS NULL OR instr(json_extract(record, '$.header.target'), ?1) > 0) AND
    (?2 IS NULL OR coalesce(json_extract(summary, '$.verdict'), 'unfinished') = ?2) AND
    (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(record, '$.tags') WHERE value = ?3)) AND
    (?4 IS NULL OR id < ?4)";

/// A run in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRun {
    /// As [`StoredRun::id`].
    pub id: String,
    /// What was known before the first tick.
    pub record: RunRecord,
    /// `None` if the run has not finished.
    pub summary: Option<Summary>,
    /// Connections at the end of the hold, or in the last tick if the run has not finished.
    pub held: u64,
    /// As [`StoredRun::elapsed_s`].
    pub elapsed_s: f64,
}

/// The name that filters use for runs without a verdict.
pub const UNFINISHED: &str = "unfinished";
/// All values of a filter for verdicts.
pub const VERDICTS: [&str; 5] = [
    Verdict::Pass.name(),
    Verdict::Fail.name(),
    Verdict::Invalid.name(),
    Verdict::Interrupted.name(),
    UNFINISHED,
];

/// The name of the last stored run.
pub(crate) const LATEST: &str = "latest";
/// Prefix of a group's name that selects all runs with a tag.
pub const TAG: &str = "tag:";

/// The error message for a group that contains no run.
pub fn missing(name: &str) -> String {
    match name.strip_prefix(TAG) {
        Some(tag) => format!("no run has the tag {tag}; list runs with `throng runs`"),
        None if name == LATEST => "no stored run yet; `throng run` stores each of its runs".to_owned(),
        None => format!("no run {name}; list runs with `throng runs`"),
    }
}

impl ListedRun {
    /// `pass`, `fail`, …; `None` if the run has not finished.
    pub fn verdict(&self) -> Option<&'static str> {
        self.summary.as_ref().map(|summary| summary.verdict.name())
    }

    /// Whether the run appears to be in progress.
    pub fn is_under_way(&self, now: Date) -> bool {
        self.summary.is_none() && is_recent(self.record.began_ms, self.elapsed_s, now)
    }
}

impl Store {
    /// All runs of a group, oldest first. A group is `tag:TAG`, an identifier, or `latest`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn group(&self, name: &str) -> StoreResult<Vec<StoredRun>> {
        match name.strip_prefix(TAG) {
            Some(tag) => self.runs(&RunFilter::of_tag(tag)),
            None => self.run(name).map(|run| run.into_iter().collect()),
        }
    }

    /// All runs that match the filter, oldest first.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn runs(&self, filter: &RunFilter) -> StoreResult<Vec<StoredRun>> {
        let RunFilter { target, verdict, tag, before } = filter;
        self.select(&format!("{MATCHING} ORDER BY id"), params![target, verdict, tag, before])
    }

    /// The latest runs that match the filter, latest first; at most `most`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn latest(&self, filter: &RunFilter, most: u32) -> StoreResult<Vec<ListedRun>> {
        let texts = |row: &Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let RunFilter { target, verdict, tag, before } = filter;
        let query = format!("SELECT id, record, summary FROM runs {MATCHING} ORDER BY id DESC LIMIT ?5");
        let found: rusqlite::Result<Vec<(String, String, Option<String>)>> =
            self.db.prepare(&query).and_then(|mut query| {
                query.query_map(params![target, verdict, tag, before, most], texts)?.collect()
            });
        self.check(found)?.into_iter().map(|row| self.listed_run(row)).collect()
    }

    fn listed_run(&self, (id, record, summary): (String, String, Option<String>)) -> StoreResult<ListedRun> {
        let record = self.read(RunRecord::from_json(&record))?;
        let read = |text: String| {
            let json = serde_json::from_str(&text).map_err(|e| e.to_string())?;
            Summary::from_json(&json)
        };
        let summary = self.read(summary.map(read).transpose())?;
        let (held, elapsed_s) = match &summary {
            Some(summary) => (summary.connections.held, summary.elapsed_s),
            None => self.last_seen(&id)?,
        };
        Ok(ListedRun { id, record, summary, held, elapsed_s })
    }

    /// Open connections at the end of the last tick, and seconds from the start of the first tick to the end of the last.
    fn last_seen(&self, id: &str) -> StoreResult<(u64, f64)> {
        let figures = |row: &Row| {
            let (open, from, until): (Option<i64>, Option<i64>, Option<i64>) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let ns = until.unwrap_or(0).saturating_sub(from.unwrap_or(0));
            Ok((open.unwrap_or(0).max(0) as u64, ns.max(0) as f64 / 1e9))
        };
        const QUERY: &str = "
            SELECT record->>'$.tick.open',
                (SELECT record->>'$.tick.from' FROM ticks WHERE run = ?1 ORDER BY n LIMIT 1),
                record->>'$.tick.until'
            FROM ticks WHERE run = ?1 ORDER BY n DESC LIMIT 1";
        let seen = self.db.query_row(QUERY, [id], figures).optional();
        Ok(self.check(seen)?.unwrap_or_default())
    }

    /// The tags of all runs, each with the number of its runs, most frequent first; at most `most`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn tags(&self, most: u32) -> StoreResult<Vec<(String, u64)>> {
        const QUERY: &str = "
            SELECT value, count(*) AS runs FROM runs, json_each(record, '$.tags')
            GROUP BY value ORDER BY runs DESC, value LIMIT ?1";
        let tag = |row: &Row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64));
        let found: rusqlite::Result<Vec<_>> =
            self.db.prepare(QUERY).and_then(|mut query| query.query_map([most], tag)?.collect());
        self.check(found)
    }
}

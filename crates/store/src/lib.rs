//! The run store: one SQLite file that holds runs and calibrations. What it means is in `docs/reference/store.md`.

mod compared;
pub mod folders;
mod listing;
mod stored;
#[cfg(test)]
mod tests;
mod trouble;
mod writer;

use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt, path::Path, time::Duration};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, params,
};
use samples::{Calibration, HostFacts, RunRecord, SCHEMA, Sink, Summary, TickRecord};
use serde_json::Value;
use units::Date;

use listing::LATEST;
pub use listing::{ListedRun, RunFilter, TAG, UNFINISHED, VERDICTS, missing};
pub use stored::StoredRun;
pub use trouble::StoreTrouble;
pub use writer::{StoreWriter, StoredAs};

/// A store, open.
pub struct Store {
    db: Connection,
}

/// How long one writer waits for another.
const PATIENCE: Duration = Duration::from_secs(5);
/// Runs that began within one tenth of a second, at most.
const SAME_TENTH: u64 = 100;

/// Everything but the keys is in the records: a new field changes nothing here.
const TABLES: &str = "
    CREATE TABLE runs (id TEXT PRIMARY KEY, began_ms INTEGER NOT NULL, record TEXT NOT NULL, summary TEXT) STRICT;
    CREATE TABLE ticks (run TEXT NOT NULL, n INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY (run, n)) STRICT;
    CREATE TABLE calibrations (at_ms INTEGER NOT NULL, record TEXT NOT NULL) STRICT;";

/// Since later: a store that was made before has it with its next run.
const MEASURED: &str =
    "CREATE TABLE IF NOT EXISTS measured (run TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT";

type StoreResult<T> = Result<T, StoreTrouble>;

impl Store {
    /// Opens the store; makes folder, file and tables where there are none.
    ///
    /// # Errors
    /// It cannot be read or made, is no store, or one of a later throng.
    pub fn open(file: &Path) -> StoreResult<Store> {
        let failed = |e: std::io::Error| StoreTrouble::Failed(format!("{}: {e}", file.display()));
        if let Some(folder) = file.parent() {
            // As required by the XDG Base Directory Specification: not readable by other users.
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        Store::with(file, OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a store to read; `None` where there is none.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn existing(file: &Path) -> StoreResult<Option<Store>> {
        if file.exists() { Store::with(file, OpenFlags::empty()).map(Some) } else { Ok(None) }
    }

    fn with(file: &Path, flags: OpenFlags) -> StoreResult<Store> {
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(file, flags).and_then(|mut db| Ok((set_up(&mut db)?, db)));
        match opened.map_err(|e| StoreTrouble::of(file, e))? {
            (SCHEMA, db) => Ok(Store { db }),
            (schema, _) => Err(StoreTrouble::OtherSchema { file: file.into(), schema }),
        }
    }

    /// Begins a run; its id. One on a fleet that an earlier process has begun is the same run.
    fn begin(&self, run: &RunRecord) -> rusqlite::Result<String> {
        if let Some(id) = self.take_up(run)? {
            return Ok(id);
        }
        let add = "INSERT INTO runs (id, began_ms, record) VALUES (?1, ?2, ?3)";
        let record = run.to_json();
        let mut last = Ok(String::new());
        for later in 0..SAME_TENTH {
            let id = id(run.began_ms, later);
            last = match self.db.execute(add, params![id, run.began_ms.0 as i64, record]) {
                Ok(_) => return Ok(id),
                Err(e) if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Err(e),
                Err(e) => return Err(e),
            };
        }
        last
    }

    /// The run that another process of its coordinator has begun, from its beginning on: what happened comes again, from the log of the
    /// fleet.
    fn take_up(&self, run: &RunRecord) -> rusqlite::Result<Option<String>> {
        let Some(fleet_run) = run.fleet_run.as_ref().filter(|_| run.fleet_term > 0) else { return Ok(None) };
        // It may not be begun twice, as one that reads first may: the process before may still write.
        let whole = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
        let find = "SELECT id, began_ms FROM runs WHERE json_extract(record, '$.fleet_run') = ?1 AND summary IS NULL";
        let row = |row: &Row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
        let Some((id, began_ms)) = whole.query_row(find, [fleet_run], row).optional()? else {
            return Ok(None);
        };
        let record = RunRecord { began_ms: Date(began_ms as u64), ..run.clone() }.to_json();
        whole.execute("DELETE FROM ticks WHERE run = ?1", [&id])?;
        whole.execute("UPDATE runs SET record = ?2 WHERE id = ?1", params![id, record])?;
        whole.commit()?;
        Ok(Some(id))
    }

    /// Adds a period to a run: `n` in the order of time.
    fn add_tick(&self, id: &str, n: u64, record: &str) -> rusqlite::Result<()> {
        let add = "INSERT INTO ticks (run, n, record) VALUES (?1, ?2, ?3)";
        self.db.prepare_cached(add)?.execute(params![id, n as i64, record])?;
        Ok(())
    }

    /// Adds to a tick what came late.
    fn amend_tick(&self, id: &str, n: u64, late: &samples::Tick) -> rusqlite::Result<()> {
        let stored: String = self
            .db
            .prepare_cached("SELECT record FROM ticks WHERE run = ?1 AND n = ?2")?
            .query_row(params![id, n as i64], |row| row.get(0))?;
        let Ok(TickRecord { mut tick, looks }) = TickRecord::from_json(&stored) else { return Ok(()) };
        tick.to_mut().amend(late);
        let record = TickRecord { tick, looks }.to_json();
        let set = "UPDATE ticks SET record = ?3 WHERE run = ?1 AND n = ?2";
        self.db.prepare_cached(set)?.execute(params![id, n as i64, record])?;
        Ok(())
    }

    /// `term`: of the run as this process has it. Of a run that another one has taken up meanwhile, it does not know the end.
    fn finish(&self, id: &str, term: u32, summary: &str) -> rusqlite::Result<()> {
        let set = "UPDATE runs SET summary = ?2 WHERE id = ?1 AND ifnull(json_extract(record, '$.fleet_term'), 0) = ?3";
        self.db.execute(set, params![id, summary, term])?;
        Ok(())
    }

    /// Keeps what the judge has read of a run.
    fn add_measured(&self, id: &str, term: u32, measured: &str) -> rusqlite::Result<()> {
        self.db.execute_batch(MEASURED)?;
        let add = "INSERT OR REPLACE INTO measured (run, record) SELECT id, ?2 FROM runs WHERE id = ?1 AND \
            ifnull(json_extract(record, '$.fleet_term'), 0) = ?3";
        self.db.execute(add, params![id, measured, term])?;
        Ok(())
    }

    /// What the judge has read of a run; `None`: it did not come to its end, or an earlier version stored it.
    ///
    /// # Errors
    /// The machine does not do it.
    pub fn measured(&self, id: &str) -> StoreResult<Option<String>> {
        if !self.check(self.db.table_exists(None, "measured"))? {
            return Ok(None);
        }
        let query = "SELECT record FROM measured WHERE run = ?1";
        self.check(self.db.query_row(query, [id], |row| row.get(0)).optional())
    }

    /// Keeps a calibration.
    ///
    /// # Errors
    /// The machine does not do it.
    pub fn add_calibration(&self, calibration: &Calibration) -> StoreResult<()> {
        let add = "INSERT INTO calibrations (at_ms, record) VALUES (?1, ?2)";
        self.check(self.db.execute(add, params![calibration.at_ms.0 as i64, calibration.to_json()]))?;
        Ok(())
    }

    /// The calibrations of a host, the latest first.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn calibrations(&self, host: &HostFacts) -> StoreResult<Vec<Calibration>> {
        let mut query = self.check(self.db.prepare("SELECT record FROM calibrations ORDER BY at_ms DESC"))?;
        let rows = self.check(query.query_map([], |row| row.get::<_, String>(0)))?;
        let all = rows.map(|record| self.read(Calibration::from_json(&self.check(record)?)));
        all.filter(|one| one.as_ref().map_or(true, |one| one.host == *host)).collect()
    }

    /// One run, by its id or as `latest`; `None` where there is none.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn run(&self, id: &str) -> StoreResult<Option<StoredRun>> {
        let found = match id {
            LATEST => self.select("ORDER BY id DESC LIMIT 1", []),
            id => self.select("WHERE id = ?1", [id]),
        };
        Ok(found?.pop())
    }

    /// The ticks of a run, in the order of time.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn ticks(&self, id: &str, each: &mut dyn FnMut(TickRecord<'static>)) -> StoreResult<()> {
        let mut query = self.check(self.db.prepare("SELECT record FROM ticks WHERE run = ?1 ORDER BY n"))?;
        let rows = self.check(query.query_map([id], |row| row.get::<_, String>(0)))?;
        for record in rows {
            each(self.read(TickRecord::from_json(&self.check(record)?))?);
        }
        Ok(())
    }

    /// Feeds a run to sinks as when it ran, but for the summary at its end; how many ticks it has.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn replay(&self, run: &StoredRun, sinks: &mut [&mut dyn Sink]) -> StoreResult<u64> {
        sinks.iter_mut().for_each(|sink| sink.begin(&run.record.header));
        let mut ticks = 0;
        self.ticks(&run.id, &mut |record| {
            ticks += 1;
            sinks.iter_mut().for_each(|sink| sink.tick(&record.tick, &record.looks));
        })?;
        Ok(ticks)
    }

    /// Gives a run these tags, and no others.
    ///
    /// # Errors
    /// The machine does not do it.
    pub fn tag(&self, run: &StoredRun, tags: Vec<String>) -> StoreResult<StoredRun> {
        self.set_record(run, RunRecord { tags, ..run.record.clone() })
    }

    /// Leaves a run in the store, and out of the list of the HTTP API that it was started by.
    ///
    /// # Errors
    /// The machine does not do it.
    pub fn unlist(&self, run: &StoredRun) -> StoreResult<StoredRun> {
        self.set_record(run, RunRecord { api_id: None, ..run.record.clone() })
    }

    /// All runs that were started by an HTTP API, the oldest first.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn listed(&self) -> StoreResult<Vec<StoredRun>> {
        self.select("WHERE json_extract(record, '$.api_id') IS NOT NULL ORDER BY id", [])
    }

    fn set_record(&self, run: &StoredRun, record: RunRecord) -> StoreResult<StoredRun> {
        let set = "UPDATE runs SET record = ?2 WHERE id = ?1";
        self.check(self.db.execute(set, params![run.id, record.to_json()]))?;
        Ok(StoredRun { record, ..run.clone() })
    }

    /// Deletes a run and its ticks: both or nothing.
    ///
    /// # Errors
    /// The machine does not do it.
    pub fn delete(&self, id: &str) -> StoreResult<()> {
        let delete = || -> rusqlite::Result<()> {
            let whole = self.db.unchecked_transaction()?;
            whole.execute("DELETE FROM ticks WHERE run = ?1", [id])?;
            if whole.table_exists(None, "measured")? {
                whole.execute("DELETE FROM measured WHERE run = ?1", [id])?;
            }
            whole.execute("DELETE FROM runs WHERE id = ?1", [id])?;
            whole.commit()
        };
        self.check(delete())
    }

    fn select(&self, which: &str, values: impl rusqlite::Params) -> StoreResult<Vec<StoredRun>> {
        let query = format!("SELECT id, record, summary FROM runs {which}");
        let texts = |row: &Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let found = self
            .db
            .prepare(&query)
            .and_then(|mut query| query.query_map(values, texts)?.collect::<Result<Vec<_>, _>>());
        self.check(found)?.into_iter().map(|row| self.stored(row)).collect()
    }

    fn stored(&self, (id, record, summary): (String, String, Option<String>)) -> StoreResult<StoredRun> {
        let record = self.read(RunRecord::from_json(&record))?;
        let figures = serde_json::from_str(summary.as_deref().unwrap_or("null")).map_err(|e| e.to_string());
        let figures: Value = self.read(figures)?;
        let summary = self.read(summary.map(|_| Summary::from_json(&figures)).transpose())?;
        let from = self.end_tick(&id, "ASC")?.map_or(units::Nanos::ZERO, |first| first.tick.from);
        let last = self.end_tick(&id, "DESC")?;
        Ok(StoredRun { id, record, summary, figures, last, from })
    }

    fn end_tick(&self, id: &str, order: &str) -> StoreResult<Option<TickRecord<'static>>> {
        let query = format!("SELECT record FROM ticks WHERE run = ?1 ORDER BY n {order} LIMIT 1");
        let found = self.db.query_row(&query, [id], |row| row.get::<_, String>(0)).optional();
        self.read(self.check(found)?.map(|text| TickRecord::from_json(&text)).transpose())
    }

    fn check<T>(&self, result: rusqlite::Result<T>) -> StoreResult<T> {
        result.map_err(|e| StoreTrouble::of(Path::new(self.db.path().unwrap_or_default()), e))
    }

    fn read<T>(&self, record: Result<T, String>) -> StoreResult<T> {
        let file = Path::new(self.db.path().unwrap_or_default());
        record.map_err(|why| StoreTrouble::Damaged { file: file.into(), why })
    }
}

/// Makes the tables where there is nothing yet; the schema that the file has then.
fn set_up(db: &mut Connection) -> rusqlite::Result<u32> {
    db.busy_timeout(PATIENCE)?;
    // What the kernel has survives the process, and a commit costs no disk.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    // In KiB: a run only appends, and SQLite's default of 2 MiB would fill up over minutes and look like growth.
    db.pragma_update(None, "cache_size", -256)?;
    if state(db)? == NEW {
        log_ahead(db)?;
        let making = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        if state(&making)? == NEW {
            making.execute_batch(TABLES)?;
            making.pragma_update(None, "user_version", SCHEMA)?;
        }
        making.commit()?;
    }
    Ok(state(db)?.0)
}

/// Schema, and how many tables and indices.
fn state(db: &Connection) -> rusqlite::Result<(u32, u32)> {
    let version = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((version, db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?))
}

/// A file without anything in it.
const NEW: (u32, u32) = (0, 0);

/// Write-ahead log: a killed process leaves what was committed, and readers and a writer do not block each other.
fn log_ahead(db: &Connection) -> rusqlite::Result<()> {
    // Two that make the same file at once: SQLite has one of them fail here without waiting.
    let mut tries = 0;
    loop {
        match db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())) {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && tries < 100 => {
                tries += 1;
                std::thread::sleep(PATIENCE / 100);
            }
            other => return other,
        }
    }
}

/// Tenths of a second since 1970 in Crockford's base 32, and the next one where that is taken: seven digits until the
/// year 3058, and text sorts them by time.
fn id(began: Date, later: u64) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let tenths = began.0 / 100 + later;
    (0..7).rev().map(|place| char::from(DIGITS[(tenths >> (5 * place)) as usize % 32])).collect()
}

/// As it is stored.
fn summary_text(summary: &Summary) -> String {
    serde_json::to_string(summary).expect("a summary has only plain fields")
}

//! The run store: one SQLite file with runs, their ticks and calibrations (`docs/reference/store.md`).
//!
//! Records are stored as JSON text and only keys are columns, so a new field needs no migration. The file uses a write-ahead log:
//! readers and the writer do not block each other, and a killed process leaves everything that was committed.

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

/// An open store.
pub struct Store {
    db: Connection,
}

/// Maximum time for which one writer waits for another.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of identifiers to try for runs that begin at the same time; they have a resolution of a tenth of a second.
const SAME_TENTH: u64 = 100;

/// The tables. All but the keys is inside the records, so a new field does not change them.
const TABLES: &str = "
    CREATE TABLE runs (id TEXT PRIMARY KEY, began_ms INTEGER NOT NULL, record TEXT NOT NULL, summary TEXT) STRICT;
    CREATE TABLE ticks (run TEXT NOT NULL, n INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY (run, n)) STRICT;
    CREATE TABLE calibrations (at_ms INTEGER NOT NULL, record TEXT NOT NULL) STRICT;";

/// A table of a later version: a store created earlier gets it when its next run is stored.
const MEASURED: &str =
    "CREATE TABLE IF NOT EXISTS measured (run TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT";

type StoreResult<T> = Result<T, StoreTrouble>;

impl Store {
    /// Opens the store, and creates folder, file and tables if they do not exist.
    ///
    /// # Errors
    /// The file cannot be read or created, is not a store, or was written by a later version of throng.
    pub fn open(file: &Path) -> StoreResult<Store> {
        let failed = |e: std::io::Error| StoreTrouble::Failed(format!("{}: {e}", file.display()));
        if let Some(folder) = file.parent() {
            // As required by the XDG Base Directory Specification: not readable by other users.
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        Store::with(file, OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a store if its file exists; otherwise `None`.
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

    /// Adds a run and returns its identifier. If an earlier process of the coordinator began the same run on a fleet, that one is
    /// continued.
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

    /// Continues a run that an earlier process of the coordinator began: returns its identifier and deletes its ticks, because the
    /// fleet's log delivers all events again. `None` if there is no such run.
    fn take_up(&self, run: &RunRecord) -> rusqlite::Result<Option<String>> {
        let Some(fleet_run) = run.fleet_run.as_ref().filter(|_| run.fleet_term > 0) else { return Ok(None) };
        // An immediate transaction takes the write lock before it reads. A deferred one would fail if the earlier process, which may
        // still be writing, committed between its read and its write.
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

    /// Adds a tick to a run; `n` is its number, in the order of time.
    fn add_tick(&self, id: &str, n: u64, record: &str) -> rusqlite::Result<()> {
        let add = "INSERT INTO ticks (run, n, record) VALUES (?1, ?2, ?3)";
        self.db.prepare_cached(add)?.execute(params![id, n as i64, record])?;
        Ok(())
    }

    /// Merges measurements that arrived late into a stored tick.
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

    /// Stores the summary. `term` is the fleet term of the run in this process: if another process has continued the run meanwhile,
    /// the stored term differs, and nothing is written.
    fn finish(&self, id: &str, term: u32, summary: &str) -> rusqlite::Result<()> {
        let set = "UPDATE runs SET summary = ?2 WHERE id = ?1 AND ifnull(json_extract(record, '$.fleet_term'), 0) = ?3";
        self.db.execute(set, params![id, summary, term])?;
        Ok(())
    }

    /// Stores the record that the judge has read of a run, unless another process has continued the run.
    fn add_measured(&self, id: &str, term: u32, measured: &str) -> rusqlite::Result<()> {
        self.db.execute_batch(MEASURED)?;
        let add = "INSERT OR REPLACE INTO measured (run, record) SELECT id, ?2 FROM runs WHERE id = ?1 AND \
            ifnull(json_extract(record, '$.fleet_term'), 0) = ?3";
        self.db.execute(add, params![id, measured, term])?;
        Ok(())
    }

    /// The stored record that the judge has read of a run; `None` if the run did not finish, or an earlier version stored it.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn measured(&self, id: &str) -> StoreResult<Option<String>> {
        if !self.check(self.db.table_exists(None, "measured"))? {
            return Ok(None);
        }
        let query = "SELECT record FROM measured WHERE run = ?1";
        self.check(self.db.query_row(query, [id], |row| row.get(0)).optional())
    }

    /// Adds a calibration.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn add_calibration(&self, calibration: &Calibration) -> StoreResult<()> {
        let add = "INSERT INTO calibrations (at_ms, record) VALUES (?1, ?2)";
        self.check(self.db.execute(add, params![calibration.at_ms.0 as i64, calibration.to_json()]))?;
        Ok(())
    }

    /// The calibrations of a host, latest first.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn calibrations(&self, host: &HostFacts) -> StoreResult<Vec<Calibration>> {
        let mut query = self.check(self.db.prepare("SELECT record FROM calibrations ORDER BY at_ms DESC"))?;
        let rows = self.check(query.query_map([], |row| row.get::<_, String>(0)))?;
        let all = rows.map(|record| self.read(Calibration::from_json(&self.check(record)?)));
        all.filter(|one| one.as_ref().map_or(true, |one| one.host == *host)).collect()
    }

    /// The run with this identifier, or the latest one for `latest`; `None` if there is none.
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

    /// Calls `each` with the ticks of a run, in the order of time.
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

    /// Replays a stored run to sinks, except for the summary at its end; returns the number of ticks.
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

    /// Replaces the tags of a run.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn tag(&self, run: &StoredRun, tags: Vec<String>) -> StoreResult<StoredRun> {
        self.set_record(run, RunRecord { tags, ..run.record.clone() })
    }

    /// Removes a run from the list of the HTTP API that started it. The run remains in the store.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn unlist(&self, run: &StoredRun) -> StoreResult<StoredRun> {
        self.set_record(run, RunRecord { api_id: None, ..run.record.clone() })
    }

    /// All runs that were started through an HTTP API, oldest first.
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

    /// Deletes a run and its ticks in one transaction.
    ///
    /// # Errors
    /// The database cannot be written.
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

/// Creates the tables in an empty file; returns the file's schema version.
fn set_up(db: &mut Connection) -> rusqlite::Result<u32> {
    db.busy_timeout(PATIENCE)?;
    // Without a sync per commit: data in the kernel's page cache survives the end of the process.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    // In KiB: a run only appends, and SQLite's default of 2 MiB would fill up over minutes and look like growth.
    db.pragma_update(None, "cache_size", -256)?;
    if state(db)? == NEW {
        log_ahead(db)?;
        let making = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have created the tables meanwhile.
        if state(&making)? == NEW {
            making.execute_batch(TABLES)?;
            making.pragma_update(None, "user_version", SCHEMA)?;
        }
        making.commit()?;
    }
    Ok(state(db)?.0)
}

/// Schema version, and the number of tables and indices.
fn state(db: &Connection) -> rusqlite::Result<(u32, u32)> {
    let version = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((version, db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?))
}

/// The state of an empty file.
const NEW: (u32, u32) = (0, 0);

/// Switches to a write-ahead log: a killed process leaves what was committed, and readers and a writer do not block each other.
fn log_ahead(db: &Connection) -> rusqlite::Result<()> {
    // If two processes create the same file at the same time, SQLite fails here at once instead of waiting.
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

/// The identifier of a run: tenths of a second since 1970 in Crockford's base 32, plus `later` if earlier values are taken. It has
/// seven digits until the year 3058, and its text order is the order of time.
fn id(began: Date, later: u64) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let tenths = began.0 / 100 + later;
    (0..7).rev().map(|place| char::from(DIGITS[(tenths >> (5 * place)) as usize % 32])).collect()
}

/// The stored form of a summary.
fn summary_text(summary: &Summary) -> String {
    serde_json::to_string(summary).expect("a summary has only plain fields")
}

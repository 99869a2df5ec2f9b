//! Stores a run while it is in progress.
//!
//! A thread writes to the store and takes rows from a bounded queue. The run never waits for the disk: a row that finds the queue
//! full is dropped and counted.

use std::{
    borrow::Cow,
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    time::Duration,
};

use samples::{Header, RunRecord, Samples, Sink, Summary, Tell, Tick, TickRecord};
use units::Nanos;

use crate::{Store, StoreTrouble, summary_text};

/// Capacity of the queue, in rows: a minute of ticks. The largest observed take 20 KiB each.
const WAITING: usize = 60;
/// Number of recent ticks to which late measurements can be added: an hour.
const AMENDED: usize = 3_600;
/// Maximum time to wait, after the run, until everything is stored.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sink that writes a run to the store. Failures are reported once, and counted; the run continues.
pub struct StoreWriter {
    file: PathBuf,
    run: RunRecord,
    report: Tell,
    thread: Option<Thread>,
    /// Number of ticks so far; each one's number is its key in the store.
    seen: u64,
    missed: u64,
    /// The number and the end of each recent tick, oldest first.
    recent: VecDeque<(u64, Nanos)>,
}

/// The result of storing a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAs {
    /// Its identifier.
    pub id: String,
    /// Number of ticks that are missing.
    pub missed: u64,
}

/// A row to write.
enum Row {
    /// A tick with its number, as JSON.
    Tick(u64, String),
    /// Measurements that arrived late, with the number of their tick.
    Late(u64, Box<Tick>),
    /// The record that the judge has read, as JSON.
    Measured(String),
}

struct Thread {
    ticks: SyncSender<Row>,
    summary: SyncSender<String>,
    result: Receiver<Option<StoredAs>>,
}

impl StoreWriter {
    /// A writer to this file; the header is added to `run` when the run begins.
    pub fn new(file: PathBuf, run: RunRecord, report: Tell) -> StoreWriter {
        StoreWriter { file, run, report, thread: None, seen: 0, missed: 0, recent: VecDeque::new() }
    }

    /// Waits, for a bounded time, until everything is stored. `None` if the run was not stored, which has been reported.
    pub fn end(self) -> Option<StoredAs> {
        let Thread { ticks, summary, result } = self.thread?;
        drop((ticks, summary));
        match result.recv_timeout(PATIENCE) {
            Ok(stored) => stored.map(|stored| StoredAs { missed: stored.missed + self.missed, ..stored }),
            Err(RecvTimeoutError::Timeout) => {
                (self.report)(&format!(
                    "the end of this run is not stored: {}: no response within {PATIENCE:?}",
                    self.file.display()
                ));
                None
            }
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }
}

impl Sink for StoreWriter {
    fn begin(&mut self, header: &Header) {
        self.run.header = header.clone();
        let (ticks, next_tick) = sync_channel(WAITING);
        let (summary, last) = sync_channel(1);
        let (done, result) = sync_channel(1);
        let (file, run, report) = (self.file.clone(), self.run.clone(), self.report.clone());
        let body = move || {
            units::failpoint("store");
            let _ = done.send(store_run(&file, &run, &next_tick, &last, &*report));
        };
        match std::thread::Builder::new().name("store".to_owned()).spawn(body) {
            Ok(_) => self.thread = Some(Thread { ticks, summary, result }),
            Err(e) => (self.report)(&format!("this run is not stored: cannot start a thread: {e}")),
        }
    }

    fn tick(&mut self, tick: &Tick, samples: &Samples) {
        let Some(thread) = &self.thread else { return };
        // Serialised here: that takes 1 to 20 µs, less than a copy of the histograms would.
        let record = TickRecord { tick: Cow::Borrowed(tick), looks: Cow::Borrowed(samples) }.to_json();
        self.seen += 1;
        if let Err(TrySendError::Full(_)) = thread.ticks.try_send(Row::Tick(self.seen, record)) {
            self.missed += 1;
        }
        if self.recent.len() == AMENDED {
            self.recent.pop_front();
        }
        self.recent.push_back((self.seen, tick.until));
    }

    fn late(&mut self, tick: &Tick) {
        let Some(thread) = &self.thread else { return };
        let own = self.recent.iter().find(|(_, until)| tick.is_of(*until)).or(self.recent.back());
        if let Some((n, _)) = own
            && let Err(TrySendError::Full(_)) = thread.ticks.try_send(Row::Late(*n, Box::new(tick.clone())))
        {
            self.missed += 1;
        }
    }

    fn measured(&mut self, json: &str) {
        if let Some(thread) = &self.thread
            && let Err(TrySendError::Full(_)) = thread.ticks.try_send(Row::Measured(json.to_owned()))
        {
            self.missed += 1;
        }
    }

    fn finish(&mut self, summary: &Summary) {
        if let Some(thread) = &self.thread {
            let _ = thread.summary.try_send(summary_text(summary));
        }
    }
}

/// The body of the thread: writes rows until the queue is closed, then the summary, if there is one.
fn store_run(
    file: &Path,
    run: &RunRecord,
    ticks: &Receiver<Row>,
    summary: &Receiver<String>,
    report: &dyn Fn(&str),
) -> Option<StoredAs> {
    let begun = Store::open(file).and_then(|store| {
        let id = store.begin(run).map_err(|e| StoreTrouble::of(file, e))?;
        Ok((store, id))
    });
    let (store, id) = match begun {
        Ok(begun) => begun,
        Err(trouble) => {
            report(&format!("this run is not stored: {trouble}"));
            return None;
        }
    };
    let mut missed = 0;
    // A full disk may have space again later, so each row is tried; only the first failure is reported.
    let mut reported = false;
    let mut report_once = |e: rusqlite::Error| {
        if !std::mem::replace(&mut reported, true) {
            report(&format!("this run is not stored completely: {}", StoreTrouble::of(file, e)));
        }
    };
    for row in ticks {
        let written = match row {
            Row::Tick(n, record) => store.add_tick(&id, n, &record),
            Row::Late(n, tick) => store.amend_tick(&id, n, &tick),
            Row::Measured(json) => store.add_measured(&id, run.fleet_term, &json),
        };
        if let Err(e) = written {
            missed += 1;
            report_once(e);
        }
    }
    if let Ok(summary) = summary.recv()
        && let Err(e) = store.finish(&id, run.fleet_term, &summary)
    {
        report_once(e);
    }
    Some(StoredAs { id, missed })
}

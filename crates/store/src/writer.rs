//! Stores a run while it runs: a thread, behind a queue that never blocks the run.

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

/// Ticks that may wait for the disk: a minute's. The largest observed take 20 KiB each.
const WAITING: usize = 60;
/// What comes late is added to one of as many ticks before: an hour's.
const AMENDED: usize = 3_600;
/// Timeout of the store for the rest after the run.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sink that writes a run to the store. Failures are reported once, and counted; the run continues.
pub struct StoreWriter {
    file: PathBuf,
    run: RunRecord,
    report: Tell,
    thread: Option<Thread>,
    /// Ticks so far, and those lost because the queue was full.
    seen: u64,
    missed: u64,
    /// Until when each of the last ticks is, by number.
    recent: VecDeque<(u64, Nanos)>,
}

/// A run that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAs {
    /// Its identifier.
    pub id: String,
    /// Ticks that are missing.
    pub missed: u64,
}

/// What is to be written.
enum Row {
    /// A tick with its number.
    Tick(u64, String),
    /// What came late for the tick of this number.
    Late(u64, Box<Tick>),
    /// What the judge has read, as JSON.
    Measured(String),
}

struct Thread {
    ticks: SyncSender<Row>,
    summary: SyncSender<String>,
    result: Receiver<Option<StoredAs>>,
}

impl StoreWriter {
    /// Stores a run in this file; its record's header is added when it begins.
    pub fn new(file: PathBuf, run: RunRecord, report: Tell) -> StoreWriter {
        StoreWriter { file, run, report, thread: None, seen: 0, missed: 0, recent: VecDeque::new() }
    }

    /// Waits until all is stored, within bounds. `None`: it was not stored, which was reported.
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
        // Written here: 1 to 20 µs, and less than a copy of the histograms would take.
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

/// The thread: takes ticks until there are no more, and then the summary, if there is one.
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
    // A disk may have space again: each is tried, and the first failure is reported.
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

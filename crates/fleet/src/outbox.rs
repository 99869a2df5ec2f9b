//! Entries on their way to the log. Each is sent until the broker has stored it, and kept in a file meanwhile, so that neither an
//! unreachable broker nor the end of this process loses it.

mod spool;

use std::{collections::VecDeque, io, path::PathBuf};

use units::{Count, Nanos};

use self::spool::{Left, Spool};
use crate::message::{Author, Entry, Record, log_of};

/// Maximum number of entries sent but not acknowledged.
const WINDOW: usize = 64;
/// Delay before an entry that was not stored is sent again.
const AGAIN: Nanos = Nanos::from_millis(250);
/// Maximum number of entries in memory. Further ones are only in the file, or merged if there is no file.
const IN_MEMORY: usize = 600;

/// The entries of one author that are to be stored.
pub(crate) struct Outbox {
    author: Author,
    folder: Option<PathBuf>,
    logs: Vec<Log>,
    /// Set while entries cannot be written to a file.
    unwritten: Option<Unwritten>,
    /// A problem to report to the user.
    trouble: Option<String>,
}

/// The state while entries cannot be written to a file.
#[derive(Default)]
struct Unwritten {
    why: String,
    /// Number of entries that are only in memory, and number of entries merged into others.
    entries: u64,
    merged: u64,
}

impl Unwritten {
    /// Updates the state after an attempt to write an entry. Returns a notice for each new reason, and at the end.
    fn note(state: &mut Option<Unwritten>, kept: &io::Result<u64>) -> Option<String> {
        match kept {
            Ok(_) => state.take().map(|past| past.over()),
            Err(e) => {
                let (unwritten, why) = (state.get_or_insert_default(), e.to_string());
                unwritten.entries += 1;
                let before = std::mem::replace(&mut unwritten.why, why.clone());
                (before != why).then(|| format!("{why}; undelivered data is kept in memory"))
            }
        }
    }

    fn over(self) -> String {
        let merged = match self.merged {
            0 => String::new(),
            merged => format!(", and {} more merged into them", Count(merged)),
        };
        let entries = Count(self.entries).were("report");
        format!("undelivered data is kept on disk again; {entries} kept in memory{merged}, none was lost")
    }
}

/// Identifies an entry that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    run: String,
    author: Author,
    sequence: u64,
}

/// An entry to send to the log.
pub(crate) struct Parcel {
    pub(crate) ticket: Ticket,
    pub(crate) subject: String,
    /// The message id for deduplication; the same each time the entry is sent.
    pub(crate) id: String,
    pub(crate) bytes: Vec<u8>,
}

/// The unstored entries of one run's log.
struct Log {
    run: String,
    author: Author,
    next: u64,
    waiting: VecDeque<Waiting>,
    /// No entry will be added.
    is_sealed: bool,
    spool: Option<Spool>,
}

struct Waiting {
    sequence: u64,
    /// `None` if the entry is only in the spool.
    record: Option<Record>,
    /// Its position in the spool; `None` if it is not there.
    at: Option<u64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Not sent yet.
    New,
    OnItsWay,
    /// To be sent again from this time on.
    Failed(Nanos),
}

impl Outbox {
    /// An outbox without files.
    pub(crate) fn new(author: Author) -> Outbox {
        Outbox { author, folder: None, logs: Vec::new(), unwritten: None, trouble: None }
    }

    /// An outbox with files in this folder. Entries left there by earlier processes are sent.
    pub(crate) fn with_spool(author: Author, folder: PathBuf) -> Outbox {
        let waiting = |(at, entry): (u64, Entry)| Waiting {
            sequence: entry.sequence,
            record: None,
            at: Some(at),
            state: State::New,
        };
        let left = spool::left_in(&folder).into_iter().map(|Left { run, spool, entries }| Log {
            run,
            author: entries[0].1.author.clone(),
            next: 0,
            waiting: entries.into_iter().map(waiting).collect(),
            is_sealed: true,
            spool: Some(spool),
        });
        Outbox { author, logs: left.collect(), folder: Some(folder), unwritten: None, trouble: None }
    }

    /// Adds an entry for the log of a run.
    pub(crate) fn push(&mut self, run: &str, record: Record) {
        let nth = self.log_of(run);
        let log = &mut self.logs[nth];
        log.is_sealed |= matches!(record, Record::Sealed(_));
        if let (Some(before), Record::Ticks(ticks)) = (log.mergeable(), &record) {
            // The merged ticks lose only their distribution over time.
            before.iter_mut().zip(ticks).for_each(|(before, tick)| before.extend(tick));
            self.unwritten.iter_mut().for_each(|unwritten| unwritten.merged += 1);
            return;
        }
        let entry = Entry { author: log.author.clone(), sequence: log.next, record };
        let kept = log.spool.as_mut().map(|spool| spool.append(&entry));
        if let Some(said) = kept.as_ref().and_then(|kept| Unwritten::note(&mut self.unwritten, kept)) {
            self.trouble = Some(said);
        }
        let (sequence, record, at) = (entry.sequence, Some(entry.record), kept.and_then(Result::ok));
        log.next += 1;
        log.waiting.push_back(Waiting { sequence, record, at, state: State::New });
        if log.waiting.len() > IN_MEMORY {
            log.waiting
                .iter_mut()
                .filter(|waiting| waiting.at.is_some())
                .for_each(|waiting| waiting.record = None);
        }
    }

    fn log_of(&mut self, run: &str) -> usize {
        let known = self.logs.iter().position(|log| log.run == run && log.author == self.author);
        known.unwrap_or_else(|| {
            let (run, author) = (run.to_owned(), self.author.clone());
            let spool = self.folder.as_ref().map(|folder| Spool::new(folder, &run, &author));
            self.logs.push(Log { run, author, next: 0, waiting: VecDeque::new(), is_sealed: false, spool });
            self.logs.len() - 1
        })
    }

    /// The next entry to send.
    pub(crate) fn poll(&mut self, now: Nanos) -> Option<Parcel> {
        let on_their_way =
            self.logs.iter().flat_map(|log| &log.waiting).filter(|waiting| waiting.state == State::OnItsWay);
        if on_their_way.count() >= WINDOW {
            return None;
        }
        let is_due = |waiting: &Waiting| match waiting.state {
            State::New => true,
            State::OnItsWay => false,
            State::Failed(until) => now >= until,
        };
        for log in &mut self.logs {
            let Some(waiting) = log.waiting.iter_mut().find(|waiting| is_due(waiting)) else { continue };
            waiting.state = State::OnItsWay;
            let read = |at| log.spool.as_mut()?.read(at).map(|entry| entry.record);
            let Some(record) = waiting.record.clone().or_else(|| waiting.at.and_then(read)) else {
                self.trouble = Some(format!("the undelivered data of run {} cannot be read", log.run));
                log.waiting.clear();
                continue;
            };
            let (sequence, author, run) = (waiting.sequence, log.author.clone(), log.run.clone());
            let entry = Entry { author: author.clone(), sequence, record };
            let name = match &author {
                Author::Coordinator { term } => format!("{run}-{term}"),
                Author::Agent(who) => format!("{run}-{}-{}", who.id, who.nonce),
            };
            let (subject, id, bytes) = (log_of(&run), format!("{name}-{sequence}"), encode(&entry));
            return Some(Parcel { ticket: Ticket { run, author, sequence }, subject, id, bytes });
        }
        None
    }

    /// Handles the outcome of sending an entry.
    pub(crate) fn handle(&mut self, now: Nanos, ticket: &Ticket, is_stored: bool) {
        let Some(log) = self.logs.iter_mut().find(|log| log.run == ticket.run && log.author == ticket.author)
        else {
            return;
        };
        if is_stored {
            log.waiting.retain(|waiting| waiting.sequence != ticket.sequence);
        } else if let Some(waiting) =
            log.waiting.iter_mut().find(|waiting| waiting.sequence == ticket.sequence)
        {
            waiting.state = State::Failed(now + AGAIN);
        }
        self.logs.retain_mut(|log| {
            let is_done = log.is_sealed && log.waiting.is_empty();
            if let (true, Some(spool)) = (is_done, &mut log.spool) {
                spool.remove();
            }
            !is_done
        });
    }

    /// Number of this author's entries that the broker has not stored. Entries of earlier processes are excluded: they may belong to
    /// another fleet.
    pub(crate) fn unstored(&self) -> u32 {
        let own = self.logs.iter().filter(|log| log.author == self.author);
        own.map(|log| log.waiting.len() as u32).sum()
    }

    /// The next problem to report to the user.
    pub(crate) fn poll_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}

impl Log {
    /// The newest ticks, if they can absorb others: too many entries are only in memory, and these were never sent.
    fn mergeable(&mut self) -> Option<&mut Vec<samples::Tick>> {
        let is_full = self.waiting.iter().filter(|waiting| waiting.at.is_none()).count() >= IN_MEMORY;
        let newest = self.waiting.back_mut()?;
        match &mut newest.record {
            Some(Record::Ticks(ticks)) if is_full && newest.at.is_none() && newest.state == State::New => {
                Some(ticks)
            }
            _ => None,
        }
    }
}

/// An entry as it is sent and stored.
pub(crate) fn encode(entry: &Entry) -> Vec<u8> {
    minicbor_serde::to_vec(entry).expect("an entry is data")
}

/// Decodes an entry; `None` if the bytes are not valid.
pub(crate) fn decode(bytes: &[u8]) -> Option<Entry> {
    minicbor_serde::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests;

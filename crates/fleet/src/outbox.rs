//! Entries on their way to the log: each is sent until the carrier has it, and kept in a file meanwhile, so that neither a
//! carrier that is away nor the end of this process loses it.

mod spool;

use std::{collections::VecDeque, path::PathBuf};

use units::{Count, Nanos};

use self::spool::{Left, Spool};
use crate::message::{Author, Entry, Record, log_of};

/// As many are on their way at one time.
const WINDOW: usize = 64;
/// What could not be stored is sent again this long after that was known.
const AGAIN: Nanos = Nanos::from_millis(250);
/// More than these are only in their file, or, where they are in none, added up.
const IN_MEMORY: usize = 600;

/// Entries to be stored, of one author.
pub(crate) struct Outbox {
    author: Author,
    folder: Option<PathBuf>,
    logs: Vec<Log>,
    /// While entries cannot be kept in a file.
    unwritten: Option<Unwritten>,
    /// What to tell the user of.
    trouble: Option<String>,
}

/// Entries cannot be kept in a file.
#[derive(Default)]
struct Unwritten {
    why: String,
    /// In memory only, and added up with others.
    entries: u64,
    merged: u64,
}

impl Unwritten {
    /// An entry was kept in a file, or not; what is to be said of that, once for each reason and at the end.
    fn note(state: &mut Option<Unwritten>, kept: &Result<u64, String>) -> Option<String> {
        match kept {
            Ok(_) => state.take().map(|past| past.over()),
            Err(why) => {
                let unwritten = state.get_or_insert_default();
                unwritten.entries += 1;
                let is_new = unwritten.why != *why;
                unwritten.why.clone_from(why);
                is_new.then(|| format!("{why}; undelivered data is kept in memory"))
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

/// Names an entry that is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    run: String,
    author: Author,
    sequence: u64,
}

/// An entry to be stored.
pub(crate) struct Parcel {
    pub(crate) ticket: Ticket,
    pub(crate) subject: String,
    /// The same whenever it is sent.
    pub(crate) id: String,
    pub(crate) bytes: Vec<u8>,
}

/// What is on its way to the log of a run.
struct Log {
    run: String,
    author: Author,
    next: u64,
    waiting: VecDeque<Waiting>,
    /// Nothing will be added.
    is_sealed: bool,
    spool: Option<Spool>,
}

struct Waiting {
    sequence: u64,
    /// None, where it is only in the spool.
    record: Option<Record>,
    /// Where the spool has it; none, where it does not.
    at: Option<u64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// It was never sent.
    New,
    OnItsWay,
    /// To be sent again from then on.
    Failed(Nanos),
}

impl Outbox {
    /// Without files.
    pub(crate) fn new(author: Author) -> Outbox {
        Outbox { author, folder: None, logs: Vec::new(), unwritten: None, trouble: None }
    }

    /// With files in this folder; what a process before left there is sent.
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

    /// Adds what the log of a run is to have.
    pub(crate) fn push(&mut self, run: &str, record: Record) {
        let nth = self.log_of(run);
        let log = &mut self.logs[nth];
        log.is_sealed |= matches!(record, Record::Sealed(_));
        if let (Some(before), Record::Ticks(ticks)) = (log.mergeable(), &record) {
            // Nothing is lost but when exactly it happened.
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

    /// An entry that is to be sent now.
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

    /// The carrier has it, or not.
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

    /// Entries of this author's that the carrier does not have yet. What a process before left is not waited for: it may be of
    /// another fleet.
    pub(crate) fn unstored(&self) -> u32 {
        let own = self.logs.iter().filter(|log| log.author == self.author);
        own.map(|log| log.waiting.len() as u32).sum()
    }

    /// What went wrong here since the last call.
    pub(crate) fn poll_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}

impl Log {
    /// Where there are too many to keep: the newest ticks, if they were never sent and are in no file.
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

/// An entry as it is sent and kept.
pub(crate) fn encode(entry: &Entry) -> Vec<u8> {
    minicbor_serde::to_vec(entry).expect("an entry is data")
}

/// The entry in these bytes, if it is one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Entry> {
    minicbor_serde::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests;

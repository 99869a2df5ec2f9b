//! What happened in a run before a process of its coordinator took it up: it happens again, as fast as it can be read.

use std::collections::VecDeque;

use units::Nanos;

use super::Coordinator;
use crate::message::{Author, Entry, Record};

/// The log of a run that is taken up.
pub(crate) struct Replay {
    /// How long the run had lasted when each entry was stored.
    entries: VecDeque<(Nanos, Entry)>,
    now: Nanos,
}

impl Replay {
    pub(crate) fn new() -> Replay {
        Replay { entries: VecDeque::new(), now: Nanos::ZERO }
    }

    /// Adds an entry; whether it is the one from which on this process leads.
    pub(crate) fn add(&mut self, time: Nanos, entry: Entry, term: u32) -> bool {
        if entry.record == Record::Resumed && entry.author == (Author::Coordinator { term }) {
            return true;
        }
        self.entries.push_back((time, entry));
        false
    }

    /// How long the run has lasted, when this happens again.
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// Hands over the next entry, if it is of no later time of the run than `until`; none when it was the last one.
    pub(crate) fn step(
        &mut self,
        until: Nanos,
        coordinator: &mut Coordinator,
        clock: Nanos,
    ) -> Option<Nanos> {
        let (at, _) = self.entries.front()?;
        self.now = self.now.max((*at).min(until));
        if *at <= until
            && let Some((_, entry)) = self.entries.pop_front()
        {
            coordinator.take(clock, entry);
        }
        Some(self.now)
    }

    /// Whether nothing happens until then.
    pub(crate) fn is_quiet_until(&self, until: Nanos) -> bool {
        self.entries.front().is_some_and(|(at, _)| *at > until)
    }
}

//! The coordinator of a simulation: its process, which may die.

use units::Nanos;

use super::super::carrier::Logged;
use crate::{
    coordinator::{Coordinator, Replay},
    message::Author,
    outbox::Outbox,
};

/// The coordinator's process.
pub(super) struct Head {
    pub(super) coordinator: Coordinator,
    pub(super) outbox: Outbox,
    /// Number of log entries read.
    pub(super) read: usize,
    pub(super) replay: Option<Replay>,
}

impl Head {
    pub(super) fn new(coordinator: Coordinator, term: u32) -> Head {
        Head { coordinator, outbox: Outbox::new(Author::Coordinator { term }), read: 0, replay: None }
    }

    pub(super) fn read_log(&mut self, now: Nanos, log: &[Logged], term: u32, restarted: &mut bool) {
        while let Some(Logged { at, stamp, entry }) = log.get(self.read) {
            self.read += 1;
            match &mut self.replay {
                // What it reads before it leads is replayed afterwards.
                Some(replay) if self.coordinator.start().is_none() => {
                    if let Some(time) = replay.add(*stamp, entry.clone(), term) {
                        self.coordinator.lead_from(now, at.since(time));
                        *restarted = true;
                        return;
                    }
                }
                Some(_) => {
                    self.read -= 1;
                    return;
                }
                None => self.coordinator.take(now, entry.clone()),
            }
        }
    }
}

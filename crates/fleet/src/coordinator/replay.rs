//! Replays the log of a run that another coordinator process began, as fast as it can be read, so that the conductor reaches the state
//! that the run had when this process took it up.

mod stamps;

use std::collections::VecDeque;

use samples::AgentState;
use units::Nanos;

use super::Coordinator;
use crate::message::{Author, EVERY, Entry, LOST_AFTER, Record};

/// Agents store an entry every second. If none has stored one for longer than this, the broker was unreachable, which says nothing about
/// the agents. With a single agent, the two cannot be distinguished.
const UNREACHED: Nanos = Nanos(2 * EVERY.0);

/// The log of a run that is taken up.
#[derive(Default)]
pub(crate) struct Replay {
    /// When the run began, by the server's clock.
    start: Nanos,
    /// Entries read so far, with their times by the server's clock.
    stamped: Vec<(Nanos, Entry)>,
    /// Entries with the elapsed time of the run when they were stored.
    entries: VecDeque<(Nanos, Entry)>,
    now: Nanos,
    /// Elapsed time of the entry replayed last, and (`resumed`) of the one from which on this process leads.
    last: Nanos,
    resumed: Nanos,
    /// When this process learned that its own entry is stored, by its clock.
    stored: Option<Nanos>,
}

impl Replay {
    /// Replays a run that began at this time by the server's clock.
    pub(crate) fn since(start: Nanos) -> Replay {
        Replay { start, ..Replay::default() }
    }

    /// Notes that this process's own entry is stored.
    pub(crate) fn note_stored(&mut self, now: Nanos) {
        self.stored.get_or_insert(now);
    }

    /// The time, by this process's clock, that corresponds to the elapsed time returned by [`Replay::add`]. Reading the entries before
    /// its own takes a while, for a long log seconds.
    pub(crate) fn resumed_at(&self, now: Nanos) -> Nanos {
        self.stored.unwrap_or(now).min(now)
    }

    /// Adds an entry, with its time by the server's clock. If it is the one from which on this process leads, it is the last one, and the
    /// elapsed time of the run is returned.
    pub(crate) fn add(&mut self, at: Nanos, entry: Entry, term: u32) -> Option<Nanos> {
        let is_own = entry.record == Record::Resumed && entry.author == (Author::Coordinator { term });
        self.stamped.push((at, entry));
        if !is_own {
            return None;
        }
        let stamped = std::mem::take(&mut self.stamped);
        let times = stamps::times(self.start, &stamped);
        self.entries = times.into_iter().zip(stamped).map(|(time, (_, entry))| (time, entry)).collect();
        (self.resumed, _) = self.entries.pop_back()?;
        Some(self.resumed)
    }

    /// The elapsed time of the run in the replay.
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// Replays the next entry, if it is not later than `until`. Returns whether there was one.
    pub(crate) fn step(&mut self, until: Nanos, coordinator: &mut Coordinator, clock: Nanos) -> bool {
        let Some((at, _)) = self.entries.front() else { return false };
        self.now = self.now.max((*at).min(until));
        if *at <= until
            && let Some((at, entry)) = self.entries.pop_front()
        {
            coordinator.hear_again(at, &entry.author, self.is_reached_until(at));
            self.last = at;
            coordinator.take(clock, entry);
        }
        true
    }

    /// Whether the broker was reachable since the last entry.
    fn is_reached_until(&self, at: Nanos) -> bool {
        at.since(self.last) <= UNREACHED
    }

    /// Whether no entry follows before `until`.
    pub(crate) fn is_quiet_until(&self, until: Nanos) -> bool {
        self.entries.front().is_some_and(|(at, _)| *at > until)
    }
}

impl Coordinator {
    /// Applies the time of an entry. Agents that stored none for a while, although others did, were lost for the previous process as
    /// well; a run that does not continue without one has ended there.
    fn hear_again(&mut self, at: Nanos, author: &Author, is_reached: bool) {
        let (at, carries_on) = (self.start.unwrap_or_default() + at, self.carries_on());
        for member in &mut self.members {
            let is_ready = member.state == AgentState::Ready;
            if is_ready && !is_reached {
                member.heard = at;
            }
            if matches!(author, Author::Agent(who) if *who == member.who) {
                member.be_heard(at, &mut self.changes);
            } else if is_ready && carries_on && at.since(member.heard) >= LOST_AFTER {
                member.lose_unheard(&mut self.changes);
            }
        }
    }

    /// Ends the replay: later orders are new ones, and agents have been silent for as long as they had when this process began to lead.
    pub(crate) fn catch_up(&mut self, now: Nanos, replay: &Replay) {
        self.given = self.given.max(self.orders.len() as u32);
        self.stall.begin(now);
        let resumed = self.start.unwrap_or_default() + replay.resumed;
        let is_reached = replay.is_reached_until(replay.resumed);
        for member in self.members.iter_mut().filter(|member| member.state == AgentState::Ready) {
            let silent = if is_reached { resumed.since(member.heard) } else { Nanos::ZERO };
            member.heard = now.since(silent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_lasts_while_its_log_is_read() {
        let s = Nanos::from_secs;
        let own = |term| Author::Coordinator { term };
        let resumed = |term| Entry { author: own(term), sequence: 0, record: Record::Resumed };
        let mut replay = Replay::since(s(100));
        assert_eq!(replay.add(s(107), resumed(1), 2), None, "of another process");
        replay.note_stored(s(4));
        replay.note_stored(s(5));
        assert_eq!((replay.add(s(108), resumed(2), 2), replay.resumed_at(s(6))), (Some(s(8)), s(4)));
        // It is read before the confirmation that it is stored arrives.
        assert_eq!(Replay::since(s(100)).resumed_at(s(6)), s(6));
    }
}

//! The open loop: requests are due by a schedule of the shard's, and each takes the connection that has been free for
//! longest. Latency counts from when the slot was due, so that a target that stalls cannot hide it. Pure.

use std::collections::VecDeque;

use plan::Part;
use units::Nanos;

use super::{Slot, rotation::Rotation, slots::Slots};
use crate::{
    full_load::FullLoad,
    pace::{RateProfile, Schedule},
};

/// Schedules whose slots may still wait while a later one runs.
const MAX_SCHEDULES: usize = 16;

/// What the connections of the shard share.
pub(super) struct OpenLoop {
    /// Idle connections, and those closed by the server with an announcement: they are dialled again in their turn.
    free: Rotation,
    /// The present schedule, and before it those that have ended and of which slots wait.
    slots: VecDeque<Slots>,
    /// Requests that are due by the present schedule and later ones, at most.
    left: u64,
    /// When the schedule ends.
    until: Nanos,
    collected_at: Nanos,
}

impl OpenLoop {
    /// Without a schedule yet, for connections of an index below `places`; with this number of requests in total.
    pub(super) fn new(places: u32, requests: Option<u64>) -> OpenLoop {
        let (free, slots) = (Rotation::new(places), VecDeque::with_capacity(MAX_SCHEDULES));
        let left = requests.unwrap_or(u64::MAX);
        OpenLoop { free, slots, left, until: Nanos::NEVER, collected_at: Nanos::ZERO }
    }

    /// A new schedule, of which this shard has its share, follows the one before at `from`; `see` is called with each
    /// request that is given up for it.
    pub(super) fn begin(
        &mut self,
        part: &Part,
        profile: RateProfile,
        from: Nanos,
        now: Nanos,
        see: &mut impl FnMut(Slot),
    ) {
        if let Some(before) = self.slots.back_mut() {
            before.end_at(from);
            self.left = self.left.saturating_sub(before.total());
        }
        if self.slots.len() == MAX_SCHEDULES
            && let Some(mut oldest) = self.slots.pop_front()
        {
            oldest.end(now, see);
        }
        let schedule = Schedule::share(profile, self.left, part.turn());
        self.slots.push_back(Slots::new(schedule, from));
    }

    /// Nothing is due from this time on; never takes that back.
    pub(super) fn end_at(&mut self, at: Nanos) {
        self.until = at;
    }

    /// `now`, or the last time at which something is due.
    fn within(&self, now: Nanos) -> Nanos {
        now.min(self.until.since(Nanos(1)))
    }

    /// It ends; `see` is called with each request that was due by `now` and never sent.
    pub(super) fn end(&mut self, now: Nanos, see: &mut impl FnMut(Slot)) {
        let now = self.within(now);
        self.slots.iter_mut().for_each(|slots| slots.end(now, see));
    }

    /// Takes the slots that have become due; `see` is called with each. Returns the time of the previous call.
    pub(super) fn collect_due(&mut self, now: Nanos, see: &mut impl FnMut(Slot)) -> Nanos {
        let until = self.within(now);
        self.slots.iter_mut().for_each(|slots| slots.collect_due(until, &mut *see));
        std::mem::replace(&mut self.collected_at, now)
    }

    /// Gives up the slots that have waited for longer than `limit` has for when they were due, and forgets schedules that are
    /// through.
    pub(super) fn give_up(&mut self, now: Nanos, limit: impl Fn(Nanos) -> Nanos, see: &mut impl FnMut(Slot)) {
        self.slots.iter_mut().for_each(|slots| slots.give_up(now, &limit, see));
        while self.slots.len() > 1 && self.slots[0].is_over() {
            self.slots.pop_front();
        }
    }

    /// A slot that waits, with the connection that takes it. Those that have no place left meanwhile are free no more.
    pub(super) fn pair(&mut self, has_place: impl Fn(u32) -> bool) -> Option<(u32, Nanos)> {
        let slots = self.slots.iter_mut().find(|slots| slots.is_waiting())?;
        let index = std::iter::from_fn(|| self.free.pop()).find(|index| has_place(*index))?;
        Some((index, slots.take().expect("one waits")))
    }

    /// The slot that has waited longest.
    pub(super) fn take(&mut self) -> Option<Nanos> {
        self.slots.iter_mut().find_map(Slots::take)
    }

    /// The slot that has waited longest, for the connection at `index`; where none waits, the connection does, once however many
    /// places it has: it comes back after each slot.
    pub(super) fn set_free(&mut self, index: u32) -> Option<Nanos> {
        if self.free.has(index) {
            return None;
        }
        let due = self.take();
        if due.is_none() {
            self.free.push(index);
        }
        due
    }

    /// The connection at `index` waits no longer.
    pub(super) fn forget(&mut self, index: u32) {
        self.free.remove(index);
    }

    /// Whether each slot of a number of requests has been taken or given up.
    pub(super) fn has_sent_all(&self) -> bool {
        let is_last = self.slots.back().is_some_and(|slots| slots.total() == self.left);
        is_last && self.slots.iter().all(Slots::is_over)
    }

    /// When the next slot is due.
    pub(super) fn next(&self) -> Nanos {
        let next = self.slots.iter().map(Slots::next).min().unwrap_or(Nanos::NEVER);
        if next < self.until { next } else { Nanos::NEVER }
    }

    /// Slots that wait for a connection.
    pub(super) fn waiting(&self) -> u64 {
        self.slots.iter().map(Slots::waiting).sum()
    }

    /// Requests that wait for a connection and were due at a full load that is over.
    pub(super) fn owed(&self, full_load: &FullLoad) -> u64 {
        let slots = self.slots.iter().filter(|_| full_load.has_past());
        slots.map(|slots| slots.count_waiting(|due| full_load.was(due))).sum()
    }
}

//! The open loop: requests are due by the shard's share of a schedule, and each takes the connection that has been free for
//! longest. Latency counts from the slot's due time, so that a stalled target cannot hide it (coordinated omission). Pure.

use std::collections::VecDeque;

use plan::Part;
use units::Nanos;

use super::{Slot, rotation::Rotation, slots::Slots};
use crate::{
    full_load::FullLoad,
    pace::{RateProfile, Schedule},
};

/// Schedules whose slots may still be waiting while a later one runs.
const MAX_SCHEDULES: usize = 16;

/// The queue of slots and the queue of free connections of a shard.
pub(super) struct OpenLoop {
    /// Free connections: idle ones, and those closed as announced, which are dialled again in their turn.
    free: Rotation,
    /// The present schedule at the end; before it, earlier ones with slots still waiting.
    slots: VecDeque<Slots>,
    /// Maximum number of requests in the present and later schedules.
    left: u64,
    /// When the schedule ends.
    until: Nanos,
    collected_at: Nanos,
}

impl OpenLoop {
    /// Without a schedule yet, for connections with an index below `places`; `requests`: the total number, if limited.
    pub(super) fn new(places: u32, requests: Option<u64>) -> OpenLoop {
        let (free, slots) = (Rotation::new(places), VecDeque::with_capacity(MAX_SCHEDULES));
        let left = requests.unwrap_or(u64::MAX);
        OpenLoop { free, slots, left, until: Nanos::NEVER, collected_at: Nanos::ZERO }
    }

    /// Begins a new schedule at `from`, which ends the previous one; this shard gets its share. Calls `see` for each request
    /// given up because of it.
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

    /// Nothing is due from `at` on; never: no such limit.
    pub(super) fn end_at(&mut self, at: Nanos) {
        self.until = at;
    }

    /// `now`, or the last time at which something can be due.
    fn within(&self, now: Nanos) -> Nanos {
        now.min(self.until.since(Nanos(1)))
    }

    /// Ends all schedules: calls `see` for each request that was due by `now` and never sent.
    pub(super) fn end(&mut self, now: Nanos, see: &mut impl FnMut(Slot)) {
        let now = self.within(now);
        self.slots.iter_mut().for_each(|slots| slots.end(now, see));
    }

    /// Collects the slots that have become due, and calls `see` for each. Returns the time of the previous call.
    pub(super) fn collect_due(&mut self, now: Nanos, see: &mut impl FnMut(Slot)) -> Nanos {
        let until = self.within(now);
        self.slots.iter_mut().for_each(|slots| slots.collect_due(until, &mut *see));
        std::mem::replace(&mut self.collected_at, now)
    }

    /// Gives up the slots that have waited longer than `limit`, a function of their due time, and drops completed schedules.
    pub(super) fn give_up(&mut self, now: Nanos, limit: impl Fn(Nanos) -> Nanos, see: &mut impl FnMut(Slot)) {
        self.slots.iter_mut().for_each(|slots| slots.give_up(now, &limit, see));
        while self.slots.len() > 1 && self.slots[0].is_over() {
            self.slots.pop_front();
        }
    }

    /// A waiting slot and the connection that takes it. Connections without a place leave the queue.
    pub(super) fn pair(&mut self, has_place: impl Fn(u32) -> bool) -> Option<(u32, Nanos)> {
        let slots = self.slots.iter_mut().find(|slots| slots.is_waiting())?;
        let index = std::iter::from_fn(|| self.free.pop()).find(|index| has_place(*index))?;
        Some((index, slots.take().expect("one waits")))
    }

    /// Takes the slot that has waited longest; returns its due time.
    pub(super) fn take(&mut self) -> Option<Nanos> {
        self.slots.iter_mut().find_map(Slots::take)
    }

    /// The connection at `index` takes the longest-waiting slot, or waits in the queue. It queues only once however many places
    /// it has: it is set free again after each slot.
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

    /// The connection at `index` leaves the queue.
    pub(super) fn forget(&mut self, index: u32) {
        self.free.remove(index);
    }

    /// Whether the number of requests is fixed, and every slot has been taken or given up.
    pub(super) fn has_sent_all(&self) -> bool {
        let is_last = self.slots.back().is_some_and(|slots| slots.total() == self.left);
        is_last && self.slots.iter().all(Slots::is_over)
    }

    /// When the next slot is due.
    pub(super) fn next(&self) -> Nanos {
        let next = self.slots.iter().map(Slots::next).min().unwrap_or(Nanos::NEVER);
        if next < self.until { next } else { Nanos::NEVER }
    }

    /// Number of slots that wait for a connection.
    pub(super) fn waiting(&self) -> u64 {
        self.slots.iter().map(Slots::waiting).sum()
    }

    /// Number of waiting requests that were due in a past full load.
    pub(super) fn owed(&self, full_load: &FullLoad) -> u64 {
        let slots = self.slots.iter().filter(|_| full_load.has_past());
        slots.map(|slots| slots.count_waiting(|due| full_load.was(due))).sum()
    }
}

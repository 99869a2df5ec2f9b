//! The open loop: requests are due by a schedule of the shard's, and each takes the connection that has been free for
//! longest. Latency counts from when the slot was due, so that a target that stalls cannot hide it.

use std::collections::VecDeque;

use net::{Cx, Io, Key};
use plan::Part;
use units::Nanos;

use super::{Client, figures::miss};
use crate::{
    connections::State,
    full_load::FullLoad,
    job::Job,
    pace::{Schedule, Tempo},
    rotation::Rotation,
    slots::Slots,
};

/// Schedules whose slots may still wait while a later one goes on.
const MOST_SCHEDULES: usize = 16;

/// What the connections of the shard share.
pub(crate) struct OpenLoop {
    /// Idle connections, and those that the server closed by announcement: they are dialled again when their turn comes.
    pub(crate) free: Rotation,
    /// The present schedule, and before it those that have ended and of which slots wait.
    slots: VecDeque<Slots>,
    /// When the schedule ends.
    until: Nanos,
}

impl OpenLoop {
    pub(super) fn new(job: &Job, part: &Part) -> Option<OpenLoop> {
        let (free, slots) = (Rotation::new(part.places), VecDeque::with_capacity(MOST_SCHEDULES));
        job.has_slots().then_some(OpenLoop { free, slots, until: Nanos::NEVER })
    }

    /// A new schedule, of which this shard has its share, follows the one before at `from`; `give_up` is called with when each
    /// request was due that is given up for it.
    pub(super) fn begin(
        &mut self,
        part: &Part,
        tempo: Tempo,
        from: Nanos,
        now: Nanos,
        give_up: &mut impl FnMut(Nanos),
    ) {
        if let Some(before) = self.slots.back_mut() {
            before.end_at(from);
        }
        if self.slots.len() == MOST_SCHEDULES
            && let Some(mut oldest) = self.slots.pop_front()
        {
            oldest.end(now, give_up);
        }
        let schedule = Schedule::share(tempo, u64::MAX, part.shard, part.shards);
        self.slots.push_back(Slots::new(schedule, from));
        self.end_at(self.until);
    }

    /// Nothing more of the present schedule is due from this time on.
    pub(super) fn end_present_at(&mut self, at: Nanos) {
        self.slots.back_mut().into_iter().for_each(|slots| slots.end_at(at));
    }

    /// Nothing is due from this time on.
    pub(super) fn end_at(&mut self, at: Nanos) {
        self.until = at;
        if let (Some(slots), true) = (self.slots.back_mut(), at != Nanos::NEVER) {
            slots.end_at(at);
        }
    }

    /// It ends; `give_up` is called with when each request was due by `now` that was never sent.
    pub(super) fn end(&mut self, now: Nanos, give_up: &mut impl FnMut(Nanos)) {
        self.slots.iter_mut().for_each(|slots| slots.end(now, give_up));
    }

    /// Requests that wait for a connection and were due at a full load that is over.
    pub(super) fn owed(&self, full_load: &FullLoad) -> u64 {
        let slots = self.slots.iter().filter(|_| full_load.has_past());
        slots.map(|slots| slots.count_waiting(|due| full_load.was(due))).sum()
    }

    /// Forgets schedules that are through.
    fn tidy(&mut self) {
        while self.slots.len() > 1 && self.slots[0].is_over() {
            self.slots.pop_front();
        }
    }

    /// The slot that has waited longest.
    fn take(&mut self) -> Option<Nanos> {
        self.slots.iter_mut().find_map(Slots::take)
    }
}

impl Client {
    /// Sends what is due.
    pub(super) fn serve_slots<I: Io>(&mut self, cx: &mut Cx<I>) {
        let now = cx.now();
        let Client { open_loop: Some(open_loop), tick, job, lateness, full_load, .. } = self else { return };
        for slots in &mut open_loop.slots {
            slots.look(now, |due| lateness.leaves(due));
            let limit = |due| job.timeout + lateness.since(due);
            slots.give_up(now, limit, &mut |due| miss(tick, full_load, due));
        }
        open_loop.tidy();
        while let Some((index, due)) = self.open_loop.as_mut().and_then(OpenLoop::pair) {
            let k = cx.at(index).expect("who is free is there");
            self.use_free(cx, k, due, due);
        }
    }

    /// When the next slot is due.
    pub(super) fn next_slot(&self) -> Nanos {
        let slots = self.open_loop.iter().flat_map(|open_loop| &open_loop.slots);
        slots.map(Slots::next).min().unwrap_or(Nanos::NEVER)
    }

    /// The connection has nothing to do: the slot that has waited longest takes it, or it waits for one.
    pub(super) fn set_free<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        cx.let_sleep(k);
        let Some(open_loop) = &mut self.open_loop else { return };
        match open_loop.take() {
            // The slot waited for a connection: until now there was none to dial.
            Some(due) => self.use_free(cx, k, cx.now(), due),
            None => open_loop.free.push(k.index),
        }
    }

    fn use_free<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, dial_due: Nanos, due: Nanos) {
        match self.conn(k).state() {
            State::Resting => self.redial(cx, k, dial_due, due, true),
            _ => self.ask(cx, k, due),
        }
    }

    /// A dial was for a slot, whose request is not sent now.
    pub(super) fn missed_by_dial(&mut self, asks: bool, due: Nanos) {
        if asks && self.job.has_slots() {
            miss(&mut self.tick, &self.full_load, due);
        }
    }
}

impl OpenLoop {
    /// A slot that waits, with the connection that takes it.
    fn pair(&mut self) -> Option<(u32, Nanos)> {
        let slots = self.slots.iter_mut().find(|slots| slots.is_waiting())?;
        let index = self.free.pop()?;
        Some((index, slots.take().expect("one waits")))
    }
}

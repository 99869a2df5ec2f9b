//! The open loop: requests are due by a schedule of the shard's, and each takes the connection that has been free for
//! longest. Latency counts from when the slot was due, so that a target that stalls cannot hide it.

use net::{Cx, Io, Key};
use plan::{Load, Part};
use units::{Nanos, Rate};

use super::Client;
use crate::{
    conn::State,
    job::{Job, Pause},
    pace::Steady,
    rotation::Rotation,
    slots::Slots,
};

/// What the connections of the shard share.
pub(crate) struct OpenLoop {
    /// Requests a second of all shards together.
    pub(super) rate: Rate,
    /// Idle connections, and those that the server closed by announcement: they are dialled again when their turn comes.
    pub(crate) free: Rotation,
    /// From the beginning of full load on.
    slots: Option<Slots>,
}

impl OpenLoop {
    pub(super) fn new(job: &Job, part: &Part) -> Option<OpenLoop> {
        let Load::Rate(rate) = job.load else { return None };
        Some(OpenLoop { rate, free: Rotation::new(part.places), slots: None })
    }

    /// The schedule begins, and lasts for `time`: this shard has its share of it.
    pub(super) fn begin(&mut self, part: &Part, from: Nanos, time: Nanos) {
        let steady = Steady::share(self.rate, u64::MAX, part.shard, part.shards);
        let steady = if time == Nanos::NEVER { steady } else { steady.within(time) };
        self.slots = Some(Slots::new(steady, from));
    }

    /// It ends; how many requests that were due by `now` were never sent.
    pub(super) fn end(&mut self, now: Nanos) -> u64 {
        self.slots.as_mut().map_or(0, |slots| slots.end(now))
    }
}

impl Client {
    /// Sends what is due.
    pub(super) fn serve_slots<I: Io>(&mut self, cx: &mut Cx<I>) {
        let now = cx.now();
        let Client { open_loop: Some(OpenLoop { slots: Some(slots), .. }), tick, job, .. } = self else {
            return;
        };
        slots.look(now, |due| tick.lag.record(now.since(due)));
        tick.counts.missed += slots.give_up(now, job.timeout);
        while let Some((index, due)) = self.open_loop.as_mut().and_then(OpenLoop::pair) {
            let k = cx.at(index).expect("who is free is there");
            self.use_free(cx, k, due);
        }
    }

    /// When the next slot is due.
    pub(super) fn next_slot(&self) -> Nanos {
        let slots = self.open_loop.as_ref().and_then(|open_loop| open_loop.slots.as_ref());
        slots.map_or(Nanos::NEVER, Slots::next)
    }

    /// The connection has nothing to do: the slot that has waited longest takes it, or it waits for one.
    pub(super) fn set_free<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        cx.let_sleep(k);
        let Some(open_loop) = &mut self.open_loop else { return };
        match open_loop.slots.as_mut().and_then(Slots::take) {
            Some(due) => self.use_free(cx, k, due),
            None => open_loop.free.push(k.index),
        }
    }

    fn use_free<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        match self.conn(k).state {
            State::Resting => self.redial(cx, k, due, true),
            _ => self.ask(cx, k, due),
        }
    }

    /// A dial was for a slot, whose request is not sent now.
    pub(super) fn missed_by_dial(&mut self, asks: bool) {
        let missed = asks && matches!(self.job.pause, Pause::Slot);
        self.tick.counts.missed += u64::from(missed);
    }
}

impl OpenLoop {
    /// A slot that waits, with the connection that takes it.
    fn pair(&mut self) -> Option<(u32, Nanos)> {
        let slots = self.slots.as_mut().filter(|slots| slots.is_waiting())?;
        let index = self.free.pop()?;
        Some((index, slots.take().expect("one waits")))
    }
}

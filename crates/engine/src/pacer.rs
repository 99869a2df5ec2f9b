//! The pacer: when connections are dialled and requests are due. It is the one place that depends on a population's load model.
//!
//! | load model | connections are dialled | a connection's next request is due |
//! |---|---|---|
//! | held | by its ramp | by the connection: at once, or after its think time |
//! | rate | by its ramp | with a slot of the schedule that all connections share: an open loop |
//! | arrivals | at the rate of arrivals | by the connection, which is closed after its last one |

use plan::{Load, Part};
use samples::Congestion;
use units::{Nanos, Rate};

mod dial_rate;
mod open_loop;
mod progress;
mod ramp;
mod rotation;
mod slots;
mod window;

pub use dial_rate::DialRate;
pub(crate) use ramp::Dial;

use self::{open_loop::OpenLoop, ramp::Ramp};
use crate::{full_load::FullLoad, pace::RateProfile};

/// The load model, with its state.
enum Model {
    Held,
    Rate(OpenLoop),
    Arrivals,
}

/// What an idle connection does about its next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It waits for a slot.
    Slot,
    /// It sends; the time since the request was due is its lag.
    Due,
    /// It sends; the request follows immediately on the previous one and has no lag.
    AtOnce,
}

/// The fate of a scheduled request before it has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// It became due at this time.
    Due(Nanos),
    /// It was due at this time, and is given up.
    Missed(Nanos),
}

/// A shard's share of the load of its population.
pub(crate) struct Pacer {
    model: Model,
    ramp: Ramp,
    part: Part,
    /// Whether requests follow responses at once.
    is_closed_loop: bool,
    /// The wanted number of connections; for arrivals, their total.
    wanted: u32,
    /// Since when nothing new begins, if paused by order.
    paused_at: Option<Nanos>,
}

impl Pacer {
    /// Nothing is due before an order comes. `waits`: connections may have to wait between a response and the next request.
    pub(crate) fn new(load: Load, waits: bool, part: &Part) -> Pacer {
        let model = match load {
            Load::Held { .. } => Model::Held,
            Load::Rate { .. } => Model::Rate(OpenLoop::new(part.places, part.requests)),
            Load::Arrivals { .. } => Model::Arrivals,
        };
        let is_closed_loop = !waits && !matches!(model, Model::Rate(_));
        Pacer { model, ramp: Ramp::new(part), part: *part, is_closed_loop, wanted: 0, paused_at: None }
    }

    // What kind of load it is.

    /// Whether connections arrive, make their calls and leave.
    pub(crate) fn comes_and_goes(&self) -> bool {
        matches!(self.model, Model::Arrivals)
    }

    /// Whether requests are due by a schedule that all connections share.
    pub(crate) fn is_open_loop(&self) -> bool {
        matches!(self.model, Model::Rate(_))
    }

    /// Whether a request follows each response at once.
    pub(crate) fn is_closed_loop(&self) -> bool {
        self.is_closed_loop
    }

    /// Whether wake-ups may be delayed a little for larger batches: only if nothing is due by a schedule.
    pub(crate) fn may_coalesce(&self) -> bool {
        self.is_closed_loop && !self.comes_and_goes()
    }

    // Orders.

    /// Sets the wanted number of connections to `n`, `there` of which exist; for arrivals, the total. First dials are due from
    /// `from` on.
    pub(crate) fn set_load(&mut self, n: u32, there: u64, profile: Option<RateProfile>, from: Nanos) {
        self.wanted = n.min(self.part.connections);
        let there = if self.comes_and_goes() { 0 } else { there };
        let to_dial = u64::from(self.wanted).saturating_sub(there) as u32;
        self.ramp.order(to_dial, profile, &self.part, from);
    }

    /// Sets the rate profile of an open loop's requests, or of dials, from `from` on; calls `see` for each request given up.
    pub(crate) fn set_profile(
        &mut self,
        profile: RateProfile,
        from: Nanos,
        now: Nanos,
        see: &mut impl FnMut(Slot),
    ) {
        let is_paused = self.is_paused();
        match &mut self.model {
            Model::Rate(open_loop) => open_loop.begin(&self.part, profile, from, now, see),
            // What the paused schedule missed is not made up for.
            _ if is_paused => self.ramp.begin(profile, &self.part, from),
            _ => self.ramp.set_profile(profile, from),
        }
    }

    /// Pauses or resumes. Dials that were due during the pause are due later by its length, not all at once.
    pub(crate) fn pause(&mut self, is_paused: bool, now: Nanos) {
        let since = self.paused_at.take();
        if is_paused {
            self.paused_at = since.or(Some(now));
        } else if let Some(since) = since {
            self.ramp.put_off(since, now);
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    /// No slot or arrival is due from `at` on; never: no such limit.
    pub(crate) fn end_at(&mut self, at: Nanos) {
        match &mut self.model {
            Model::Rate(open_loop) => open_loop.end_at(at),
            Model::Arrivals => self.ramp.end_at(at),
            Model::Held => {}
        }
    }

    /// The load ends: calls `see` for each slot due by `now` for which no request was sent.
    pub(crate) fn end_slots(&mut self, now: Nanos, see: &mut impl FnMut(Slot)) {
        self.open_loop().into_iter().for_each(|open_loop| open_loop.end(now, see));
    }

    /// The load ends: calls `see` with the due time of each arrival due by `now` that was not dialled.
    pub(crate) fn end_arrivals(&mut self, now: Nanos, see: &mut impl FnMut(Nanos)) {
        if self.comes_and_goes() && !self.is_paused() {
            self.ramp.end(&self.part, now, see);
        }
    }

    // Connections: how many are wanted, and when each is dialled first.

    /// Whether there are more connections than wanted.
    pub(crate) fn is_surplus(&self, there: u64) -> bool {
        !self.comes_and_goes() && there > u64::from(self.wanted)
    }

    /// Whether any connections are wanted now.
    pub(crate) fn wants_any(&self) -> bool {
        self.wanted > 0
    }

    /// Whether an ended connection is replaced if `there` are left.
    pub(crate) fn replaces(&self, there: u64) -> bool {
        !self.comes_and_goes() && there < u64::from(self.wanted)
    }

    /// Whether all first dials are made and their outcomes known; `resolved`: the number of known outcomes.
    pub(crate) fn is_ramped(&self, resolved: u64) -> bool {
        self.ramp.is_ordered() && resolved == self.ramp.ordered()
    }

    /// Whether all arrivals have come and left.
    pub(crate) fn is_through(&self, there: u64) -> bool {
        self.comes_and_goes() && self.ramp.is_ordered() && self.ramp.is_over() && there == 0
    }

    /// The number of first dials due now, and when to call again. `outstanding`: dials without an outcome; `behind`: how late the
    /// shard is with its requests.
    pub(crate) fn dials_due(
        &mut self,
        now: Nanos,
        outstanding: u32,
        timeout: Nanos,
        behind: Nanos,
    ) -> (u32, Nanos) {
        if self.is_paused() {
            return (0, Nanos::NEVER);
        }
        self.ramp.change(&self.part, now);
        self.ramp.check_end(&self.part, outstanding, timeout, now);
        let least = self.ramp.least(&self.part, timeout, now);
        self.ramp.due(now, outstanding, timeout, behind, least)
    }

    /// Counts the next first dial as made.
    pub(crate) fn take_dial(&mut self, now: Nanos) -> Dial {
        self.ramp.take(now)
    }

    /// A first dial succeeded (`ok`) or failed after this time.
    pub(crate) fn learn_dial(&mut self, took: Nanos, ok: bool, now: Nanos) {
        self.ramp.learn_dial(took, ok, now);
    }

    /// The time of the TLS handshake of a first dial; returns its known waiting time.
    pub(crate) fn learn_handshake(&mut self, took: Nanos, resumed: bool) -> Nanos {
        self.ramp.learn_handshake(took, resumed)
    }

    /// The time of a first response (of the dial, if no request follows); `ok` is false if there was none.
    pub(crate) fn learn(&mut self, took: Nanos, ok: bool, now: Nanos) {
        self.ramp.learn(took, ok, now);
    }

    /// Limits first dials without a schedule to this rate, of all shards together.
    pub(crate) fn limit_dials(&mut self, most: Rate, now: Nanos) {
        self.ramp.limit(most, now);
    }

    /// The congestion that unscheduled first dials met since the last call.
    pub(crate) fn take_met(&mut self) -> Congestion {
        self.ramp.take_met()
    }

    // Requests: when the next one of a connection is due.

    /// What an idle connection does whose next request is due at `due` by its own schedule.
    pub(crate) fn next(&self, due: Nanos, now: Nanos) -> Next {
        match &self.model {
            Model::Rate(_) => Next::Slot,
            // Only the dials of arrivals have a schedule.
            Model::Arrivals if due == now => Next::AtOnce,
            Model::Held | Model::Arrivals => Next::Due,
        }
    }

    /// Whether a pause postpones requests that are due by their connection. An open loop is paused by a rate profile of zero
    /// instead.
    pub(crate) fn puts_off(&self) -> bool {
        self.is_paused() && !self.is_open_loop()
    }

    // Slots of the open loop; there are none without one.

    /// Collects the slots that have become due, and calls `see` for each. Returns the time of the previous call: slots due before
    /// it have waited for a connection.
    pub(crate) fn collect_due(&mut self, now: Nanos, see: &mut impl FnMut(Slot)) -> Nanos {
        self.open_loop().map_or(now, |open_loop| open_loop.collect_due(now, see))
    }

    /// Gives up the slots that have waited longer than `limit`, a function of their due time; calls `see` for each.
    pub(crate) fn give_up(&mut self, now: Nanos, limit: impl Fn(Nanos) -> Nanos, see: &mut impl FnMut(Slot)) {
        self.open_loop().into_iter().for_each(|open_loop| open_loop.give_up(now, &limit, see));
    }

    /// A free connection, and the due time of the slot that it takes. Connections without a place (`has_place`) leave the queue
    /// until they are [free](Pacer::set_free) again.
    pub(crate) fn pair(&mut self, has_place: impl Fn(u32) -> bool) -> Option<(u32, Nanos)> {
        self.open_loop()?.pair(has_place)
    }

    /// Takes the slot that has waited longest, to dial a connection for it; returns its due time.
    pub(crate) fn take_slot(&mut self) -> Option<Nanos> {
        self.open_loop()?.take()
    }

    /// The connection at `index` is free: returns the due time of the longest-waiting slot, which it takes; `None`: it waits for
    /// one.
    pub(crate) fn set_free(&mut self, index: u32) -> Option<Nanos> {
        self.open_loop()?.set_free(index)
    }

    /// The connection at `index` has ended.
    pub(crate) fn forget(&mut self, index: u32) {
        self.open_loop().into_iter().for_each(|open_loop| open_loop.forget(index));
    }

    /// Whether the schedule has a fixed number of requests, all of them taken or given up.
    pub(crate) fn has_sent_all(&self) -> bool {
        matches!(&self.model, Model::Rate(open_loop) if open_loop.has_sent_all())
    }

    /// When the next slot is due.
    pub(crate) fn next_slot(&self) -> Nanos {
        if let Model::Rate(open_loop) = &self.model { open_loop.next() } else { Nanos::NEVER }
    }

    /// Number of slots that wait for a connection.
    pub(crate) fn waiting(&self) -> u64 {
        if let Model::Rate(open_loop) = &self.model { open_loop.waiting() } else { 0 }
    }

    /// Number of waiting requests that were due in a past full load.
    pub(crate) fn owed(&self, full_load: &FullLoad) -> u64 {
        if let Model::Rate(open_loop) = &self.model { open_loop.owed(full_load) } else { 0 }
    }

    fn open_loop(&mut self) -> Option<&mut OpenLoop> {
        match &mut self.model {
            Model::Rate(open_loop) => Some(open_loop),
            Model::Held | Model::Arrivals => None,
        }
    }
}

#[cfg(test)]
mod tests;

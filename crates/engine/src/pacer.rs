//! When connections and requests are due: the one place that depends on a population's load model.
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

/// What differs between load models; nothing else depends on which one it is.
enum Model {
    Held,
    Rate(OpenLoop),
    Arrivals,
}

/// What an idle connection does whose next request was due at a time by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It waits for a slot.
    Slot,
    /// It sends, and is late by what has passed since.
    Due,
    /// It sends; it follows at once on what was before, and cannot be late.
    AtOnce,
}

/// What becomes of a request of a schedule before it has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// It has become due, at this time.
    Due(Nanos),
    /// It was due at this time, and is given up.
    Missed(Nanos),
}

/// A shard's share of its population's load.
pub(crate) struct Pacer {
    model: Model,
    ramp: Ramp,
    part: Part,
    /// Requests follow responses at once.
    is_closed_loop: bool,
    /// The wanted number of connections; for arrivals, the total.
    wanted: u32,
    /// By order, nothing new begins since then.
    paused_at: Option<Nanos>,
}

impl Pacer {
    /// Nothing is due before an order comes. `waits`: a connection that has its response may have to wait before its next request.
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

    /// Whether connections come, and go when they have done what they came for.
    pub(crate) fn comes_and_goes(&self) -> bool {
        matches!(self.model, Model::Arrivals)
    }

    /// Whether requests are due by a schedule that all connections share, and not by each one's own clock.
    pub(crate) fn is_open_loop(&self) -> bool {
        matches!(self.model, Model::Rate(_))
    }

    /// Whether a request follows each response at once.
    pub(crate) fn is_closed_loop(&self) -> bool {
        self.is_closed_loop
    }

    /// Whether wake-ups may be put off a little, so that more is done in each: nothing is due by a schedule.
    pub(crate) fn may_coalesce(&self) -> bool {
        self.is_closed_loop && !self.comes_and_goes()
    }

    // Orders.

    /// Sets the number of connections to `n`, of which `there` exist; for arrivals, the total. First dials are due from
    /// `from` on.
    pub(crate) fn set_load(&mut self, n: u32, there: u64, profile: Option<RateProfile>, from: Nanos) {
        self.wanted = n.min(self.part.connections);
        let there = if self.comes_and_goes() { 0 } else { there };
        let to_dial = u64::from(self.wanted).saturating_sub(there) as u32;
        self.ramp.order(to_dial, profile, &self.part, from);
    }

    /// Sets the rate profile of an open loop's requests, or of dials, from this time on; `see` is called with each request
    /// that is given up.
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
            // The schedule so far is not made up for.
            _ if is_paused => self.ramp.begin(profile, &self.part, from),
            _ => self.ramp.set_profile(profile, from),
        }
    }

    /// Begin nothing new, or continue, now: dials that were due meanwhile are due as much later, and not all at once.
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

    /// No slot and no arrival is due from this time on; never takes that back.
    pub(crate) fn end_at(&mut self, at: Nanos) {
        match &mut self.model {
            Model::Rate(open_loop) => open_loop.end_at(at),
            Model::Arrivals => self.ramp.end_at(at),
            Model::Held => {}
        }
    }

    /// The load ends; `see` is called with each slot that was due by `now` and that no request was sent for.
    pub(crate) fn end_slots(&mut self, now: Nanos, see: &mut impl FnMut(Slot)) {
        self.open_loop().into_iter().for_each(|open_loop| open_loop.end(now, see));
    }

    /// The same with when each arrival was due by `now` that was not dialled.
    pub(crate) fn end_arrivals(&mut self, now: Nanos, see: &mut impl FnMut(Nanos)) {
        if self.comes_and_goes() && !self.is_paused() {
            self.ramp.end(&self.part, now, see);
        }
    }

    // Connections: how many are wanted, and when each is dialled first.

    /// Whether one of `there` connections less would still be enough.
    pub(crate) fn is_surplus(&self, there: u64) -> bool {
        !self.comes_and_goes() && there > u64::from(self.wanted)
    }

    /// Whether there are to be connections now.
    pub(crate) fn wants_any(&self) -> bool {
        self.wanted > 0
    }

    /// Whether a connection that is gone is replaced, where `there` are left.
    pub(crate) fn replaces(&self, there: u64) -> bool {
        !self.comes_and_goes() && there < u64::from(self.wanted)
    }

    /// Whether all first dials are made and `resolved` of them known.
    pub(crate) fn is_ramped(&self, resolved: u64) -> bool {
        self.ramp.is_ordered() && resolved == self.ramp.ordered()
    }

    /// Whether all connections that were to come have come, and none of them is `there` any more.
    pub(crate) fn is_through(&self, there: u64) -> bool {
        self.comes_and_goes() && self.ramp.is_ordered() && self.ramp.is_over() && there == 0
    }

    /// How many first dials are due now, and when to call again. `outstanding`: dials without a result; `behind`: how late
    /// the shard is with its requests.
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

    /// The next first dial is made.
    pub(crate) fn take_dial(&mut self, now: Nanos) -> Dial {
        self.ramp.take(now)
    }

    /// A first dial is open or has failed, after this time.
    pub(crate) fn learn_dial(&mut self, took: Nanos, ok: bool, now: Nanos) {
        self.ramp.learn_dial(took, ok, now);
    }

    /// The time of the TLS handshake of a first dial; returns how much of it was waiting, as far as is known.
    pub(crate) fn learn_handshake(&mut self, took: Nanos, resumed: bool) -> Nanos {
        self.ramp.learn_handshake(took, resumed)
    }

    /// The time of a first response, or that there is none; of the dial, where no request follows.
    pub(crate) fn learn(&mut self, took: Nanos, ok: bool, now: Nanos) {
        self.ramp.learn(took, ok, now);
    }

    /// Without a schedule, first dials of all shards together are made at this rate at most.
    pub(crate) fn limit_dials(&mut self, most: Rate, now: Nanos) {
        self.ramp.limit(most, now);
    }

    /// What first dials without a schedule have met since the last call.
    pub(crate) fn take_met(&mut self) -> Congestion {
        self.ramp.take_met()
    }

    // Requests: when the next one of a connection is due.

    /// What an idle connection does whose next request was due at `due` by its own clock.
    pub(crate) fn next(&self, due: Nanos, now: Nanos) -> Next {
        match &self.model {
            Model::Rate(_) => Next::Slot,
            // The schedule is that of the dials.
            Model::Arrivals if due == now => Next::AtOnce,
            Model::Held | Model::Arrivals => Next::Due,
        }
    }

    /// Whether requests due on their connections' own schedules are postponed by a pause. A rate is paused by a rate
    /// profile of zero.
    pub(crate) fn puts_off(&self) -> bool {
        self.is_paused() && !self.is_open_loop()
    }

    // Slots of the open loop; there are none without one.

    /// Takes the slots that have become due; `see` is called with each. Returns the time of the previous call: what was due
    /// then has waited for a connection since.
    pub(crate) fn collect_due(&mut self, now: Nanos, see: &mut impl FnMut(Slot)) -> Nanos {
        self.open_loop().map_or(now, |open_loop| open_loop.collect_due(now, see))
    }

    /// Gives up the slots that have waited for a connection for longer than `limit` has for when they were due; `see` is called
    /// with each.
    pub(crate) fn give_up(&mut self, now: Nanos, limit: impl Fn(Nanos) -> Nanos, see: &mut impl FnMut(Slot)) {
        self.open_loop().into_iter().for_each(|open_loop| open_loop.give_up(now, &limit, see));
    }

    /// A connection that waits, and when the slot was due that it takes; one for which `has_place` is false waits no more, until it is
    /// [free](Pacer::set_free) again.
    pub(crate) fn pair(&mut self, has_place: impl Fn(u32) -> bool) -> Option<(u32, Nanos)> {
        self.open_loop()?.pair(has_place)
    }

    /// When the slot was due that has waited longest: a connection is dialled for it.
    pub(crate) fn take_slot(&mut self) -> Option<Nanos> {
        self.open_loop()?.take()
    }

    /// The connection at `index` has nothing to do: it takes the slot that has waited longest, and which was due then, or it
    /// waits for one.
    pub(crate) fn set_free(&mut self, index: u32) -> Option<Nanos> {
        self.open_loop()?.set_free(index)
    }

    /// The connection at `index` is no more.
    pub(crate) fn forget(&mut self, index: u32) {
        self.open_loop().into_iter().for_each(|open_loop| open_loop.forget(index));
    }

    /// Whether the schedule had a number of requests, and each of them has been taken or given up.
    pub(crate) fn has_sent_all(&self) -> bool {
        matches!(&self.model, Model::Rate(open_loop) if open_loop.has_sent_all())
    }

    /// When the next slot is due.
    pub(crate) fn next_slot(&self) -> Nanos {
        if let Model::Rate(open_loop) = &self.model { open_loop.next() } else { Nanos::NEVER }
    }

    /// Slots that wait for a connection.
    pub(crate) fn waiting(&self) -> u64 {
        if let Model::Rate(open_loop) = &self.model { open_loop.waiting() } else { 0 }
    }

    /// Requests that wait for a connection and were due at a full load that is over.
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

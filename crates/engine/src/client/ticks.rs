//! Orders come in, ticks go out.

use net::{Cx, Io};
use samples::{Phase, Tick};
use units::Nanos;

use super::{Client, figures::miss};
use crate::{connections::State, link::Control, op::Op, pool::NOTHING};

impl Client {
    /// Requests that wait for their response: where connections are dialled on demand, from the dial on; and so with those that
    /// arrived before the load ended.
    pub(super) fn waiting(&self) -> u64 {
        let is_by_dial = self.job.dials_on_demand() || self.draining && self.pacer.comes_and_goes();
        let dials = if is_by_dial { self.conns.dialling() } else { 0 };
        self.conns.waiting() + dials
    }

    /// Those of them that were due at a full load that is over, and requests of that time that wait for a connection.
    fn owed(&self) -> u64 {
        self.owed + self.pacer.owed(&self.full_load)
    }

    pub(super) fn apply_commands<I: Io>(&mut self, cx: &mut Cx<I>) {
        let now = cx.now();
        let mut flush = false;
        while let Ok(control) = self.link.control.try_recv() {
            match control {
                Control::Load { connections, profile, from } => self.set_load(connections, profile, from),
                Control::RateProfile(profile, from) => self.set_profile(profile, from, now),
                Control::DialAtMost(most) => self.pacer.limit_dials(most, now),
                Control::Hold(from) => {
                    self.begin_full_load(from, now);
                    self.start_quota(cx, from);
                }
                Control::HoldUntil(until) => self.full_load.end_at(until),
                Control::Until(at) => self.end_at(at),
                Control::Pause(paused) => self.pacer.pause(paused, now),
                Control::Drain => flush |= self.drain(cx),
                Control::Release => self.release_all(),
                Control::Stop => {
                    self.give_up();
                    (self.finished, flush) = (true, true);
                }
            }
        }
        if self.ramped_at == Nanos::NEVER && self.is_ramped() {
            (self.ramped_at, flush) = (now, true);
        }
        if now >= self.full_load.until() {
            self.begin_full_load(Nanos::NEVER, now);
            // A step of a search: its connections stay open for the next one.
            self.tick.longest_silence = self.longest_silence(now);
            flush = true;
        }
        if now >= self.hold_until || self.has_ended(now) {
            flush |= self.drain(cx);
        }
        let drained = self.draining && self.waiting() == 0 && !self.reported_drained;
        self.reported_drained |= drained;
        if now >= self.tick_ends || flush || drained {
            self.flush(now);
        }
    }

    fn begin_full_load(&mut self, from: Nanos, now: Nanos) {
        self.full_load.begin(from, now);
        let Client { conns, full_load, job, .. } = self;
        let dials = State::OPENING.into_iter().filter(|_| job.dials_on_demand());
        let waiting = dials.chain([State::Busy]).flat_map(|state| conns.iter_in(state));
        let under_way = waiting.flat_map(|(index, _)| conns.exchanges(index));
        self.owed = under_way.filter(|(_, exchange)| full_load.was(exchange.due)).count() as u64;
    }

    fn end_at(&mut self, at: Nanos) {
        self.hold_until = at;
        self.pacer.end_at(at);
    }

    /// Full load ends; false where it had ended before.
    fn drain<I: Io>(&mut self, cx: &mut Cx<I>) -> bool {
        let now = cx.now();
        let arrives = self.pacer.comes_and_goes();
        if arrives && !self.draining {
            // Those that were due before the end are part of the load, and of a stall no more than a turn's are made up for.
            self.dial_due(cx);
        }
        let Client { pacer, tick, full_load, .. } = self;
        pacer.end(now, &mut |due| {
            if arrives {
                tick.lag.record(now.since(due));
            }
            miss(tick, full_load, due);
        });
        if !self.draining {
            self.count_silences(now);
            self.stop_listening(cx);
        }
        let begins = !std::mem::replace(&mut self.draining, true);
        if begins {
            self.tick.longest_silence = self.longest_silence(now);
            // What is surplus now stays like all others, unless fewer are wanted once more.
            if !self.is_released() {
                self.surplus_below = 0;
            }
        }
        begins
    }

    /// The run ends: what has neither a response nor a fault by now never gets one.
    fn give_up(&mut self) {
        for index in 0..self.conns.len() {
            let conn = self.conns[index];
            match conn.state() {
                State::Busy => self.give_up_on(index, conn.destination),
                state if state.is_opening() && self.waits_by_dial(index) => {
                    // It has waited as one whose request went out.
                    self.tick.counts.sent += 1;
                    self.at(conn.destination).into_iter().for_each(|own| own.sent += 1);
                    self.give_up_on(index, conn.destination);
                }
                state if state.is_opening() => {
                    let exchange = *self.conns.exchange(index);
                    self.missed_by_dial(&exchange);
                }
                _ => {}
            }
        }
    }

    /// Whether a connection that arrived is dialled for a request, after the load.
    fn waits_by_dial(&self, index: u32) -> bool {
        self.draining && self.pacer.comes_and_goes() && self.conns.exchange(index).has_request()
    }

    fn give_up_on(&mut self, index: u32, destination: u16) {
        let mut stream = self.conns.oldest(index);
        while stream != NOTHING {
            self.tick.counts.unanswered += 1;
            let exchange = *self.conns.at(stream);
            self.censor(&exchange, destination);
            stream = exchange.next;
        }
    }

    /// Unsolicited messages are no longer awaited: no request was sent for them.
    fn stop_listening<I: Io>(&mut self, cx: &mut Cx<I>) {
        let streams = self.job.streams();
        for index in (0..self.conns.len()).filter(|_| streams) {
            if let Some(k) = cx.at(index).filter(|_| self.conns[index].state() == State::Busy) {
                self.withdraw_streams(cx, k);
            }
        }
        if !self.job.listens() {
            return;
        }
        for index in 0..self.conns.len() {
            let conn = self.conns[index];
            if conn.state() == State::Busy
                && matches!(self.job.op(self.conns.exchange(index).at), Op::Expect(_))
            {
                self.tick.counts.withdrawn += 1;
                self.conns.transition(index, State::Idle);
            }
        }
    }

    /// A connection ends without an order to, where none has for a while. They may all end now, in each shard: how many they are together
    /// is known if each reports it before the first one has ended.
    pub(super) fn end_tick_before_losses(&mut self, now: Nanos) {
        if !self.is_losing && !has_losses(&self.tick) && !self.draining && self.tick.from < now {
            self.flush(now);
        }
    }

    fn flush(&mut self, now: Nanos) {
        let (waiting, owed) = (self.waiting(), self.owed());
        self.layer.iter_mut().for_each(|layered| layered.shrink());
        let tick = &mut self.tick;
        self.is_losing = has_losses(tick);
        let streams = self.pushed.streams();
        let is_open = |place: &u32| self.conns[place / streams].state().is_open();
        tick.pushes.fresh = self.pushed.fresh().filter(is_open).count() as u64;
        self.pushed.settle();
        tick.until = now;
        tick.index = self.tick_ends.0 / self.job.period.0 - 1;
        (tick.open, tick.resolved, tick.waiting, tick.owed) =
            (self.conns.open(), self.conns.resolved(), waiting, owed);
        tick.most_open = tick.most_open.max(self.conns.take_most_open());
        tick.ramped_at = self.ramped_at;
        tick.congestion.merge(&self.pacer.take_met());
        tick.phase = match (self.draining, self.full_load.is(now)) {
            (true, _) => Phase::Drain,
            (false, true) => Phase::Hold,
            (false, false) => Phase::Ramp,
        };
        self.tick_ends = Nanos((now.0 / self.job.period.0 + 1) * self.job.period.0);
        // Without a used tick to fill, this one continues to grow: the reader is slow, nothing is lost.
        let spare = || self.spare.iter_mut().find_map(Option::take);
        if let Some(mut next) = self.link.used.try_recv().ok().or_else(spare) {
            next.clear();
            next.from = now;
            let full = std::mem::replace(tick, next);
            let _ = self.link.ticks.try_send((self.link.shard, full));
        } else if self.finished {
            let _ = self.link.ticks.send((self.link.shard, std::mem::take(tick)));
        }
    }
}

/// Whether connections ended in it without an order to.
fn has_losses(tick: &Tick) -> bool {
    tick.counts.dropped + tick.counts.closed > 0
}

//! Orders to the shard, and the ticks that it hands over.

use net::{Cx, Io};
use samples::{
    Counts, Phase, Tick,
    books::{Entry, Standing},
};
use units::Nanos;

use super::Client;
use crate::{
    connections::{Conn, State},
    exchange::Exchange,
    link::Control,
};

impl Client {
    /// Requests that await their response, including those that wait for a connection being dialled or are to be sent again.
    /// After the load of arrivals also every connection that is still dialling.
    pub(super) fn waiting(&self) -> u64 {
        let arrived = self.draining && self.pacer.comes_and_goes();
        let dials = if arrived { self.conns.dialling() } else { self.due_dials };
        self.conns.waiting() + dials + self.withdrawn.len()
    }

    /// Outstanding requests of a past full load, including those that wait for a connection.
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
                    flush |= from == Nanos::NEVER;
                    self.start_quota(cx, from);
                }
                Control::HoldUntil(until) => self.full_load.end_at(until),
                Control::Until(at) => self.end_at(at),
                Control::Pause(paused) => self.pacer.pause(paused, now),
                Control::Drain => flush |= self.drain(cx),
                Control::Release => self.release_all(),
                Control::Stop => {
                    self.give_up(now);
                    (self.finished, flush) = (true, true);
                }
            }
        }
        if self.ramped_at == Nanos::NEVER && self.is_ramped() {
            (self.ramped_at, flush) = (now, true);
        }
        if now >= self.full_load.until() {
            self.begin_full_load(Nanos::NEVER, now);
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
        if from == Nanos::NEVER {
            // This may be the end of a step of a search: its connections stay open for the next one.
            self.tick.longest_silence = self.longest_silence(now);
        }
        self.full_load.begin(from, now);
        let Client { conns, full_load, .. } = self;
        let waiting = State::OPENING.into_iter().chain([State::Busy]).flat_map(|state| conns.iter_in(state));
        let all = waiting.flat_map(|(index, conn)| conns.exchanges(index).map(move |(_, one)| (conn, one)));
        let is_owed = |conn: &Conn, one: &Exchange| {
            full_load.was(one.due) && (conn.state() == State::Busy || one.request.is_due())
        };
        self.owed = all.filter(|(conn, one)| is_owed(conn, one)).count() as u64;
    }

    fn end_at(&mut self, at: Nanos) {
        self.hold_until = at;
        self.pacer.end_at(at);
    }

    /// Ends the load; returns false if it had ended before.
    fn drain<I: Io>(&mut self, cx: &mut Cx<I>) -> bool {
        let now = cx.now();
        let arrives = self.pacer.comes_and_goes();
        if arrives && !self.draining {
            // Arrivals due before the end belong to the load; after a stall, at most one turn's worth of them is dialled.
            self.dial_due(cx);
        }
        self.end_slots(now);
        let has_request = self.job.starts_with_request();
        let has_first_byte = self.has_first_bytes();
        let Client { pacer, tick, full_load, .. } = self;
        pacer.end_arrivals(now, &mut |due| {
            tick.lag.record(now.since(due));
            tick.counts.undialled += 1;
            if has_request {
                tick.due();
                tick.missed(Entry::unsent(full_load.has(due), has_first_byte));
            }
        });
        if !self.draining {
            let until = now.min(self.hold_until);
            (0..self.conns.len()).for_each(|index| self.miss_backlog(index, until));
            self.count_silences(now);
            self.stop_listening(cx);
        }
        let begins = !std::mem::replace(&mut self.draining, true);
        if begins {
            self.tick.longest_silence = self.longest_silence(now);
            // Surplus connections stay open like all others, unless fewer are wanted later.
            if !self.is_released() {
                self.surplus_below = 0;
            }
        }
        begins
    }

    /// Stops waiting for unsolicited messages, for which no request was sent.
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
            let exchange = (conn.state() == State::Busy).then(|| *self.conns.exchange(index));
            if let Some(exchange) = exchange.filter(|one| self.job.listens_at(one.at)) {
                self.revoke(&exchange, conn.destination);
                let stream = self.conns.latest(index);
                self.conns.end_exchange(index, stream);
            }
        }
    }

    /// Flushes a tick before the first unplanned end after a quiet tick. All connections of all shards may be ending now: how
    /// many there were is known only if each shard reports it before its first loss.
    pub(super) fn end_tick_before_losses(&mut self, now: Nanos) {
        if !self.is_losing && !has_losses(&self.tick) && !self.draining && self.tick.from < now {
            self.flush(now);
        }
    }

    fn flush(&mut self, now: Nanos) {
        // A finished run has given up all that waited.
        let (waiting, owed) = if self.finished { (0, 0) } else { (self.waiting(), self.owed()) };
        self.layer.iter_mut().for_each(|layered| layered.shrink());
        let standing = self.standing();
        let tick = &mut self.tick;
        self.is_losing = has_losses(tick);
        let streams = self.pushed.streams();
        let is_open = |place: &u32| self.conns[place / streams].state().is_open();
        tick.pushes.fresh = self.pushed.fresh().filter(is_open).count() as u64;
        self.pushed.settle().into_iter().for_each(|number| tick.pushes.receipts.record_early(number, now));
        tick.until = now;
        tick.index = self.tick_ends.0 / self.job.period.0 - 1;
        (tick.open, tick.resolved, tick.waiting, tick.owed) =
            (self.conns.open(), self.conns.resolved(), waiting, owed);
        tick.unsettled = standing.under_way + standing.waiting;
        tick.most_open = tick.most_open.max(self.conns.take_most_open());
        tick.ramped_at = self.ramped_at;
        tick.congestion.merge(&self.pacer.take_met());
        tick.phase = match (self.draining, self.full_load.is(now)) {
            (true, _) => Phase::Drain,
            (false, true) => Phase::Hold,
            (false, false) => Phase::Ramp,
        };
        self.tick_ends = Nanos((now.0 / self.job.period.0 + 1) * self.job.period.0);
        // Without a used tick to refill, this one keeps growing: a slow reader costs resolution, not counts.
        let spare = || self.spare.iter_mut().find_map(Option::take);
        if let Some(mut next) = self.link.used.try_recv().ok().or_else(spare) {
            close(&mut self.books, tick, &standing);
            next.clear();
            next.from = now;
            let full = std::mem::replace(tick, next);
            let _ = self.link.ticks.try_send((self.link.shard, full));
        } else if self.finished {
            close(&mut self.books, tick, &standing);
            let _ = self.link.ticks.send((self.link.shard, std::mem::take(tick)));
        }
    }
}

/// Whether connections ended unplanned in the tick.
fn has_losses(tick: &Tick) -> bool {
    tick.counts.dropped + tick.counts.closed > 0
}

/// Adds a tick to the shard's totals, and notes whether the books balance.
fn close(books: &mut Counts, tick: &mut Tick, now: &Standing) {
    *books += &tick.counts;
    tick.imbalance = books.balance(now);
    debug_assert!(tick.imbalance.is_none(), "{:?} of {books:?} and {now:?}", tick.imbalance);
}

//! Orders to the shard, and the ticks that it hands over.

use net::{Cx, Io};
use samples::{Phase, books::Entry};
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
        let arrived = self.course.is_draining() && self.pacer.comes_and_goes();
        let dials = if arrived { self.conns.dialling() } else { self.due_dials };
        self.conns.waiting() + dials + self.withdrawn.len()
    }

    /// Outstanding requests of a past full load, including those that wait for a connection.
    fn owed(&self) -> u64 {
        self.full_load.owed() + self.pacer.owed(&self.full_load)
    }

    pub(super) fn apply_commands<I: Io>(&mut self, cx: &mut Cx<I>) {
        let now = cx.now();
        let mut flush = false;
        while let Some(order) = self.handover.order() {
            match order {
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
                    self.handover.finish();
                    flush = true;
                }
            }
        }
        if !self.course.has_ramped() && self.is_ramped() {
            (self.course.ramped_at, flush) = (now, true);
        }
        if now >= self.full_load.until() {
            self.begin_full_load(Nanos::NEVER, now);
            flush = true;
        }
        if now >= self.course.ends || self.has_ended(now) {
            flush |= self.drain(cx);
        }
        let is_now_drained = self.course.is_now_drained(self.waiting());
        if now >= self.handover.ends() || flush || is_now_drained {
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
        let owed = all.filter(|(conn, one)| is_owed(conn, one)).count() as u64;
        self.full_load.owe(owed);
    }

    fn end_at(&mut self, at: Nanos) {
        self.course.ends = at;
        self.pacer.end_at(at);
    }

    /// Ends the load; returns false if it had ended before.
    fn drain<I: Io>(&mut self, cx: &mut Cx<I>) -> bool {
        let now = cx.now();
        let arrives = self.pacer.comes_and_goes();
        if arrives && !self.course.is_draining() {
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
        if !self.course.is_draining() {
            let until = now.min(self.course.ends);
            (0..self.conns.len()).for_each(|index| self.miss_backlog(index, until));
            self.count_silences(now);
            self.stop_listening(cx);
        }
        let begins = self.course.drain();
        if begins {
            self.tick.longest_silence = self.longest_silence(now);
            // Surplus connections stay open like all others, unless fewer are wanted later.
            if !self.is_released() {
                self.closing.unexamined = 0;
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
        let is_first = self.handover.would_be_first_loss(&self.tick);
        if is_first && !self.course.is_draining() && self.tick.from < now {
            self.flush(now);
        }
    }

    fn flush(&mut self, now: Nanos) {
        // A finished run has given up all that waited.
        let is_finished = self.handover.is_finished();
        let (waiting, owed) = if is_finished { (0, 0) } else { (self.waiting(), self.owed()) };
        self.transport.layer.iter_mut().for_each(|layered| layered.shrink());
        let standing = self.standing();
        let tick = &mut self.tick;
        let streams = self.pushed.streams();
        let is_open = |place: &u32| self.conns[place / streams].state().is_open();
        tick.pushes.fresh = self.pushed.fresh().filter(is_open).count() as u64;
        self.pushed.settle().into_iter().for_each(|number| tick.pushes.receipts.record_early(number, now));
        (tick.open, tick.resolved, tick.waiting, tick.owed) =
            (self.conns.open(), self.conns.resolved(), waiting, owed);
        tick.unsettled = standing.under_way + standing.waiting;
        tick.most_open = tick.most_open.max(self.conns.take_most_open());
        tick.ramped_at = self.course.ramped_at;
        tick.congestion.merge(&self.pacer.take_met());
        tick.phase = match (self.course.is_draining(), self.full_load.is(now)) {
            (true, _) => Phase::Drain,
            (false, true) => Phase::Hold,
            (false, false) => Phase::Ramp,
        };
        self.handover.hand_over(tick, &standing, now);
    }
}

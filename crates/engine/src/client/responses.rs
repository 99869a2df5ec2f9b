//! Complete responses: checks and counts them, and continues with the connection.

use net::{Cx, Io, Key};
use samples::{Fault, Kind, Stage};
use units::{Nanos, Status};

use super::Client;
use crate::{
    connections::{Conn, State},
    exchange::Exchange,
    op::Op,
    protocol::{Head, Response, Speaks},
};

/// How a connection continues after its response was counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) due: Nanos,
    keeps_alive: bool,
}

impl Client {
    /// The response on `stream` is complete, and no other input follows.
    pub(super) fn response_complete<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32) {
        let done = self.take_response(cx, k, stream);
        done.into_iter().for_each(|done| self.follow_up(cx, k, done));
    }

    /// Counts the complete response on `stream`. Returns how the connection continues; `None` if it goes on with the same
    /// exchange or is lost.
    pub(super) fn take_response<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32) -> Option<Done> {
        let now = cx.now();
        self.succeeded(k);
        self.lives.count(k);
        let response = self.conns.session(k.index).response();
        if self.follow(cx, k, stream, response) {
            return None;
        }
        let Response { head, keeps_alive } = response;
        if self.has_met_its_deadline(stream, head, now) {
            let fault = self.timeout_of(k, stream);
            self.stream_failed(cx, k, stream, fault);
            return None;
        }
        let mut exchange = self.conns.end_exchange(k.index, stream);
        self.read_decoded(&mut exchange, k.index);
        self.learn(&exchange, now, true);
        self.extremes.slowest_response = self.extremes.slowest_response.max(now.since(exchange.started));
        let useless = self.measure(&exchange, head, k.index, now);
        if matches!(self.job.op(exchange.at), Op::Expect(_)) && self.job.protocol.properties().has_messages {
            self.message_came(now);
        }
        let keep_alive_s = head.and_then(|head| head.keep_alive_s);
        self.tick.keep_alive_s = self.tick.keep_alive_s.max(keep_alive_s.unwrap_or(0).into());
        let conn = self.conn(k);
        conn.received(now, keep_alive_s);
        let is_first = !std::mem::replace(&mut conn.served, true);
        // Only during the load: afterwards, connections make room for others.
        self.tick.served += u64::from(is_first && !self.course.is_draining() && !self.is_released());
        self.weigh(&exchange, head, keeps_alive);
        if let Some(fault) = useless {
            // The following steps would only send wrong requests; `reconnect` determines whether the connection starts over.
            self.lost(cx, k, fault);
            return None;
        }
        Some(Done { due: self.due_after(k, &exchange, now), keeps_alive })
    }

    /// Whether a gRPC call ended at the deadline that throng set: its status is that of a timeout.
    fn has_met_its_deadline(&self, stream: u32, head: Option<Head>, now: Nanos) -> bool {
        let Op::Request(request) = self.job.op(self.conns.at(stream).at) else { return false };
        let has_passed = head.is_some_and(|head| Status(head.status) == Status::DEADLINE_EXCEEDED);
        has_passed
            && request.check.expected.status != Some(Status::DEADLINE_EXCEEDED.0)
            && self.is_late(stream, now)
    }

    /// Whether the connection's next operation sends something and nothing else is under way: input that is already here is no
    /// reply to that.
    pub(super) fn sends_next(&self, k: Key) -> bool {
        let Conn { at, .. } = self.conns[k.index];
        self.conns[k.index].state() == State::Idle
            && !matches!(self.job.op(self.job.led_to(at)), Op::Expect(_))
    }

    /// Continues after a response.
    pub(super) fn follow_up<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, Done { due, keeps_alive }: Done) {
        let now = cx.now();
        if self.conn(k).state() == State::Busy {
            return if self.has_pings() { self.ping(cx, k, now) } else { self.go_on_beside(cx, k) };
        }
        if self.is_surplus() && !self.withdrawn.has(k.index) {
            self.finish(cx, k);
        } else if self.is_last_call(k) {
            self.leave(cx, k);
        } else if !keeps_alive {
            let due = self.next_due(k, due);
            self.closed_as_announced(cx, k, due);
        } else if self.is_used_up(k) {
            let due = self.next_due(k, due);
            self.close_used_up(cx, k, due);
        } else if self.is_released() {
            self.release(cx, k);
        } else if self.course.is_draining() {
            self.wake_at(cx, k, Nanos::NEVER);
        } else if due > now && !self.pacer.is_open_loop() {
            self.wake_at(cx, k, due);
        } else {
            // A message that became due while the previous echo was awaited is late because of the target.
            self.go_on(cx, k, due, now);
        }
    }

    /// When a connection continues after a response.
    fn due_after(&self, k: Key, exchange: &Exchange, now: Nanos) -> Nanos {
        match self.job.op(exchange.at) {
            Op::Ping(..) if self.has_pings() => self.next_message(k),
            // In closed loop the next message is due with this one's echo.
            Op::Ping(_, every) if *every > Nanos::ZERO => exchange.due + *every,
            _ => now,
        }
    }

    /// When the next request of a connection that has just received its response is due; never, if slots determine that.
    pub(super) fn next_due(&mut self, k: Key, mut due: Nanos) -> Nanos {
        if self.pacer.is_open_loop() {
            return Nanos::NEVER;
        }
        while let Op::Wait(think) = self.job.op(self.conns[k.index].at) {
            due = due + think.draw(&mut self.source.random);
            self.conn(k).at += 1;
        }
        due
    }

    /// No request is outstanding on this connection.
    pub(super) fn idle(&mut self, k: Key) {
        self.conns.transition(k.index, State::Idle);
    }

    /// Counts a response. Returns the connection's fault if it cannot continue without a missing value.
    fn measure(&mut self, exchange: &Exchange, head: Option<Head>, index: u32, now: Nanos) -> Option<Fault> {
        let Exchange { at, due, started, .. } = *exchange;
        let took = self.took(due, started, now);
        let awaited = self.job.awaited(exchange, index, &mut self.source);
        let wrong = awaited.wrong(exchange, head);
        let all_wrong: Vec<Kind> = match self.transport.transcriber {
            Some(_) => awaited.all_wrong(exchange, head).collect(),
            None => Vec::new(),
        };
        let taken = self.taken(exchange, index, wrong.is_none(), now);
        let useless = match taken {
            Some(Kind::MissingValue | Kind::ValueTooLong) => taken,
            _ if self.job.captures_at(at) => wrong.or(taken).map(|_| Kind::MissingValue),
            _ => None,
        };
        // Its values are there: the user goes on, even if they are not those for which the step was repeated.
        let is_right = wrong.is_none() && taken.is_none();
        let until = self.job.op(at).check().and_then(|check| check.until.as_ref()).filter(|_| is_right);
        let unmet = until.filter(|until| !self.source.holds(until, index)).map(|_| Kind::WrongBody);
        let taken = taken.or(unmet);
        let wrong = wrong.or(taken.filter(|kind| kind.is_wrong_response()));
        let not_followed = self.errors.take_not_followed();
        // The response itself is wrong: the missing value is only a consequence.
        let stage = if wrong.is_some() { Stage::Hold } else { Stage::Exchange };
        let useless = useless.map(|kind| Fault::target(stage, kind));
        let wrong = wrong.map(|kind| match Fault::target(Stage::Exchange, kind) {
            fault if kind == Kind::WrongStatus => fault.with(not_followed),
            fault => fault,
        });
        wrong.into_iter().for_each(|fault| self.note_wrong(index, fault, head.map(|head| head.status)));
        let status = head.map(|head| head.status);
        self.transcribe_response(exchange, (index, status), (wrong.or(useless), &all_wrong, taken), now);
        if let Some(fault) = wrong.filter(|_| self.job.only_right) {
            self.failed(exchange, index, fault, now);
            return None;
        }
        self.answered(exchange, index, head, (took, wrong, useless));
        let tick = &mut self.tick;
        if self.full_load.is(now) && !self.course.is_draining() {
            tick.counts.answered_at_load += 1;
        }
        head.into_iter().for_each(|head| tick.count_status(head.status));
        useless
    }
}

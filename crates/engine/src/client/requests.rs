//! The next operation of a connection: sends requests and messages, begins think times.

use net::{Cx, Io, Key};
use samples::{Detail, Fault, Kind, Stage, transcript::Event};
use units::Nanos;

use super::Client;
use crate::{
    connections::State,
    exchange::Exchange,
    op::{Op, chosen},
    out::Out,
    pacer::Next,
    protocol::Speaks,
};

/// How long a fire-and-forget message or a close is postponed while the peer does not read: otherwise output would pile up.
const BLOCKED: Nanos = Nanos::from_millis(100);
/// While the shard is paused, an idle connection is checked at most this often.
const MIN_DELAY: Nanos = Nanos::from_millis(500);

impl Client {
    /// Continues with an idle connection whose timer has expired.
    pub(super) fn go_on_at<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        self.go_on(cx, k, due, due);
        // In closed loop, requests do not set the timer again; this one has expired, so the timeout needs it.
        if self.pacer.is_closed_loop() && self.conn(k).state() == State::Busy {
            self.wake_at(cx, k, cx.now() + self.job.timeout);
        }
    }

    /// Postpones what is due during a pause by another think time, so that requests do not come all at once after it.
    pub(super) fn put_off<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let delay = self.job.longest_wait.draw(&mut self.source.random).max(MIN_DELAY);
        self.wake_at(cx, k, cx.now() + delay);
    }

    /// Continues on a connection on which a request has just begun or ended, while others may be under way.
    pub(super) fn go_on_beside<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.send_withdrawn(cx, k);
        if self.may_begin_beside(cx, k) {
            self.go_on(cx, k, cx.now(), cx.now());
        }
    }

    /// Whether a connection may begin a request beside those under way. With surplus connections none may: the first one without
    /// a request is closed.
    pub(super) fn may_begin_beside<I: Io>(&self, cx: &Cx<I>, k: Key) -> bool {
        !self.begins_nothing()
            && cx.is_open(k)
            && self.conns.has_place(k.index)
            && !self.is_used_up(k)
            && !self.is_surplus()
    }

    /// Continues after a request ended without a response: the session's end may have been announced earlier and waited only for
    /// this request.
    pub(super) fn go_on_without<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        // A failed call counts among the calls of the connection.
        if self.conn(k).state() == State::Idle && self.is_last_call(k) {
            return self.leave(cx, k);
        }
        self.go_on_beside(cx, k);
        if !cx.is_open(k) || self.conn(k).state() != State::Idle {
            return;
        }
        if self.is_surplus() && !self.course.is_draining() && !self.withdrawn.has(k.index) {
            self.finish(cx, k);
        } else if !self.conns.has_place(k.index) {
            let due = self.next_due(k, cx.now());
            self.closed_as_announced(cx, k, due);
        }
    }

    /// Whether the operation must wait for requests under way. A think time and most other operations do; so does everything on
    /// connections with a fixed number of calls, which make one at a time.
    fn awaits(&self, k: Key, op: &Op) -> bool {
        self.conns[k.index].state() == State::Busy
            && (!op.may_overlap()
                || self.job.op(self.conns.exchange(k.index).at).wanted().is_some()
                || self.has_pings()
                || self.job.calls.is_some()
                || self.pacer.puts_off()
                || !self.conns.has_place(k.index))
    }

    /// Performs the connection's next operations. The previous one ended at `due`; sending was possible from `ready` on.
    pub(super) fn go_on<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, mut due: Nanos, mut ready: Nanos) {
        let mut sent = false;
        loop {
            let at = self.conn(k).at;
            match self.job.op(at) {
                Op::Goto(to) => self.conns[k.index].at = *to,
                Op::Choose(steps) => {
                    let sum = steps.last().map_or(1, |(sum, _)| u64::from(*sum));
                    self.conns[k.index].at = chosen(steps, self.source.random.below(sum));
                }
                op if self.awaits(k, op) => return,
                Op::Jump { condition, to, skips } => {
                    let is_taken = self.source.holds(condition, k.index);
                    self.conns[k.index].at = if is_taken { *to } else { at + 1 };
                    if is_taken && *skips {
                        let step = self.job.step_of_plan(at) as u16;
                        self.transcribe(k, cx.now(), || Event::Skipped(step));
                    }
                }
                op if self.quota.is_spent() && (op.sends() || op.awaits_response()) => {
                    return self.stay_idle(cx, k);
                }
                // The output of one turn leaves as one segment, but each of the plan's messages is to leave separately.
                op if sent && op.sends() => return self.wake_at(cx, k, cx.now()),
                op if self.pacer.puts_off() && (op.sends() || op.awaits_response()) => {
                    return self.put_off(cx, k);
                }
                // Waits as a blocking socket would. Requests are due nevertheless: their responses are late.
                Op::Send(_) | Op::Close if cx.is_write_blocked(k) || self.conns.is_blocked(k.index) => {
                    return self.wake_at(cx, k, cx.now() + BLOCKED);
                }
                Op::Send(_) if self.is_used_up(k) => return self.close_used_up(cx, k, due),
                Op::Wait(think) => {
                    due = due + think.draw(&mut self.source.random);
                    self.conn(k).at = at + 1;
                    self.transcribe(k, cx.now(), || Event::Pause(due.since(cx.now())));
                    if due > cx.now() {
                        return self.wake_at(cx, k, due);
                    }
                    ready = due;
                }
                Op::Send(message) => {
                    if let Some(transcriber) = self.transport.transcriber_of(k.index) {
                        transcriber.enter(cx.now(), Event::Step(self.job.step_of_plan(at) as u16));
                    }
                    let sent_bytes = &mut self.tick.counts.bytes_out;
                    let out = &mut Out::new(cx, k, &mut self.transport, sent_bytes, &mut self.source);
                    let session = self.conns.find_session(k.index);
                    self.job.protocol.send_message(message, session, None, out);
                    self.tick.counts.told += 1;
                    self.conn(k).at = at + 1;
                    sent = true;
                }
                Op::Close => return self.leave(cx, k),
                Op::Stay => {
                    self.transcribe(k, cx.now(), || Event::Done);
                    return self.wake_at(cx, k, Nanos::NEVER);
                }
                _ => {
                    let has_begun = match self.pacer.next(due, cx.now()) {
                        Next::Slot => self.set_free(cx, k),
                        Next::AtOnce => self.begin_request(cx, k, due),
                        Next::Due => self.request_due(cx, k, due, ready),
                    };
                    if !has_begun || self.has_pings() || !self.conns.has_place(k.index) {
                        return;
                    }
                }
            }
        }
    }

    /// Nothing more begins: an idle connection has no timer.
    fn stay_idle<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if self.conn(k).state() == State::Idle {
            self.wake_at(cx, k, Nanos::NEVER);
        }
    }

    /// Sends the request that was due at `due` and could be sent from `ready` on.
    pub(super) fn request_due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos, ready: Nanos) -> bool {
        if self.full_load.has(due) {
            self.lateness.leaves(ready);
        }
        self.begin_request(cx, k, due)
    }

    /// The same for a request whose lag is recorded already.
    fn begin_request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) -> bool {
        self.due(self.conns[k.index].at);
        self.start_request(cx, k, Exchange::new(due, cx.now()))
    }

    /// Starts a request that was counted as due before. Returns true: a request has begun.
    pub(super) fn start_request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, exchange: Exchange) -> bool {
        let (now, due) = (cx.now(), exchange.due);
        // With several requests, the first one's timeout sets the timer: it expires first.
        let is_first = self.conn(k).state() == State::Idle;
        let Client { job, conns, .. } = self;
        let at = conns[k.index].at;
        let stream = conns.begin(k.index, exchange, || job.session(at));
        self.request(cx, k, stream);
        let next = self.next_ping(k, due);
        // In closed loop the timer of an earlier request keeps running; when it expires, it checks what is under way.
        if is_first && !self.pacer.is_closed_loop() {
            self.wake_at(cx, k, next.min(now + self.job.timeout));
        }
        true
    }

    /// Begins the connection's next operation in this exchange.
    pub(super) fn request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32) {
        let (by_dial, destination) = (self.conn(k).state().is_opening(), self.conn(k).destination);
        self.sent(destination, by_dial && self.conns.at(stream).request.is_due());
        let Client { job, conns, .. } = self;
        conns.transition(k.index, State::Busy);
        let (conn, _, exchange) = conns.parts(k.index, stream);
        exchange.expect("it was begun for this").at = conn.at;
        conn.at += u16::from(!matches!(job.op(conn.at), Op::Ping(..)));
        self.transcribe_step(cx.now(), k, stream);
        self.send_request(cx, k, stream);
    }

    /// Sends the request of an exchange: after a redirect, the redirected one.
    pub(super) fn send_request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32) {
        let Client { job, conns, source, tick, transport, .. } = self;
        let (conn, session, exchange) = conns.parts(k.index, stream);
        let (destination, exchange) = (conn.destination.into(), exchange.expect("it was begun"));
        let Exchange { at, nth: followed, begun, expected, .. } = *exchange;
        let drawn = job.follows_redirects(at).then(|| source.drawn());
        let redirected = match job.op(at) {
            Op::Request(request) if followed > 0 => source.redirected(k.index, request).map(Op::Request),
            _ => None,
        };
        let op = redirected.as_ref().unwrap_or(job.op(at));
        let out = &mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source);
        job.protocol.send(op, session, (stream, exchange), destination, out);
        if redirected.is_some() {
            (exchange.begun, exchange.nth, exchange.expected) = (begun, followed, expected);
        }
        drawn.into_iter().for_each(|drawn| source.go_on_after(k.index, drawn, redirected.is_some()));
    }

    /// Cancels a late request on a connection that continues without it; false if the protocol cannot.
    pub(super) fn cancel<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32) -> bool {
        let fault = self.timeout_of(k, stream);
        let Client { conns, source, tick, transport, .. } = self;
        let out = &mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source);
        if !conns.session(k.index).cancel(stream, out) {
            return false;
        }
        let exchange = self.conns.end_exchange(k.index, stream);
        self.transcribe_end(k.index, Event::Failed(fault), cx.now());
        self.failed(&exchange, k.index, fault, cx.now());
        true
    }

    /// The fault of a request that has reached its timeout.
    pub(super) fn timeout_of(&mut self, k: Key, stream: u32) -> Fault {
        let stage = self.conn(k).state().stage();
        let detail = match self.conns.find_session(k.index) {
            Some(session) if session.waits_for_window(stream) => Detail::WINDOW,
            Some(session) if stage == Stage::Handshake && session.allowed_streams() == Some(0) => {
                Detail::NO_STREAMS
            }
            _ => Detail::NONE,
        };
        Fault::target(stage, Kind::Timeout).with(detail)
    }
}

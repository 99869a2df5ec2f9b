//! What connections do next: requests and messages go out, pauses begin.

use net::{Cx, Io, Key};
use plan::Think;
use samples::{Detail, Fault, Kind, Stage};
use units::Nanos;

use super::Client;
use crate::{
    connections::State,
    exchange::Exchange,
    op::{Op, chosen},
    out::Out,
    pacer::Next,
};

/// How long a fire-and-forget message, or a close, waits at a time for a peer that does not read: otherwise the backlog
/// would grow with time.
const BLOCKED: Nanos = Nanos::from_millis(100);
/// While the shard is paused, an idle connection is checked no more often than this.
const MIN_DELAY: Nanos = Nanos::from_millis(500);

impl Client {
    /// The same for one whose time has come.
    pub(super) fn go_on_at<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        self.go_on(cx, k, due, due);
        // In closed loop timers are not set again with each request, and this one's is spent: it was put off.
        if self.pacer.is_closed_loop() && self.conn(k).state() == State::Busy {
            self.wake_at(cx, k, cx.now() + self.job.timeout);
        }
    }

    /// During a pause, what is due is postponed by another think time: after it, requests come as before, and not all at
    /// once.
    pub(super) fn put_off<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Think { min, max } = self.job.longest_wait;
        let delay = Nanos(self.source.random.between(min.0, max.0)).max(MIN_DELAY);
        self.wake_at(cx, k, cx.now() + delay);
    }

    /// What comes next for a connection on which a request has just begun, or has ended, while others may be under way.
    pub(super) fn go_on_beside<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.send_withdrawn(cx, k);
        if self.may_begin_beside(cx, k) {
            self.go_on(cx, k, cx.now(), cx.now());
        }
    }

    /// Whether a connection may begin a request beside those under way. While there are too many connections, none does: the first ones
    /// that are without a request are closed.
    pub(super) fn may_begin_beside<I: Io>(&self, cx: &Cx<I>, k: Key) -> bool {
        !self.begins_nothing()
            && cx.is_open(k)
            && self.conns.has_place(k.index)
            && !self.is_used_up(k)
            && !self.is_surplus()
    }

    /// The same where a request has ended without a response: the end of the session may have been announced before, and was waited for
    /// by this request alone.
    pub(super) fn go_on_without<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        // A call that failed is one of those for which the connection came.
        if self.conn(k).state() == State::Idle && self.is_last_call(k) {
            return self.leave(cx, k);
        }
        self.go_on_beside(cx, k);
        if !cx.is_open(k) || self.conn(k).state() != State::Idle {
            return;
        }
        if self.is_surplus() && !self.draining && !self.withdrawn.has(k.index) {
            self.finish(cx, k);
        } else if !self.conns.has_place(k.index) {
            let due = self.next_due(k, cx.now());
            self.closed_as_announced(cx, k, due);
        }
    }

    /// Whether a connection has requests under way, and this is not a further one that may begin beside them. A pause and all
    /// else comes when they have ended, and connections that came for a number of calls make one at a time.
    fn awaits(&self, k: Key, op: &Op) -> bool {
        self.conns[k.index].state() == State::Busy
            && (!op.may_overlap()
                || self.job.op(self.conns.exchange(k.index).at).wanted().is_some()
                || self.has_pings()
                || self.job.calls.is_some()
                || self.pacer.puts_off()
                || !self.conns.has_place(k.index))
    }

    /// What comes next for a connection, where what came before ended at `due`, and could be begun from `ready` on.
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
                op if self.quota.is_spent() && (op.sends() || op.awaits_response()) => {
                    return self.stay_idle(cx, k);
                }
                // What a call sends leaves as one segment: each of the plan's messages leaves separately.
                op if sent && op.sends() => return self.wake_at(cx, k, cx.now()),
                op if self.pacer.puts_off() && (op.sends() || op.awaits_response()) => {
                    return self.put_off(cx, k);
                }
                // As with a blocking socket. A request is due nevertheless: its response is late.
                Op::Send(_) | Op::Close if cx.is_write_blocked(k) || self.conns.is_blocked(k.index) => {
                    return self.wake_at(cx, k, cx.now() + BLOCKED);
                }
                Op::Send(_) if self.is_used_up(k) => return self.close_used_up(cx, k, due),
                Op::Wait(think) => {
                    due = due + Nanos(self.source.random.between(think.min.0, think.max.0));
                    self.conn(k).at = at + 1;
                    if due > cx.now() {
                        return self.wake_at(cx, k, due);
                    }
                    ready = due;
                }
                Op::Send(message) => {
                    let sent_bytes = &mut self.tick.counts.bytes_out;
                    let out = &mut Out::new(cx, k, &mut self.layer, sent_bytes, &mut self.source);
                    let session = self.conns.find_session(k.index);
                    self.job.protocol.send_message(message, session, None, out);
                    self.tick.counts.told += 1;
                    self.conn(k).at = at + 1;
                    sent = true;
                }
                Op::Close => return self.leave(cx, k),
                Op::Stay => return self.wake_at(cx, k, Nanos::NEVER),
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

    /// Nothing more is to begin: an idle connection has no timer.
    fn stay_idle<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if self.conn(k).state() == State::Idle {
            self.wake_at(cx, k, Nanos::NEVER);
        }
    }

    /// What was due at `due`, and could be sent from `ready` on, is sent on its connection.
    pub(super) fn request_due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos, ready: Nanos) -> bool {
        if self.full_load.has(due) {
            self.lateness.leaves(ready);
        }
        self.begin_request(cx, k, due)
    }

    /// The same for one whose lag is known.
    fn begin_request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) -> bool {
        self.due(self.conns[k.index].at);
        self.start_request(cx, k, Exchange::new(due, cx.now()))
    }

    /// The same for one that is in the books since it was due. True: a request has begun.
    pub(super) fn start_request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, exchange: Exchange) -> bool {
        let (now, due) = (cx.now(), exchange.due);
        // Of several, the first that began has the timer: it is the first to be late.
        let is_first = self.conn(k).state() == State::Idle;
        let Client { job, conns, .. } = self;
        let at = conns[k.index].at;
        let stream = conns.begin(k.index, exchange, || job.session(at));
        self.request(cx, k, stream);
        let next = self.next_ping(k, due);
        // In closed loop the timer of an earlier request is left running: it checks when it fires.
        if is_first && !self.pacer.is_closed_loop() {
            self.wake_at(cx, k, next.min(now + self.job.timeout));
        }
        true
    }

    /// Begins the next operation of a connection in this exchange.
    pub(super) fn request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32) {
        let (by_dial, destination) = (self.conn(k).state().is_opening(), self.conn(k).destination);
        self.sent(destination, by_dial && self.conns.at(stream).request.is_due());
        let Client { job, conns, .. } = self;
        conns.transition(k.index, State::Busy);
        let (conn, _, exchange) = conns.parts(k.index, stream);
        exchange.expect("it was begun for this").at = conn.at;
        conn.at += u16::from(!matches!(job.op(conn.at), Op::Ping(..)));
        self.send_request(cx, k, stream);
    }

    /// Sends the request of an exchange: where redirects of it were followed, the one to which the last of them leads.
    pub(super) fn send_request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32) {
        let Client { job, conns, source, tick, layer, .. } = self;
        let (conn, session, exchange) = conns.parts(k.index, stream);
        let (destination, exchange) = (conn.destination.into(), exchange.expect("it was begun"));
        let Exchange { at, nth: followed, begun, expected, .. } = *exchange;
        let drawn = job.follows_redirects(at).then(|| source.drawn());
        let redirected = match job.op(at) {
            Op::Request(request) if followed > 0 => source.redirected(k.index, request).map(Op::Request),
            _ => None,
        };
        let op = redirected.as_ref().unwrap_or(job.op(at));
        let out = &mut Out::new(cx, k, layer, &mut tick.counts.bytes_out, source);
        job.protocol.send(op, session, (stream, exchange), destination, out);
        if redirected.is_some() {
            (exchange.begun, exchange.nth, exchange.expected) = (begun, followed, expected);
        }
        drawn.into_iter().for_each(|drawn| source.go_on_after(k.index, drawn, redirected.is_some()));
    }

    /// Gives up a request on a connection that continues without it; false if it cannot.
    pub(super) fn cancel<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32) -> bool {
        let fault = self.timeout_of(k, stream);
        let Client { conns, source, tick, layer, .. } = self;
        let out = &mut Out::new(cx, k, layer, &mut tick.counts.bytes_out, source);
        if !conns.session(k.index).cancel(stream, out) {
            return false;
        }
        let exchange = self.conns.end_exchange(k.index, stream);
        self.failed(&exchange, k.index, fault, cx.now());
        true
    }

    /// The fault of a request that is outstanding for too long.
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

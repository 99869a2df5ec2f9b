//! Dialling: first dials as the pacer schedules them, redials after a planned close or a back-off, and another attempt from the
//! next local address if one is in use.

use net::{Close, Cx, Io, Key};
use samples::{Fault, Latency, transcript::Event};
use units::Nanos;

use super::{Client, ORDERS_INTERVAL};
use crate::{
    connections::{Conn, State},
    exchange::{Exchange, PendingRequest},
    op::Op,
};

/// Maximum number of dials in one turn, so that responses are not delayed.
const DIALS_A_TURN: u32 = 128;
impl Client {
    pub(super) fn dial_due<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let now = cx.now();
        let outstanding = self.conns.outstanding();
        let (due, next) = self.pacer.dials_due(now, outstanding, self.job.timeout, cx.behind());
        for _ in 0..due.min(DIALS_A_TURN) {
            if cx.is_full() {
                // Arrivals may outpace closes; a place that becomes free is noticed in the same turn.
                return now + ORDERS_INTERVAL;
            }
            let dial = self.pacer.take_dial(now);
            self.tick.counts.forced += u64::from(dial.forced);
            self.dial_first(cx, dial.due);
        }
        if due > DIALS_A_TURN { now } else { next }
    }

    fn dial_first<I: Io>(&mut self, cx: &mut Cx<I>, due: Nanos) {
        let waits = self.pacer.is_open_loop() || cx.now() < self.quota.starts();
        let request = match self.job.starts_with_request() && !waits {
            false => PendingRequest::No,
            // For connections that come and go, the request is due together with its connection.
            true if self.pacer.comes_and_goes() => self.due_by_dial(0),
            true => PendingRequest::OnceOpen,
        };
        if self.pacer.comes_and_goes() {
            self.tick.lag.record(cx.now().since(due));
        }
        self.dial_next(cx, Exchange { first: true, request, ..Exchange::new(due, due) });
    }

    /// Counts the request `at` as due; a connection is dialled for it.
    fn due_by_dial(&mut self, at: u16) -> PendingRequest {
        self.due(at);
        PendingRequest::Due
    }

    /// The next operation of a connection without a socket is due: counts it, if it awaits a response.
    pub(super) fn next_is_due(&mut self, k: Key) -> PendingRequest {
        let at = self.conn(k).at;
        if self.job.op(at).awaits_response() { self.due_by_dial(at) } else { PendingRequest::No }
    }

    /// Dials a new connection at a free place; destinations take turns.
    pub(super) fn dial_next<I: Io>(&mut self, cx: &mut Cx<I>, exchange: Exchange) {
        let k = cx.take().expect("there is a place");
        let tuple = self.tuples.next();
        self.begin_at(k, Conn::new(tuple.destination as u16, 0, State::Dialling));
        self.begin_dial(k, exchange);
        self.dial(cx, k, tuple.from);
    }

    fn begin_dial(&mut self, k: Key, exchange: Exchange) {
        self.dialled(exchange.request.is_due());
        let Client { job, conns, source, .. } = self;
        let at = conns[k.index].at;
        conns.begin(k.index, exchange, || job.session_of_dial(at, &mut source.random));
    }

    fn dial<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, from: std::net::SocketAddr) {
        let destination = usize::from(self.conn(k).destination);
        let to = self.job.destinations[destination];
        self.sampled.dialled(k.index, from.ip());
        self.transcribe(k, cx.now(), || Event::Dial { from, to });
        cx.dial(k, from, to);
        self.wake_at(cx, k, cx.now() + self.job.timeout);
    }

    /// When a connection that is not open yet was dialled: its timeout runs from then.
    pub(super) fn dialled_at<I: Io>(&self, cx: &Cx<I>, k: Key) -> Nanos {
        self.timer(cx, k).since(self.job.timeout)
    }

    /// Dials the same connection from the next local address; it gets a new key, and the old one becomes stale.
    pub(super) fn dial_again<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        cx.close(k, Close::Reset);
        let index = k.index;
        let k = cx.take().expect("a place was given back just now");
        assert_eq!(k.index, index, "what was given back last is taken first");
        let conn = self.conn(k);
        conn.tries += 1;
        let destination = u32::from(conn.destination);
        let from = self.tuples.next_further_to(destination);
        self.tick.counts.addresses_skipped += 1;
        self.dial(cx, k, from);
    }

    /// The redial timer of a connection without a socket, for a request due at `due`. In an open loop requests come with slots,
    /// and none has come yet.
    pub(super) fn redial_due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        if self.pacer.is_open_loop() {
            return self.redial(cx, k, Exchange::new(due, due));
        }
        if self.full_load.has(due) {
            self.tick.lag.record(cx.now().since(due));
        }
        let request = self.next_is_due(k);
        self.redial(cx, k, Exchange { request, ..Exchange::new(due, due) });
    }

    /// Dials a connection without a socket again, in this exchange.
    pub(super) fn redial<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, exchange: Exchange) {
        self.conns.transition(k.index, State::Dialling);
        self.begin_dial(k, exchange);
        let conn = self.conn(k);
        conn.tries = 0;
        let destination = u32::from(conn.destination);
        let from = self.tuples.next_to(destination);
        self.dial(cx, k, from);
    }

    /// The connection is open: sends the request it was dialled for, or begins its first operation.
    pub(super) fn connected<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        let exchange = *self.exchange(k);
        let first = exchange.first;
        let is_due = exchange.request.is_due();
        self.count_opened(self.conns[k.index].destination, first);
        self.conn(k).received(now, None);
        self.lives.begin(k);
        self.begin_pushes(k, now);
        self.begin_keep_alive(k, now);
        // A request that is already due (before a pause, the end of the load or a change of the number of connections) is sent.
        if !is_due && self.stays_idle(cx, k, first) {
            return;
        }
        match self.job.op(self.conns[k.index].at) {
            Op::Ping(_, every) if first && !self.pacer.is_open_loop() => {
                let due = now + Nanos(self.source.random.between(0, every.0));
                self.idle(k);
                if due <= now { self.go_on(cx, k, now, now) } else { self.wake_at(cx, k, due) }
            }
            op if exchange.has_request() && op.awaits_response() => {
                if first {
                    // The first request is due as soon as the connection is open.
                    self.exchange(k).due = now;
                }
                if !is_due {
                    self.due(self.conns[k.index].at);
                }
                let stream = self.conns.latest(k.index);
                self.request(cx, k, stream);
                let next = self.next_ping(k, now);
                self.wake_at(cx, k, next.min(now + self.job.timeout));
                self.go_on_beside(cx, k);
            }
            op => {
                if matches!(op, Op::Stay) {
                    // Nothing later shows that it works.
                    self.succeeded(k);
                }
                self.idle(k);
                self.go_on(cx, k, now, now);
            }
        }
    }

    /// Whether a connection that has just opened begins nothing now; if so, it becomes idle.
    fn stays_idle<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, first: bool) -> bool {
        let is_surplus = self.is_surplus();
        // Arrivals arrived before the end of the load.
        let is_over = self.begins_nothing() && !self.pacer.comes_and_goes();
        let puts_off = self.pacer.puts_off() && !self.course.is_draining() && !is_surplus;
        let waits = first && cx.now() < self.quota.starts() && !is_surplus;
        if !(puts_off || waits || is_over || is_surplus) {
            return false;
        }
        self.idle(k);
        match () {
            () if puts_off => self.put_off(cx, k),
            () if waits => self.wait_for_start(cx, k),
            () if is_surplus => self.finish(cx, k),
            () if self.is_released() => self.release(cx, k),
            () => self.wake_at(cx, k, Nanos::NEVER),
        }
        true
    }

    pub(super) fn dial_failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, fault: Fault) {
        let exchange = *self.exchange(k);
        self.transcribe_lost(cx, k, fault);
        let Conn { destination, served, .. } = *self.conn(k);
        if exchange.first && self.conn(k).state() == State::Dialling {
            self.pacer.learn_dial(cx.now().since(exchange.started), false, cx.now());
        }
        self.learn(&exchange, cx.now(), false);
        self.dial_time(k).censor();
        let is_due = exchange.request.is_due();
        self.tick.dial_failed(self.job.row(destination), fault, is_due);
        if is_due {
            self.miss_by_dial(&exchange, destination);
        }
        self.remove(cx, k, Close::Reset);
        // A connection whose first dial failed is never counted as opened for the first time; its response must not count as a
        // first one either.
        self.back_off(cx, k.index, destination, served || exchange.first);
    }

    /// The latency record of the phase that an opening connection is in.
    fn dial_time(&mut self, k: Key) -> &mut Latency {
        match self.conn(k).state() {
            State::Dialling => &mut self.tick.connect,
            State::Securing => &mut self.tick.tls,
            _ => &mut self.tick.handshake,
        }
    }

    /// Reports the outcome of a connection's first dial or first request to the pacer.
    pub(super) fn learn(&mut self, exchange: &Exchange, now: Nanos, ok: bool) {
        if exchange.first {
            self.pacer.learn(now.since(exchange.started), ok, now);
        }
    }
}

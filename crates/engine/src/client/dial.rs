//! Dialling: the first time by the pacer, again after a planned close or a back-off, and from the next address where one
//! is taken.

use net::{Close, Cx, Io, Key};
use samples::Fault;
use units::Nanos;

use super::{Client, ORDERS_INTERVAL, ends::End};
use crate::{
    connections::{Conn, State},
    exchange::{Exchange, PendingRequest},
    op::Op,
    pacer::Unsent,
};

/// Maximum of dials in one turn, so that responses are not delayed.
const DIALS_A_TURN: u32 = 128;
impl Client {
    pub(super) fn dial_due<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let now = cx.now();
        let outstanding = self.conns.outstanding();
        let (due, next) = self.pacer.dials_due(now, outstanding, self.job.timeout, cx.behind());
        for _ in 0..due.min(DIALS_A_TURN) {
            if cx.is_full() {
                // Connections may arrive faster than others close; a slot that becomes free is noticed immediately.
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
        let has_request = self.job.starts_with_request() && !waits;
        if self.pacer.comes_and_goes() {
            self.tick.lag.record(cx.now().since(due));
        }
        self.dial_next(cx, Exchange { first: true, request: has_request.into(), ..Exchange::new(due, due) });
    }

    /// Dials a connection that there was not before; destinations take turns.
    pub(super) fn dial_next<I: Io>(&mut self, cx: &mut Cx<I>, exchange: Exchange) {
        let k = cx.take().expect("there is a place");
        let tuple = self.tuples.next();
        self.begin_at(k, Conn::new(tuple.destination as u16, 0, State::Dialling));
        self.begin_dial(k, exchange);
        self.dial(cx, k, tuple.from);
    }

    fn begin_dial(&mut self, k: Key, exchange: Exchange) {
        let Client { job, conns, source, .. } = self;
        let at = conns[k.index].at;
        conns.begin(k.index, exchange, || job.session_of_dial(at, &mut source.random));
    }

    fn dial<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, from: std::net::SocketAddr) {
        let destination = usize::from(self.conn(k).destination);
        let to = self.job.destinations[destination];
        cx.dial(k, from, to);
        self.wake_at(cx, k, cx.now() + self.job.timeout);
    }

    /// When a connection that is not open yet was dialled: its timeout counts from there.
    pub(super) fn dialled_at<I: Io>(&self, cx: &Cx<I>, k: Key) -> Nanos {
        self.timer(cx, k).since(self.job.timeout)
    }

    /// The same connection from the next local address, with a new key: the old one is stale.
    pub(super) fn dial_again<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        cx.close(k, Close::Reset);
        let index = k.index;
        let k = cx.take().expect("a place was given back just now");
        assert_eq!(k.index, index, "what was given back last is taken first");
        let conn = self.conn(k);
        conn.tries += 1;
        let destination = u32::from(conn.destination);
        let from = self.tuples.next_to(destination);
        self.tick.counts.addresses_skipped += 1;
        self.dial(cx, k, from);
    }

    /// The timer of a connection without a socket: it was to be dialled again at `due`, for a request that was due then. In
    /// an open loop a slot triggers it, and none has yet.
    pub(super) fn redial_due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        let has_request = !self.pacer.is_open_loop();
        if has_request && self.full_load.has(due) {
            self.tick.lag.record(cx.now().since(due));
        }
        self.redial(cx, k, due, due, has_request.into());
    }

    /// A connection without a socket is dialled again, which was due at `dial_due`; `request`: whether it is for a request that was due at
    /// `due`.
    pub(super) fn redial<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        dial_due: Nanos,
        due: Nanos,
        request: PendingRequest,
    ) {
        self.conns.transition(k.index, State::Dialling);
        self.begin_dial(k, Exchange { request, ..Exchange::new(due, dial_due) });
        let conn = self.conn(k);
        conn.tries = 0;
        let destination = u32::from(conn.destination);
        let from = self.tuples.next_to(destination);
        self.dial(cx, k, from);
    }

    /// The connection is open, ready for its first request, or for the one it was dialled again for.
    pub(super) fn connected<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        let exchange = *self.exchange(k);
        let first = exchange.first;
        let destination = self.conn(k).destination;
        let count = if first { &mut self.tick.counts.opened } else { &mut self.tick.counts.redialled };
        *count += 1;
        if let Some(own) = self.at(destination) {
            *if first { &mut own.opened } else { &mut own.redialled } += 1;
        }
        self.conn(k).received(now, None);
        self.lives.begin(k);
        self.begin_pushes(k, now);
        self.begin_keep_alive(k, now);
        let is_surplus = self.is_surplus();
        if self.pacer.puts_off() && !self.draining && !is_surplus {
            self.idle(k);
            return self.put_off(cx, k);
        }
        if first && cx.now() < self.quota.starts() && !is_surplus {
            self.idle(k);
            return self.wait_for_start(cx, k);
        }
        // What a connection was dialled for on demand, or arrived for, was due before the end.
        let was_due = self.job.dials_on_demand() || self.pacer.comes_and_goes();
        if self.begins_nothing() && !was_due || is_surplus {
            self.idle(k);
            self.missed_by_dial(&exchange);
            return match self.is_released() {
                _ if is_surplus => self.finish(cx, k),
                true => self.release(cx, k),
                false => self.wake_at(cx, k, Nanos::NEVER),
            };
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
                let stream = self.conns.latest(k.index);
                self.request(cx, k, stream);
                let next = self.next_ping(k, now);
                self.wake_at(cx, k, next.min(now + self.job.timeout));
                self.go_on_beside(cx, k);
            }
            op => {
                if matches!(op, Op::Stay) {
                    // That it is open is the last that is known of it.
                    self.succeeded(k);
                }
                self.idle(k);
                self.go_on(cx, k, now, now);
            }
        }
    }

    pub(super) fn dial_failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, fault: Fault) {
        let exchange = *self.exchange(k);
        let Conn { destination, served, .. } = *self.conn(k);
        self.learn(&exchange, cx.now(), false);
        self.censor_dial(k, &exchange);
        if self.job.dials_on_demand() {
            self.settle(&exchange);
        }
        self.count_fault(destination, fault);
        self.end(cx, k, End::Failed);
        // One whose first dial failed is not among the opened, of which those without a response are counted.
        self.back_off(cx, k.index, destination, served || exchange.first);
    }

    /// A dial or a handshake has failed, and with it its request. The first request of a held connection is due when it is
    /// open.
    fn censor_dial(&mut self, k: Key, exchange: &Exchange) {
        let conn = *self.conn(k);
        match conn.state() {
            State::Dialling => &mut self.tick.connect,
            State::Securing => &mut self.tick.tls,
            _ => &mut self.tick.handshake,
        }
        .censor();
        match self.pacer.unsent(exchange.first) {
            _ if !exchange.has_request() => {}
            Unsent::Missed => self.missed_by_dial(exchange),
            Unsent::Censored => self.censor(exchange, conn.destination),
            Unsent::NotDue => {}
        }
    }

    pub(super) fn learn(&mut self, exchange: &Exchange, now: Nanos, ok: bool) {
        if exchange.first {
            let is_dial = self.job.is_known_by_dial(exchange.has_request());
            self.pacer.learn(now.since(exchange.started), ok, is_dial, now);
        }
    }
}

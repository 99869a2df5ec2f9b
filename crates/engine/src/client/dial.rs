//! Dialling: the first time by the pacer, again after a planned close or a back-off, and from the next address where one
//! is taken.

use net::{Close, Cx, Io, Key};
use samples::Fault;
use units::Nanos;

use super::{Client, LOOK_AT_ORDERS};
use crate::{
    conn::{Conn, State},
    exchange::Exchange,
    job::Pause,
    ramp::Pacer,
};

/// Dials in one turn, so that answers are not kept waiting.
const DIALS_A_TURN: u32 = 128;
/// Behind by more than this, a shard that ramps as fast as it can dials nobody.
const LATE: Nanos = Nanos::from_millis(2);

/// First dials: how many, and when.
pub(super) struct Ramp {
    pub(super) pacer: Pacer,
    /// When the first dial of the present order is due, and how many of it were made.
    from: Nanos,
    dialled: u64,
    to_dial: u32,
    /// First dials made and to be made, over all orders.
    pub(super) ordered: u64,
}

impl Ramp {
    pub(super) fn new(pacer: Pacer, connections: u32, from: Nanos) -> Ramp {
        Ramp { pacer, from, dialled: 0, to_dial: connections, ordered: connections.into() }
    }

    /// From now on, so many are to be dialled.
    pub(super) fn order(&mut self, to_dial: u32, now: Nanos) {
        self.ordered = self.ordered - u64::from(self.to_dial) + u64::from(to_dial);
        (self.from, self.dialled, self.to_dial) = (now, 0, to_dial);
    }

    pub(super) fn is_over(&self) -> bool {
        self.to_dial == 0
    }

    /// How many dials are due now, and when to ask again. `behind`: how late the shard is with its requests.
    fn due(&self, now: Nanos, outstanding: u32, behind: Nanos) -> (u32, Nanos) {
        match &self.pacer {
            // Requests that are late already come first: a ramp that runs ahead of them would hand its backlog to
            // the hold.
            Pacer::Adaptive(_) if self.to_dial > 0 && behind > LATE => (0, now),
            Pacer::Adaptive(window) => (window.room(outstanding).min(self.to_dial), Nanos::NEVER),
            Pacer::Steady(steady) => {
                let due = steady.due(now.since(self.from)).saturating_sub(self.dialled);
                let due = due.min(self.to_dial.into());
                let next = self.from + steady.next_after(self.dialled + due);
                (due as u32, if due == u64::from(self.to_dial) { Nanos::NEVER } else { next })
            }
        }
    }

    /// The next dial is made: when it was due.
    fn take(&mut self, now: Nanos) -> Nanos {
        let due = match &self.pacer {
            Pacer::Adaptive(_) => now,
            Pacer::Steady(steady) => self.from + steady.time_of(self.dialled),
        };
        self.dialled += 1;
        self.to_dial -= 1;
        due
    }
}

impl Client {
    pub(super) fn dial_due<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let now = cx.now();
        let (due, next) = self.ramp.due(now, self.outstanding, cx.behind());
        for _ in 0..due.min(DIALS_A_TURN) {
            if cx.is_full() {
                // Who comes and goes may come faster than the others go; a place that falls free is seen at once.
                return now + LOOK_AT_ORDERS;
            }
            let due = self.ramp.take(now);
            self.dial_first(cx, due);
        }
        if due > DIALS_A_TURN { now } else { next }
    }

    fn dial_first<I: Io>(&mut self, cx: &mut Cx<I>, due: Nanos) {
        let k = cx.take().expect("there is a place");
        let tuple = self.tuples.next();
        let wire = self.job.protocol.wire_of_dial(&mut self.random);
        let asks = matches!(self.job.pause, Pause::Think(_));
        let exchange = self.exchanges.begin(Exchange { first: true, asks, ..Exchange::new(due, due, wire) });
        let conn =
            Conn { exchange, destination: tuple.destination as u16, state: State::Dialling, ..Conn::NONE };
        self.begin_at(k, conn);
        if self.job.calls().is_some() {
            self.tick.lag.record(cx.now().since(due));
        }
        self.outstanding += 1;
        self.dialling += 1;
        self.dial(cx, k, tuple.from);
    }

    fn dial<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, from: std::net::SocketAddr) {
        let destination = usize::from(self.conn(k).destination);
        let to = self.job.destinations[destination];
        cx.dial(k, from, to);
        cx.wake_at(k, cx.now() + self.job.timeout);
    }

    /// The same connection from the next local address, at a key of its own: the old one is spent.
    pub(super) fn dial_again<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let conn = std::mem::replace(self.conn(k), Conn::NONE);
        cx.close(k, Close::Reset);
        let index = k.index;
        let k = cx.take().expect("a place was given back just now");
        assert_eq!(k.index, index, "what was given back last is taken first");
        self.place(k, Conn { tries: conn.tries + 1, ..conn });
        let from = self.tuples.next_to(u32::from(conn.destination));
        self.tick.counts.addresses_skipped += 1;
        self.dial(cx, k, from);
    }

    /// A rested connection is dialled again; `asks`: for a request that was due at `due`.
    pub(super) fn redial<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos, asks: bool) {
        let wire = self.job.protocol.wire_of_dial(&mut self.random);
        let exchange = self.exchanges.begin(Exchange { asks, ..Exchange::new(due, cx.now(), wire) });
        let conn = self.conn(k);
        (conn.exchange, conn.state, conn.tries) = (exchange, State::Dialling, 0);
        let destination = u32::from(conn.destination);
        let from = self.tuples.next_to(destination);
        self.resting -= 1;
        self.dialling += 1;
        self.dial(cx, k, from);
    }

    /// The connection stands, ready for its first request, or for the one it was dialled again for.
    pub(super) fn connected<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        let Exchange { first, asks, .. } = *self.exchange(k);
        self.dialling -= 1;
        self.open += 1;
        self.resolved += u64::from(first);
        let count = if first { &mut self.tick.counts.opened } else { &mut self.tick.counts.redialled };
        *count += 1;
        self.conn(k).hear(now, None);
        let is_surplus = self.is_surplus();
        if self.draining || is_surplus {
            self.idle(k);
            self.missed_by_dial(asks);
            return if is_surplus { self.finish(cx, k) } else { cx.let_sleep(k) };
        }
        match self.job.pause {
            Pause::Every(every) if first => {
                self.idle(k);
                let due = now + Nanos(self.random.between(0, every.0));
                if due <= now { self.request_due(cx, k, now, now) } else { cx.wake_at(k, due) }
            }
            Pause::Never => {
                // Nothing will tell more of it than that it stands.
                self.succeeded(k);
                self.idle(k);
                cx.let_sleep(k);
            }
            Pause::Slot if !asks => {
                self.idle(k);
                self.set_free(cx, k);
            }
            _ => {
                if first {
                    // The first request is due as soon as the connection is open.
                    self.exchange(k).due = now;
                }
                self.request(cx, k);
                cx.wake_at(k, now + self.job.timeout);
            }
        }
    }

    pub(super) fn dial_failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, fault: Fault) {
        let Exchange { first, asks, .. } = *self.exchange(k);
        let destination = self.conn(k).destination;
        self.learn(k, cx.now(), false);
        self.missed_by_dial(asks);
        self.dialling -= 1;
        self.resolved += u64::from(first);
        self.tick.counts.failed += 1;
        self.tick.faults.count(fault);
        self.forget(k);
        cx.close(k, Close::Reset);
        self.back_off(cx, k.index, destination);
    }

    pub(super) fn learn(&mut self, k: Key, now: Nanos, ok: bool) {
        let Exchange { started, first, .. } = *self.exchange(k);
        if let (true, Pacer::Adaptive(window)) = (first, &mut self.ramp.pacer) {
            window.learn(now.since(started), ok, now);
        }
    }
}

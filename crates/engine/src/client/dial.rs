//! Dialling: the first time by the pacer, again after a planned close, and from the next address where one is taken.

use net::{Close, Cx, Io, Key};
use samples::Fault;
use units::Nanos;

use super::Client;
use crate::{
    conn::{Conn, State},
    exchange::Exchange,
    ramp::Pacer,
};

/// Dials in one turn, so that answers are not kept waiting.
const DIALS_A_TURN: u32 = 128;
/// Behind by more than this, a shard that ramps as fast as it can dials nobody.
const LATE: Nanos = Nanos::from_millis(2);

impl Client {
    pub(super) fn dial_due<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let elapsed = cx.now().since(self.started);
        let left = self.wanted - self.dialled;
        let (now_due, next) = match &self.pacer {
            // Requests that are late already come first: a ramp that runs ahead of them would hand its backlog to
            // the hold.
            Pacer::Adaptive(_) if left > 0 && cx.behind() > LATE => (0, cx.now()),
            Pacer::Adaptive(window) => (window.room(self.outstanding).min(left), Nanos::NEVER),
            Pacer::Steady(steady) => {
                let due = steady.due(elapsed).saturating_sub(u64::from(self.dialled)) as u32;
                (due, self.started + steady.next_after(u64::from(self.dialled) + u64::from(due)))
            }
        };
        for _ in 0..now_due.min(DIALS_A_TURN) {
            let due = match &self.pacer {
                Pacer::Adaptive(_) => cx.now(),
                Pacer::Steady(steady) => self.started + steady.time_of(u64::from(self.dialled)),
            };
            self.dial_first(cx, due);
        }
        if now_due > DIALS_A_TURN { cx.now() } else { next }
    }

    fn dial_first<I: Io>(&mut self, cx: &mut Cx<I>, due: Nanos) {
        let k = cx.take().expect("a shard has a place for each of its connections");
        let tuple = self.tuples.next();
        let wire = self.job.protocol.wire_of_dial(&mut self.random);
        let exchange = self.exchanges.begin(Exchange { first: true, ..Exchange::new(due, due, wire) });
        let conn =
            Conn { exchange, destination: tuple.destination as u16, state: State::Dialling, ..Conn::NONE };
        self.place(k, conn);
        self.dialled += 1;
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
        let k = cx.take().expect("a place was given back just now");
        self.place(k, Conn { tries: conn.tries + 1, ..conn });
        let from = self.tuples.next_to(u32::from(conn.destination));
        self.tick.counts.addresses_skipped += 1;
        self.dial(cx, k, from);
    }

    /// A rested connection is due.
    pub(super) fn redial<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        let wire = self.job.protocol.wire_of_dial(&mut self.random);
        let exchange = self.exchanges.begin(Exchange::new(due, cx.now(), wire));
        let conn = self.conn(k);
        (conn.exchange, conn.state, conn.tries) = (exchange, State::Dialling, 0);
        let destination = u32::from(conn.destination);
        let from = self.tuples.next_to(destination);
        self.dialling += 1;
        self.dial(cx, k, from);
    }

    pub(super) fn dial_failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, fault: Fault) {
        let first = self.exchange(k).first;
        self.learn(k, cx.now(), false);
        self.dialling -= 1;
        self.resolved += u64::from(first);
        self.tick.counts.failed += 1;
        self.tick.faults.count(fault);
        self.forget(k);
        cx.close(k, Close::Reset);
    }

    pub(super) fn learn(&mut self, k: Key, now: Nanos, ok: bool) {
        let Exchange { started, first, .. } = *self.exchange(k);
        if let (true, Pacer::Adaptive(window)) = (first, &mut self.pacer) {
            window.learn(now.since(started), ok, now);
        }
    }
}

//! Messages that go out at intervals on several WebSockets of a connection: each when it is due, whether the replies to those
//! before it have come or not; and what is due of any that go out at intervals.

use net::{Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::{connections::State, op::Op};

impl Client {
    /// Whether there are such messages.
    pub(super) fn has_pings(&self) -> bool {
        !self.pings.is_empty()
    }

    /// When the next message is due that follows at its interval what a connection awaits the reply to, if one does.
    pub(super) fn next_at_intervals(&self, index: u32) -> Option<(Nanos, Nanos)> {
        if self.conns[index].state() != State::Busy || self.quota.is_limited() {
            return None;
        }
        let exchange = self.conns.exchange(index);
        let Op::Ping(_, every) = self.job.op(exchange.at) else { return None };
        let next = self.pings.get(index as usize).copied().unwrap_or(exchange.due + *every);
        (*every > Nanos::ZERO && next != Nanos::NEVER).then_some((next, *every))
    }

    /// A message that was due at `due` goes out: when the next one is; never, where there are no such messages.
    pub(super) fn next_ping(&mut self, k: Key, due: Nanos) -> Nanos {
        let (Some(next), Some(every)) = (self.pings.get_mut(k.index as usize), self.job.overlapping()) else {
            return Nanos::NEVER;
        };
        *next = due + every;
        *next
    }

    /// The timer of a connection with messages under way: one of them is late, or the next one is due.
    pub(super) fn ping_or_time_out<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.timed_out(cx, k);
        if cx.is_open(k) && self.conn(k).state() == State::Busy {
            let due = self.pings[k.index as usize];
            self.ping(cx, k, due);
        }
    }

    /// Sends what is due of a connection with messages under way, and could be sent from `ready` on, as long as a WebSocket is
    /// free; sets the timer for what comes next.
    pub(super) fn ping<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, ready: Nanos) {
        let (at, now) = (k.index as usize, cx.now());
        if self.pacer.is_paused() && self.pings[at] <= now {
            self.next_ping(k, now);
        }
        // After a stall several are due, of which one may be the last of a number. Of connections that are too many none begins anything:
        // the first that awaits nothing is closed.
        let begins_none = |client: &Client| client.begins_nothing() || client.is_surplus();
        while !begins_none(self) && self.pings[at] <= now && self.conns.has_place(k.index) {
            let due = self.pings[at];
            self.request_due(cx, k, due, ready.max(due));
        }
        // Without a free WebSocket, it goes out with the next reply.
        let next = if self.pings[at] > now && !begins_none(self) { self.pings[at] } else { Nanos::NEVER };
        let (timeout, lateness) = (self.job.timeout, &self.lateness);
        let deadline = |started| started + timeout + lateness.since(started);
        let first = self.conns.exchanges(k.index).map(|(_, exchange)| deadline(exchange.started)).min();
        self.wake_at(cx, k, next.min(first.unwrap_or(Nanos::NEVER)));
    }
}

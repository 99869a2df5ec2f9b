//! Overlapping messages: sent at intervals on several WebSockets of one connection, each when it is due, whether or not earlier
//! replies have come. Also the backlog of any messages sent at intervals.

use net::{Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::{connections::State, op::Op};

impl Client {
    /// Whether messages overlap.
    pub(super) fn has_pings(&self) -> bool {
        self.columns.pings.is_kept()
    }

    /// When the next of the overlapping messages is due; never, if they do not overlap.
    pub(super) fn next_message(&self, k: Key) -> Nanos {
        self.columns.pings.get(k.index).unwrap_or(Nanos::NEVER)
    }

    /// When the next message is due after the one whose reply the connection awaits, and the interval; `None` if no message
    /// follows at an interval.
    pub(super) fn next_at_intervals(&self, index: u32) -> Option<(Nanos, Nanos)> {
        if self.conns[index].state() != State::Busy || self.quota.is_limited() {
            return None;
        }
        let exchange = self.conns.exchange(index);
        let Op::Ping(_, every) = self.job.op(exchange.at) else { return None };
        let next = self.columns.pings.get(index).unwrap_or(exchange.due + *every);
        (*every > Nanos::ZERO && next != Nanos::NEVER).then_some((next, *every))
    }

    /// A message that was due at `due` is sent: returns when the next one is due; never, without overlapping messages.
    pub(super) fn next_ping(&mut self, k: Key, due: Nanos) -> Nanos {
        let (Some(next), Some(every)) = (self.columns.pings.get_mut(k.index), self.job.overlapping()) else {
            return Nanos::NEVER;
        };
        *next = due + every;
        *next
    }

    /// The timer of a connection with messages under way: one of them is late, or the next one is due.
    pub(super) fn ping_or_time_out<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.timed_out(cx, k);
        if cx.is_open(k) && self.conn(k).state() == State::Busy {
            let due = self.next_message(k);
            self.ping(cx, k, due);
        }
    }

    /// Sends what is due on a connection with messages under way, and could be sent from `ready` on, while a WebSocket is free;
    /// sets the timer for what comes next.
    pub(super) fn ping<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, ready: Nanos) {
        let now = cx.now();
        if self.pacer.is_paused() && self.next_message(k) <= now {
            self.next_ping(k, now);
        }
        // After a stall several messages are due, one of which may be the last of a quota. While there are surplus connections,
        // none begins anything: the first one with nothing under way is closed.
        let begins_none = |client: &Client| client.begins_nothing() || client.is_surplus();
        while !begins_none(self) && self.next_message(k) <= now && self.conns.has_place(k.index) {
            let due = self.next_message(k);
            self.request_due(cx, k, due, ready.max(due));
        }
        // Without a free WebSocket, the message is sent with the next reply.
        let due = self.next_message(k);
        let next = if due > now && !begins_none(self) { due } else { Nanos::NEVER };
        let (timeout, lateness) = (self.job.timeout, &self.lateness);
        let deadline = |started| started + timeout + lateness.since(started);
        let first = self.conns.exchanges(k.index).map(|(_, exchange)| deadline(exchange.started)).min();
        self.wake_at(cx, k, next.min(first.unwrap_or(Nanos::NEVER)));
    }
}

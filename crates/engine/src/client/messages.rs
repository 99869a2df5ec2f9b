//! Messages within gRPC responses, and streaming calls.

use net::{Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::{connections::State, out::Out, pool::NOTHING, protocol::Speaks};

impl Client {
    /// `came` messages of the response on `stream` are complete.
    pub(super) fn messages<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32, came: u32) {
        self.tick.counts.messages += u64::from(came);
        let (exchange, now) = (*self.conns.at(stream), cx.now());
        if !self.job.is_streaming(exchange.at) {
            return;
        }
        let is_first = exchange.nth == came;
        if is_first {
            // The call may stay open for the whole run: its first message shows that it works.
            self.learn(&exchange, now, true);
            self.conns.first_is_known(stream);
            self.succeeded(k);
        } else {
            self.count_gap(exchange.started, now);
        }
        // The other messages of the same read.
        self.tick.gap.record_n(Nanos::ZERO, u64::from(came - 1));
        // The next gap begins, and the timeout for the next message.
        self.conns.at_mut(stream).started = now;
        self.conn(k).received(now, None);
        if self.course.is_draining() {
            self.withdraw_streams(cx, k);
        } else if self.is_surplus() {
            self.leave_streams(cx, k);
        }
    }

    /// Closes a surplus connection if all its streaming calls have begun to respond. Returns whether it was closed.
    pub(super) fn leave_streams<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> bool {
        let have_begun = self
            .conns
            .exchanges(k.index)
            .all(|(_, exchange)| self.job.is_streaming(exchange.at) && exchange.nth > 0);
        if have_begun {
            self.withdraw_streams(cx, k);
        }
        let is_idle = self.conn(k).state() == State::Idle;
        if is_idle {
            self.finish(cx, k);
        }
        is_idle
    }

    /// Cancels the streaming calls of a connection whose responses have begun: they would go on without end.
    pub(super) fn withdraw_streams<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let destination = self.conn(k).destination;
        let mut next = self.conns.oldest(k.index);
        while next != NOTHING && self.conn(k).state() == State::Busy {
            let (stream, exchange) = (next, *self.conns.at(next));
            next = exchange.next;
            if !self.job.is_streaming(exchange.at) || exchange.nth == 0 {
                continue;
            }
            self.count_silence(exchange.started, cx.now());
            let Client { conns, source, tick, transport, .. } = self;
            let out = &mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source);
            if conns.session(k.index).cancel(stream, out) {
                self.conns.end_exchange(k.index, stream);
                self.revoke(&exchange, destination);
            }
        }
    }
}

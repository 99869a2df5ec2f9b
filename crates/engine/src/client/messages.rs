//! Messages of responses of gRPC, and calls that stay open.

use net::{Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::{connections::State, out::Out, pool::NOTHING};

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
            // The call may stay open for the whole run: that it works is known with its first message.
            self.learn(&exchange, now, true);
            self.conns.first_is_known(stream);
            self.succeeded(k);
        } else {
            self.count_gap(exchange.started, now);
        }
        // Those that came along with it.
        self.tick.gap.record_n(Nanos::ZERO, u64::from(came - 1));
        // The next gap begins, and so does the time to the next message.
        self.conns.at_mut(stream).started = now;
        self.conn(k).received(now, None);
        if self.draining {
            self.withdraw_streams(cx, k);
        } else if self.is_surplus() {
            self.leave_streams(cx, k);
        }
    }

    /// Closes a connection that is one too many, if all of its calls have begun: one that stays keeps them.
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

    /// Gives up the calls of a connection whose responses have begun and would go on: no one waits for their ends.
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
            let Client { conns, source, tick, layer, .. } = self;
            let out = &mut Out::new(cx, k, layer, &mut tick.counts.bytes_out, source);
            if conns.session(k.index).cancel(stream, out) {
                self.conns.end_exchange(k.index, stream);
                self.revoke(&exchange, destination);
            }
        }
    }
}

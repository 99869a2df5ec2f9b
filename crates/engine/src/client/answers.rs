//! Answers come in.

use net::{Cx, Io, Key};
use samples::{Fault, Kind, Stage};
use units::Nanos;

use super::Client;
use crate::{
    conn::{Conn, State},
    exchange::{Exchange, Progress, Wire},
    job::Pause,
};

impl Client {
    /// Reads on in the answer to an HTTP request.
    pub(super) fn reply<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        match self.exchange(k).handle_bytes(input, None) {
            Ok(Progress::More(used)) => return used,
            Ok(Progress::Answered(used)) if used == input.len() => self.answered(cx, k),
            // No answer, or more than what was asked for.
            _ => self.lost(cx, k, Fault::target(Stage::Exchange, Kind::BadAnswer)),
        }
        input.len()
    }

    pub(super) fn answered<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        self.learn(k, now, true);
        self.succeeded(k);
        let exchange = self.idle(k);
        self.measure(&exchange, now);
        self.conn(k).hear(now, exchange.keep_alive_timeout_s);
        let keeps_alive = match &exchange.wire {
            Wire::Http(wire) => wire.keeps_alive(),
            _ => true,
        };
        self.weigh(&exchange, keeps_alive);
        if self.is_last_call(k) || self.is_surplus() {
            return self.finish(cx, k);
        }
        // In closed loop the next request is due now.
        let due = match self.job.pause {
            Pause::Think(think) => now + Nanos(self.random.between(think.min.0, think.max.0)),
            Pause::Every(Nanos::ZERO) => now,
            Pause::Every(every) => exchange.due + every,
            Pause::Slot | Pause::Never => Nanos::NEVER,
        };
        if !keeps_alive {
            self.closed_as_announced(cx, k, due);
        } else if self.draining {
            cx.let_sleep(k);
        } else if due == Nanos::NEVER {
            self.set_free(cx, k);
        } else if due > now {
            cx.wake_at(k, due);
        } else if self.job.calls().is_some() {
            // The schedule is that of the connections; a call that follows at once cannot be late.
            self.ask(cx, k, due);
        } else {
            // A message that fell due while its forerunner's echo was awaited is late by the target's doing.
            self.request_due(cx, k, due, now);
        }
    }

    /// Nothing is asked any more on this connection; returns what was.
    pub(super) fn idle(&mut self, k: Key) -> Exchange {
        let at = self.conn(k).exchange;
        let exchange = *self.exchanges.at(at);
        self.outstanding -= u32::from(exchange.first);
        self.conn(k).state = State::Idle;
        if exchange.is_between_messages() {
            self.exchanges.end(at);
            self.conn(k).exchange = Conn::NONE.exchange;
        } else {
            let kept = self.exchanges.at(at);
            (kept.awaits, kept.first) = (false, false);
            self.incoming += 1;
        }
        exchange
    }

    fn measure(&mut self, exchange: &Exchange, now: Nanos) {
        let tick = &mut self.tick;
        tick.counts.answered += 1;
        tick.counts.body_bytes_in += exchange.content();
        let took = now.since(exchange.due);
        if exchange.due >= self.hold_from {
            tick.latency.record(took)
        } else {
            tick.ramp_latency.record(took)
        }
        if now >= self.hold_from && !self.draining {
            tick.counts.answered_at_load += 1;
        }
        if matches!(exchange.wire, Wire::Http(_)) {
            tick.count_status(exchange.status);
        }
        if let Some(kind) = self.job.wrong(exchange) {
            tick.faults.count(Fault::target(Stage::Exchange, kind));
        }
    }
}

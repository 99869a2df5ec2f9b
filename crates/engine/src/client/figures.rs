//! What an answer adds to the tick beside its latency.

use net::Key;
use units::Nanos;

use super::Client;
use crate::exchange::Exchange;

impl Client {
    /// Something has come on a connection that awaits an answer: its first byte, unless one has come before.
    pub(super) fn begun(&mut self, k: Key, now: Nanos) {
        // What a WebSocket server says may be its own: its first byte is no answer's.
        if self.job.upgrade().is_some() {
            return;
        }
        let exchange = self.exchange(k);
        if std::mem::replace(&mut exchange.begun, true) {
            return;
        }
        let due = exchange.due;
        let at_load = self.full_load.has(due);
        let times = if at_load { &mut self.tick.first_byte } else { &mut self.tick.ramp_first_byte };
        times.record(now.since(due));
    }

    /// An answer is complete: how large it was, and whether its connection was kept.
    pub(super) fn weigh(&mut self, exchange: &Exchange, keeps_alive: bool) {
        let tick = &mut self.tick;
        tick.counts.kept += u64::from(keeps_alive);
        tick.answer_sizes.record(u64::from(exchange.head_bytes) + exchange.content());
        if self.job.is_http() {
            tick.head_sizes.record(exchange.head_bytes.into());
        }
    }
}

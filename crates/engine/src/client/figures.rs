//! What a response, or the lack of one, adds to the tick beside its latency.

use samples::{Timing, Took};
use units::Nanos;

use super::Client;
use crate::{
    exchange::{Begun, Exchange},
    protocol::Head,
};

impl Client {
    /// How long something took that was due at `due` and was begun at `started`, as it is seen `now`.
    pub(super) fn took(&self, due: Nanos, started: Nanos, now: Nanos) -> Took {
        let stalled = self.lateness.stood_still(started, now);
        Took { time: Nanos(now.since(due).0.saturating_sub(stalled.0)), stalled }
    }

    /// A dial that was due at `due` and made at `dialled` has a connection.
    pub(super) fn dial_took(&mut self, due: Nanos, dialled: Nanos, now: Nanos) {
        let (took, delayed) = (self.took(due, dialled, now), self.lateness.delayed(due, dialled));
        self.tick.connect.record_seen(took);
        self.shortest_dial = self.shortest_dial.min(took.time);
        self.tick.late_dials += u64::from(delayed > Nanos::ZERO);
        self.tick.dial_lag = self.tick.dial_lag.max(delayed);
    }

    /// Input for an outstanding request: its first byte, unless there was one before.
    pub(super) fn begun(&mut self, stream: u32, now: Nanos) {
        // Unsolicited messages of a server have a first byte that belongs to no response.
        if !self.has_first_bytes() {
            return;
        }
        let exchange = self.conns.at(stream);
        if exchange.begun.has() {
            return;
        }
        let Exchange { due, started, at, .. } = *exchange;
        let took = self.took(due, started, now);
        self.conns.at_mut(stream).begun = Begun::after(took.time);
        // A call that stays open begins in the ramp: its first message is one of the load.
        let at_load = self.full_load.has(due) || self.job.is_streaming(at);
        let first_byte = if at_load { Timing::FirstByte } else { Timing::RampFirstByte };
        self.tick[first_byte].record_seen(took);
    }

    /// A response is complete: counts its size, and whether its connection was kept.
    pub(super) fn weigh(&mut self, exchange: &Exchange, head: Option<Head>, keeps_alive: bool) {
        let tick = &mut self.tick;
        tick.counts.kept += u64::from(keeps_alive);
        let head_bytes = head.map(|head| u64::from(head.bytes));
        tick.answer_sizes.record(head_bytes.unwrap_or(0) + exchange.content());
        head_bytes.into_iter().for_each(|bytes| tick.head_sizes.record(bytes));
    }
}

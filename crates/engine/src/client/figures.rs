//! What a response, or the lack of one, adds to the tick beside its latency.

use samples::{Tick, Timing, Took};
use units::Nanos;

use super::Client;
use crate::{exchange::Exchange, full_load::FullLoad, protocol::Head};

/// A request was due and never sent.
pub(super) fn miss(tick: &mut Tick, full_load: &FullLoad, due: Nanos) {
    tick.counts.missed += 1;
    timings(full_load.has(due)).into_iter().for_each(|timing| tick[timing].censor());
}

/// Latency and time to first byte, of requests due at full load or of those of the ramp.
const fn timings(at_load: bool) -> [Timing; 2] {
    match at_load {
        true => [Timing::Latency, Timing::FirstByte],
        false => [Timing::RampLatency, Timing::RampFirstByte],
    }
}

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
        self.tick.late_dials += u64::from(delayed > Nanos::ZERO);
        self.tick.dial_lag = self.tick.dial_lag.max(delayed);
    }

    /// A request under way has ended.
    pub(super) fn settle(&mut self, exchange: &Exchange) {
        if self.owed > 0 && self.full_load.was(exchange.due) {
            self.owed -= 1;
        }
    }

    /// A request under way on this connection has ended without a response.
    pub(super) fn censor(&mut self, exchange: &Exchange, destination: u16) {
        let at_load = self.full_load.has(exchange.due);
        let [latency, _] = timings(at_load);
        let [_, first_byte] = timings(at_load || self.job.is_streaming(exchange.at));
        self.tick[latency].censor();
        if !exchange.begun && !self.job.protocol.server_may_speak() {
            self.tick[first_byte].censor();
        }
        if let Some(step) = self.job.step(exchange.at) {
            let steps = if at_load { &mut self.tick.steps } else { &mut self.tick.ramp_steps };
            steps[step].censor();
        }
        if !at_load {
            return;
        }
        self.at(destination).into_iter().for_each(|own| own.latency.censor());
    }

    /// Input for an outstanding request: its first byte, unless there was one before.
    pub(super) fn begun(&mut self, stream: u32, now: Nanos) {
        // Unsolicited messages of a server have a first byte that belongs to no response.
        if self.job.protocol.server_may_speak() {
            return;
        }
        let exchange = self.conns.at_mut(stream);
        if std::mem::replace(&mut exchange.begun, true) {
            return;
        }
        let Exchange { due, started, at, .. } = *exchange;
        let took = self.took(due, started, now);
        // A call that stays open begins in the ramp: its first message is one of the load.
        let at_load = self.full_load.has(due) || self.job.is_streaming(at);
        let [_, first_byte] = timings(at_load);
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

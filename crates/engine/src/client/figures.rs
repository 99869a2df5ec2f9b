//! Times and sizes that dials and responses add to the tick besides latency, and their extremes.

use samples::{Timing, Took};
use units::Nanos;

use super::Client;
use crate::{
    exchange::{Begun, Exchange},
    protocol::Head,
};

/// The extremes of what the shard has seen of its target so far, by which later times are judged.
#[derive(Debug)]
pub(super) struct Extremes {
    /// The shortest dial: about one round trip.
    pub(super) shortest_dial: Nanos,
    /// The slowest response: about how long a busy server may take to read a request.
    pub(super) slowest_response: Nanos,
    /// The longest gap between two messages of a server.
    pub(super) longest_gap: Nanos,
}

impl Extremes {
    pub(super) fn new() -> Extremes {
        Extremes {
            shortest_dial: Nanos::from_secs(1),
            slowest_response: Nanos::ZERO,
            longest_gap: Nanos::ZERO,
        }
    }
}

impl Client {
    /// Time since `due` as seen at `now`, of something begun at `started`, without the time in which this shard stalled.
    pub(super) fn took(&self, due: Nanos, started: Nanos, now: Nanos) -> Took {
        let stalled = self.lateness.stood_still(started, now);
        Took { time: Nanos(now.since(due).0.saturating_sub(stalled.0)), stalled }
    }

    /// Records a dial that was due at `due`, made at `dialled`, and is connected `now`.
    pub(super) fn dial_took(&mut self, due: Nanos, dialled: Nanos, now: Nanos) {
        let (took, delayed) = (self.took(due, dialled, now), self.lateness.delayed(due, dialled));
        self.tick.connect.record_seen(took);
        self.extremes.shortest_dial = self.extremes.shortest_dial.min(took.time);
        self.tick.late_dials += u64::from(delayed > Nanos::ZERO);
        self.tick.dial_lag = self.tick.dial_lag.max(delayed);
    }

    /// Records the time to first byte of a request, with its first input.
    pub(super) fn begun(&mut self, stream: u32, now: Nanos) {
        // An unsolicited message has a first byte that belongs to no response.
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
        // A streaming call begins in the ramp, but its messages belong to the load.
        let at_load = self.full_load.has(due) || self.job.is_streaming(at);
        let first_byte = if at_load { Timing::FirstByte } else { Timing::RampFirstByte };
        self.tick[first_byte].record_seen(took);
    }

    /// Records the size of a complete response, and whether its connection is kept alive.
    pub(super) fn weigh(&mut self, exchange: &Exchange, head: Option<Head>, keeps_alive: bool) {
        let tick = &mut self.tick;
        tick.counts.kept += u64::from(keeps_alive);
        let head_bytes = head.map(|head| u64::from(head.bytes));
        tick.answer_sizes.record(head_bytes.unwrap_or(0) + exchange.content());
        head_bytes.into_iter().for_each(|bytes| tick.head_sizes.record(bytes));
    }
}

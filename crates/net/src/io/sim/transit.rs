//! The segments in transit in the simulated network, ordered by arrival time.

use std::{borrow::Cow, cmp::Reverse, collections::BinaryHeap};

use units::Nanos;

use crate::io::Gone;

/// Bytes to send.
pub(super) type Payload = Cow<'static, [u8]>;

/// A segment in transit.
pub(super) enum Segment {
    /// A SYN, with the number of earlier transmissions.
    Syn {
        retries: u32,
    },
    /// The result of a dial, on its way back to the dialler.
    DialResult(Result<(), Gone>),
    Data(Payload),
    Fin,
    Rst,
}

/// A segment that arrives at `end`, unless another connection uses that slot by then.
pub(super) struct Arrival {
    pub(super) end: u32,
    pub(super) generation: u32,
    pub(super) what: Segment,
}

/// All segments in transit, ordered by arrival time and then by when they were sent.
#[derive(Default)]
pub(super) struct Transit {
    /// Number of segments sent so far.
    carried: u64,
    order: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    arrivals: Vec<Option<Arrival>>,
    free: Vec<u32>,
}

impl Transit {
    pub(super) fn send(&mut self, at: Nanos, arrival: Arrival) {
        self.carried += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.arrivals.push(None);
            (self.arrivals.len() - 1) as u32
        });
        self.arrivals[slot as usize] = Some(arrival);
        self.order.push(Reverse((at, self.carried, slot)));
    }

    /// When the next segment arrives; [`Nanos::NEVER`] if none is in transit.
    pub(super) fn next_at(&self) -> Nanos {
        self.order.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at)
    }

    /// Takes the next segment that arrives by `now`.
    pub(super) fn take(&mut self, now: Nanos) -> Option<Arrival> {
        let Reverse((_, _, slot)) = *self.order.peek().filter(|Reverse((at, ..))| *at <= now)?;
        self.order.pop();
        self.free.push(slot);
        Some(self.arrivals[slot as usize].take().expect("an arrival is taken once"))
    }

    pub(super) fn carried(&self) -> u64 {
        self.carried
    }
}

//! Figures of samples over a whole run: gauges, which rise and fall, and counters, which only grow.

use serde::{Deserialize, Serialize};

use crate::tick::Phase;

/// A gauge, over all samples of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Gauge<N> {
    /// At the first sample, before the first dial.
    pub first: N,
    /// Least.
    pub min: N,
    /// Most.
    pub max: N,
    /// At the last sample, at the end of the hold.
    pub last: N,
}

impl<N: Copy + PartialOrd> Gauge<N> {
    /// A gauge with its first value.
    pub fn new(first: N) -> Gauge<N> {
        Gauge { first, min: first, max: first, last: first }
    }

    /// Adds a later value.
    pub fn see(&mut self, now: N) {
        self.last = now;
        self.min = if now < self.min { now } else { self.min };
        self.max = if now > self.max { now } else { self.max };
    }

    /// Adds a value that a sample may lack: the first one that is present counts as the first sample.
    pub(crate) fn see_some(gauge: &mut Option<Gauge<N>>, now: Option<N>) {
        match (gauge.as_mut(), now) {
            (Some(gauge), Some(now)) => gauge.see(now),
            (None, Some(now)) => *gauge = Some(Gauge::new(now)),
            (_, None) => {}
        }
    }
}

/// Something that is counted, by the phase in which it grew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Growth {
    /// While connections were dialled for the first time.
    pub ramp: u64,
    /// At full load.
    pub hold: u64,
}

impl Growth {
    /// The sum of both phases.
    pub const fn total(self) -> u64 {
        self.ramp + self.hold
    }

    pub(crate) fn grow(&mut self, phase: Phase, before: u64, now: u64) {
        let grown = now.saturating_sub(before);
        match phase {
            Phase::Ramp => self.ramp += grown,
            Phase::Hold | Phase::Drain => self.hold += grown,
            // Pauses lie between ramp and hold: they belong to neither.
            Phase::Pause => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_keeps_its_ends() {
        let mut gauge = Gauge::new(5);
        for now in [9, 2, 4] {
            gauge.see(now);
        }
        assert_eq!(gauge, Gauge { first: 5, min: 2, max: 9, last: 4 });
        let mut absent = None;
        Gauge::see_some(&mut absent, None);
        assert_eq!(absent, None);
        for now in [Some(3.5), None, Some(1.0)] {
            Gauge::see_some(&mut absent, now);
        }
        assert_eq!(absent, Some(Gauge { first: 3.5, min: 1.0, max: 3.5, last: 1.0 }));
    }
}

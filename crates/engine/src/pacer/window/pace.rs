//! Paced dials: the rate of a shard when SYNs are lost.

use units::Nanos;

use super::fresh::PERIOD;

const SECOND: Nanos = Nanos::from_secs(1);
/// Growth factor per period without losses before the first loss, and growth rate after it.
const DOUBLING: f64 = 1.5;
const FASTER: f64 = 0.03;
/// One reduction goes no lower than this part of the present pace: retransmissions come in between.
const HALF: f64 = 0.5;

/// A rate of dials.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) per_s: f64,
    /// When the next dial is due.
    pub(super) next: Nanos,
    /// Dials begun before this time do not measure the present rate.
    pub(super) since: Nanos,
    /// Whether no SYN has been lost at this pace yet, so that it may grow fast.
    pub(super) doubles: bool,
}

impl Pace {
    pub(super) fn new(per_s: f64, now: Nanos) -> Pace {
        Pace { per_s, next: now, since: now, doubles: true }
    }

    /// Schedules the next dial for this shard's turn; every shard has one turn between two dials of a shard. Otherwise shards
    /// that began together would dial together.
    pub(super) fn take_turn(&mut self, turn: f64, now: Nanos) {
        let (apart, now) = (1.0 / self.per_s, now.secs_f64());
        let next = ((now / apart - turn).ceil() + turn) * apart;
        self.next = Nanos((next * 1e9) as u64);
    }

    /// SYNs were lost in a period that ended at `until`: reduces the pace, unless the period's dials were made before the last
    /// reduction.
    pub(super) fn reduce(&mut self, per_s: f64, until: Nanos, now: Nanos) {
        if until >= self.since + Nanos(PERIOD.0 / 2) {
            let per_s = per_s.max(HALF * self.per_s).min(self.per_s);
            *self = Pace { per_s, since: now, doubles: false, ..*self };
        }
    }

    /// Nothing was lost in a period: raises the pace a little, at most to `most`. After a long time without losses it grows
    /// faster, since competing dialers may have ended.
    pub(super) fn go_faster(&mut self, most: f64, now: Nanos) {
        let by = match now.since(self.since) {
            _ if self.doubles => DOUBLING,
            long if long >= Nanos(3 * SECOND.0) => 1.0 + 8.0 * FASTER,
            some if some >= Nanos(3 * SECOND.0 / 2) => 1.0 + 3.0 * FASTER,
            _ => 1.0 + FASTER,
        };
        self.per_s = (self.per_s * by).min(most);
    }

    /// Nanoseconds in which this many dials are due.
    pub(super) fn apart(&self, dials: f64) -> u64 {
        (dials * 1e9 / self.per_s) as u64
    }
}

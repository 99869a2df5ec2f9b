//! Dials at a rate, where SYNs are lost.

use units::Nanos;

use super::fresh::PERIOD;

const SECOND: Nanos = Nanos::from_secs(1);
/// How much faster each period in which no SYN was lost, until the first is lost and then.
const DOUBLING: f64 = 1.5;
const FASTER: f64 = 0.03;
/// Never less than this of the present pace at once: what was sent again comes in between.
const HALF: f64 = 0.5;

/// Dials at a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) per_s: f64,
    /// When the next dial is due.
    pub(super) next: Nanos,
    /// Dials begun before then do not measure the present rate.
    pub(super) since: Nanos,
    /// No SYN has been lost at this pace yet, so that the rate may double each second.
    pub(super) doubles: bool,
}

impl Pace {
    pub(super) fn new(per_s: f64, now: Nanos) -> Pace {
        Pace { per_s, next: now, since: now, doubles: true }
    }

    /// The next dial is due when it is this shard's turn: each has one in the time between two dials of a shard. Those that
    /// began at the same time would dial at the same times.
    pub(super) fn take_turn(&mut self, turn: f64, now: Nanos) {
        let (apart, now) = (1.0 / self.per_s, now.secs_f64());
        let next = ((now / apart - turn).ceil() + turn) * apart;
        self.next = Nanos((next * 1e9) as u64);
    }

    /// SYNs were lost in a period that ended then. What was begun before the last reduction was too much for it.
    pub(super) fn reduce(&mut self, per_s: f64, until: Nanos, now: Nanos) {
        if until >= self.since + Nanos(PERIOD.0 / 2) {
            let per_s = per_s.max(HALF * self.per_s).min(self.per_s);
            *self = Pace { per_s, since: now, doubles: false, ..*self };
        }
    }

    /// Nothing was lost in a period: a little faster, and no more than `most`. Where nothing has been lost for long, others
    /// have ended that took their part.
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

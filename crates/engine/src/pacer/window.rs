//! How fast to make first dials without a schedule: as fast as the target accepts them.

use units::Nanos;

mod fresh;
mod pace;

use fresh::{Fresh, PERIOD, Through};
use pace::Pace;
use samples::Congestion;

/// Outstanding dials (and first responses) of a shard: initial, minimum, maximum.
const FIRST: u32 = 32;
const LEAST: u32 = 4;
const MOST: u32 = 1024;
/// The initial and the minimum number are those of up to this many shards; more of them share these, but for one of each.
const FULL_SHARES: f64 = 2.0;
/// A dial that takes longer indicates pressure, since a SYN is retransmitted after 1 s; so does a first response that takes
/// this much longer than the fastest.
const SLOW: Nanos = Nanos::from_millis(500);
/// A first response that takes this much longer than the fastest has waited in a queue: the target is busy, and a window
/// that doubles would fill its backlog before a lost SYN shows it (HyStart++, RFC 9406, section 4.2).
const QUEUE: Nanos = Nanos::from_millis(16);
/// While responses queue the window grows this much slower: a larger one would not be accepted faster. Not growing at all
/// would be too little, since the fastest response may have been an exception.
const PATIENCE: u32 = 8;
/// A TLS handshake that takes this much longer than the fastest, and half as long again, has waited for a processor, ours or the
/// target's: it costs each of them 0.1 ms or more. With more of them at once none is done sooner, and each takes 4 KB.
const HANDSHAKES_QUEUE: Nanos = Nanos::from_millis(4);
/// One cut for all signs of the same jam.
const CUT_EVERY: Nanos = Nanos::from_secs(1);

const SECOND: Nanos = Nanos::from_secs(1);
/// Where SYNs are lost: dials a second of all shards together at least.
pub(super) const MIN_PER_S: f64 = 16.0;
/// Of what the target was seen to take, when SYNs were lost.
pub(super) const REDUCED: f64 = 0.9;
/// A period of which more is lost shows that the target takes less, whatever the pace.
const HALF: f64 = 0.5;
/// Share of the pace that must have succeeded before it is raised.
const KEPT: f64 = 0.7;
/// Lost SYNs per second that are ignored: this many, or this share.
pub(super) const FEW_LOST: f64 = 5.0;
pub(super) const SHARE_LOST: f64 = 0.02;
/// Slow dials of a period that are ignored: this many, or this share.
const LOST_SOON: f64 = 2.0;
const SHARE_LOST_SOON: f64 = 0.08;
/// Dials of this many seconds may be outstanding. This and the three above: from a model of firewalls that pass 100 to 500
/// SYNs a second; from 1.1 to 1.3, 2 to 5 and 0.02 to 0.1 little changes, and with a second outstanding 1 % fail.
const OUTSTANDING_S: f64 = 0.25;
/// In addition, those that wait for a SYN retransmission: this many of all shards together, or those of this many seconds.
const MIN_LOST: u32 = 64;
const LOST_S: f64 = 1.0;
/// Dials that may be made up for at once.
const BURST: f64 = 8.0;

/// How many dials and first responses may be outstanding: grows while they are fast, shrinks when they are not. Additive
/// increase and multiplicative decrease after a slow start, as in TCP (RFC 5681, section 3.1).
///
/// Where SYNs are lost, dials are paced as well: a window of one is still too much for a firewall that lets some hundred
/// SYNs a second pass, and each lost one keeps its place for a second or more.
///
/// Each shard has one, and sees only what comes of its own dials. What is constant is therefore of all shards together; and
/// what all have seen limits the rate of each, see [`DialRate`](super::DialRate).
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The shard's share of all first dials, and when its turn is: as a part of the time in which each shard has one.
    share: f64,
    turn: f64,
    /// Dials a second at most.
    most: f64,
    /// What all are to know.
    met: Congestion,
    size: u32,
    /// Below it the window doubles each round, above it grows by one.
    threshold: u32,
    /// Successes since the last growth by one, in [`PATIENCE`]ths.
    credit: u32,
    cut_at: Nanos,
    /// The fastest first response.
    least: Nanos,
    /// The fastest TLS handshakes: full, and resumed. In TLS 1.2 a resumed one takes a round trip less, which is no queue.
    least_handshakes: [Nanos; 2],
    seen: Seen,
    fresh: Fresh,
    /// Dials that wait for their SYN to be sent again.
    lost: u32,
    pace: Option<Pace>,
}

/// The results of dials, in this second and in the previous one.
#[derive(Clone, Copy, Debug)]
struct Seen {
    from: Nanos,
    oks: u32,
    /// Slow dials, and first responses, started after the last reduction of the pace.
    slow: u32,
    /// Some waited in a queue.
    queued: bool,
    /// Successes a second in the one before.
    before: f64,
}

/// A share of a number: at least one, and at most all.
fn share_of(all: u32, share: f64) -> u32 {
    ((f64::from(all) * share).ceil() as u32).clamp(1, all)
}

impl Window {
    /// Of a shard with this share of all first dials; `turn`: the sum of the shares of those before it.
    pub(super) fn new(share: f64, turn: f64) -> Window {
        Window {
            share,
            turn,
            most: f64::INFINITY,
            met: Congestion::default(),
            size: share_of(FIRST, share * FULL_SHARES),
            threshold: MOST,
            credit: 0,
            cut_at: Nanos::ZERO,
            least: Nanos::NEVER,
            least_handshakes: [Nanos::NEVER; 2],
            seen: Seen { from: Nanos::ZERO, oks: 0, slow: 0, queued: false, before: 0.0 },
            fresh: Fresh::new(SLOW),
            lost: 0,
            pace: None,
        }
    }

    /// All shards together dial `per_s` at most from now on.
    pub(super) fn limit(&mut self, per_s: f64, now: Nanos) {
        let most = per_s * self.share;
        let before = std::mem::replace(&mut self.most, most);
        let pace = self.pace.get_or_insert(Pace::new(most, now));
        let is_slower = pace.per_s < before && before.is_finite();
        let per_s = if is_slower { pace.per_s.min(most) } else { most };
        let since = if per_s < pace.per_s { now } else { pace.since };
        *pace = Pace { per_s, since, doubles: false, ..*pace };
        pace.take_turn(self.turn, now);
    }

    /// What its dials have met since the last call.
    pub(super) fn take_met(&mut self) -> Congestion {
        self.met.take()
    }

    /// How many more may be started while `outstanding` are, and when to call again.
    pub(super) fn room(&mut self, outstanding: u32, now: Nanos) -> (u32, Nanos) {
        while let Some(through) = self.fresh.judge(now) {
            self.pass(through, now);
        }
        let Some(pace) = &self.pace else {
            let room = self.size.saturating_sub(outstanding);
            return (room, if room == 0 { self.fresh.next_at(now) } else { Nanos::NEVER });
        };
        // Those whose SYN was lost wait for a second or three, and need a part of the rate themselves.
        let lost = self.lost.min(share_of(MIN_LOST, self.share).max((LOST_S * pace.per_s) as u32));
        let most = (((OUTSTANDING_S * pace.per_s) as u32).max(self.size) + lost).min(MOST);
        match most.saturating_sub(outstanding) {
            0 => (0, self.fresh.next_at(now)),
            _ if now < pace.next => (0, pace.next),
            room => (room.min(1 + (now.since(pace.next).secs_f64() * pace.per_s) as u32), now),
        }
    }

    /// A dial is begun.
    pub(super) fn begin(&mut self, now: Nanos) {
        if self.seen.from == Nanos::ZERO {
            self.seen.from = now;
        }
        self.fresh.begin(now);
        if let Some(pace) = &mut self.pace {
            // What was not dialled in time is not made up for in one burst.
            let earliest = Nanos(now.0.saturating_sub(pace.apart(BURST)));
            pace.next = pace.next.max(earliest) + Nanos(pace.apart(1.0));
        }
    }

    /// The time of a dial that is followed by a request. A fast one means nothing: the listener's backlog accepts all until
    /// it is full.
    pub(super) fn learn_dial(&mut self, took: Nanos, now: Nanos) {
        self.count(now);
        self.fresh.opened(took, now);
        if took >= SLOW {
            self.lost = self.lost.saturating_sub(1);
            self.press(took, now);
        }
    }

    /// The time of a TLS handshake; returns by how much it exceeds the fastest of its kind. While they queue the window shrinks, and no
    /// longer doubles.
    pub(super) fn learn_handshake(&mut self, took: Nanos, resumed: bool) -> Nanos {
        let least = &mut self.least_handshakes[usize::from(resumed)];
        *least = took.min(*least);
        let (waited, queue) = (took.since(*least), HANDSHAKES_QUEUE.max(Nanos(least.0 / 2)));
        if waited >= queue {
            self.size = (self.size - 1).max(share_of(LEAST, self.share * FULL_SHARES));
            self.threshold = self.threshold.min(self.size);
        }
        waited
    }

    /// The time of a first response, or of a dial without a request; `ok` is false if there was none. `is_dial`: it was a
    /// dial alone.
    pub(super) fn learn(&mut self, took: Nanos, ok: bool, is_dial: bool, now: Nanos) {
        self.seen.oks += u32::from(ok);
        self.count(now);
        if is_dial && ok {
            self.fresh.opened(took, now);
        }
        if took >= SLOW && (is_dial || !ok) {
            self.lost = self.lost.saturating_sub(1);
        }
        if !ok || took.since(self.least) >= SLOW {
            return if is_dial && ok || self.pace.is_some() { self.press(took, now) } else { self.cut(now) };
        }
        self.least = self.least.min(took);
        let queued = took.since(self.least) >= QUEUE;
        if queued {
            self.threshold = self.threshold.min(self.size);
            self.hold_pace(now);
        }
        if self.size < self.threshold {
            self.size += 1;
        } else {
            self.credit += if queued { 1 } else { PATIENCE };
            if self.credit >= self.size * PATIENCE {
                self.credit = 0;
                self.size = (self.size + 1).min(MOST);
            }
        }
    }

    fn cut(&mut self, now: Nanos) {
        if now.since(self.cut_at) >= CUT_EVERY {
            self.cut_at = now;
            self.threshold = (self.size / 2).max(share_of(LEAST, self.share * FULL_SHARES));
            self.size = self.threshold;
        }
    }

    /// Successes a second: of the last second, or of this one so far where that is more.
    fn per_s(&self, now: Nanos) -> f64 {
        let over = now.since(self.seen.from).secs_f64();
        let present = if over >= 0.2 { f64::from(self.seen.oks) / over } else { 0.0 };
        present.max(self.seen.before)
    }

    /// A SYN was retransmitted, or a response was late: from now on dials are paced at the rate that the target accepted,
    /// and slower if it happens at this pace.
    fn press(&mut self, took: Nanos, now: Nanos) {
        let per_s = (self.per_s(now) * REDUCED).max(self.min_per_s());
        let seen = &mut self.seen;
        match &mut self.pace {
            None => {
                self.begin_pace(per_s, now);
            }
            Some(pace) if now.since(took) >= pace.since => {
                seen.slow += 1;
                self.met.slow += 1;
                // A path may lose a SYN now and then, however slowly they come.
                if f64::from(seen.slow) > FEW_LOST.max(seen.before * SHARE_LOST) {
                    *pace = Pace { per_s: per_s.min(pace.per_s), since: now, doubles: false, ..*pace };
                    seen.slow = 0;
                }
            }
            Some(_) => {}
        }
    }

    /// Responses wait in the target's queue: a rate above theirs is too high.
    fn hold_pace(&mut self, now: Nanos) {
        self.seen.queued = true;
        let per_s = self.per_s(now).max(self.min_per_s());
        if let Some(pace) = &mut self.pace {
            (pace.per_s, pace.doubles) = (pace.per_s.min(per_s), false);
        }
    }

    /// The result of a period's dials: where enough of them were fast, the pace may increase.
    fn pass(&mut self, Through { until, begun, opened }: Through, now: Nanos) {
        let missing = begun.saturating_sub(opened);
        self.lost += missing;
        let (all, lost, taken) = (f64::from(begun), f64::from(missing), f64::from(opened));
        let is_lossy = |few: f64, share: f64| lost > few.max(all * share);
        self.met.dialled += u64::from(begun);
        self.met.lost += u64::from(missing);
        let least = self.min_per_s();
        let Some(pace) = &mut self.pace else {
            if is_lossy(FEW_LOST * self.share, HALF) {
                self.begin_pace((taken / PERIOD.secs_f64() * REDUCED).max(least), now);
            }
            return;
        };
        // A pace that is not reached is no reason for a higher one.
        let is_reached = all >= pace.per_s * PERIOD.secs_f64() * KEPT && !self.seen.queued;
        self.met.paced += u64::from(begun);
        self.met.reached += u64::from(if is_reached { begun } else { 0 });
        let few = if self.most.is_finite() { 1.0 } else { self.share };
        if is_lossy(LOST_SOON * few, SHARE_LOST_SOON) {
            // For a pace that was not reached the share is what counts.
            pace.reduce((pace.per_s * taken / all * REDUCED).max(least), until, now);
        } else if is_reached {
            pace.go_faster(self.most, now);
        }
    }

    /// SYNs were lost for the first time.
    fn begin_pace(&mut self, per_s: f64, now: Nanos) {
        let mut pace = Pace::new(per_s, now);
        pace.take_turn(self.turn, now);
        self.pace = Some(pace);
        self.cut(now);
    }

    fn min_per_s(&self) -> f64 {
        MIN_PER_S * self.share
    }

    /// Once a second: what was successful.
    fn count(&mut self, now: Nanos) {
        let over = now.since(self.seen.from);
        if over < SECOND {
            return;
        }
        let before = f64::from(self.seen.oks) / over.secs_f64();
        self.seen = Seen { from: now, oks: 0, slow: 0, queued: false, before };
    }
}

#[cfg(test)]
mod tests;

//! How fast to make first dials without a schedule: as fast as the target accepts them.

use units::Nanos;

mod fresh;

use fresh::{Fresh, PERIOD, Through};

/// Outstanding dials (and first responses): initial, minimum, maximum.
const FIRST: u32 = 32;
const LEAST: u32 = 4;
const MOST: u32 = 1024;
/// A dial that takes longer indicates pressure, since a SYN is retransmitted after 1 s; so does a first response that takes
/// this much longer than the fastest.
const SLOW: Nanos = Nanos::from_millis(500);
/// A first response that takes this much longer than the fastest has waited in a queue: the target is busy, and a window
/// that doubles would fill its backlog before a lost SYN shows it (HyStart++, RFC 9406, section 4.2).
const QUEUE: Nanos = Nanos::from_millis(16);
/// While responses queue the window grows this much slower: a larger one would not be accepted faster. Not growing at all
/// would be too little, since the fastest response may have been an exception.
const PATIENCE: u32 = 8;
/// One cut for all signs of the same jam.
const CUT_EVERY: Nanos = Nanos::from_secs(1);

const SECOND: Nanos = Nanos::from_secs(1);
/// Where SYNs are lost: dials a second of a shard at least.
const MIN_PER_S: f64 = 16.0;
/// Of what the target was seen to take, when SYNs were lost; and how much faster each period in which none was, until the
/// first is lost and then.
const REDUCED: f64 = 0.9;
const DOUBLING: f64 = 1.5;
const FASTER: f64 = 0.03;
/// Never less than this of the present pace at once: what was sent again comes in between.
const HALF: f64 = 0.5;
/// Share of the pace that must have succeeded before it is raised.
const KEPT: f64 = 0.7;
/// Lost SYNs per second that are ignored: this many, or this share.
const FEW_LOST: f64 = 5.0;
const SHARE_LOST: f64 = 0.02;
/// Slow dials of a period that are ignored: this many, or this share.
const LOST_SOON: f64 = 2.0;
const SHARE_LOST_SOON: f64 = 0.08;
/// Dials of this many seconds may be outstanding. This and the three above: from a model of firewalls that pass 100 to 500
/// SYNs a second; from 1.1 to 1.3, 2 to 5 and 0.02 to 0.1 little changes, and with a second outstanding 1 % fail.
const OUTSTANDING_S: f64 = 0.25;
/// In addition, those that wait for a SYN retransmission: this many, or those of this many seconds.
const MIN_LOST: u32 = 64;
const LOST_S: f64 = 1.0;
/// Dials that may be made up for at once.
const BURST: f64 = 8.0;

/// How many dials and first responses may be outstanding: grows while they are fast, shrinks when they are not. Additive
/// increase and multiplicative decrease after a slow start, as in TCP (RFC 5681, section 3.1).
///
/// Where SYNs are lost, dials are paced as well: a window of one is still too much for a firewall that lets some hundred
/// SYNs a second pass, and each lost one keeps its place for a second or more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: u32,
    /// Below it the window doubles each round, above it grows by one.
    threshold: u32,
    /// Successes since the last growth by one, in [`PATIENCE`]ths.
    credit: u32,
    cut_at: Nanos,
    /// The fastest first response.
    least: Nanos,
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

/// Dials at a rate.
#[derive(Clone, Copy, Debug)]
struct Pace {
    per_s: f64,
    /// When the next dial is due.
    next: Nanos,
    /// Dials begun before then do not measure the present rate.
    since: Nanos,
    /// No SYN has been lost at this pace yet, so that the rate may double each second.
    doubles: bool,
}

impl Default for Window {
    fn default() -> Self {
        let seen = Seen { from: Nanos::ZERO, oks: 0, slow: 0, queued: false, before: 0.0 };
        let (size, threshold, least, fresh) = (FIRST, MOST, Nanos::NEVER, Fresh::new(SLOW));
        Window { size, threshold, credit: 0, cut_at: Nanos::ZERO, least, seen, fresh, lost: 0, pace: None }
    }
}

impl Window {
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
        let lost = self.lost.min(MIN_LOST.max((LOST_S * pace.per_s) as u32));
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
            self.threshold = (self.size / 2).max(LEAST);
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
        let per_s = (self.per_s(now) * REDUCED).max(MIN_PER_S);
        let seen = &mut self.seen;
        match &mut self.pace {
            None => {
                self.pace = Some(Pace { per_s, next: now, since: now, doubles: true });
                self.cut(now);
            }
            Some(pace) if now.since(took) >= pace.since => {
                seen.slow += 1;
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
        let per_s = self.per_s(now).max(MIN_PER_S);
        if let Some(pace) = &mut self.pace {
            (pace.per_s, pace.doubles) = (pace.per_s.min(per_s), false);
        }
    }

    /// Enough of a period's dials were fast: the pace may increase.
    fn pass(&mut self, through: Through, now: Nanos) {
        let Through { until, begun, opened } = through;
        self.lost += begun.saturating_sub(opened);
        let lost = f64::from(begun.saturating_sub(opened));
        let is_lossy = |few: f64, share: f64| lost > few.max(f64::from(begun) * share);
        match &mut self.pace {
            None if is_lossy(FEW_LOST, HALF) => {
                let per_s = (f64::from(opened) / PERIOD.secs_f64() * REDUCED).max(MIN_PER_S);
                self.pace = Some(Pace { per_s, next: now, since: now, doubles: true });
                self.cut(now);
            }
            None => {}
            // For a pace that was not reached the share is what counts.
            Some(pace) if is_lossy(LOST_SOON, SHARE_LOST_SOON) => {
                pace.reduce(pace.per_s * f64::from(opened) / f64::from(begun) * REDUCED, until, now);
            }
            // A pace that is not reached is no reason for a higher one.
            Some(pace) if f64::from(begun) >= pace.per_s * PERIOD.secs_f64() * KEPT && !self.seen.queued => {
                pace.per_s *= pace.faster(now);
            }
            Some(_) => {}
        }
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

impl Pace {
    /// SYNs were lost in a period that ended then. What was begun before the last reduction was too much for it.
    fn reduce(&mut self, per_s: f64, until: Nanos, now: Nanos) {
        if until >= self.since + Nanos(PERIOD.0 / 2) {
            let per_s = per_s.max(HALF * self.per_s).max(MIN_PER_S).min(self.per_s);
            *self = Pace { per_s, since: now, doubles: false, ..*self };
        }
    }

    /// By how much it may be faster. Where nothing has been lost for long, others have ended that took their part.
    fn faster(&self, now: Nanos) -> f64 {
        match now.since(self.since) {
            _ if self.doubles => DOUBLING,
            long if long >= Nanos(3 * SECOND.0) => 1.0 + 8.0 * FASTER,
            some if some >= Nanos(3 * SECOND.0 / 2) => 1.0 + 3.0 * FASTER,
            _ => 1.0 + FASTER,
        }
    }

    /// Nanoseconds in which this many dials are due.
    fn apart(&self, dials: f64) -> u64 {
        (dials * 1e9 / self.per_s) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (what happens, how often, window afterwards)
    fn check(steps: &[(bool, u64, u32, u32)]) {
        let mut w = Window::default();
        let mut now = Nanos::from_secs(10);
        for &(ok, took_ms, times, size) in steps {
            for _ in 0..times {
                now = now + Nanos::from_millis(1);
                w.learn(Nanos::from_millis(took_ms), ok, false, now);
            }
            assert_eq!(w.size, size, "after {times} of {took_ms} ms in {steps:?}");
        }
    }

    #[test]
    fn the_window_follows_the_target() {
        check(&[(true, 1, 32, 64), (true, 1, 10_000, 1024)]);
        check(&[(true, 1, 10_000, 1024), (true, 1000, 500, 512), (true, 1, 512, 513)]);
        check(&[(false, 0, 1, 16), (false, 0, 100, 16)]);
        check(&[(false, 0, 5000, 4)]);
        // A queue: no more doubling, and growth by one in eight rounds.
        check(&[(true, 1, 32, 64), (true, 18, 8 * 64 - 1, 64), (true, 18, 1, 65), (true, 1, 65, 66)]);
        // A target that always takes two seconds to respond is not under pressure; one that takes three is.
        check(&[(true, 2000, 32, 64), (true, 2400, 100, 64), (true, 2500, 1, 32)]);
    }

    #[test]
    fn only_a_slow_dial_shrinks_the_window() {
        let mut w = Window::default();
        for (took_ms, size) in [(0, FIRST), (499, FIRST), (1000, FIRST / 2), (3000, FIRST / 2)] {
            w.learn_dial(Nanos::from_millis(took_ms), Nanos::from_secs(10));
            assert_eq!(w.size, size, "after {took_ms} ms");
        }
    }

    #[test]
    fn room_is_what_is_not_outstanding() {
        let mut w = Window::default();
        let mut room = |outstanding| w.room(outstanding, Nanos::ZERO).0;
        assert_eq!((room(0), room(31), room(32), room(99)), (32, 1, 0, 0));
    }

    /// When dials succeed at a firewall that lets `per_s` SYNs a second pass, and `burst` at once; what it drops is sent
    /// again after 1, 3 and 7 seconds.
    fn dials_at_a_firewall(per_s: f64, burst: f64, n: u32) -> (Vec<Nanos>, u32) {
        const STEP: Nanos = Nanos(100_000);
        const TRIES: [u64; 4] = [0, 1_000, 3_000, 7_000];
        let mut w = Window::default();
        let (mut now, mut tokens) = (Nanos::from_secs(1), burst);
        // When each was dialled, and its tries so far.
        let mut under_way: Vec<(Nanos, usize)> = Vec::new();
        let (mut opened, mut failed, mut to_dial) = (Vec::new(), 0, n);
        while to_dial > 0 || !under_way.is_empty() {
            now = now + STEP;
            tokens = (tokens + per_s * STEP.secs_f64()).min(burst);
            let (room, _) = w.room(under_way.len() as u32, now);
            for _ in 0..room.min(to_dial) {
                w.begin(now);
                under_way.push((now, 0));
                to_dial -= 1;
            }
            let mut left = Vec::new();
            for (at, tries) in std::mem::take(&mut under_way) {
                if now < at + Nanos::from_millis(TRIES.get(tries).copied().unwrap_or(10_000)) {
                    left.push((at, tries));
                } else if tries == TRIES.len() {
                    failed += 1;
                    w.learn(now.since(at), false, true, now);
                } else if tokens >= 1.0 {
                    tokens -= 1.0;
                    opened.push(now);
                    w.learn(now.since(at), true, true, now);
                } else {
                    left.push((at, tries + 1));
                }
            }
            under_way = left;
        }
        (opened, failed)
    }

    #[test]
    fn a_firewall_that_drops_syns_is_met_at_its_rate() {
        // nft's own default lets 5 pass at once; what is dropped comes back together.
        for (per_s, burst, n, share) in [
            (500.0, 100.0, 10_000, 0.85),
            (500.0, 5.0, 10_000, 0.8),
            (500.0, 5.0, 2_000, 0.6),
            (100.0, 10.0, 2_000, 0.85),
        ] {
            let (opened, failed) = dials_at_a_firewall(per_s, burst, n);
            assert!(
                opened.len() as u32 * 2 > n && failed * 50 <= n,
                "{per_s}/s, {burst} at once: {failed} of {n} failed"
            );
            // The last ones are those whose SYN was dropped again and again.
            let nearly_all = opened.len() * 95 / 100;
            let took = opened[nearly_all].since(Nanos::from_secs(1)).secs_f64();
            let rate = nearly_all as f64 / took;
            assert!(rate >= share * per_s, "{per_s}/s, {burst} at once: {rate:.0}/s, {took} s");
        }
    }
}

//! The adaptive ramp: how fast to make first dials without a schedule, which is as fast as the target accepts them.

use samples::Congestion;
use units::Nanos;

mod fresh;
mod pace;

use fresh::{Fresh, PERIOD, Through};
use pace::Pace;

/// Size of the window (first dials and first responses awaited at once by a shard): initial, minimum, maximum.
const FIRST: u32 = 32;
const LEAST: u32 = 2;
const MOST: u32 = 1024;
/// Maximum number of undecided dials: this many, plus what [`ENOUGH_PER_S`] dials a second have outstanding within the time of
/// the fastest dial. More would open no connection sooner, and all of them are lost when the target's backlog is full. It starts
/// at the minimum, for a backlog of 5.
const ENOUGH: f64 = 16.0;
const ENOUGH_PER_S: f64 = 50_000.0;
/// Up to this many shards have the full numbers above; more shards share that total, with at least one of each.
const FULL_SHARES: f64 = 2.0;
/// Rounds in which the windows of all shards together grow by one, once SYNs were lost: a window that is too large loses more,
/// and no dial is accepted sooner.
const PATIENCE: f64 = 8.0;
/// A dial is made only if its first response is expected within this fraction (1/4) of the timeout, at the rate of first
/// responses: a longer queue would only fail.
const OF_TIMEOUT: u64 = 4;
/// A dial that takes longer lost its SYN, which is retransmitted after 1 s.
const SLOW: Nanos = Nanos::from_millis(500);
/// A TLS handshake that takes longer than the fastest by this, and by half of the fastest, waited for a processor (throng's or
/// the target's): it costs each of them 0.1 ms or more. More concurrent handshakes complete no sooner, and each takes 4 KB.
const HANDSHAKES_QUEUE: Nanos = Nanos::from_millis(4);

const SECOND: Nanos = Nanos::from_secs(1);
/// Minimum dial rate of all shards together when SYNs are lost, per second.
pub(super) const MIN_PER_S: f64 = 16.0;
/// Factor applied to the rate that the target was seen to accept, when SYNs were lost.
pub(super) const REDUCED: f64 = 0.9;
/// A period in which more than this share fails shows that the target takes fewer, whatever the window.
const HALF: f64 = 0.5;
/// Share of the pace that must have been dialled before it is raised.
const KEPT: f64 = 0.7;
/// Lost SYNs that are ignored: this many per second, or this share.
pub(super) const FEW_LOST: f64 = 5.0;
pub(super) const SHARE_LOST: f64 = 0.02;
/// Dials of a period that failed or lost their SYN and are ignored: this many, or this share.
const LOST_SOON: f64 = 2.0;
const SHARE_LOST_SOON: f64 = 0.08;
/// Outstanding dials, in seconds of the pace. This and the three above come from a model of firewalls that pass 100 to 500 SYNs a
/// second: values from 1.1 to 1.3, 2 to 5 and 0.02 to 0.1 change little; with a second outstanding, 1 % fail.
const OUTSTANDING_S: f64 = 0.25;
/// Additional dials that wait for a SYN retransmission: this many of all shards together, or those of this many seconds.
const MIN_LOST: u32 = 64;
const LOST_S: f64 = 1.0;
/// Dials that may be made up for at once, by a shard that was late or by all shards together that waited for outcomes.
const BURST: f64 = 8.0;

/// A congestion window: how many first dials and first responses may be awaited at once. It grows while they come, however
/// slowly, up to what the target responds to in good time, and is cut when SYNs are lost: slow start, then additive increase and
/// multiplicative decrease, as in TCP (RFC 5681, section 3.1). A slow response is no reason to dial slower, but a dial that is
/// not accepted is: it shows as a lost SYN, because the listener's backlog is full or a firewall drops it.
///
/// When SYNs are lost, dials are also paced: even a window of one is too much for a firewall that passes some hundred SYNs a
/// second, and each lost SYN keeps its place for a second or more.
///
/// Each shard has a window and sees only its own dials. The constants are therefore for all shards together, and what all shards
/// see limits each one's rate ([`DialRate`](super::DialRate)).
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The shard's share of all first dials, and its turn as a fraction of the time in which every shard has one turn.
    share: f64,
    turn: f64,
    /// Maximum dials per second.
    most: f64,
    /// Congestion met, to be reported to all shards.
    met: Congestion,
    size: u32,
    /// Below it the window doubles each round, above it grows by one per [`PATIENCE`] rounds.
    threshold: u32,
    /// Successes since the last growth by one.
    credit: u32,
    /// Most first responses awaited at once in the last period.
    peak: u32,
    /// The time of the fastest first response.
    fastest: Nanos,
    /// The fastest TLS handshakes: full and resumed. In TLS 1.2 a resumed one takes a round trip less; the difference is not
    /// waiting.
    least_handshakes: [Nanos; 2],
    responses: Responses,
    fresh: Fresh,
    /// Undecided dials, and how many of them have lost their SYN.
    dials: u32,
    lost: u32,
    /// Dials that succeeded soon.
    opened: u32,
    pace: Option<Pace>,
    /// The target's limit was met: SYNs were lost, or first responses come too late.
    is_bent: bool,
}

/// Number of first responses in this second, and their rate in the previous one.
#[derive(Clone, Copy, Debug)]
struct Responses {
    from: Nanos,
    now: u32,
    before: f64,
}

/// A share of a number: at least one, at most all.
fn share_of(all: u32, share: f64) -> u32 {
    ((f64::from(all) * share).ceil() as u32).clamp(1, all)
}

impl Window {
    /// The window of a shard with this share of all first dials; `turn`: the sum of the shares of the shards before it.
    pub(super) fn new(share: f64, turn: f64) -> Window {
        Window {
            share,
            turn,
            most: f64::INFINITY,
            met: Congestion::default(),
            size: share_of(FIRST, share * FULL_SHARES),
            threshold: MOST,
            credit: 0,
            peak: 0,
            fastest: Nanos::NEVER,
            least_handshakes: [Nanos::NEVER; 2],
            responses: Responses { from: Nanos::ZERO, now: 0, before: 0.0 },
            fresh: Fresh::new(SLOW),
            dials: 0,
            lost: 0,
            opened: 0,
            pace: None,
            is_bent: false,
        }
    }

    /// Limits all shards together to `per_s` dials a second from now on.
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

    /// The congestion met since the last call.
    pub(super) fn take_met(&mut self) -> Congestion {
        self.met.take()
    }

    /// The dial rate that the target accepts, per second; `None` before any SYN is lost.
    pub(super) fn accepted(&self, now: Nanos) -> Option<f64> {
        self.pace.map(|pace| pace.per_s.min(self.per_s(now)))
    }

    /// How many more dials may be made while `awaited` dials and first responses are outstanding, each limited by `timeout`, and
    /// when to call again. `least`: this many are allowed however late responses are, unless SYNs are lost.
    pub(super) fn room(&mut self, awaited: u32, least: u32, timeout: Nanos, now: Nanos) -> (u32, Nanos) {
        let responses = awaited.saturating_sub(self.dials);
        self.peak = self.peak.max(responses);
        while let Some(through) = self.fresh.judge(now) {
            self.pass(through, now);
        }
        let room = self.in_good_time(timeout, now).min(self.size);
        // Their rate is known after a second.
        let are_late = self.responses.before > 0.0 && awaited >= room;
        self.is_bent |= self.pace.is_some() || are_late && (room < self.size || least > 0);
        let Some(pace) = &self.pace else {
            let room = room.saturating_sub(awaited).max(least).min(self.enough().saturating_sub(self.dials));
            return (room, if room == 0 { self.fresh.next_at(now) } else { Nanos::NEVER });
        };
        // Dials with a lost SYN wait for one to three seconds; their retransmissions need a part of the rate.
        let lost = self.lost.min(share_of(MIN_LOST, self.share).max((LOST_S * pace.per_s) as u32));
        let dials = ((OUTSTANDING_S * pace.per_s) as u32).max(self.least()) + lost;
        match room.saturating_sub(responses).min(dials.min(MOST).saturating_sub(self.dials)) {
            0 => (0, self.fresh.next_at(now)),
            _ if now < pace.next => (0, pace.next),
            room => (room.min(1 + (now.since(pace.next).secs_f64() * pace.per_s) as u32), now),
        }
    }

    /// How many first responses may be awaited so that each comes in good time, by Little's law: rate × time. The time of the
    /// fastest is not queueing. Before the rate is known, the window alone limits.
    fn in_good_time(&self, timeout: Nanos, now: Nanos) -> u32 {
        if self.fastest == Nanos::NEVER {
            return MOST;
        }
        let time = self.fastest + Nanos(timeout.0 / OF_TIMEOUT);
        ((self.per_s(now) * time.secs_f64()) as u32).max(self.least())
    }

    fn least(&self) -> u32 {
        share_of(LEAST, self.share * FULL_SHARES)
    }

    /// Maximum of undecided dials: more would open no connection sooner. Doubles each round at first.
    fn enough(&self) -> u32 {
        let least = self.fresh.least();
        let least = if least == Nanos::NEVER { Nanos::ZERO } else { least };
        let dials = (ENOUGH + ENOUGH_PER_S * least.secs_f64()) as u32;
        share_of(dials.min(MOST).min(LEAST.saturating_add(self.opened)), self.share * FULL_SHARES)
    }

    /// Counts a dial as begun.
    pub(super) fn begin(&mut self, now: Nanos) {
        if self.responses.from == Nanos::ZERO {
            self.responses.from = now;
        }
        self.dials += 1;
        *if self.is_bent { &mut self.met.bent } else { &mut self.met.straight } += 1;
        self.fresh.begin(now);
        if let Some(pace) = &mut self.pace {
            // Dials that were not made in time are not made up for in one burst.
            let earliest = Nanos(now.0.saturating_sub(pace.apart(BURST)));
            pace.next = pace.next.max(earliest) + Nanos(pace.apart(1.0));
        }
    }

    /// A dial succeeded or failed after this time. A fast one followed by a request means little: the listener's backlog accepts
    /// dials until it is full.
    pub(super) fn learn_dial(&mut self, took: Nanos, ok: bool, now: Nanos) {
        let was_lost = self.fresh.end(took, ok, now);
        self.opened = self.opened.saturating_add(u32::from(ok && took < SLOW));
        self.dials = self.dials.saturating_sub(1);
        self.lost = self.lost.saturating_sub(was_lost.into());
    }

    /// The time of a TLS handshake; returns by how much it exceeds the fastest of its kind. While handshakes queue, the window
    /// shrinks and no longer doubles.
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

    /// The time of a first response, or of a dial or handshake without a request; `ok` is false if it failed.
    pub(super) fn learn(&mut self, took: Nanos, ok: bool, now: Nanos) {
        self.responses.now += u32::from(ok);
        let over = now.since(self.responses.from);
        if over >= SECOND {
            let before = f64::from(self.responses.now) / over.secs_f64();
            self.responses = Responses { from: now, now: 0, before };
        }
        if !ok {
            return;
        }
        self.fastest = self.fastest.min(took);
        if self.size < MOST {
            self.credit += 1;
            let rounds = PATIENCE / self.share;
            if self.size < self.threshold || f64::from(self.credit) >= rounds * f64::from(self.size) {
                (self.size, self.credit) = (self.size + 1, 0);
            }
        }
    }

    /// First responses per second, over this second so far and the previous one.
    pub(super) fn per_s(&self, now: Nanos) -> f64 {
        let Responses { from, now: present, before } = self.responses;
        let over = now.since(from).secs_f64();
        let before_s = if before > 0.0 { 1.0 } else { 0.0 };
        (f64::from(present) + before) / (over + before_s).max(0.2)
    }

    /// Learns from the outcome of a period's dials: begins pacing, slows down, or speeds up.
    fn pass(&mut self, Through { until, begun, opened, failed }: Through, now: Nanos) {
        let missing = begun.saturating_sub(opened);
        self.lost += missing.saturating_sub(failed);
        let (all, lost, taken) = (f64::from(begun), f64::from(missing), f64::from(opened));
        self.met.dialled += u64::from(begun);
        self.met.lost += u64::from(missing);
        let (least, fewest) = (MIN_PER_S * self.share, self.least());
        let peak = std::mem::take(&mut self.peak);
        let Some(pace) = &mut self.pace else {
            if 2 * self.lost >= self.enough().min(self.size) || lost > (FEW_LOST * self.share).max(all * HALF)
            {
                let mut pace = Pace::new((self.per_s(now) * REDUCED).max(least), now);
                pace.take_turn(self.turn, now);
                self.pace = Some(pace);
                // The target had no room for the most recent dials that await a response.
                self.size = (peak / 2).max(fewest);
                self.threshold = self.size;
            }
            return;
        };
        // Only a pace that was reached may be raised.
        let is_reached = all >= pace.per_s * PERIOD.secs_f64() * KEPT;
        self.met.paced += u64::from(begun);
        self.met.reached += u64::from(if is_reached { begun } else { 0 });
        let few = if self.most.is_finite() { 1.0 } else { self.share };
        if lost > (LOST_SOON * few).max(all * SHARE_LOST_SOON) {
            // If the pace was not reached, the share of lost dials counts.
            pace.reduce((pace.per_s * taken / all * REDUCED).max(least), until, now);
        } else if is_reached {
            pace.go_faster(self.most, now);
        }
        if lost > LOST_SOON * self.share && peak >= self.size {
            // The window was full, and so was the backlog.
            self.size = (self.size - self.size.div_ceil(8)).max(fewest);
            self.threshold = self.threshold.min(self.size);
        }
        // All shards judge a period at the same time; those that waited for that would dial together, so each waits for its turn.
        if now > pace.next + Nanos(pace.apart(BURST * self.share)) {
            pace.take_turn(self.turn, now);
        }
    }
}

#[cfg(test)]
mod tests;

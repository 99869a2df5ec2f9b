//! What lost connections have in common: how long they had been silent, how old they were, and how many responses they had received. A
//! value that all of them share, and that no surviving connection exceeds, is taken as the reason for the closes.

use samples::{Fault, Kind, Stage};
use units::Nanos;

use record::{
    Record,
    tolerances::{CONFIGURED, FEW, equal_within},
};

/// Resolution of silences: a tick, and the bucket width in which they are counted.
const KNOWN_TO: Nanos = Nanos::from_millis(250);
/// With fewer losses, silences may lie within a factor of two by chance.
const MANY: u64 = 10;
/// Maximum silence of a close that followed immediately from the last response: two buckets of the silence histogram. Connections closed
/// later may be idle ones that the server closes all together.
const AT_ONCE: Nanos = Nanos::from_millis(110);
/// A busy server closes when it gets to it: within a fraction of its response time, and at most this. Limits on age or silence are
/// independent of responses, and close connections at any time between two responses.
const SOON: Nanos = Nanos::from_millis(450);
/// That fraction is 1 / `OF_ONE` if each connection had one response, as nothing else happened to it, else 1 / `OF_SEVERAL`.
const OF_ONE: u64 = 2;
const OF_SEVERAL: u64 = 4;

/// What lost connections have in common.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pattern {
    /// All had been silent for this long, and no other connection for longer.
    pub(crate) silence: Option<Nanos>,
    /// All had this age, and had been opened at different times.
    pub(crate) age: Option<Nanos>,
    /// All had the same age, but were opened or lost at one moment.
    pub(crate) is_one_moment: bool,
    /// From some number on, all new connections were lost, and no others.
    pub(crate) is_surplus: bool,
    /// Whether connections lost while others opened had been open for a while: then they made room and were not turned away. `None` if
    /// unknown, because the ramp was too fast.
    pub(crate) were_old: Option<bool>,
    /// All had received this many responses, and were closed immediately after the last.
    pub(crate) responses: Option<u64>,
    /// They had received at least one response on average, so they were not new.
    pub(crate) had_responses: bool,
    /// Median silence of connections that were closed as others opened, each after a response.
    pub(crate) evicted: Option<Nanos>,
    /// The longest silence among surviving connections.
    pub(crate) others: Nanos,
    /// Connections opened before the first loss or failed dial, and the part of them from before counting started.
    pub(crate) opened_by_then: u64,
    pub(crate) before: u64,
    /// When the last dial was refused, if dials were refused from the beginning and none was after the first success.
    pub(crate) refused_at_first: Option<Nanos>,
    /// When refusals ended, if all dials until then were refused because nothing was listening yet.
    pub(crate) refused_unheard: Option<Nanos>,
}

impl Pattern {
    /// `by_turns`: throng sends on one connection after the other.
    pub(crate) fn of(r: &Record, by_turns: bool) -> Pattern {
        let silence = &r.totals.silence;
        let quantile = |q: f64| silence.quantile(q);
        let (half, most) = (quantile(0.5), quantile(0.95));
        let spread = most.since(quantile(0.05));
        let allowed = equal_within(half, KNOWN_TO).0;
        let others = r.totals.longest_silence;
        let is_constant = silence.count() >= FEW && spread.0 <= allowed;
        // A server that checks for idle connections periodically closes them after between one and two timeouts.
        let least = quantile(0.05);
        let is_by_looks = silence.count() >= MANY
            && least >= CONFIGURED
            && most.0 <= 2 * least.0
            && !r.losses.were_at_once();
        let responses = &r.totals.responses_at_close;
        let is_known = responses.count() >= FEW;
        let is_same = is_known && responses.min() == responses.max() && most < soon(r, responses.max());
        let is_all = is_same && none_has_more(r, responses.min()) && !has_another_reason(r, by_turns);
        let held = r.held();
        let turned_away = r.losses.lost + turned_away_in_handshakes(r);
        let as_others_opened = turned_away >= FEW && r.losses.lost_late * 10 <= turned_away;
        let is_outlasted = others.0 > most.0 + KNOWN_TO.0;
        // Older connections would have been silent for about as long as it took to open the survivors.
        let opening = r.totals.counts.opened + r.totals.counts.redialled;
        let filled = Nanos((r.ramp.0 as f64 * held as f64 / opening.max(1) as f64) as u64);
        let were_old = match silence.count() {
            // All were turned away in their handshakes.
            0 => Some(false),
            _ if half > AT_ONCE => Some(true),
            _ if filled.0 > 4 * AT_ONCE.0 => Some(false),
            // Connections of earlier steps, silent since then, would have been closed first.
            _ if r.losses.before >= r.losses.lost.max(1) => Some(false),
            // Old connections would have had a response, as the survivors had.
            _ if is_known && responses.max() == 0 && is_served(r, held) => Some(false),
            _ => None,
        };
        let age = r.losses.constant_age();
        let is_one_moment = age.is_some() && r.losses.is_one_moment();
        Pattern {
            were_old,
            // If survivors are silent for longer, silence is not the reason.
            silence: match (is_constant, is_by_looks) {
                (true, _) if others.0 <= half.0 + allowed => Some(half),
                (false, true) if others.0 <= most.0 + KNOWN_TO.0 => Some(least),
                _ => None,
            },
            age: age.filter(|_| !is_one_moment),
            is_one_moment,
            is_surplus: as_others_opened
                && (1..=r.losses.opened_by_then).contains(&held)
                && held < r.populations.iter().map(|own| own.wanted).sum(),
            responses: Some(responses.min()).filter(|n| *n > 0 && is_all),
            had_responses: is_known && responses.mean() >= 1.0,
            evicted: (as_others_opened && is_outlasted && is_known && responses.min() > 0).then_some(half),
            others,
            opened_by_then: r.losses.opened_by_then,
            before: r.losses.before,
            refused_at_first: refused_at_first(r),
            refused_unheard: refused_unheard(r),
        }
    }
}

/// Whether the number of responses was equal for another reason: all connections ended at one moment, as in a restart, and throng sends by
/// turns; or all ended in the same step of several, which each connection reaches after the same number of responses.
fn has_another_reason(r: &Record, by_turns: bool) -> bool {
    let ends = |(fault, _): (Fault, u64)| matches!(fault.kind, Kind::Closed | Kind::Reset);
    let steps = r.totals.step_faults.iter().filter(|faults| faults.iter().any(ends));
    by_turns && r.losses.were_at_once() || r.totals.step_faults.len() > 1 && steps.count() == 1
}

/// Connections that were turned away in their handshakes; they count as failed, not as lost.
fn turned_away_in_handshakes(r: &Record) -> u64 {
    let were = |fault: &Fault| match fault.stage {
        Stage::Handshake => true,
        Stage::Tls => matches!(fault.kind, Kind::Closed | Kind::Reset),
        Stage::Dial | Stage::Exchange | Stage::Hold | Stage::Close => false,
    };
    r.totals.faults.iter().filter(|(fault, _)| were(fault)).map(|(_, n)| n).sum()
}

/// Whether all survivors have had a response, in this step or earlier ones.
fn is_served(r: &Record, held: u64) -> bool {
    held > 0 && r.totals.served + r.losses.before >= held
}

fn refused_at_first(r: &Record) -> Option<Nanos> {
    let is_complete = r.populations.iter().all(|measured| measured.held >= measured.wanted);
    r.losses.last_refused_at_first(is_complete).map(|at| at.since(r.started))
}

/// When the last dial was refused, or later, when a listener was first seen; `None` if a listener was seen before the first refusal.
fn refused_unheard(r: &Record) -> Option<Nanos> {
    let (from, until) = r.losses.refused?;
    let listened_from = r.observed.accepts.listened_from?;
    (listened_from > from).then(|| until.max(listened_from).since(r.started))
}

/// The maximum time between a connection's last response and a close that follows from it.
fn soon(r: &Record, responses: u64) -> Nanos {
    let response = r.totals.latency.quantile(0.5).max(r.totals.ramp_latency.quantile(0.5));
    let part = if responses == 1 { OF_ONE } else { OF_SEVERAL };
    AT_ONCE.max(SOON.min(Nanos(response.0 / part)))
}

/// Whether every survivor may have had fewer than `n` responses: one with `n` or more that stays open shows that the number is not the
/// reason.
fn none_has_more(r: &Record, n: u64) -> bool {
    let counts = &r.totals.counts;
    let held = r.held();
    let ended = counts.dropped + counts.closed + counts.finished;
    // Tolerance for responses that came after `held` was counted.
    counts.answered <= ended * n + held * n.saturating_sub(1) + held / 20 + FEW
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::fixture::record;

    /// The pattern of lost connections with these (silences in ms, responses); the survivors' longest silence is `others_ms`, and 500 are
    /// held.
    fn pattern(lost: &[(u64, u64)], others_ms: u64, late: u64) -> Pattern {
        let mut r = record();
        for (silence_ms, responses) in lost {
            r.totals.silence.record(Nanos::from_millis(*silence_ms));
            r.totals.responses_at_close.record(*responses);
        }
        r.totals.longest_silence = Nanos::from_millis(others_ms);
        (r.losses.lost, r.losses.lost_late, r.losses.opened_by_then) = (lost.len() as u64, late, 480);
        r.populations[0].held = 500;
        Pattern::of(&r, false)
    }

    fn spread(from_ms: u64, to_ms: u64, responses: u64) -> Vec<(u64, u64)> {
        (0..50).map(|n| (from_ms + n * (to_ms - from_ms) / 49, responses)).collect()
    }

    #[test]
    fn an_idle_timeout_requires_that_no_connection_was_idle_longer() {
        let check = |lost: &[(u64, u64)], others_ms: u64, expected: bool| {
            assert_eq!(pattern(lost, others_ms, 50).silence.is_some(), expected, "{others_ms}");
        };
        check(&spread(2_000, 2_100, 1), 0, true);
        check(&spread(2_000, 2_100, 1), 2_200, true);
        check(&spread(2_000, 2_100, 1), 9_000, false);
        // Idle connections are checked twice per second.
        check(&spread(3_000, 3_500, 1), 0, true);
        // Idle connections are checked once per second.
        check(&spread(1_000, 1_600, 1), 0, true);
        check(&spread(1_000, 1_600, 1), 2_000, false);
        let few: Vec<(u64, u64)> = spread(1_000, 1_600, 1).into_iter().step_by(6).collect();
        check(&few, 0, false);
        check(&spread(800, 1_500, 1), 0, false);
        check(&spread(1_000, 2_200, 1), 0, false);
        check(&spread(2_000, 2_100, 1)[..2], 0, false);
    }

    #[test]
    fn eviction_closes_silent_connections_but_not_the_most_silent() {
        let seen = pattern(&spread(1_500, 1_700, 1), 9_000, 0);
        assert!(seen.evicted.is_some_and(|silence| (1_500..1_700).contains(&silence.millis())), "{seen:?}");
        // Long after the last connection was opened, or before any response: another reason.
        assert_eq!(pattern(&spread(1_500, 1_700, 1), 9_000, 50).evicted, None);
        assert_eq!(pattern(&spread(1_500, 1_700, 0), 9_000, 0).evicted, None);
        assert_eq!(pattern(&spread(1_500, 1_700, 1), 0, 0).evicted, None);
    }

    #[test]
    fn what_is_closed_as_others_open_is_new_or_old() {
        let check = |lost: &[(u64, u64)], ramp_s: u64, expected: Option<bool>| {
            let mut r = record();
            lost.iter().for_each(|(ms, _)| r.totals.silence.record(Nanos::from_millis(*ms)));
            // Half of the opened connections are left: they were opened in half of the ramp.
            (r.ramp, r.totals.counts.opened, r.populations[0].held) = (Nanos::from_secs(ramp_s), 1_000, 500);
            assert_eq!(Pattern::of(&r, false).were_old, expected, "{ramp_s} s");
        };
        check(&spread(1_500, 1_700, 0), 3, Some(true));
        check(&spread(0, 50, 0), 3, Some(false));
        // Connections present when the limit was reached had been opened a moment before, too.
        check(&spread(0, 50, 0), 0, None);
        check(&[], 3, Some(false));
        // No lost connection has had a response, and the survivors have.
        let served = |responses: u64, served: u64| {
            let mut r = record();
            for (silence_ms, _) in spread(0, 50, 0) {
                r.totals.silence.record(Nanos::from_millis(silence_ms));
                r.totals.responses_at_close.record(responses);
            }
            (r.totals.served, r.losses.before, r.losses.lost) = (served, 10, 50);
            r.populations[0].held = 500;
            Pattern::of(&r, false).were_old
        };
        assert_eq!([served(0, 490), served(0, 480), served(1, 490)], [Some(false), None, None]);
        // A step of a search: other connections existed before, and stay.
        let of_search = |before: u64| {
            let mut r = record();
            spread(0, 50, 0).iter().for_each(|(ms, _)| r.totals.silence.record(Nanos::from_millis(*ms)));
            (r.losses.before, r.losses.lost) = (before, 50);
            Pattern::of(&r, false).were_old
        };
        assert_eq!([of_search(500), of_search(10)], [Some(false), None]);
    }

    #[test]
    fn what_was_turned_away_in_its_handshake_is_surplus() {
        let check = |stage, kind, expected: bool| {
            let mut r = record();
            (r.losses.opened_by_then, r.populations[0].held, r.populations[0].wanted) = (500, 500, 800);
            (0..300).for_each(|_| r.totals.faults.count(Fault::target(stage, kind)));
            assert_eq!(Pattern::of(&r, false).is_surplus, expected, "{stage:?} {kind:?}");
        };
        check(Stage::Handshake, Kind::WrongStatus, true);
        check(Stage::Tls, Kind::Closed, true);
        check(Stage::Tls, Kind::Reset, true);
        check(Stage::Tls, Kind::UnknownIssuer, false);
        check(Stage::Dial, Kind::Reset, false);
        // All wanted connections are open: the lost ones were redialled.
        let mut r = record();
        (r.losses.opened_by_then, r.populations[0].held, r.populations[0].wanted) = (500, 500, 500);
        (0..300).for_each(|_| r.totals.faults.count(Fault::target(Stage::Tls, Kind::Closed)));
        assert!(!Pattern::of(&r, false).is_surplus);
    }

    #[test]
    fn a_number_of_responses_is_the_reason_where_it_is_the_same_for_all() {
        assert_eq!(pattern(&spread(0, 100, 10), 0, 0).responses, Some(10));
        assert_eq!(pattern(&[spread(0, 100, 10), vec![(0, 9)]].concat(), 0, 0).responses, None);
        assert_eq!(pattern(&spread(0, 100, 0), 0, 0).responses, None, "turned away");
        // Survivors have had as many responses, and stay.
        let mut r = record();
        (0..28).for_each(|_| r.totals.responses_at_close.record(1));
        (0..28).for_each(|ms| r.totals.silence.record(Nanos::from_millis(ms)));
        (r.totals.counts.dropped, r.totals.counts.answered, r.populations[0].held) = (28, 540, 512);
        assert_eq!(Pattern::of(&r, false).responses, None);
        r.totals.counts.answered = 28;
        assert_eq!(Pattern::of(&r, false).responses, Some(1));
        // Each had one response, and was closed for its silence.
        assert_eq!(pattern(&spread(2_000, 2_100, 1), 0, 0).responses, None);
        assert_eq!(pattern(&[(0, 10), (0, 10)], 0, 0).responses, None);
    }

    #[test]
    fn a_busy_server_closes_a_little_after_its_response() {
        let check = |closed_ms: u64, n: u64, response_ms: u64, expected: Option<u64>| {
            let mut r = record();
            for (silence_ms, responses) in spread(closed_ms / 2, closed_ms, n) {
                r.totals.silence.record(Nanos::from_millis(silence_ms));
                r.totals.responses_at_close.record(responses);
                r.totals.ramp_latency.record(Nanos::from_millis(response_ms));
            }
            assert_eq!(Pattern::of(&r, false).responses, expected, "{closed_ms} ms, {n} of {response_ms} ms");
        };
        check(200, 1, 1_000, Some(1));
        check(440, 1, 5_000, Some(1));
        check(220, 10, 1_000, Some(10));
        // Late compared with the response time; and late by any measure.
        check(200, 1, 10, None);
        check(300, 10, 1_000, None);
        check(600, 1, 5_000, None);
    }
}

//! Invariants of any run's counts, at every tick.

use plan::{Plan, Population, Reconnect, Scheme};
use samples::{Kind, Stage, Tick};

/// Invariants of the sum of all ticks so far, whatever the network and the target do.
pub(crate) fn obey_the_laws(plan: &Plan, population: &Population, t: &Tick) {
    let (c, seed) = (&t.counts, plan.seed);
    let faults = |is: fn(Stage, Kind) -> bool| -> u64 {
        t.faults.iter().filter(|(f, _)| is(f.stage, f.kind)).map(|(_, n)| n).sum()
    };
    let wrong = faults(|stage, kind| kind.is_wrong_response() && stage == Stage::Exchange);
    // After requests, an upgrade is one more of them, and no part of a dial.
    let logs_in = !population.http_steps().is_empty();
    // The handshake of HTTP/2 before them is one of a dial, and is censored.
    let of_dials = t.handshake.censored();
    let upgrades = if logs_in { faults(|stage, _| stage == Stage::Handshake) - of_dials } else { 0 };
    // A response without a value that its connection needs is a response; the connection is lost.
    let useless = faults(|stage, kind| {
        stage == Stage::Exchange && matches!(kind, Kind::MissingValue | Kind::ValueTooLong)
    });
    let lost = faults(|stage, _| stage == Stage::Exchange) - wrong - useless + upgrades;
    // A connection that was opened is open, or ended in exactly one way.
    let ended = c.dropped + c.closed + c.finished + c.ended_after;
    assert_eq!(c.opened + c.redialled, t.open + ended, "connections, seed {seed}");
    // A loss has exactly one cause, and so has each request on a stream that ends with it, or is given up alone.
    let (all, once) = (faults(|_, _| true), c.dropped + c.failed + wrong);
    let alone = faults(|stage, kind| {
        stage == Stage::Exchange && matches!(kind, Kind::Timeout | Kind::BadAnswer | Kind::Reset)
    });
    let of_streams = population.streams.map_or(0, |n| c.dropped * (u64::from(n) - 1) + alone);
    let most = once + of_streams;
    assert!((once..=most).contains(&all), "faults, seed {seed}: {all}, not {once} to {most}");
    let dials = faults(|stage, _| matches!(stage, Stage::Dial | Stage::Handshake));
    assert_eq!(dials - upgrades, c.failed, "failed dials, seed {seed}");
    // First dials are decided once; every other dial follows an announced close, or a failure where that is wanted.
    assert!(c.opened <= t.resolved && t.resolved <= c.opened + c.failed, "resolved, seed {seed}");
    assert!(t.resolved <= u64::from(population.load.connections()) + c.finished, "wanted, seed {seed}");
    assert!(c.done <= c.finished, "done, seed {seed}");
    let makes_up = matches!(population.reconnect, Reconnect::Backoff(_));
    let again = c.closed + c.finished + if makes_up { c.dropped + c.failed } else { 0 };
    assert!(c.redialled + (c.opened + c.failed - t.resolved) <= again, "redials, seed {seed}");
    // A request has a response, waits, was lost with its connection, or crossed an announced close.
    let ends = c.answered + t.waiting + lost + c.unanswered + c.withdrawn;
    // After the load, those that arrived before its end wait from their dial on.
    let dials = if population.comes_and_goes() { t.waiting } else { 0 };
    assert!((c.sent..=c.sent + dials).contains(&ends), "each request has one end, seed {seed}: {ends} {c:?}");
    // One without a response is longer than all others, and so is one that was never sent.
    let (dials, handshakes) = (t.connect.censored(), t.handshake.censored());
    assert_eq!(dials + handshakes, c.failed, "dials without a connection, seed {seed}");
    let censored = t.latency.censored() + t.ramp_latency.censored();
    let without = lost + c.unanswered + c.missed;
    assert!(
        (without..=without + c.failed).contains(&censored),
        "without a response, seed {seed}: {censored} {c:?}"
    );
    // Each response has one latency, and over HTTP one status, and so has a refused upgrade; each connection has one connect time,
    // and a handshake may fail after it.
    let is_http = population.target.scheme == Scheme::Http;
    let is_refused =
        |fault: &samples::Fault| (fault.stage, fault.kind) == (Stage::Handshake, Kind::WrongStatus);
    let refused: u64 = t.faults.iter().filter(|(fault, _)| is_refused(fault)).map(|(_, n)| n).sum();
    let statuses = if is_http { c.answered } else { refused };
    let counted = t.status.iter().sum::<u64>();
    let is_right =
        if logs_in { (refused..=refused + c.answered).contains(&counted) } else { counted == statuses };
    assert!(is_right, "statuses, seed {seed}: {counted} of {statuses}");
    assert_eq!(t.latency.count() + t.ramp_latency.count(), c.answered, "latencies, seed {seed}");
    if !logs_in {
        obey_the_laws_of_answers(plan.seed, population, t);
    }
    let (connects, opened) = (t.connect.count(), c.opened + c.redialled);
    let shakes_hands = !is_http || population.streams.is_some();
    assert!(connects == opened || (connects > opened && shakes_hands), "connect times, seed {seed}");
}

/// Invariants of the latencies by step: where a population's steps are distinguished, each response that was due at full load
/// counts for exactly one of them.
pub(crate) fn obey_the_laws_of_steps(plan: &Plan, nth: u16, t: &Tick) {
    let told_apart = plan.populations[usize::from(nth)].step_names().len() > 1;
    let (mut own, mut others) = (0, 0);
    for ((population, _), latency) in plan.steps().zip(&t.steps) {
        *if population == nth { &mut own } else { &mut others } += latency.count();
    }
    let expected = if told_apart { t.latency.count() } else { 0 };
    assert_eq!((own, others), (expected, 0), "steps of population {nth}, seed {}", plan.seed);
    let in_ramp: u64 = t.ramp_steps.iter().map(|step| step.count()).sum();
    let expected = if told_apart { t.ramp_latency.count() } else { 0 };
    assert_eq!(in_ramp, expected, "steps of population {nth} in the ramp, seed {}", plan.seed);
}

/// Invariants of sizes, first bytes and handshakes.
pub(crate) fn obey_the_laws_of_answers(seed: u64, population: &Population, t: &Tick) {
    let (c, scheme) = (&t.counts, population.target.scheme);
    let heads = if scheme == Scheme::Http { c.answered } else { 0 };
    assert_eq!((t.head_sizes.count(), t.answer_sizes.count()), (heads, c.answered), "sizes, seed {seed}");
    assert_eq!(t.answer_sizes.sum(), t.head_sizes.sum() + c.body_bytes_in, "bytes of answers, seed {seed}");
    assert!(c.kept <= c.answered && t.answer_sizes.sum() <= c.bytes_in, "kept, seed {seed}");
    let (first_bytes, handshakes) = (t.first_byte.count() + t.ramp_first_byte.count(), t.handshake.count());
    let has_handshake = scheme.is_upgraded() || population.streams.is_some();
    let expected = if has_handshake { c.opened + c.redialled } else { 0 };
    assert_eq!(handshakes, expected, "handshakes, seed {seed}");
    if scheme.is_upgraded() {
        assert_eq!(first_bytes, 0, "first bytes, seed {seed}");
    } else {
        // A response may have begun and never ended.
        assert!((c.answered..=c.sent).contains(&first_bytes), "first bytes, seed {seed}");
    }
}

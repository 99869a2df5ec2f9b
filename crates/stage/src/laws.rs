//! The laws of counting: invariants of the counts of any run, checked at every tick.

use plan::{Activity, Plan, Population, Reconnect};
use samples::{
    Kind, Stage, Tick,
    books::{Imbalance, Standing},
};

/// Invariants of the sum of all ticks so far, whatever the network and the target do.
pub(crate) fn obey_the_laws(plan: &Plan, population: &Population, t: &Tick) {
    let (c, seed) = (&t.counts, plan.seed);
    let faults = |is: fn(Stage, Kind) -> bool| -> u64 {
        t.faults.iter().filter(|(f, _)| is(f.stage, f.kind)).map(|(_, n)| n).sum()
    };
    // After requests, an upgrade counts as a request, not as part of a dial.
    let logs_in = !population.http_steps().is_empty();
    // A connection ended because its response lacks a needed value is counted with the wrong responses.
    let useless = faults(|_, kind| matches!(kind, Kind::MissingValue | Kind::ValueTooLong));
    // Each account is compared with its events: due, sent, dialled, opened.
    let dialling = c.dialled - c.opened - c.redialled - c.failed - c.given_up;
    let standing = Standing { under_way: t.unsettled, waiting: 0, dialling, open: t.open };
    let Imbalance { due, connections, .. } = c.balance(&standing);
    assert_eq!((due, connections), (0, 0), "requests due and connections, seed {seed}: {c:?}");
    let sent = c.settled() - c.missed + c.withdrawn;
    let is_sent = (sent..=sent + t.unsettled).contains(&c.sent);
    assert!(is_sent, "requests sent, seed {seed}: {c:?}");
    // Each fault belongs to a failed request, a wrong response, a dial for a request, or a connection.
    let of_dials = faults(|stage, _| matches!(stage, Stage::Dial | Stage::Tls | Stage::Handshake));
    let all = faults(|_, _| true);
    let counted = c.failed_requests + c.wrong + c.connection_faults;
    let of_withdrawn = c.withdrawn.min(c.missed).min(c.dropped);
    let for_requests = if useless > 0 { all } else { c.failed.min(of_dials) + of_withdrawn };
    assert!(
        (counted.min(all)..=counted + for_requests).contains(&all),
        "faults, seed {seed}: {all} of {c:?}"
    );
    // First dials are decided once; every other dial follows an announced close, or a failure if those are replaced.
    assert!(c.opened <= t.resolved && t.resolved <= c.opened + c.failed, "resolved, seed {seed}");
    // If the load falls and rises again, lost connections are wanted again.
    let lost = if plan.stages.len() > 1 { c.dropped + c.closed + c.failed + c.ended_after } else { 0 };
    let wanted = u64::from(population.load.connections()) + c.finished + lost;
    assert!(t.resolved <= wanted, "wanted, seed {seed}");
    assert!(c.done <= c.finished, "done, seed {seed}");
    let makes_up = matches!(population.reconnect, Reconnect::Backoff(_));
    let again = c.closed + c.finished + if makes_up { c.dropped + c.failed } else { 0 };
    assert!(c.redialled + (c.opened + c.failed - t.resolved) <= again, "redials, seed {seed}");
    // Requests without a response, or never sent, are censored: longer than all others.
    let (dials, handshakes) = (t.connect.censored(), t.tls.censored() + t.handshake.censored());
    assert_eq!(dials + handshakes, c.failed, "dials without a connection, seed {seed}");
    let censored = t.latency.censored() + t.ramp_latency.censored();
    assert_eq!(
        censored,
        c.failed_requests + c.unanswered + c.missed,
        "without a response, seed {seed}: {c:?}"
    );
    // Each response has one latency and, over HTTP, one status, as has a refused upgrade. Each connection has one connect time; a
    // handshake may fail after it.
    let has_statuses = has_statuses(population);
    let is_refused =
        |fault: &samples::Fault| (fault.stage, fault.kind) == (Stage::Handshake, Kind::WrongStatus);
    let refused: u64 = t.faults.iter().filter(|(fault, _)| is_refused(fault)).map(|(_, n)| n).sum();
    let statuses = if has_statuses { c.answered } else { refused };
    let counted = t.status.iter().sum::<u64>();
    let is_right =
        if logs_in { (refused..=refused + c.answered).contains(&counted) } else { counted == statuses };
    assert!(is_right, "statuses, seed {seed}: {counted} of {statuses}");
    assert_eq!(t.latency.count() + t.ramp_latency.count(), c.answered, "latencies, seed {seed}");
    if !logs_in {
        obey_the_laws_of_answers(plan.seed, population, t);
    }
    let (connects, opened) = (t.connect.count(), c.opened + c.redialled);
    let shakes_hands = population.target.scheme.is_upgraded() || population.streams.is_some();
    let is_secure = population.target.secure;
    let may_fail_later = shakes_hands || is_secure;
    assert!(connects == opened || (connects > opened && may_fail_later), "connect times, seed {seed}");
    let secured = t.tls.count() + t.tls_resumed.count();
    let is_right =
        if is_secure { secured == opened || (secured > opened && shakes_hands) } else { secured == 0 };
    assert!(is_right && secured <= connects, "TLS handshakes, seed {seed}");
}

/// Invariants of the latencies by step: if a population's steps are counted separately, each response that was due at full load
/// counts for exactly one step.
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

/// Whether each response has a status: not for HTTP/2 PINGs instead of requests.
fn has_statuses(population: &Population) -> bool {
    population.target.scheme.has_requests() && !matches!(population.activity, Activity::Ping { .. })
}

/// Maximum bytes read at once.
const LARGEST_READ: u64 = 64 * 1024;

/// Invariants of sizes, first bytes and handshakes.
pub(crate) fn obey_the_laws_of_answers(seed: u64, population: &Population, t: &Tick) {
    let (c, scheme) = (&t.counts, population.target.scheme);
    let heads = if has_statuses(population) { c.answered } else { 0 };
    assert_eq!((t.head_sizes.count(), t.answer_sizes.count()), (heads, c.answered), "sizes, seed {seed}");
    assert_eq!(t.answer_sizes.sum(), t.head_sizes.sum() + c.body_bytes_in, "bytes of answers, seed {seed}");
    // A tick may end while input is read that is counted afterwards.
    let bytes_in = c.bytes_in + LARGEST_READ;
    assert!(c.kept <= c.answered && t.answer_sizes.sum() <= bytes_in, "kept, seed {seed}");
    let (first_bytes, handshakes) = (t.first_byte.count() + t.ramp_first_byte.count(), t.handshake.count());
    // Over TLS an HTTP/2 server speaks first: there is no handshake to wait for.
    let has_handshake = scheme.is_upgraded() || population.streams.is_some() && !population.target.secure;
    let expected = if has_handshake { c.opened + c.redialled } else { 0 };
    assert_eq!(handshakes, expected, "handshakes, seed {seed}");
    if scheme.is_upgraded() {
        assert_eq!(first_bytes, 0, "first bytes, seed {seed}");
    } else {
        // A response may have begun and never ended.
        assert!((c.answered..=c.sent).contains(&first_bytes), "first bytes, seed {seed}");
    }
}

//! The expected values of figures, computed from the ticks of the shards, and the accounts to which figures refer. Written independently
//! of the table of thresholds and of the summary.

use plan::Plan;
use samples::{Counts, Latency, Probe, Summary};
use stage::RunResult;

/// The expected value of a figure.
pub(super) enum Truth {
    Number(Number),
    Times(Times),
}

/// A figure that is not a distribution of times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    /// `None` if the ticks do not contain it: then the summary's value counts.
    pub(super) value: Option<u64>,
    /// The account to which it refers; if that is 0, nothing was measured. `None` for a fact about the run, or such an account itself.
    pub(super) about: Option<u64>,
}

/// A distribution: how many measurements ended, and how many never did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) ended: u64,
    pub(super) never: u64,
}

/// Accounts of what was to happen, to which percentages refer.
pub(super) const WHOLES: [&str; 7] = [
    "requests.due",
    "connections.wanted",
    "errors.of",
    "probe.sent",
    "pushes.count",
    "pushes.numbered",
    "pushes.broadcasts",
];

/// The expected value of the figure at this path. A new figure must be added here.
pub(super) fn truth(path: &str, plan: &Plan, result: &RunResult, s: &Summary) -> Truth {
    if let Some(times) = times(path, result, s) {
        return Truth::Times(times);
    }
    let number = of_requests(path, result)
        .or_else(|| of_connections(path, plan, &result.whole.counts))
        .or_else(|| of_pushes(path, result, s))
        .or_else(|| of_the_probe(path, result))
        .or_else(|| of_the_run(path));
    Truth::Number(number.unwrap_or_else(|| panic!("{path} is new: which account is it about?")))
}

const fn number(value: u64, about: Option<u64>) -> Option<Number> {
    Some(Number { value: Some(value), about })
}

/// Requests due, without those that throng itself ended.
fn due(c: &Counts) -> u64 {
    c.due - c.revoked
}

/// The number of attempts, and the number of failures.
fn errors(c: &Counts) -> [u64; 2] {
    let alone = c.connection_faults + c.given_up;
    let of = if due(c) > 0 { due(c) + alone } else { c.opened + c.failed + c.given_up };
    [of, due(c) - (c.answered - c.wrong) + alone]
}

fn of_requests(path: &str, result: &RunResult) -> Option<Number> {
    let c = &result.whole.counts;
    let (due, sent) = (due(c), c.sent - c.withdrawn - c.revoked);
    let [tried, errors] = errors(c);
    let opened = Some(c.opened);
    let faults: u64 = result.faults().iter().map(|(.., n)| n).sum();
    match path {
        "faults" => number(faults + c.unanswered + c.missed, Some(tried)),
        "errors.count" => number(errors, Some(tried)),
        "errors.of" => number(tried, None),
        "requests.due" => number(due, None),
        "requests.sent" => number(sent, Some(due)),
        "requests.answered" => number(c.answered, Some(tried)),
        "requests.missed" => number(c.missed, Some(due)),
        // No agent is lost here.
        "requests.lost" => number(0, Some(due)),
        "requests.per_s" => Some(Number { value: None, about: Some(due) }),
        "requests.failed" => number(c.failed_requests, Some(sent)),
        "requests.unanswered" => number(c.unanswered, Some(sent)),
        "requests.wrong" => number(c.wrong, Some(c.answered)),
        "requests.kept" => number(c.kept, Some(c.answered)),
        "requests.status.200" => number(result.whole.status[200], Some(c.answered)),
        "requests.body_bytes_in" => number(c.body_bytes_in, Some(c.answered)),
        "requests.told" => number(c.told, None),
        "requests.messages" => number(c.messages, None),
        "requests.bytes_in" => number(c.bytes_in, opened),
        "requests.bytes_out" => number(c.bytes_out, opened),
        "requests.bytes_in_per_s" | "requests.bytes_out_per_s" => Some(Number { value: None, about: opened }),
        _ => None,
    }
}

fn of_connections(path: &str, plan: &Plan, c: &Counts) -> Option<Number> {
    let wanted: u64 = (0..plan.populations.len() as u16).map(|nth| plan.connections(nth)).sum();
    let (planned, opened) = (Some(wanted), Some(c.opened));
    match path.strip_prefix("connections.")? {
        "wanted" => number(wanted, None),
        "opened" => number(c.opened, planned),
        "failed" => number(c.failed, planned),
        "given_up" => number(c.given_up, planned),
        "dropped" => number(c.dropped, opened),
        "closed" => number(c.closed, opened),
        "redialled" => number(c.redialled, opened),
        "finished" => number(c.finished, opened),
        "forced" => number(c.forced, planned),
        "peak" | "held" | "seen_by_target" | "open_per_s" | "arriving" | "lost" | "bent_at"
        | "accept_per_s" | "unaccepted" => Some(Number { value: None, about: planned }),
        "dropped_in_drain" | "quiet_s" => Some(Number { value: None, about: opened }),
        _ => None,
    }
}

fn of_pushes(path: &str, result: &RunResult, s: &Summary) -> Option<Number> {
    let p = &result.whole.pushes;
    let (count, numbered) = (Some(p.count), Some(p.numbered));
    match path.strip_prefix("pushes.")? {
        "count" => number(p.count, None),
        "per_s" | "clock_offset_us" => Some(Number { value: None, about: count }),
        "bytes" => number(p.bytes, count),
        "bytes_max" => number(p.bytes_max, count),
        "unread" => number(p.unread, count),
        "ahead" => number(p.ahead, count),
        "numbered" => number(p.numbered, count),
        "lost" => number(p.skipped - p.late, numbered),
        "out_of_order" => number(p.late, numbered),
        "duplicates" => number(p.duplicates, numbered),
        "restarts" => number(p.restarts, numbered),
        // Known only to the conductor, which has the receipts of all shards.
        "broadcasts" => Some(Number { value: None, about: count }),
        "complete" => Some(Number { value: None, about: Some(s.pushes.broadcasts) }),
        _ => None,
    }
}

fn of_the_probe(path: &str, result: &RunResult) -> Option<Number> {
    let probe = result.whole.probe.as_deref();
    let probed =
        |of: fn(&Probe) -> u64| Some(Number { value: probe.map(of), about: probe.map(|own| own.sent) });
    match path.strip_prefix("probe.")? {
        "sent" => Some(Number { value: probe.map(|own| own.sent), about: None }),
        "answered" => probed(|own| own.answered),
        "failed" => probed(|own| own.failed),
        "unanswered" => probed(|own| own.unanswered),
        _ => None,
    }
}

/// Facts about the run, and costs: they cannot fail to happen.
fn of_the_run(path: &str) -> Option<Number> {
    const FACTS: [&str; 6] = ["threads", "seed", "ramp_s", "duration_s", "elapsed_s", "probe.rate"];
    const COSTS: [&str; 3] = ["generator.", "target_cost.", "kernel_bytes_per_connection."];
    let is_one = FACTS.contains(&path) || COSTS.iter().any(|of| path.starts_with(of));
    is_one.then_some(Number { value: None, about: None })
}

/// The distribution of the figure at this path.
fn times(path: &str, result: &RunResult, s: &Summary) -> Option<Times> {
    let (of, _) = path.rsplit_once('.')?;
    let t = &result.whole;
    let known = |all: &Latency| Some(Times { ended: all.count(), never: all.censored() });
    let times = match of {
        "latency_us" => known(&t.latency),
        "ramp_latency_us" => known(&t.ramp_latency),
        "first_byte_us" => known(&t.first_byte),
        "connect_us" => known(&t.connect),
        "tls_us" => known(&t.tls),
        "tls_resumed_us" => known(&t.tls_resumed),
        "handshake_us" => known(&t.handshake),
        "gap_us" => known(&t.gap),
        "delay_us" => known(&t.delay),
        "ping_rtt_us" => known(&t.ping_rtt),
        "lag_us" => known(&t.lag),
        "spread_us" => {
            let (ended, all) = (s.pushes.complete, s.pushes.broadcasts);
            Some(Times { ended, never: all - ended })
        }
        _ => None,
    };
    times.or_else(|| of_probe(of.strip_prefix("probe.")?, result))
}

fn of_probe(of: &str, result: &RunResult) -> Option<Times> {
    let none = Probe::default();
    let probe = result.whole.probe.as_deref().unwrap_or(&none);
    let known = |all: &[&Latency]| {
        let sum = |of: fn(&Latency) -> u64| all.iter().map(|times| of(times)).sum();
        Some(Times { ended: sum(Latency::count), never: sum(Latency::censored) })
    };
    match of {
        "latency_us" => known(&[&probe.kept, &probe.fresh]),
        "kept_us" => known(&[&probe.kept]),
        "fresh_us" => known(&[&probe.fresh]),
        "held_us" => known(&[&probe.held]),
        "connect_us" => known(&[&probe.connect]),
        _ => None,
    }
}

/// Times include what never happened: each due request has one, with or without an end.
pub(super) fn obey_the_laws_of_times(result: &RunResult) {
    let (t, c) = (&result.whole, &result.whole.counts);
    let without = c.failed_requests + c.unanswered + c.missed;
    let sum = |of: fn(&Latency) -> u64, all: [&Latency; 2]| all.map(of).iter().sum::<u64>();
    let latency = [&t.latency, &t.ramp_latency];
    let both = (sum(Latency::count, latency), sum(Latency::censored, latency));
    assert_eq!(both, (c.answered, without), "{c:?}");
    // Where the time to first byte is measured; a response may begin and not end.
    let first_byte = [&t.first_byte, &t.ramp_first_byte];
    let (began, never) = (sum(Latency::count, first_byte), sum(Latency::censored, first_byte));
    if began + never > 0 {
        assert!(began >= c.answered && never <= without, "{began} and {never} first bytes of {c:?}");
        assert!(began + never >= due(c), "{began} and {never} first bytes of {c:?}");
    }
    if let Some(probe) = &t.probe {
        let times = [&probe.kept, &probe.fresh];
        let both = (sum(Latency::count, times), sum(Latency::censored, times));
        assert_eq!(both, (probe.answered, probe.failed + probe.unanswered));
        assert_eq!(probe.sent, probe.answered + probe.failed + probe.unanswered);
    }
}

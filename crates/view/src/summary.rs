//! The summary of a run, as text and as JSON.

mod agents;
mod costs;
mod destinations;
mod in_common;
mod populations;
mod probe;
mod pushes;
mod ramp;

use std::fmt::Write;

use samples::{Connections, Quantiles, Requests, Summary, Verdict};
use serde::Serialize;
use units::{Bytes, Count, Nanos, Status, Unit, percent};

pub(crate) use agents::generator;

/// The summary of a run or a search as JSON, followed by a line break.
pub fn json(summary: &impl Serialize) -> String {
    serde_json::to_string_pretty(summary).expect("a summary has only plain fields") + "\n"
}

/// The summary as text.
pub fn text(s: &Summary) -> String {
    let mut out = String::new();
    connections(s, &mut out);
    if s.requests.due > 0 {
        requests(s, &mut out);
    }
    if s.requests.messages > s.requests.answered || s.pushes.count > 0 {
        messages(s, &mut out);
    }
    pushes::rows(s, &mut out);
    statuses(s, &mut out);
    errors(s, &mut out);
    in_common::rows(s, &mut out);
    probe::rows(s, &mut out);
    out.push_str(&populations::table(s));
    out.push_str(&agents::table(s));
    costs::rows(s, &mut out);
    if let Some(rig) = &s.rig {
        crate::calibration::share(rig).into_iter().for_each(|share| row(&mut out, "calibration", share));
    }
    for asked in &s.experiments {
        row(&mut out, "asked", format!("{}: {}", asked.what, asked.answer));
    }
    row(&mut out, "repeat with", format!("--seed {}", s.seed));
    out.push_str(&verdict(s));
    out
}

fn row(out: &mut String, name: &str, value: String) {
    writeln!(out, "  {name:<13} {value}").expect("a String takes it");
}

fn connections(s: &Summary, out: &mut String) {
    let c = &s.connections;
    let lost = [
        ("failed", c.failed),
        ("given up at the end", c.given_up),
        ("dropped", c.dropped - c.dropped_in_drain.min(c.dropped)),
        ("dropped after the end of the load", c.dropped_in_drain),
        ("closed with an announcement", c.closed),
        ("redialled", c.redialled),
        ("closed by throng as planned", s.closed_as_planned()),
        ("closed by agents whose lease had expired", s.closed_by_lease()),
        (if s.agents.is_empty() { "lost with a thread of throng" } else { "lost with their agents" }, c.lost),
    ];
    let lost = lost.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!(", {} {name}", Count(*n)));
    row(out, "connections", held(c) + &lost.collect::<String>());
    destinations::rows(s, out);
    if c.opened > 0 {
        row(out, "ramp", ramp::text(s));
    }
    if let Some(planned) = s.planned_s {
        let when = format!("after {:.1} s of {planned:.1} s at full load", s.duration_s);
        row(out, "ended", format!("{when}: no connection was left"));
    }
    row(out, "connect", quantiles(&s.connect_us, "connection"));
    if is_there(&s.tls_us) || is_there(&s.tls_resumed_us) {
        row(out, "tls", handshakes(&s.tls_us, "full"));
        row(out, "tls resumed", handshakes(&s.tls_resumed_us, "resumed"));
    }
    if is_there(&s.handshake_us) {
        row(out, "handshake", quantiles(&s.handshake_us, "handshake"));
    }
}

/// Held and wanted connections; for connections that arrive, the number dialled, since they are not held.
pub(crate) fn held(c: &Connections) -> String {
    let (held, wanted, dialled) = (Count(c.held), Count(c.wanted), Count(c.dialled()));
    match c.all_arrive() {
        false => format!("{held} held of {wanted} wanted"),
        true if dialled == wanted => format!("{dialled} dialled ({held} open at the end of the load)"),
        true => format!("{dialled} dialled of {wanted} wanted ({held} open at the end of the load)"),
    }
}

fn requests(s: &Summary, out: &mut String) {
    let r = &s.requests;
    let (at_least, why) = match r.lower_bound {
        true => ("at least ", " (lower bound: throng had no CPU left)"),
        false => ("", ""),
    };
    let responses = outcomes(r);
    let per_s = Count(r.per_s.round() as u64);
    let rate = format!("{at_least}{per_s}/s at full load ({:.1} s)", s.duration_s);
    row(out, "requests", format!("{responses}, {rate}{why}"));
    row(out, "throughput", throughput(r));
    if r.missed > 0 {
        let requests = Count(r.missed).of("request");
        let why = match s.planned_s {
            Some(_) => "no connection was left",
            None => "no connection free or dialled in time",
        };
        row(out, "missed", format!("{requests} due, but {why}"));
    }
    row(out, "latency", quantiles(&s.latency_us, "response"));
    if is_there(&s.first_byte_us) {
        row(out, "first byte", quantiles(&s.first_byte_us, "first byte"));
    }
    if is_there(&s.ramp_latency_us) {
        row(out, "ramp latency", quantiles(&s.ramp_latency_us, "response"));
    }
    if is_there(&s.ping_rtt_us) {
        row(out, "ping", format!("{} (PINGs beside requests)", quantiles(&s.ping_rtt_us, "reply")));
    }
    row(out, "lag", format!("{} (how late throng sent)", quantiles(&s.lag_us, "end")));
}

/// The throughput in both directions: `36.7 MiB/s in, 7.5 KiB/s out (114 MiB received, 23.4 KiB sent)`.
pub(crate) fn throughput(r: &Requests) -> String {
    let per_s = |rate: f64| Unit::BytesPerSecond.brief(rate);
    let (inward, outward) = (per_s(r.bytes_in_per_s), per_s(r.bytes_out_per_s));
    let (received, sent) = (Bytes(r.bytes_in).brief(), Bytes(r.bytes_out).brief());
    format!("{inward} in, {outward} out ({received} received, {sent} sent)")
}

/// The rows about messages: of gRPC calls with several responses, and those that the server sent without a request.
fn messages(s: &Summary, out: &mut String) {
    row(out, "messages", format!("{} received", Count(s.requests.messages)));
    if s.requests.due == 0 && is_there(&s.first_byte_us) {
        row(out, "first byte", quantiles(&s.first_byte_us, "first byte"));
    }
    if is_there(&s.gap_us) {
        row(out, "gap", format!("{} (between messages)", quantiles(&s.gap_us, "message")));
    }
}

/// The row of responses by status, most frequent first.
fn statuses(s: &Summary, out: &mut String) {
    let all = statuses_text(s);
    if !all.is_empty() {
        row(out, "status", all);
    }
}

/// Responses by status: `200 × 1,234  404 × 5`.
pub(crate) fn statuses_text(s: &Summary) -> String {
    const MOST: usize = 8;
    let mut all: Vec<(u16, u64)> = s.requests.status.iter().map(|(status, n)| (*status, *n)).collect();
    all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let shown = all.iter().take(MOST).map(|(status, n)| format!("{} × {}", Status(*status), Count(*n)));
    let others = Count(all.len().saturating_sub(MOST) as u64);
    let more = if others.0 > 0 { format!("  and {}", others.of("other")) } else { String::new() };
    shown.collect::<Vec<_>>().join("  ") + &more
}

/// The row of the error rate, if there were errors.
fn errors(s: &Summary, out: &mut String) {
    if let Some(rate) = error_rate(s).filter(|_| s.errors.count > 0) {
        row(out, "errors", rate);
    }
}

/// The error rate: `0.25 % (3 of 1,200 requests failed)`; `None` if nothing was attempted.
pub(crate) fn error_rate(s: &Summary) -> Option<String> {
    let e = s.errors;
    let share = e.share()?;
    let of = |n: u64, all: u64, what| format!("{} of {}", Count(n), Count(all).of(what));
    let failed = match s.requests.due {
        0 => of(e.count, e.of, "connection"),
        // The others are connections that failed while no request was outstanding; each is an error.
        due if due < e.of => {
            let connections = e.of - due;
            let requests = of(e.count.saturating_sub(connections), due, "request");
            format!("{requests} and {}", Count(connections).of("connection"))
        }
        _ => of(e.count, e.of, "request"),
    };
    Some(format!("{} ({failed} failed)", percent(share)))
}

/// The outcomes of all requests that were due; they add up to their number.
fn outcomes(r: &Requests) -> String {
    let others = [
        (r.failed, "failed"),
        (r.unanswered, "without a response at the end"),
        (r.missed, "never sent"),
        (r.lost, "lost with their agents"),
    ];
    let due = if r.due == r.sent { "" } else { " due" };
    let mut text = format!("{} to {}{due}", Count(r.answered).of("response"), Count(r.due).of("request"));
    for (n, what) in others.into_iter().filter(|(n, _)| *n > 0) {
        text += &format!(", {} {what}", Count(n));
    }
    text
}

fn unanswered(n: u64) -> String {
    if n > 0 { format!(", {} without a response at the end", Count(n)) } else { String::new() }
}

/// The number of handshakes of a kind and their percentiles. A run with TLS also shows if there were none.
fn handshakes(q: &Quantiles, kind: &str) -> String {
    match q.count {
        0 => quantiles(q, "TLS handshake"),
        n => format!("{} {kind}: {}", Count(n), quantiles(q, "TLS handshake")),
    }
}

fn is_there(q: &Quantiles) -> bool {
    q.count > 0 || q.censored.is_some()
}

/// Percentiles, with the number of those that never had an `end`.
pub(crate) fn quantiles(q: &Quantiles, end: &str) -> String {
    quantiles_but(q, &format!("without a {end}"))
}

/// Percentiles, with the number of those that they do not cover, described by `missing`.
fn quantiles_but(q: &Quantiles, missing: &str) -> String {
    let without = q.censored.map(|c| format!("{} ({}) {missing}", Count(c.count), percent(c.share)));
    if q.count == 0 {
        return without.unwrap_or("none".to_owned());
    }
    let without = without.map_or(String::new(), |without| format!("  {without}"));
    let t = |us: f64, share: f64| time(us, q.is_at_least(share));
    let (p50, p95, p99) = (t(q.p50, 0.5), t(q.p95, 0.95), t(q.p99, 0.99));
    let (p999, max) = (t(q.p999, 0.999), t(q.max, 1.0));
    let bounds = q.stalled.map_or(String::new(), |stalled| {
        let most = time(stalled.most, false);
        format!("  {} are lower bounds: throng stalled for up to {most}", percent(stalled.share))
    });
    format!("p50 {p50}  p95 {p95}  p99 {p99}  p99.9 {p999}  max {max}{without}{bounds}")
}

/// CPU usage as a number of cores: `0.52 cores`.
pub(crate) fn cores(used: f64) -> String {
    format!("{used:.2} cores")
}

/// A time in microseconds, marked if it is a lower bound.
pub(crate) fn time(us: f64, is_at_least: bool) -> String {
    format!("{}{}", if is_at_least { "≥ " } else { "" }, Nanos((us * 1e3) as u64).brief())
}

/// The reasons that are not already part of the thresholds or the headline, which contains the sentence of the limit.
pub(crate) fn reasons(s: &Summary) -> impl Iterator<Item = &String> {
    // The headline of a run that passed does not contain its limit.
    let said = s.limit.as_ref().filter(|_| s.verdict != Verdict::Pass).map(|limit| &limit.sentence);
    s.reasons.iter().filter(move |reason| !reason.starts_with("threshold ") && Some(*reason) != said)
}

/// The last lines: the judged thresholds, other reasons, the limit, and the headline.
pub fn verdict(s: &Summary) -> String {
    let mut out = String::new();
    for t in &s.thresholds {
        let _ = writeln!(out, "  {:<13} {}: {}, {}", "threshold", t.expr, t.outcome(), t.measured());
    }
    for reason in reasons(s) {
        let _ = writeln!(out, "  {reason}");
    }
    // For throng's own limits there is a reason with the same text.
    if let Some(limit) = s.limit.as_ref().filter(|limit| !s.reasons.contains(&limit.detail)) {
        let _ = writeln!(out, "  {}", limit.detail);
    }
    let _ = writeln!(out, "{}", s.headline);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_missing_from_percentiles_are_beside_them() {
        let check = |with: u64, without: u64, expected: &str| {
            let mut latency = samples::Latency::default();
            latency.record_n(Nanos::from_millis(2), with);
            (0..without).for_each(|_| latency.censor());
            assert_eq!(quantiles(&latency.quantiles(), "response"), expected, "{with} {without}");
        };
        check(0, 0, "none");
        check(0, 7, "7 (100 %) without a response");
        check(9, 0, "p50 2.0 ms  p95 2.0 ms  p99 2.0 ms  p99.9 2.0 ms  max 2.0 ms");
        let times = "p50 2.0 ms  p95 2.0 ms  p99 2.0 ms  p99.9 2.0 ms  max 2.0 ms";
        check(1_000, 32, &format!("{times}  32 (3.1 %) without a response"));
        check(100_000, 50, &format!("{times}  50 (0.05 %) without a response"));
        check(1_000_000, 1, &format!("{times}  1 (<0.01 %) without a response"));
    }

    #[test]
    fn censored_percentiles_are_lower_bounds() {
        let check = |stalled: u64, expected: &str| {
            let mut latency = samples::Latency::default();
            let took = |stalled| samples::Took { time: Nanos::from_millis(2), stalled };
            (0..1_000 - stalled).for_each(|_| latency.record_seen(took(Nanos::ZERO)));
            (0..stalled).for_each(|n| latency.record_seen(took(Nanos::from_millis(n + 30))));
            assert_eq!(quantiles(&latency.quantiles(), "response"), expected, "{stalled}");
        };
        check(0, "p50 2.0 ms  p95 2.0 ms  p99 2.0 ms  p99.9 2.0 ms  max 2.0 ms");
        let tail = "are lower bounds: throng stalled for up to";
        check(
            1,
            &format!("p50 2.0 ms  p95 2.0 ms  p99 2.0 ms  p99.9 2.0 ms  max ≥ 2.0 ms  0.10 % {tail} 30 ms"),
        );
        check(
            10,
            &format!("p50 2.0 ms  p95 2.0 ms  p99 2.0 ms  p99.9 ≥ 2.0 ms  max ≥ 2.0 ms  1.0 % {tail} 39 ms"),
        );
        check(
            970,
            &format!(
                "p50 ≥ 2.0 ms  p95 ≥ 2.0 ms  p99 ≥ 2.0 ms  p99.9 ≥ 2.0 ms  max ≥ 2.0 ms  97 % {tail} 999 ms"
            ),
        );
    }

    #[test]
    fn what_a_reason_says_is_not_said_again() {
        let check = |reason: &str, detail: &str, expected: &str| {
            let limit = samples::Limit { detail: detail.to_owned(), ..Default::default() };
            let (reasons, headline) = (vec![reason.to_owned()], "why".to_owned());
            assert_eq!(
                verdict(&Summary { reasons, headline, limit: Some(limit), ..Summary::default() }),
                expected
            );
        };
        check("throng was late", "throng was late", "  throng was late\nwhy\n");
        check("throng was late", "its threads waited", "  throng was late\n  its threads waited\nwhy\n");
    }

    #[test]
    fn a_reason_that_is_the_limit_is_in_the_headline_only() {
        let check = |of: Verdict, expected: &[&str]| {
            let sentence = "unexpected status: 404 × 20".to_owned();
            let reasons = ["threshold errors < 1% failed", sentence.as_str(), "9 of 10 connections held"]
                .map(str::to_owned)
                .to_vec();
            let limit = Some(samples::Limit { sentence, ..Default::default() });
            let s = Summary { verdict: of, reasons, limit, ..Summary::default() };
            assert_eq!(super::reasons(&s).collect::<Vec<_>>(), expected, "{of:?}");
        };
        check(Verdict::Fail, &["9 of 10 connections held"]);
        check(Verdict::Pass, &["unexpected status: 404 × 20", "9 of 10 connections held"]);
    }

    #[test]
    fn losses_after_the_load_are_distinguished_from_those_held() {
        let check = |dropped: u64, dropped_in_drain: u64, expected: &str| {
            let held = 500;
            let connections =
                samples::Connections { wanted: 500, held, dropped, dropped_in_drain, ..Default::default() };
            let mut out = String::new();
            let figures = samples::Figures { connections, ..Default::default() };
            super::connections(&Summary { figures, ..Summary::default() }, &mut out);
            assert_eq!(
                out.lines().next().unwrap(),
                format!("  connections   500 held of 500 wanted{expected}")
            );
        };
        check(0, 0, "");
        check(500, 500, ", 500 dropped after the end of the load");
        check(7, 0, ", 7 dropped");
        check(507, 500, ", 7 dropped, 500 dropped after the end of the load");
    }

    #[test]
    fn of_connections_that_arrive_none_is_held() {
        let check = |wanted: u64, opened: u64, finished: u64, expected: &str| {
            let c =
                Connections { wanted, arriving: wanted, opened, held: 161, finished, ..Default::default() };
            let mut out = String::new();
            let figures = samples::Figures { connections: c, ..Default::default() };
            super::connections(&Summary { figures, ..Summary::default() }, &mut out);
            assert_eq!(out.lines().next().unwrap(), format!("  connections   {expected}"));
        };
        let open = "(161 open at the end of the load)";
        check(800, 800, 800, &format!("800 dialled {open}, 800 closed by throng as planned"));
        check(900, 800, 700, &format!("800 dialled of 900 wanted {open}, 700 closed by throng as planned"));
    }

    #[test]
    fn what_an_agent_closes_with_its_lease_is_not_as_planned() {
        let connections =
            samples::Connections { wanted: 9, held: 9, finished: 12, lost: 3, ..Default::default() };
        let requests = Requests { due: 9, sent: 8, answered: 6, missed: 1, lost: 2, ..Default::default() };
        let figures = samples::Figures { connections, requests, ..Default::default() };
        let agent = samples::AgentSummary { closed_by_lease: 5, requests_lost: 2, ..Default::default() };
        let s = Summary { figures, agents: vec![agent], ..Summary::default() };
        let mut out = String::new();
        super::requests(&s, &mut out);
        let expected =
            "  requests      6 responses to 9 requests due, 1 never sent, 2 lost with their agents, ";
        assert!(out.starts_with(expected), "{out}");
        out.clear();
        super::connections(&s, &mut out);
        let expected = "  connections   9 held of 9 wanted, 7 closed by throng as planned, 5 closed by agents whose \
                        lease had expired, 3 lost with their agents";
        assert_eq!(out.lines().next(), Some(expected));
    }

    #[test]
    fn a_run_that_lost_all_connections_says_when_it_ended() {
        let check = |planned_s: Option<f64>, expected: Option<&str>| {
            let figures = samples::Figures { duration_s: 1.84, ..Default::default() };
            let text = text(&Summary { figures, planned_s, ..Summary::default() });
            assert_eq!(text.lines().find(|line| line.starts_with("  ended")), expected);
        };
        check(None, None);
        let ended = "  ended         after 1.8 s of 10.0 s at full load: no connection was left";
        check(Some(10.0), Some(ended));
    }

    #[test]
    fn handshakes_are_counted_by_kind_where_there_were_any() {
        let check = |full: u64, resumed: u64, expected: &[&str]| {
            let times = |n, ms| {
                let mut latency = samples::Latency::default();
                latency.record_n(Nanos::from_millis(ms), n);
                latency.quantiles()
            };
            let figures = samples::Figures {
                tls_us: times(full, 2),
                tls_resumed_us: times(resumed, 1),
                ..Default::default()
            };
            let mut out = String::new();
            super::connections(&Summary { figures, ..Summary::default() }, &mut out);
            let rows: Vec<&str> = out.lines().filter(|line| line.contains("tls")).collect();
            assert_eq!(rows, expected);
        };
        check(0, 0, &[]);
        let full = "  tls           1,200 full: p50 2.0 ms  p95 2.0 ms  p99 2.0 ms  p99.9 2.0 ms  max 2.0 ms";
        let resumed =
            "  tls resumed   8,800 resumed: p50 1.0 ms  p95 1.0 ms  p99 1.0 ms  p99.9 1.0 ms  max 1.0 ms";
        check(1_200, 8_800, &[full, resumed]);
        check(1_200, 0, &[full, "  tls resumed   none"]);
        check(0, 8_800, &["  tls           none", resumed]);
    }

    #[test]
    fn statuses_and_errors_are_counted() {
        let mut s = Summary::default();
        let both = |s: &Summary| {
            let mut out = String::new();
            statuses(s, &mut out);
            errors(s, &mut out);
            out
        };
        assert_eq!(both(&s), "", "nothing to say of nothing");
        s.requests.status.extend([(200, 7), (404, 208_232), (503, 1)]);
        (s.requests.due, s.errors) = (1_200, samples::Errors { count: 3, of: 1_200 });
        let expected = "  status        404 × 208,232  200 × 7  503 × 1\n  errors        0.25 % (3 of 1,200 requests failed)\n";
        assert_eq!(both(&s), expected);
        // Connections that failed while no request was outstanding are included.
        (s.requests.due, s.requests.missed) = (1_205, 5);
        s.errors = samples::Errors { count: 9, of: 1_206 };
        assert!(
            both(&s).contains("  errors        0.75 % (8 of 1,205 requests and 1 connection failed)\n"),
            "{}",
            both(&s)
        );
        s.requests.missed = 0;
        s.requests.status = (400..410).map(|status| (status, 1)).collect();
        (s.requests.due, s.errors) = (0, samples::Errors { count: 5, of: 20 });
        assert!(
            both(&s).contains("407 × 1  and 2 others\n  errors        25 % (5 of 20 connections failed)"),
            "{}",
            both(&s)
        );
    }

    #[test]
    fn throughput_is_of_both_directions() {
        let mut s = Summary::default();
        let r = &mut s.requests;
        (r.sent, r.bytes_in, r.bytes_out) = (1, 3 << 20, 512);
        (r.bytes_in_per_s, r.bytes_out_per_s) = (1_572_864.0, 256.0);
        let mut out = String::new();
        requests(&s, &mut out);
        let line = "  throughput    1.5 MiB/s in, 256 B/s out (3.0 MiB received, 512 B sent)\n";
        assert!(out.contains(line), "{out}");
        // If nothing was sent during the ramp, it has no latency.
        assert!(!out.contains("ramp latency"), "{out}");
    }
}

//! Causes that lie in the load itself.

use samples::{PopulationSummary, ThresholdResult};
use units::Rate;

use super::*;
use crate::{By, evidence::Paced};

#[test]
fn of_several_populations_the_one_that_missed_requests_has_too_few_connections() {
    let population = |held, sent, missed| {
        let mut own = PopulationSummary::default();
        (own.connections.held, own.connections.wanted) = (held, held);
        (own.requests.sent, own.requests.missed, own.duration_s) = (sent, missed, 10.0);
        own
    };
    let mut s = stopped(1_010, Vec::new());
    (s.requests.sent, s.requests.missed, s.duration_s) = (6_000, 1_000, 10.0);
    s.populations.insert("idle".to_owned(), population(1_000, 5_000, 0));
    s.populations.insert("api".to_owned(), population(10, 1_000, 1_000));
    let found = limit(&s, &Evidence::default()).expect("something stopped it");
    assert_eq!((found.cause, found.at_connections), (Cause::TooFewConnections, 10));
    let seen = "too few connections: 10 carried 100 of the 200 requests that were due each second";
    assert_eq!(found.sentence, seen);
    assert!(found.fix.starts_with("give api 20 connections or more"), "{}", found.fix);
    // With stages, the requests due in the ramps count, too.
    let mut staged = Evidence::default();
    staged.subject.has_stages = true;
    s.populations.values_mut().for_each(|own| own.elapsed_s = 40.0);
    let found = limit(&s, &staged).expect("something stopped it");
    assert!(found.sentence.contains("10 carried 25 of the 50 requests"), "{}", found.sentence);
}

/// 600 requests of 3 s, all answered with 200 kB, and these failed thresholds.
fn answered(failed: &[(&str, f64)]) -> Summary {
    let mut s = stopped(1_000, Vec::new());
    let result = |(expr, value): &(&str, f64)| ThresholdResult {
        expr: (*expr).to_owned(),
        value: Some(*value),
        ..ThresholdResult::default()
    };
    s.thresholds = failed.iter().map(result).collect();
    (s.requests.sent, s.requests.answered, s.requests.per_s) = (600, 600, 199.9);
    s.requests.bytes_in = 120_025_800;
    s
}

/// The same evidence, with the thresholds of this summary.
fn with_thresholds(s: &Summary, e: &Evidence) -> Evidence {
    let threshold = |result: &ThresholdResult| plan::Threshold::parse(&result.expr, &[]).unwrap();
    Evidence { thresholds: s.thresholds.iter().map(threshold).collect(), ..e.clone() }
}

/// The evidence of a run with `--rate 200/s`.
fn at_a_rate() -> Evidence {
    let mut evidence = Evidence::default();
    evidence.subject.rate = Some(Rate::per_s(200));
    evidence
}

#[test]
fn a_rate_that_was_met_is_raised_for_more_throughput() {
    let check = |failed: &[(&str, f64)], e: &Evidence, expected: &str| {
        let s = answered(failed);
        let found = limit(&s, &with_thresholds(&s, e)).expect("a threshold failed");
        assert_eq!((found.sentence_with_fix().as_str(), found.cause), (expected, Cause::Unknown));
    };
    let (bytes, value) = ("bytes_in_per_s > 100 MB/s", 38_448_245.5);
    let all = "all requests at 200/s completed";
    check(&[(bytes, value)], &at_a_rate(), &format!("{all}, with 200 kB each; raise --rate to 530/s"));
    let binary = ("bytes_in_per_s >= 100MiB/s", value);
    check(&[binary], &at_a_rate(), &format!("{all}, with 195 KiB each; raise --rate to 560/s"));
    let fast = ("per_s > 1000", 199.9);
    check(&[fast], &at_a_rate(), &format!("{all}; raise --rate to 1100/s"));
    // The highest of several required rates decides.
    check(&[fast, (bytes, value)], &at_a_rate(), &format!("{all}; raise --rate to 1100/s"));
    let mut arrivals = at_a_rate();
    arrivals.subject.arrives = true;
    check(&[fast], &arrivals, "all requests of connections at 200/s completed; raise --arrive to 1100/s");
}

/// The same for a search, whose smaller loads have an even lower rate.
#[test]
fn a_rate_is_not_raised_where_that_would_not_help() {
    let check = |s: &Summary, e: &Evidence, expected: &str| {
        let found = limit(s, &with_thresholds(s, e)).expect("a threshold failed");
        assert_eq!((found.fix.as_str(), found.certainty), (expected, Certainty::Guess), "{found:?}");
    };
    let fast = ("per_s > 1000", 150.0);
    let mut behind = answered(&[fast]);
    behind.requests.per_s = 150.0;
    check(&behind, &at_a_rate(), "profile the target");
    let step = Evidence { search: Some(By::Rate), ..at_a_rate() };
    check(&answered(&[fast]), &step, "profile the target");
    // Without a rate, each connection sends as fast as it can, or pauses.
    let mut e = Evidence::default();
    check(&behind, &e, "use more connections (-c), or profile the target");
    (e.subject.pause_flag, e.subject.longest_pause) = (Some("--think".into()), Nanos::from_millis(100));
    check(&behind, &e, "use shorter pauses (--think) or more connections (-c), or profile the target");
    e.subject.is_scenario = true;
    check(&behind, &e, "use a larger load, or profile the target");
    // If a latency is missed as well, a search can find the load that meets it.
    let slow = answered(&[("latency.p99 < 1ms", 2_000.0), fast]);
    let mut e = at_a_rate();
    e.subject.searches = vec![("latency.p99 < 1ms".to_owned(), "throng find …".to_owned())];
    check(&slow, &e, "search the highest load that meets it (throng find …), or profile the target");
}

/// A step of 2 s on 50 connections: response time of the idle target, requests due and responses per second.
#[test]
fn connections_that_are_busy_at_the_response_time_of_an_idle_target_are_too_few() {
    let found = |response_ms: u64, due_per_s: f64, answered_per_s: f64| {
        let mut s = stopped(50, Vec::new());
        (s.connections.wanted, s.duration_s, s.requests.per_s) = (50, 2.0, answered_per_s);
        let paced = Some(Paced { due_per_s, response: Nanos::from_millis(response_ms) });
        let e = Evidence { search: Some(By::Rate), rate_backlog: Some(64), paced, ..Evidence::default() };
        let limit = limit(&s, &e).expect("it falls behind");
        (limit.side, limit.cause, limit.sentence, limit.fix)
    };
    // Each request takes 300 ms at any load, which makes 166 a second, without those still under way.
    let (side, cause, sentence, fix) = found(300, 174.0, 141.1);
    assert_eq!((side, cause), (Side::Host, Cause::TooFewConnections));
    assert_eq!(sentence, "too few connections: 50 carried 166 of the 174 requests that were due each second");
    assert!(fix.starts_with("use -c 53 or more"), "{fix}");
    // Eight workers with 50 ms each: more connections would only wait longer.
    let (side, cause, sentence, _) = found(50, 174.0, 156.0);
    assert_eq!((side, cause), (Side::Target, Cause::Saturated));
    assert!(sentence.starts_with("requests come faster than the target serves them"), "{sentence}");
    // Everything due is carried; or the step is only as long as a response and shows nothing.
    assert_eq!(found(300, 160.0, 141.1).1, Cause::Saturated);
    assert_eq!(found(1_000, 174.0, 50.0).1, Cause::Saturated);
}

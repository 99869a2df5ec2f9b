//! Tests of verdicts.

use super::*;
use crate::{
    By,
    evidence::{Evidence, OwnSeen},
    thresholds,
};
use record::{
    ends::BothSides,
    fixture::scenario,
    fixture::{fault, plan},
};
use samples::{Fault, FaultCount, Kind, Stage};

/// A run that held all its connections.
fn held() -> Summary {
    let mut s = Summary::default();
    (s.connections.wanted, s.connections.opened, s.connections.held) = (100, 100, 100);
    (s.requests.due, s.requests.sent, s.requests.answered, s.errors.of) = (1_000, 1_000, 1_000, 1_000);
    (s.latency_us.count, s.latency_us.p99) = (1_000, 5_000.0);
    s.requests.per_s = 1_000.0;
    s
}

fn check(mut s: Summary, thresholds: &[&str], evidence: Evidence, expected: (Verdict, &[&str])) {
    let plan = plan(thresholds);
    s.thresholds = thresholds::judge(&plan.thresholds, &s);
    let mut measured = PopulationRecord {
        wanted: s.connections.wanted,
        held: s.connections.held,
        ..PopulationRecord::default()
    };
    let counts = &mut measured.totals.counts;
    (counts.due, counts.sent, counts.answered) = (s.requests.due, s.requests.sent, s.requests.answered);
    counts.unanswered = s.requests.unanswered;
    counts.failed_requests = counts.sent.saturating_sub(counts.answered + counts.unanswered);
    counts.opened = s.connections.opened;
    let facts = Facts { plan: &plan, evidence: &evidence, populations: &[measured], interrupted: None };
    pronounce(&facts, &mut s);
    let Summary { verdict, reasons, .. } = s;
    assert_eq!(verdict, expected.0, "{thresholds:?}: {reasons:?}");
    assert_eq!(reasons.len(), expected.1.len(), "{reasons:?}");
    for (reason, words) in reasons.iter().zip(expected.1) {
        assert!(reason.contains(words), "{words}: {reason}");
    }
}

#[test]
fn an_agent_that_was_lost_or_not_heard_is_named() {
    let agent = |state, missing_ticks, sealed| AgentSummary {
        id: "a1".to_owned(),
        state,
        wanted: 1_500,
        lost_with: 1_400,
        missing_ticks,
        sealed,
        ..AgentSummary::default()
    };
    let with = |agent: AgentSummary| Summary { agents: vec![agent], ..held() };
    let invalid = |agent, why: &str| check(with(agent), &[], Evidence::default(), (Verdict::Invalid, &[why]));
    let fails = |agent, met: &[&str], why: &str| {
        check(with(agent), met, Evidence::default(), (Verdict::Fail, &[why]));
    };
    check(with(agent(AgentState::Done, 0, true)), &[], Evidence::default(), (Verdict::Pass, &[]));
    let lost = "agent a1 was lost with 1,400 of its 1,500 connections";
    fails(agent(AgentState::Lost, 0, false), &[], lost);
    // The remaining agents may meet the thresholds, but the run does not pass.
    fails(agent(AgentState::Lost, 0, true), &["held >= 90%"], lost);
    let why = Some("it was stopped".to_owned());
    fails(AgentSummary { why, ..agent(AgentState::Lost, 0, true) }, &[], "1,500 connections: it was stopped");
    let taken_over_by = vec!["a2".to_owned()];
    let taken_over = AgentSummary { taken_over_by, ..agent(AgentState::Lost, 0, false) };
    let note = "note: agent a1 was lost with 1,400 of its 1,500 connections, and a2 took over its part";
    check(with(taken_over), &[], Evidence::default(), (Verdict::Pass, &[note]));
    let at = |lag_ms: f64| AgentSummary {
        lag_p99_us: Some(lag_ms * 1e3),
        cpu_share: Some(0.97),
        ..agent(AgentState::Done, 0, true)
    };
    check(with(at(10.0)), &[], Evidence::default(), (Verdict::Pass, &[]));
    let late = "note: agent a1 was late: lag p99 10.5 ms > 10.0 ms (--max-lag) at 97 % CPU, so the latency of its 1,500 of 1,500 \
        connections is not the target's; the others suffice";
    check(with(at(10.5)), &[], Evidence::default(), (Verdict::Pass, &[late]));
    invalid(agent(AgentState::Done, 2, true), "incomplete: 2 ticks of agent a1 did not arrive");
    invalid(agent(AgentState::Done, 0, false), "agent a1's counts do not match its totals");
    invalid(agent(AgentState::Ready, 0, false), "the end of agent a1's report did not arrive");
}

#[test]
fn without_thresholds_load_and_faults_judge() {
    let none = Evidence::default;
    check(held(), &[], none(), (Verdict::Pass, &[]));
    let mut s = held();
    s.faults = vec![fault(Stage::Hold, Kind::Reset, 2)];
    check(s, &[], none(), (Verdict::Fail, &["the target reset 2 connections without notice"]));
    let mut s = held();
    s.connections.held = 99;
    check(s, &[], none(), (Verdict::Fail, &["99 of 100 connections held"]));
}

#[test]
fn a_burst_falls_short_of_what_it_opens() {
    let burst = || Evidence { search: Some(By::Burst), ..Evidence::default() };
    let mut s = held();
    (s.connections.opened, s.connections.held) = (90, 80);
    check(s.clone(), &[], burst(), (Verdict::Fail, &["90 of 100 connections opened"]));
    s.connections.opened = 100;
    check(s, &[], burst(), (Verdict::Fail, &["80 of 100 connections held"]));
}

#[test]
fn a_step_by_rate_in_which_more_and_more_wait_fails() {
    let e = |search| Evidence { search, rate_backlog: Some(42), ..Evidence::default() };
    let why = "requests come faster than the target serves them on 100 connections: 42 waited at the end";
    check(held(), &[], e(Some(By::Rate)), (Verdict::Fail, &[why]));
    check(held(), &["held == 100"], e(Some(By::Rate)), (Verdict::Fail, &[why]));
    // A run waits for outstanding responses when its load ends.
    check(held(), &[], e(None), (Verdict::Pass, &[]));
}

#[test]
fn with_thresholds_they_alone_judge() {
    let none = Evidence::default;
    let mut s = held();
    s.connections.held = 99;
    s.faults = vec![fault(Stage::Hold, Kind::Reset, 1)];
    let seen = ["99 of 100", "the target reset 1 connection"];
    check(s.clone(), &["held >= 99%", "faults <= 1"], none(), (Verdict::Pass, &seen));
    let missed = "threshold faults == 0 failed: 1";
    check(
        s.clone(),
        &["held >= 99%", "faults == 0"],
        none(),
        (Verdict::Fail, &[missed, "99 of 100", "the target reset 1 connection"]),
    );
    check(held(), &["latency.p99 < 5ms"], none(), (Verdict::Fail, &["failed: 5.00 ms"]));
    check(held(), &["connect.p99 < 5s"], none(), (Verdict::Fail, &["cannot be judged"]));
}

#[test]
fn an_outstanding_request_never_passes() {
    let none = Evidence::default;
    let with = |sent, answered, unanswered| {
        let mut s = held();
        (s.requests.due, s.requests.sent) = (sent, sent);
        (s.requests.answered, s.requests.unanswered) = (answered, unanswered);
        s
    };
    check(with(500, 500, 0), &[], none(), (Verdict::Pass, &[]));
    let seen = "1 of 500 requests had no response when the run ended";
    check(with(500, 499, 1), &[], none(), (Verdict::Fail, &[seen]));
    check(with(500, 499, 1), &["held == 100"], none(), (Verdict::Fail, &[seen]));
    // Whatever happened to the requests otherwise.
    check(with(20, 0, 0), &[], none(), (Verdict::Fail, &["none of 20 requests had a response"]));
    let silent = "none of 20 requests had a response";
    check(with(20, 0, 0), &["held == 100"], none(), (Verdict::Fail, &[silent]));
    check(with(20, 0, 0), &["held == 100", "unanswered == 0"], none(), (Verdict::Fail, &[silent]));
    // The threshold asks for it.
    check(with(20, 0, 0), &["answered == 0"], none(), (Verdict::Pass, &[silent]));
    let mut s = held();
    s.probe = Some(probe(9, 8, 0, 1));
    check(s, &[], none(), (Verdict::Fail, &["probe: 1 request failed"]));
}

#[test]
fn a_percentile_among_those_without_a_response_is_not_met() {
    let mut s = held();
    let mut latency = samples::Latency::default();
    latency.record_n(units::Nanos::from_millis(5), 960);
    (0..40).for_each(|_| latency.censor());
    s.latency_us = latency.quantiles();
    let seen = "threshold latency.p99 < 50ms failed: 4.0 % had no response in time";
    check(s.clone(), &["latency.p99 < 50ms"], Evidence::default(), (Verdict::Fail, &[seen]));
    check(s.clone(), &["latency.p90 < 50ms"], Evidence::default(), (Verdict::Pass, &[]));
    // Only all requests are shown as 100 %.
    (0..2_000_000).for_each(|_| latency.censor());
    s.latency_us = latency.quantiles();
    let seen = "threshold latency.p99 < 50ms failed: >99.9 % had no response in time";
    check(s, &["latency.p99 < 50ms"], Evidence::default(), (Verdict::Fail, &[seen]));
}

#[test]
fn where_no_connection_was_left_thresholds_on_times_are_no_pass() {
    let check = |held: u64, dropped: u64, thresholds: &[&str], expected: Verdict| {
        let plan = plan(thresholds);
        let mut s = self::held();
        s.faults = vec![fault(Stage::Hold, Kind::Closed, dropped)];
        s.connections.held = held;
        s.thresholds = thresholds::judge(&plan.thresholds, &s);
        assert!(s.thresholds.iter().all(|result| result.pass), "{:?}", s.thresholds);
        let mut measured = PopulationRecord { wanted: 100, held, ..PopulationRecord::default() };
        measured.totals.counts.dropped = dropped;
        let evidence = Evidence::default();
        let facts = Facts { plan: &plan, evidence: &evidence, populations: &[measured], interrupted: None };
        pronounce(&facts, &mut s);
        assert_eq!(s.verdict, expected, "{held} {dropped} {thresholds:?}");
    };
    check(0, 100, &["latency.p99 < 50ms"], Verdict::Fail);
    check(1, 99, &["latency.p99 < 50ms"], Verdict::Pass);
    // A threshold on losses states which of them are allowed.
    check(0, 100, &["latency.p99 < 50ms", "held >= 0%"], Verdict::Pass);
    check(0, 100, &["latency.p99 < 50ms", "faults <= 100"], Verdict::Pass);
}

/// One of two populations has no connection: all were lost or refused.
#[test]
fn thresholds_of_a_population_do_not_excuse_another() {
    let check = |threshold: &str, of_a: [u64; 3], expected: Verdict| {
        let [opened, dropped, failed] = of_a;
        let plan = scenario(&format!(
            "duration = \"1s\"\nthresholds = [\"{threshold}\"]\n[[population]]\nname = \"a\"\nconnections = 10\n\
             [[population]]\nname = \"b\"\nconnections = 10\n"
        ));
        let mut s = self::held();
        s.thresholds = vec![samples::ThresholdResult { pass: true, ..Default::default() }];
        let [mut a, b] =
            [0, 10].map(|held| PopulationRecord { wanted: 10, held, ..PopulationRecord::default() });
        let counts = &mut a.totals.counts;
        (counts.opened, counts.dropped, counts.failed) = (opened, dropped, failed);
        let evidence = Evidence::default();
        let facts = Facts { plan: &plan, evidence: &evidence, populations: &[a, b], interrupted: None };
        pronounce(&facts, &mut s);
        assert_eq!(s.verdict, expected, "{threshold} {of_a:?}");
    };
    for of_a in [[10, 10, 0], [0, 0, 10]] {
        check("latency.p99 < 500ms", of_a, Verdict::Fail);
        check("b.latency.p99 < 500ms", of_a, Verdict::Fail);
        check("b.errors < 1%", of_a, Verdict::Fail);
        check("a.errors <= 99%", of_a, Verdict::Pass);
        check("errors <= 50%", of_a, Verdict::Pass);
    }
}

fn probe(sent: u64, answered: u64, failed: u64, unanswered: u64) -> samples::ProbeSummary {
    samples::ProbeSummary { rate: 10.0, sent, answered, failed, unanswered, ..Default::default() }
}

#[test]
fn a_step_fails_by_its_own_probes_alone() {
    let step = || Evidence { search: Some(By::Connections), ..Evidence::default() };
    let mut s = held();
    s.probe = Some(probe(40, 37, 3, 0));
    check(s.clone(), &[], Evidence::default(), (Verdict::Fail, &["probe: 3 requests failed"]));
    check(s.clone(), &[], step(), (Verdict::Pass, &[]));
    let mut own = probe(40, 37, 3, 0);
    own.held_us.censored = Some(samples::Censored { count: 1, ..Default::default() });
    s.probe = Some(own);
    s.faults = vec![fault(Stage::Hold, Kind::Reset, 2)];
    check(s, &[], step(), (Verdict::Fail, &["the target reset 2 connections", "probe: 1 request failed"]));
}

#[test]
fn a_late_generator_is_invalid_where_time_is_judged() {
    let none = Evidence::default;
    let mut s = held();
    s.lag_us.p99 = 20_000.0;
    let late = "throng was late: lag p99 20.0 ms > 10.0 ms (--max-lag)";
    check(s.clone(), &[], none(), (Verdict::Invalid, &[late]));
    check(s.clone(), &["latency.p99 < 1s"], none(), (Verdict::Invalid, &[late]));
    check(s.clone(), &["held == 100"], none(), (Verdict::Pass, &["warning: throng was late"]));
    check(s.clone(), &["requests.per_s >= 1k"], none(), (Verdict::Pass, &["warning: throng"]));
    check(s, &["requests.per_s >= 2k"], none(), (Verdict::Invalid, &[late, "not judged: 1,000/s"]));
}

/// Failures of the target count, however late throng was; only figures that throng itself may have affected are not judged.
#[test]
fn a_late_generator_does_not_hide_a_failure() {
    let none = Evidence::default;
    let late = "times are not reliable: throng was late: lag p99 20.0 ms > 10.0 ms (--max-lag)";
    let (void, slow) = ("throng was late", "threshold latency.p99 < 1ms not judged: 5.00 ms");
    let wrong = |errors: u64, missed: u64| {
        let mut s = held();
        s.lag_us.p99 = 20_000.0;
        (s.requests.sent, s.requests.answered, s.requests.missed) = (1_000 - missed, 1_000 - missed, missed);
        s.faults = vec![fault(Stage::Exchange, Kind::WrongStatus, errors)];
        (s.requests.due, s.requests.wrong) = (1_000, errors);
        s.errors = samples::Errors { count: errors + missed, of: 1_000 };
        s
    };
    let (failed, status) = ("threshold errors < 1% failed: 4.8 %", "unexpected status × 48");
    check(
        wrong(48, 0),
        &["errors < 1%", "latency.p99 < 1ms"],
        none(),
        (Verdict::Fail, &[failed, slow, status, late]),
    );
    check(wrong(48, 0), &[], none(), (Verdict::Fail, &[status, late]));
    check(
        wrong(8, 0),
        &["errors < 1%", "latency.p99 < 1ms"],
        none(),
        (Verdict::Invalid, &[void, slow, "unexpected status × 8"]),
    );
    // Requests that throng may have missed because it was late are not counted.
    let (failed, missed) = ("threshold errors < 1% failed: 5.8 %", "10 requests were due but not sent");
    check(
        wrong(48, 10),
        &["errors < 1%", "latency.p99 < 1s"],
        none(),
        (Verdict::Fail, &[failed, missed, status, late]),
    );
    let open = "threshold errors < 1% not judged: 1.3 %";
    check(
        wrong(8, 5),
        &["errors < 1%", "latency.p99 < 1s"],
        none(),
        (Verdict::Invalid, &[void, open, "5 requests", "unexpected status × 8"]),
    );
    // If more requests have no response than the percentile allows, throng's lateness does not matter.
    let mut s = wrong(48, 0);
    let mut latency = samples::Latency::default();
    latency.record_n(units::Nanos::from_millis(5), 952);
    (0..48).for_each(|_| latency.censor());
    s.latency_us = latency.quantiles();
    let failed = "threshold latency.p99 < 1s failed: 4.8 % had no response in time";
    check(s, &["latency.p99 < 1s"], none(), (Verdict::Fail, &[failed, status, late]));
    // If throng was late by as much as the timeout, timeouts are attributed to throng; other faults are not.
    let slow = |kind| {
        let mut s = held();
        (s.lag_us.p99, s.lag_us.max) = (20_000.0, 8e6);
        s.faults = vec![fault(Stage::Exchange, kind, 9)];
        s
    };
    let timeout = || Evidence { timeout: units::Nanos::from_secs(10), ..none() };
    check(slow(Kind::Timeout), &[], timeout(), (Verdict::Invalid, &[void, "9 "]));
    check(
        slow(Kind::Timeout),
        &["faults == 0", "latency.p99 < 1s"],
        timeout(),
        (Verdict::Invalid, &[void, "not judged: 9", "9 "]),
    );
    check(slow(Kind::Reset), &[], timeout(), (Verdict::Fail, &["9 ", late]));
}

#[test]
fn a_time_in_which_throng_stood_still_is_not_judged_where_it_decides() {
    let took = |time, stalled| samples::Took { time: units::Nanos::from_millis(time), stalled };
    let mut connect = samples::Latency::default();
    (0..980).for_each(|_| connect.record_seen(took(2, units::Nanos::ZERO)));
    (0..20).for_each(|_| connect.record_seen(took(3, units::Nanos::from_millis(40))));
    let check = |threshold: &str, expected: (Verdict, &[&str])| {
        let mut s = held();
        s.connect_us = connect.quantiles();
        super::tests::check(s, &[threshold], Evidence::default(), expected);
    };
    check("connect.p99 < 50ms", (Verdict::Pass, &[]));
    check("connect.p90 < 20ms", (Verdict::Pass, &[]));
    check(
        "connect.p99 < 20ms",
        (Verdict::Invalid, &["cannot be judged: throng stalled, so the value is between 3."]),
    );
    // Not met, however much time is subtracted.
    check("connect.p99 < 2ms", (Verdict::Fail, &["failed: 3.00 ms"]));
    // The same if dials without a connection decide: they exceed all measured times, with or without the stall.
    (0..30).for_each(|_| connect.censor());
    let mut s = held();
    s.connect_us = connect.quantiles();
    let seen = ["failed: 2.9 % had no connection"];
    super::tests::check(s, &["connect.p99 < 20ms"], Evidence::default(), (Verdict::Fail, &seen));
}

#[test]
fn a_saturated_generator_is_invalid_where_latency_is_judged() {
    let own = OwnSeen { cpu_share: 0.99, demand: 1.0 };
    let busy = || Evidence { own: Some(own), ..Evidence::default() };
    check(held(), &[], busy(), (Verdict::Pass, &[]));
    check(held(), &["latency.p99 < 1s"], busy(), (Verdict::Invalid, &["threads used 99 %"]));
    check(held(), &["requests.per_s >= 1k"], busy(), (Verdict::Pass, &[]));
    let seen = ["threads used 99 %", "not judged: 1,000/s"];
    check(held(), &["requests.per_s >= 2k"], busy(), (Verdict::Invalid, &seen));
    let mut s = held();
    (s.lag_us.p99, s.requests.lower_bound) = (20_000.0, true);
    check(s.clone(), &[], busy(), (Verdict::Pass, &["warning: throng was late"]));
    check(s, &["latency.p99 < 1s"], busy(), (Verdict::Invalid, &["throng was late"]));
}

#[test]
fn failed_dials_of_our_own_make_a_run_invalid() {
    let mut s = held();
    s.faults = vec![FaultCount::new(Fault::host(Stage::Dial, Kind::AddressInUse), 5)];
    let seen = [
        "5 connections could not be dialled",
        "5 dials failed on this machine: no free local address and port",
    ];
    check(s.clone(), &[], Evidence::default(), (Verdict::Invalid, &seen));
    check(s, &["held == 100"], Evidence::default(), (Verdict::Invalid, &seen));
    // Nothing is known about connections that were not dialled; what the others met is a failure.
    let mut s = held();
    s.connections.held = 95;
    s.faults = vec![FaultCount::new(Fault::host(Stage::Dial, Kind::AddressInUse), 5)];
    let open = "threshold held >= 96% not judged: 95 %";
    check(
        s.clone(),
        &["held >= 96%"],
        Evidence::default(),
        (Verdict::Invalid, &[seen[0], open, "95 of 100", seen[1]]),
    );
    s.faults.push(fault(Stage::Exchange, Kind::WrongStatus, 3));
    let void = "times are not reliable: 5 connections could not be dialled";
    check(
        s,
        &[],
        Evidence::default(),
        (Verdict::Fail, &["95 of 100", seen[1], "unexpected status × 3", void]),
    );
}

#[test]
fn ends_that_disagree_fail() {
    let evidence =
        || Evidence { both_sides: Some(BothSides { here: 100, there: 50 }), ..Evidence::default() };
    check(held(), &[], evidence(), (Verdict::Fail, &["the two ends disagree: 100"]));
    check(held(), &["held == 100"], evidence(), (Verdict::Fail, &["the two ends disagree"]));
    // The target has all of them, though some were closed after the first count.
    let paired = |missing| Evidence { missing: Some(missing), ..evidence() };
    check(held(), &[], paired(0), (Verdict::Pass, &[]));
    // Connections that exist only here were lost to their timeouts after the load had ended.
    let mut s = held();
    (s.connections.held, s.connections.dropped_in_drain) = (50, 50);
    let expected =
        ["threshold held >= 99% failed: 50", "50 of 100 connections held", "the two ends disagree"];
    check(s, &["held >= 99%"], paired(50), (Verdict::Fail, &expected));
}

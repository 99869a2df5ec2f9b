//! Steps and populations that what went wrong is of.

use samples::{PopulationSummary, StepSummary};

use super::*;

/// A population with these faults, and with these of its steps.
fn population(faults: &[FaultCount], steps: &[(&str, &[FaultCount])]) -> PopulationSummary {
    let step = |(name, faults): &(&str, &[FaultCount])| {
        ((*name).to_owned(), StepSummary { faults: faults.to_vec(), ..StepSummary::default() })
    };
    let steps = steps.iter().map(step).collect();
    let mut own = PopulationSummary { steps, ..PopulationSummary::default() };
    (own.faults, own.requests.sent) = (faults.to_vec(), 1_000);
    own
}

/// A run of these populations that has all of their faults.
fn run(populations: &[(&str, PopulationSummary)]) -> Summary {
    let mut s = stopped(1_000, populations.iter().flat_map(|(_, own)| own.faults.clone()).collect());
    s.requests.sent = populations.iter().map(|(_, own)| own.requests.sent).sum();
    s.populations = populations.iter().map(|(name, own)| ((*name).to_owned(), own.clone())).collect();
    s
}

fn check(populations: &[(&str, PopulationSummary)], expected: &str) {
    let evidence = Evidence {
        timeout: Nanos::from_secs(10),
        ..lost(Pattern { had_responses: true, ..Pattern::default() })
    };
    assert_eq!(limit(&run(populations), &evidence).expect("it is bad").sentence, expected);
}

#[test]
fn the_step_or_the_population_that_has_all_is_named() {
    let text = |n| fault(Stage::Exchange, Kind::WrongBody, n);
    let slow = |n| fault(Stage::Exchange, Kind::Timeout, n);
    let closed = |n| fault(Stage::Exchange, Kind::Closed, n);
    let alone = |own: PopulationSummary| check(&[("users", own)], "response without the expected text × 20");
    alone(population(&[text(20)], &[]));
    alone(population(&[text(20)], &[("login", &[text(11)]), ("look", &[text(9)])]));
    let of =
        |login: u64| population(&[text(20)], &[("login", &[text(login)]), ("look", &[text(20 - login)])]);
    check(&[("users", of(20))], "response without the expected text × 20, all in step login");
    check(&[("users", of(19))], "response without the expected text × 20, nearly all in step login");
    check(&[("users", of(18))], "response without the expected text × 20");
    let one = population(&[text(1)], &[("login", &[text(1)])]);
    check(&[("users", one)], "response without the expected text × 1, in step login");
    let idle = || population(&[], &[]);
    check(
        &[("idle", idle()), ("users", of(20))],
        "response without the expected text × 20, all in step users.login",
    );
    check(
        &[("idle", idle()), ("users", of(10))],
        "response without the expected text × 20, all in population users",
    );
    let plain = population(&[slow(5)], &[]);
    check(&[("idle", idle()), ("users", plain)], "5 requests timed out after 10 s, all in population users");
    let steps = population(&[slow(5)], &[("look", &[slow(5)])]);
    check(&[("users", steps)], "5 requests timed out after 10 s, all in step look");
    // What is counted with a step is of the fault that is spoken of.
    let other = population(&[slow(5), text(4)], &[("login", &[text(4)]), ("look", &[slow(5)])]);
    check(&[("users", other)], "5 requests timed out after 10 s, all in step look");
    let lost = population(&[closed(5)], &[]);
    check(
        &[("idle", idle()), ("users", lost)],
        "the target closed 5 connections instead of a response (1 of 200 requests), all in population users",
    );
}

#[test]
fn what_waits_still_when_the_run_ends_is_no_steps() {
    let slow = |n| fault(Stage::Exchange, Kind::Timeout, n);
    let mut users = population(&[slow(5)], &[("look", &[slow(5)])]);
    users.requests.unanswered = 5;
    let mut s = run(&[("users", users)]);
    s.requests.unanswered = 5;
    let sentence = limit(&s, &Evidence::default()).expect("it is bad").sentence;
    assert!(sentence.starts_with("10 requests timed out") && !sentence.contains("step"), "{sentence}");
}

#[test]
fn what_another_population_met_is_not_why_the_thresholds_of_one_failed() {
    let wrong = fault(Stage::Exchange, Kind::WrongStatus, 500);
    let (bad, mut slow) = (population(&[wrong], &[]), population(&[], &[]));
    slow.latency_us.p99 = 9e4;
    let mut s = run(&[("bad", bad), ("slow", slow)]);
    s.requests.status = [(500, 500)].into();
    let found = |s: &Summary, evidence: &Evidence| {
        let limit = limit_of("slow", s, evidence).expect("a threshold failed");
        (limit.cause.name(), limit.sentence)
    };
    assert_eq!(limit(&s, &Evidence::default()).expect("it is bad").cause, Cause::WrongAnswer);
    assert_eq!(found(&s, &Evidence::default()).0, "unknown");
    // What was seen of the target is a cause for each.
    let busy = target(TargetSeen { cpu_thread: Some(1.0), cpu_share: 0.5, ..TargetSeen::default() });
    assert_eq!(found(&s, &busy).0, "cpu");
    let gone = target(TargetSeen { ended: true, ..TargetSeen::default() });
    s.faults.push(fault(Stage::Hold, Kind::Closed, 600));
    assert_eq!(found(&s, &gone).0, "ended");
    // Its own are a cause.
    let own = fault(Stage::Exchange, Kind::WrongBody, 3);
    s.populations.get_mut("slow").expect("it is there").faults.push(own);
    let sentence = found(&s, &Evidence::default()).1;
    assert_eq!(sentence, "response without the expected text × 3, all in population slow");
}

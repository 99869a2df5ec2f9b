//! The steps and populations in which something went wrong.

use samples::{PopulationSummary, StepSummary};

use super::*;
use crate::evidence::Stall;

/// A population with these faults, and these faults of its steps.
fn population(faults: &[FaultCount], steps: &[(&str, &[FaultCount])]) -> PopulationSummary {
    let step = |(name, faults): &(&str, &[FaultCount])| {
        ((*name).to_owned(), StepSummary { faults: faults.to_vec(), ..StepSummary::default() })
    };
    let steps = steps.iter().map(step).collect();
    let mut own = PopulationSummary { steps, ..PopulationSummary::default() };
    (own.faults, own.requests.sent) = (faults.to_vec(), 1_000);
    own
}

/// A run of these populations, with all their faults.
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
    // The step in the sentence is that of the fault in the sentence.
    let other = population(&[slow(5), text(4)], &[("login", &[text(4)]), ("look", &[slow(5)])]);
    check(&[("users", other)], "5 requests timed out after 10 s, all in step look");
    let lost = population(&[closed(5)], &[]);
    check(
        &[("idle", idle()), ("users", lost)],
        "the target closed 5 connections instead of responding (1 in 200 requests), all in population users",
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

/// Cause and sentence if only thresholds of a population failed, or of one of its steps.
fn found(step: Option<&str>, is_latency: bool, s: &Summary, evidence: &Evidence) -> (&'static str, String) {
    let scope = Scope { population: Some("slow"), step, is_latency };
    let limit = super::super::limit(s, evidence, scope).expect("a threshold failed");
    (limit.cause.name(), limit.sentence)
}

#[test]
fn what_another_population_met_is_not_why_the_thresholds_of_one_failed() {
    let wrong = fault(Stage::Exchange, Kind::WrongStatus, 500);
    let (bad, mut slow) = (population(&[wrong], &[]), population(&[], &[]));
    (slow.latency_us.count, slow.latency_us.p99, slow.requests.answered) = (1_000, 9e4, 1_000);
    let mut s = run(&[("bad", bad), ("slow", slow)]);
    s.requests.status = [(500, 500)].into();
    assert_eq!(limit(&s, &Evidence::default()).expect("it is bad").cause, Cause::WrongAnswer);
    let of_it = |s: &Summary, e: &Evidence| found(None, true, s, e);
    assert_eq!(of_it(&s, &Evidence::default()).0, "unknown");
    // A busy target is slow for every population; other observations concern only some.
    let busy = target(TargetSeen { cpu_thread: Some(1.0), cpu_share: 0.5, ..TargetSeen::default() });
    assert_eq!(of_it(&s, &busy).0, "cpu");
    let idle = |n| lost(Pattern { silence: Some(Nanos::from_secs(n)), ..Pattern::default() });
    s.faults.push(fault(Stage::Hold, Kind::Closed, 600));
    assert_eq!(of_it(&s, &idle(60)).0, "unknown");
    let mut stopped = Evidence { stopped: Some((2.0, 3.0)), ..Evidence::default() };
    assert_eq!(of_it(&s, &stopped).0, "unknown");
    s.populations.get_mut("slow").expect("it is there").latency_us.max = 9e5;
    assert_eq!(of_it(&s, &stopped).0, "stall");
    stopped.stopped = None;
    // The silence of a population with a similar name is not a cause either.
    let stall = Stall { from_s: 8.0, until_s: 10.0, count: 1, is_over: true, ..Stall::default() };
    let silent =
        |of: &str| Evidence { stall: Some(stall), stall_of: Some(of.to_owned()), ..Evidence::default() };
    let own = Scope { population: Some("slow"), step: None, is_latency: true };
    let stall = |of: &str| Case::of(&s, &silent(of), own).stall();
    assert!(stall("slower").is_none() && stall("slow").is_some());
    // Faults of this population are a cause; of a slow threshold, only if there are many.
    let own = fault(Stage::Exchange, Kind::WrongBody, 3);
    s.populations.get_mut("slow").expect("it is there").faults.push(own);
    assert_eq!(of_it(&s, &Evidence::default()).0, "unknown");
    let wrong = ("wrong-answer", "response without the expected text × 3, all in population slow".to_owned());
    assert_eq!(found(None, false, &s, &Evidence::default()), wrong);
    s.populations.get_mut("slow").expect("it is there").requests.answered = 30;
    assert_eq!(of_it(&s, &Evidence::default()), wrong);
}

#[test]
fn what_another_step_met_is_not_why_the_thresholds_of_one_failed() {
    let text = |n| fault(Stage::Exchange, Kind::WrongBody, n);
    let status = |n| fault(Stage::Exchange, Kind::WrongStatus, n);
    let steps: &[(&str, &[FaultCount])] = &[("buy", &[status(133)]), ("look", &[text(33)])];
    let mut s = run(&[("slow", population(&[status(133), text(33)], steps))]);
    s.requests.status = [(500, 133)].into();
    s.populations.get_mut("slow").expect("it is there").requests.status = [(500, 133)].into();
    let of = |step| found(Some(step), false, &s, &Evidence::default()).1;
    assert_eq!(of("look"), "response without the expected text × 33, all in step look");
    // Whose the statuses are is not known, where others went wrong besides.
    assert_eq!(of("buy"), "unexpected status × 133, all in step buy");
}

#[test]
fn slow_responses_are_those_of_what_is_judged() {
    let part = |ms| SlowPart { share: 0.2, slow: Nanos::from_millis(ms), usual: Nanos::from_millis(1) };
    let e = Evidence {
        slow_parts: vec![
            (("slow".to_owned(), None), part(300)),
            (("slow".to_owned(), Some("look".to_owned())), part(400)),
        ],
        ..Evidence::default()
    };
    let steps: &[(&str, &[FaultCount])] = &[("buy", &[]), ("look", &[])];
    let mut s = run(&[("slow", population(&[], steps))]);
    for (step, expr, expected) in [
        (None, "slow.latency.p99 < 100ms", "20 % of responses took 300 ms, the others 1.0 ms"),
        (Some("look"), "slow.look.latency.p99 < 100ms", "20 % of responses took 400 ms, the others 1.0 ms"),
    ] {
        s.thresholds =
            vec![ThresholdResult { expr: expr.to_owned(), value: Some(4e5), ..ThresholdResult::default() }];
        assert_eq!(found(step, true, &s, &e).1, expected);
    }
}

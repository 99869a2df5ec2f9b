//! Causes that the answers of experiments decide.

use super::*;
use record::answers::{Answer, Answers, Experiment, Outcome};

fn answers(all: &[(Experiment, Outcome)]) -> Answers {
    let answer = |(experiment, outcome): &(Experiment, Outcome)| Answer {
        experiment: *experiment,
        why: String::new(),
        outcome: outcome.clone(),
        open: 500,
        at: Nanos::ZERO,
        took: Nanos::ZERO,
    };
    Answers(all.iter().map(answer).collect())
}

fn not_served() -> Outcome {
    Outcome::Failed(fault(Stage::Exchange, Kind::Timeout, 1))
}

fn served(ms: u64) -> Outcome {
    Outcome::Served(Nanos::from_millis(ms))
}

#[test]
fn a_target_that_serves_one_more_once_half_are_gone_is_full() {
    let silent = || stopped(500, of(Fault::target(Stage::Exchange, Kind::Timeout), 300));
    let check = |s: &Summary, all: &[(Experiment, Outcome)], expected: (&str, &str)| {
        let e = Evidence { answers: answers(all), ..lost(Pattern::default()) };
        let found = limit(s, &e).expect("it is bad");
        assert_eq!((found.cause.name(), found.certainty.name()), expected, "{found:?}");
    };
    let full = ("connection-limit", "seen");
    check(&silent(), &[(Experiment::Pause, not_served()), (Experiment::Half, served(1))], full);
    check(&silent(), &[(Experiment::Pause, not_served()), (Experiment::OtherSource, served(1))], full);
    // Not a limit on connections: the target is broken, has room again, or was not asked; or dials failed, which the path may have dropped.
    let timeout = ("timeout", "guess");
    check(&silent(), &[(Experiment::Pause, not_served()), (Experiment::Half, not_served())], timeout);
    check(&silent(), &[(Experiment::Pause, served(1))], timeout);
    check(&silent(), &[], timeout);
    let dials = stopped(500, of(Fault::target(Stage::Dial, Kind::Timeout), 300));
    check(&dials, &[(Experiment::Pause, not_served()), (Experiment::Half, served(1))], timeout);
}

#[test]
fn requests_that_are_fast_alone_wait_for_each_other_where_there_is_cpu_left() {
    let mut s = Summary { verdict: Verdict::Fail, ..stopped(100, Vec::new()) };
    s.thresholds = vec![ThresholdResult { value: Some(2e6), ..ThresholdResult::default() }];
    (s.requests.per_s, s.latency_us.p50) = (80.0, 1.2e6);
    let e = |alone_ms, cores_used| {
        let seen = target(TargetSeen { cores_used, ..TargetSeen::default() });
        Evidence { answers: answers(&[(Experiment::Alone, served(alone_ms))]), ..seen }
    };
    let found = limit(&s, &e(50, 0.2)).expect("a threshold failed");
    assert_eq!((found.cause.name(), found.side.name()), ("saturated", "target"), "{found:?}");
    assert!(found.sentence.starts_with("the target works on about 4 requests at a time"), "{found:?}");
    for e in [e(50, 0.6), e(700, 0.2), Evidence { target: None, ..e(50, 0.2) }] {
        assert_eq!(limit(&s, &e).expect("a threshold failed").cause.name(), "unknown");
    }
}

//! What a search learns from its steps.

use std::ops::Range;

use samples::{Certainty, Kind, Stage};

use super::{criteria::HOLD_SOME, *};
use crate::fixture::{fault, plan};

fn limit(cause: Cause, at_connections: u64) -> Limit {
    let fix = cause.name().to_owned();
    Limit { side: Side::Target, cause, at_connections, certainty: Certainty::Seen, fix, ..Limit::default() }
}

/// Steps of these loads, each with its limit; one without has passed. The load of the limit that is kept, and its fix.
fn kept(steps: &[(u64, Option<Limit>)]) -> Option<(u64, String)> {
    let mut known = Known { search: Search::new(1, 500, 4_000, TOLERANCE), ..Known::default() };
    for (load, limit) in steps {
        let verdict = if limit.is_some() { Verdict::Fail } else { Verdict::Pass };
        let mut s = Summary { verdict, limit: limit.clone(), ..Summary::default() };
        s.connections.held = if limit.is_some() { 0 } else { *load };
        assert_eq!(known.search.step().map(|step| step.load), Some(*load));
        known.learn(By::Connections, *load, s.clone(), &mut |_| {});
        if known.is_again {
            known.learn(By::Connections, *load, s, &mut |_| {});
        }
    }
    if known.search.outcome().is_none() {
        known.search.fail_for_good();
    }
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    found.limit_load.zip(found.limit.map(|limit| limit.fix))
}

#[test]
fn what_was_not_measured_is_no_time_of_zero() {
    let times =
        |p: &Point| [p.latency_p50_us, p.latency_p95_us, p.latency_p99_us, p.probe_p99_us, p.connect_p99_us];
    let mut s = Summary { probe: Some(samples::ProbeSummary::default()), ..Summary::default() };
    assert_eq!(times(&point(500, &s, Vec::new())), [None; 5]);
    let measured = Quantiles { count: 3, p50: 5.0, p95: 7.0, p99: 9.0, ..Quantiles::default() };
    (s.latency_us, s.connect_us) = (measured, measured);
    let expected = [Some(5.0), Some(7.0), Some(9.0), None, Some(9.0)];
    assert_eq!(times(&point(500, &s, Vec::new())), expected);
}

#[test]
fn a_limit_has_the_load_that_showed_it() {
    let (files, closed) = (|| Some(limit(Cause::OpenFiles, 700)), || Some(limit(Cause::Closed, 700)));
    let check = |steps: &[(u64, Option<Limit>)], load, fix: &str| {
        assert_eq!(kept(steps), Some((load, fix.to_owned())), "{steps:?}");
    };
    check(&[(500, None), (1_000, closed()), (750, closed())], 750, "closed");
    check(&[(500, None), (1_000, files()), (750, closed())], 1_000, "open-files");
}

/// A step that was held, with this p99 of the probe.
fn probed(held: u64, verdict: Verdict, p99_ms: f64) -> Summary {
    let held_us = Quantiles { count: 100, p99: p99_ms * 1e3, ..Quantiles::default() };
    let probe = Some(samples::ProbeSummary { sent: 100, held_us, ..Default::default() });
    let mut s = Summary { verdict, probe, ..Summary::default() };
    s.connections.held = held;
    s
}

/// The target was cold at the first load.
#[test]
fn steps_are_compared_with_the_fastest_that_passed() {
    let mut known = Known { search: Search::new(1, 500, 4_000, TOLERANCE), ..Known::default() };
    for (load, p99_ms) in [(500, 300.0), (1_000, 3.0), (2_000, 50.0)] {
        known.learn(By::Connections, load, probed(load, Verdict::Pass, p99_ms), &mut |_| {});
    }
    let passed: Vec<bool> = known.curve.iter().map(|point| point.pass).collect();
    assert_eq!(passed, [true, true, false]);
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    assert_eq!(found.baseline.map(|baseline| baseline.load), Some(1_000));
}

/// A target that takes 1 ms up to 200 connections, and 152 ms beyond.
#[test]
fn a_target_that_is_slow_at_the_largest_load_is_compared_with_an_idle_one() {
    let search = Search::new(1, 500, 400, TOLERANCE).beginning_with(4);
    let mut known = Known { search, ..Known::default() };
    while let Some(Step { load, .. }) = known.search.step() {
        let p99_ms = if load <= 200 { 1.0 } else { 152.0 };
        known.learn(By::Connections, load, probed(load, Verdict::Pass, p99_ms), &mut |_| {});
    }
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    assert_eq!(found.baseline.map(|baseline| (baseline.load, baseline.allowed_us)), Some((4, 21_000.0)));
    assert_eq!(found.outcome, FindOutcome::Found);
    assert!((196..=200).contains(&found.max) && found.max + found.error > 200, "{found:?}");
}

/// Whether a load of 1,000 has been judged after steps at it with these p99 of the probe, where 500 connections had 1 ms; and how often
/// it is on the curve.
fn judged(verdict: Verdict, probes_ms: &[f64]) -> (bool, usize) {
    let mut known = Known { search: Search::new(1, 500, 4_000, TOLERANCE), ..Known::default() };
    known.learn(By::Connections, 500, probed(500, Verdict::Pass, 1.0), &mut |_| {});
    for ms in probes_ms {
        known.learn(By::Connections, 1_000, probed(1_000, verdict, *ms), &mut |_| {});
    }
    let times = known.curve.iter().filter(|point| point.load == 1_000).count();
    (known.search.step().is_none_or(|step| step.load != 1_000), times)
}

/// Searches with one step of 500 connections; whether that ended the search, why it failed, and what stopped it.
fn closing(closed: u64, redialled: u64, held: u64) -> (bool, Option<String>, Option<String>) {
    let mut known = Known { search: Search::new(1, 500, 4_000, TOLERANCE), ..Known::default() };
    let mut s = Summary { verdict: Verdict::Pass, ..Summary::default() };
    let c = &mut s.connections;
    (c.opened, c.closed, c.redialled, c.held) = (500, closed, redialled, held);
    known.learn(By::Connections, 500, s, &mut |_| {});
    let limit = known.limit.as_ref().map(|(_, limit)| limit.sentence_with_fix());
    (known.search.outcome().is_some(), known.curve[0].reasons.first().cloned(), limit)
}

#[test]
fn a_wrong_status_of_every_response_ends_the_search() {
    let mut known = Known { search: Search::new(1, 500, 4_000, TOLERANCE), ..Known::default() };
    let (wrong, lost) = (Some(limit(Cause::WrongAnswer, 500)), Some(limit(Cause::Closed, 62)));
    let mut s = Summary { verdict: Verdict::Fail, limit: wrong, ..Summary::default() };
    s.faults = vec![fault(Stage::Exchange, Kind::WrongStatus, 500)];
    (s.connections.held, s.requests.sent, s.requests.answered) = (500, 500, 500);
    s.requests.status.insert(503, 500);
    (0..2).for_each(|_| known.learn(By::Connections, 500, s.clone(), &mut |_| {}));
    assert_eq!(known.search.outcome(), None, "a smaller load may be served");
    // What closed the connections later is not why none passes.
    known.explain(62, lost);
    assert_eq!(
        known.limit.as_ref().map(|(load, limit)| (*load, limit.cause)),
        Some((500, Cause::WrongAnswer))
    );
    s.requests.status = [(401, 500)].into();
    known.learn(By::Connections, 62, s, &mut |_| {});
    assert_eq!(known.search.outcome(), Some(Outcome::Impossible { least: 1 }));
}

#[test]
fn a_figure_that_no_step_measures_ends_the_search() {
    let mut known = Known { search: Search::new(1, 500, 4_000, TOLERANCE), ..Known::default() };
    let unknown = Some(limit(Cause::Unknown, 500));
    let mut s = Summary { verdict: Verdict::Fail, limit: unknown, ..Summary::default() };
    let why = "threshold latency.p99 < 200ms cannot be judged: nothing was measured".to_owned();
    s.reasons = vec![why.clone()];
    s.thresholds =
        vec![ThresholdResult { expr: "latency.p99 < 200ms".to_owned(), ..ThresholdResult::default() }];
    s.connections.held = 500;
    known.learn(By::Connections, 500, s, &mut |_| {});
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    assert_eq!((found.outcome, found.curve.len()), (FindOutcome::Impossible, 1));
    let limit = found.limit.expect("it is known");
    assert_eq!((found.criterion, limit.sentence), (Some(why.clone()), why));
    assert!(limit.fix.contains("--think"), "{}", limit.fix);
}

/// What confirms a load holds its connections, and dials and sends nothing.
#[test]
fn a_step_that_measures_nothing_confirms_what_passed() {
    let result = |pass: bool| ThresholdResult {
        expr: "errors < 1%".to_owned(),
        value: pass.then_some(0.0),
        shown: if pass { "0 %".to_owned() } else { String::new() },
        pass,
        unreliable: false,
    };
    let outcome = |held_by_last: u64| {
        let mut known = Known { search: Search::new(1, 50, 100, TOLERANCE), ..Known::default() };
        let steps = [(50, 50), (100, 0), (100, 0), (75, 75), (87, 0), (81, 0), (78, 0), (76, 0), (76, 0)];
        for (load, held) in steps {
            let (is_there, of_load) = (held == load, result(held == load));
            let verdict = if is_there { Verdict::Pass } else { Verdict::Fail };
            let mut s = Summary { verdict, thresholds: vec![of_load], ..Summary::default() };
            s.faults = if is_there { Vec::new() } else { vec![fault(Stage::Hold, Kind::Reset, load)] };
            s.connections.held = held;
            assert_eq!(known.search.step().map(|step| step.load), Some(load));
            known.learn(By::Connections, load, s, &mut |_| {});
        }
        let mut s = Summary { verdict: Verdict::Fail, thresholds: vec![result(false)], ..Summary::default() };
        s.connections.held = held_by_last;
        known.learn(By::Connections, 75, s, &mut |_| {});
        let is_over = known.search.outcome().is_some();
        let found = known.into_summary(By::Connections, &plan(&[]), None);
        (is_over, found.max, found.thresholds.first().is_some_and(|result| result.pass))
    };
    assert_eq!(outcome(75), (true, 75, true));
    assert!(!outcome(60).0, "some are gone");
}

#[test]
fn a_short_step_shows_that_each_connection_is_closed() {
    // Of 50 connections 10 still wait for their response.
    let mut s = Summary { verdict: Verdict::Pass, ..Summary::default() };
    (s.connections.opened, s.connections.closed, s.connections.held) = (50, 40, 10);
    (s.requests.sent, s.requests.answered) = (50, 40);
    assert!(holds_none(50, &s));
    // With a status that turns them away, it is a limit.
    s.faults = vec![fault(Stage::Exchange, Kind::WrongStatus, 30)];
    assert!(!holds_none(50, &s));
    s.faults.clear();
    // They had their responses, and stay open.
    s.requests.answered = 50;
    assert!(!holds_none(50, &s));
    // A slow target has closed one so far.
    (s.connections.closed, s.connections.held, s.requests.answered) = (1, 49, 1);
    assert!(!holds_none(50, &s));
}

#[test]
fn a_target_that_closes_each_connection_holds_none() {
    for (closed, redialled, held) in [(500, 0, 0), (2_500, 2_003, 3)] {
        let limit = format!("{HOLDS_NONE}; {HOLD_SOME}");
        assert_eq!(closing(closed, redialled, held), (true, Some(HOLDS_NONE.to_owned()), Some(limit)));
    }
    // Some are closed after some requests, and dialled again.
    assert_eq!(closing(200, 0, 300), (false, None, None));
    assert_eq!(closing(0, 0, 500), (false, None, None));
}

#[test]
fn what_a_busy_moment_may_have_failed_is_measured_once_more() {
    assert_eq!(judged(Verdict::Pass, &[2.0]), (true, 1));
    assert_eq!(judged(Verdict::Pass, &[31.0]), (false, 1));
    assert_eq!(judged(Verdict::Pass, &[31.0, 2.0]), (true, 2));
    assert_eq!(judged(Verdict::Pass, &[31.0, 31.0]), (true, 2));
    assert_eq!(judged(Verdict::Invalid, &[2.0]), (false, 1));
    // Whatever it was that failed the first time.
    assert_eq!(judged(Verdict::Fail, &[31.0]), (false, 1));
    assert_eq!(judged(Verdict::Fail, &[31.0, 31.0]), (true, 2));
}

/// A step by rate for a second.
fn step_by_rate(per_s: f64, failed: bool) -> Summary {
    let verdict = if failed { Verdict::Fail } else { Verdict::Pass };
    let limit = failed.then(|| limit(Cause::Closed, 50));
    let mut s = Summary { verdict, limit, ..Summary::default() };
    (s.duration_s, s.requests.per_s) = (1.0, per_s);
    s.reasons = vec!["the target reset 20 connections".to_owned(); usize::from(failed)];
    s
}

/// Learns from steps by rate, each with its load, the responses of a second, and whether anything failed.
fn searched(most: u64, steps: &[(u64, f64, bool)]) -> Known {
    let mut known = Known { search: Search::new(1, 100, most, TOLERANCE), ..Known::default() };
    for (load, per_s, failed) in steps {
        assert_eq!(known.search.step().map(|step| step.load), Some(*load), "{steps:?}");
        known.learn(By::Rate, *load, step_by_rate(*per_s, *failed), &mut |_| {});
    }
    known
}

#[test]
fn what_fails_once_is_no_bound() {
    // Resets of a moment at the first load, and a pause at the end of the largest one.
    let steps = [
        (100, 60.0, true),
        (100, 100.0, false),
        (200, 200.0, false),
        (400, 350.0, false),
        (400, 400.0, false),
    ];
    let known = searched(400, &steps);
    let reasons: Vec<&str> =
        known.curve.iter().flat_map(|point| &point.reasons).map(String::as_str).collect();
    let [resets, pause] = ["the target reset 20 connections", "350 of 400 requests/s answered"];
    let before = [resets, pause].map(|why| format!("it did not pass before: {why}"));
    assert_eq!(reasons, [resets, &before[0], pause, &before[1]]);
    let found = known.into_summary(By::Rate, &plan(&[]), None);
    assert_eq!((found.outcome, found.max, found.limit), (FindOutcome::NotReached, 400, None));
}

#[test]
fn the_bound_of_the_result_is_measured_once_more() {
    let (pass, fail) = (|load: u64| (load, load as f64, false), |load: u64| (load, 0.4 * load as f64, true));
    // 1,000 fails twice, and 900 by chance.
    let steps = [
        [100, 200, 400, 800].map(pass).to_vec(),
        [1_000, 1_000, 900].map(fail).to_vec(),
        [850, 875, 887].map(pass).to_vec(),
    ];
    let mut known = searched(1_000, &steps.concat());
    assert_eq!(known.limit.as_ref().map(|(load, _)| *load), Some(900));
    known.learn(By::Rate, 900, step_by_rate(900.0, false), &mut |_| {});
    // What stopped it there did not.
    assert_eq!(
        (known.search.passed(), known.search.failed(), known.limit.is_none()),
        (Some(900), Some(1_000), true)
    );
    assert_eq!(known.curve.last().map(|point| point.pass), Some(true));
    // It does not where that fails again, nor where it is known and stays.
    let mut known = searched(1_000, &steps.concat());
    known.learn(By::Rate, 900, step_by_rate(400.0, true), &mut |_| {});
    assert_eq!(known.search.step(), Some(Step { load: 887, confirms: true }));
}

/// Fifty connections and 300 ms for each response: 166 a second, whatever the target could serve.
#[test]
fn the_connections_of_the_user_are_no_bound_of_the_target() {
    let search = |by: By| {
        let mut known = Known { search: Search::new(1, 100, 400, TOLERANCE), ..Known::default() };
        while let Some(Step { load, .. }) = known.search.step() {
            let mut s = step_by_rate(load.min(166) as f64, load > 166);
            s.latency_us = Quantiles { count: 100, p50: 301e3 + load as f64, ..Quantiles::default() };
            s.connections.held = load.min(166);
            s.limit.iter_mut().for_each(|limit| {
                (limit.side, limit.cause) = (Side::Host, Cause::TooFewConnections);
            });
            known.learn(by, load, s, &mut |_| {});
        }
        let unloaded = known.unloaded();
        (unloaded, known.into_summary(by, &plan(&[]), None))
    };
    let (unloaded, found) = search(By::Rate);
    assert_eq!(unloaded, Some(Nanos::from_micros(301_100)), "that of the lowest load");
    assert_eq!((found.outcome, found.invalid, found.exit_status()), (FindOutcome::NotReached, true, 4));
    assert!((160..=166).contains(&found.max) && found.error == 0, "{found:?}");
    assert_eq!(found.limit.map(|limit| limit.cause), Some(Cause::TooFewConnections));
    // Where connections are searched, a rate that needs more of them is no lower bound.
    assert_eq!(search(By::Connections).1.outcome, FindOutcome::Found);
}

#[test]
fn what_is_seen_to_stay_is_no_chance() {
    let check = |limit: Limit, expected| assert_eq!(criteria::is_certain(&limit), expected, "{limit:?}");
    let of = |cause| Limit { side: Side::Target, ..limit(cause, 0) };
    [Cause::Ended, Cause::OpenFiles, Cause::SlowAccept].into_iter().for_each(|cause| check(of(cause), true));
    // A busy moment, a kind of fault, a pattern.
    [Cause::Cpu, Cause::Stall, Cause::WrongAnswer].into_iter().for_each(|cause| check(of(cause), false));
    check(Limit { certainty: Certainty::Inferred, ..of(Cause::ConnectionLimit) }, false);
    check(Limit { side: Side::Host, ..of(Cause::Ports) }, false);
    // The target is gone with the first of them; nothing is dialled again.
    let mut known = Known { search: Search::new(1, 500, 4_000, TOLERANCE), ..Known::default() };
    let s = Summary { verdict: Verdict::Fail, limit: Some(of(Cause::Ended)), ..Summary::default() };
    known.learn(By::Connections, 500, s, &mut |_| {});
    assert!(!known.is_again && known.has_ended());
}

#[test]
fn a_short_burst_of_faults_is_measured_once_more() {
    let check = |failing_s: f64, held: u64, cause: Cause, threshold: bool, expected: bool| {
        let limit = Some(Limit { side: Side::Target, ..limit(cause, 0) });
        let mut s = Summary {
            verdict: Verdict::Fail,
            limit,
            failing_s: Some(failing_s),
            thresholds: vec![ThresholdResult::default(); usize::from(threshold)],
            ..Summary::default()
        };
        s.connections.held = held;
        let is_again = criteria::may_be_chance(By::Connections, 1_000, &s, false);
        assert_eq!(is_again, expected, "{failing_s} {held} {cause:?} {threshold}");
    };
    check(1.0, 990, Cause::Closed, false, true);
    check(2.0, 990, Cause::Closed, false, true);
    // All the time, or much of the load.
    check(4.0, 990, Cause::Closed, false, false);
    check(1.0, 900, Cause::Closed, false, false);
    // It is known why, or said what may fail.
    check(1.0, 990, Cause::OpenFiles, false, false);
    check(1.0, 990, Cause::Closed, true, false);
}

/// How a search ended in which loads below 510 pass; of those above throng is late at these, and the target fails at the others.
fn search_with(late: Range<u64>) -> FindSummary {
    let mut known = Known { search: Search::new(1, 500, 4_000, TOLERANCE), ..Known::default() };
    while let Some(Step { load, .. }) = known.search.step() {
        let (verdict, side) = match load {
            0..510 => (Verdict::Pass, None),
            _ if late.contains(&load) => (Verdict::Invalid, Some(Side::Host)),
            _ => (Verdict::Fail, Some(Side::Target)),
        };
        let limit = side.map(|side| Limit { side, ..limit(Cause::Cpu, 0) });
        let mut s = Summary { verdict, limit, ..Summary::default() };
        s.connections.held = load;
        known.learn(By::Connections, load, s, &mut |_| {});
    }
    known.into_summary(By::Connections, &plan(&[]), None)
}

#[test]
fn what_throng_could_not_do_is_no_bound_of_the_target() {
    let found = search_with(510..u64::MAX);
    assert!((500..510).contains(&found.max), "{found:?}");
    assert_eq!((found.outcome, found.error), (FindOutcome::NotReached, 0));
    assert_eq!((found.invalid, found.exit_status()), (true, 4));
    assert_eq!(found.limit.map(|limit| limit.side), Some(Side::Host));
    assert!(found.curve.iter().all(|point| point.invalid != point.pass));
    // A larger load shows what the target does not sustain.
    let found = search_with(510..1_000);
    assert_eq!((found.outcome, found.failed), (FindOutcome::Found, Some(1_000)));
    assert_eq!((found.max + found.error, found.invalid, found.exit_status()), (1_000, false, 0));
    // And a smaller one does.
    let found = search_with(600..u64::MAX);
    assert!(found.failed.is_some_and(|failed| failed <= 520) && !found.invalid, "{found:?}");
    // The limit of the target that was seen.
    let seen = |side, certainty| Limit { side, certainty, ..limit(Cause::OpenFiles, 0) };
    let is_ours = |limit: Limit| {
        let s = Summary { verdict: Verdict::Invalid, limit: Some(limit), ..Summary::default() };
        criteria::is_ours(By::Connections, &s)
    };
    assert!(!is_ours(seen(Side::Target, Certainty::Seen)));
    assert!(is_ours(seen(Side::Target, Certainty::Guess)) && is_ours(seen(Side::Host, Certainty::Seen)));
}

/// A search whose steps are these loads; of those that do not pass, with throng's lag in ms, or by the target. Each failure is measured
/// once more.
fn found_beside_stalls(steps: &[(u64, Option<f64>, bool)]) -> (Option<Outcome>, FindSummary) {
    let mut known = Known { search: Search::new(1, 100, 101, TOLERANCE), ..Known::default() };
    if steps.iter().any(|(load, ..)| *load > 101) {
        known.search = Search::new(1, 100, 4_000, TOLERANCE);
    }
    for (load, lag_ms, passes) in steps {
        let verdict = match (passes, lag_ms) {
            (true, _) => Verdict::Pass,
            (false, Some(_)) => Verdict::Invalid,
            (false, None) => Verdict::Fail,
        };
        let side = if lag_ms.is_some() { Side::Host } else { Side::Target };
        let limit = (!passes).then(|| Limit { side, ..limit(Cause::Cpu, 0) });
        let mut s = Summary { verdict, limit, ..Summary::default() };
        (s.connections.held, s.lag_us.p99) = (*load, lag_ms.unwrap_or_default() * 1e3);
        for _ in 0..if *passes { 1 } else { 2 } {
            assert_eq!(known.search.step().map(|step| step.load), Some(*load));
            known.learn(By::Connections, *load, s.clone(), &mut |_| {});
        }
    }
    (known.search.outcome(), known.into_summary(By::Connections, &plan(&[]), None))
}

#[test]
fn what_passed_has_passed_though_throng_could_not_repeat_it() {
    let (pass, late) = (|load| (load, None, true), |load, lag_ms| (load, Some(lag_ms), false));
    // 101 failed by the target, or by throng.
    let (outcome, found) = found_beside_stalls(&[pass(100), (101, None, false), late(100, 40.0)]);
    assert_eq!(outcome, Some(Outcome::Found { max: 100, error: 1 }));
    assert_eq!((found.outcome, found.max, found.exit_status()), (FindOutcome::Found, 100, 0));
    let (_, found) = found_beside_stalls(&[pass(100), late(101, 80.0), late(100, 40.0)]);
    assert_eq!((found.outcome, found.max, found.invalid), (FindOutcome::NotReached, 100, true));
    assert_eq!((found.failed, found.exit_status()), (Some(101), 4));
}

#[test]
fn a_lag_that_does_not_depend_on_the_load_ends_the_search() {
    let (pass, late) = (|load| (load, None, true), |load, lag_ms| (load, Some(lag_ms), false));
    let (outcome, found) = found_beside_stalls(&[pass(100), late(200, 40.0), late(150, 44.0)]);
    assert!(outcome.is_some());
    assert_eq!((found.outcome, found.max, found.invalid), (FindOutcome::NotReached, 100, true));
    assert_eq!(found.failed, Some(200));
    // It grows with the load.
    assert_eq!(found_beside_stalls(&[pass(100), late(200, 90.0), late(150, 40.0)]).0, None);
    assert_eq!(found_beside_stalls(&[pass(100), late(200, 40.0)]).0, None);
}

#[test]
fn an_interrupted_search_names_what_stopped_the_target() {
    let search = Search::new(1, 500, 4_000, TOLERANCE);
    let mut known = Known { search, interrupted: true, ..Known::default() };
    for (load, held) in [(500, 500), (1_000, 9)] {
        let is_there = load == held;
        let verdict = if is_there { Verdict::Pass } else { Verdict::Fail };
        let limit = (!is_there).then(|| limit(Cause::OpenFiles, 9));
        let mut s = Summary { verdict, limit, ..Summary::default() };
        s.connections.held = held;
        known.learn(By::Connections, load, s, &mut |_| {});
    }
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    assert_eq!((found.max, found.failed), (500, Some(1_000)));
    assert_eq!(found.limit.map(|limit| limit.cause), Some(Cause::OpenFiles));
}

#[test]
fn a_target_that_is_gone_was_there() {
    let nobody = || Some(limit(Cause::Refused, 0));
    let check = |steps: &[(u64, Option<Limit>)], load, fix: &str| {
        let (shown, text) = kept(steps).expect("there is a limit");
        assert!(shown == load && text.contains(fix), "{steps:?}: {shown}: {text}");
    };
    check(&[(500, nobody())], 500, "refused");
    check(&[(500, None), (1_000, nobody())], 1_000, "it served smaller loads");
    let before = limit(Cause::Closed, 700);
    check(&[(500, None), (1_000, Some(before)), (750, nobody())], 1_000, "closed");
}

#[test]
fn a_search_that_was_interrupted_has_no_result() {
    let found = not_begun(By::Connections, &plan(&[]));
    assert_eq!((found.outcome, found.max, found.interrupted), (FindOutcome::NotReached, 0, true));
}

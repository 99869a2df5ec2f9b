//! What a search learns from its steps.

use samples::{Certainty, Gauge, Kind, Stage};

use super::{by::TOLERANCE, criteria::HOLD_SOME, *};
use record::fixture::{fault, plan};
use search::Range;

fn limit(cause: Cause, at_connections: u64) -> Limit {
    let fix = cause.name().to_owned();
    Limit { side: Side::Target, cause, at_connections, certainty: Certainty::Seen, fix, ..Limit::default() }
}

/// A search up to this load.
fn up_to(most: u64) -> Known {
    Known::new(Search::new(Range { least: 1, most }, TOLERANCE).climbing_from(500, 2), &plan(&[]))
}

/// Learns the result of a step.
fn learn(known: &mut Known, by: By, load: u64, s: Summary) {
    let step = Proposal { load, purpose: Purpose::Narrow, settle: None };
    known.learn(by, step, s, &mut |_| {});
}

/// Runs a search to its end; `step` returns the summary for a load.
fn search(known: &mut Known, by: By, step: impl Fn(u64) -> Summary) {
    while let Some(proposal) = known.search.propose() {
        known.learn(by, proposal, step(proposal.load), &mut |_| {});
    }
}

/// Learns steps with these loads and limits; a step without a limit passes. Returns the load of the limit that is kept, and its fix.
fn kept(steps: &[(u64, Option<Limit>)]) -> Option<(u64, String)> {
    let mut known = up_to(4_000);
    for (load, limit) in steps {
        let verdict = if limit.is_some() { Verdict::Fail } else { Verdict::Pass };
        let mut s = Summary { verdict, limit: limit.clone(), ..Summary::default() };
        s.connections.held = if limit.is_some() { 0 } else { *load };
        learn(&mut known, By::Connections, *load, s);
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
fn a_step_has_its_share_of_errors_and_what_the_target_used() {
    let figures = |s: &Summary| {
        let p = point(500, s, Vec::new());
        (p.errors, p.target_cores, p.target_cores_limit, p.target_thread, p.elapsed_s)
    };
    let mut s = Summary::default();
    assert_eq!(figures(&s), (None, None, None, None, 0.0), "nothing was attempted, nor seen");
    (s.errors, s.elapsed_s) = (samples::Errors { count: 3, of: 12 }, 2.5);
    let mut target = samples::TargetSeen::default();
    let process = &mut target.process;
    process.cores = Some(4);
    process.cores_used = Some(Gauge { max: 3.5, ..Gauge::default() });
    process.cores_used_hold = Some(Gauge { first: 0.5, min: 0.5, max: 1.75, last: 1.0 });
    process.busiest_wanted_hold = Some(Gauge { first: 0.25, min: 0.25, max: 1.02, last: 0.5 });
    s.observed.target = Some(target);
    assert_eq!(figures(&s), (Some(0.25), Some(1.75), Some(4), Some(1.0), 2.5));
}

#[test]
fn steps_are_numbered_in_the_order_of_time() {
    let mut known = up_to(4_000);
    for load in [500, 2_000, 1_000] {
        let mut s = Summary { verdict: Verdict::Pass, ..Summary::default() };
        s.connections.held = load;
        learn(&mut known, By::Connections, load, s);
    }
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    let steps: Vec<(u64, u32)> = found.curve.iter().map(|point| (point.load, point.step)).collect();
    assert_eq!((steps, &*found.unit), (vec![(500, 1), (1_000, 3), (2_000, 2)], "connections"));
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

/// A step with all connections held, and this p99 of the probe.
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
    let mut known = up_to(4_000);
    for (load, p99_ms) in [(500, 300.0), (1_000, 3.0), (2_000, 50.0)] {
        learn(&mut known, By::Connections, load, probed(load, Verdict::Pass, p99_ms));
    }
    let passed: Vec<bool> = known.curve.iter().map(|point| point.pass).collect();
    assert_eq!(passed, [true, true, false]);
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    assert_eq!(found.baseline.map(|baseline| baseline.load), Some(1_000));
}

/// A target that takes 1 ms up to 200 connections, and 152 ms beyond.
#[test]
fn a_target_that_is_slow_at_the_largest_load_is_compared_with_an_idle_one() {
    let mut known = up_to(400);
    known.search = known.search.with_baseline(4);
    let p99_ms = |load: u64| if load <= 200 { 1.0 } else { 152.0 };
    search(&mut known, By::Connections, |load| probed(load, Verdict::Pass, p99_ms(load)));
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    assert_eq!(found.baseline.map(|baseline| (baseline.load, baseline.allowed_us)), Some((4, 21_000.0)));
    assert_eq!(found.outcome, FindOutcome::Found);
    assert!((194..=206).contains(&found.max) && found.max.abs_diff(200) <= found.error, "{found:?}");
}

/// Searches with one step of 500 connections. Returns whether that ended the search, why it failed, and the limiting factor.
fn closing(closed: u64, redialled: u64, held: u64) -> (bool, Option<String>, Option<String>) {
    let mut known = up_to(4_000);
    let mut s = Summary { verdict: Verdict::Pass, ..Summary::default() };
    let c = &mut s.connections;
    (c.opened, c.closed, c.redialled, c.held) = (500, closed, redialled, held);
    learn(&mut known, By::Connections, 500, s);
    let limit = known.limit.as_ref().map(|(_, limit)| limit.sentence_with_fix());
    (known.search.propose().is_none(), known.curve[0].reasons.first().cloned(), limit)
}

#[test]
fn a_wrong_status_of_every_response_ends_the_search() {
    let mut known = up_to(4_000);
    let (wrong, lost) = (Some(limit(Cause::WrongAnswer, 500)), Some(limit(Cause::Closed, 62)));
    let mut s = Summary { verdict: Verdict::Fail, limit: wrong, ..Summary::default() };
    s.faults = vec![fault(Stage::Exchange, Kind::WrongStatus, 500)];
    (s.connections.held, s.requests.sent, s.requests.answered) = (500, 500, 500);
    s.requests.status.insert(503, 500);
    (0..2).for_each(|_| learn(&mut known, By::Connections, 500, s.clone()));
    assert!(known.search.propose().is_some(), "a smaller load may be served");
    // What closed the connections later does not explain why no load passes.
    known.explain(62, lost);
    assert_eq!(
        known.limit.as_ref().map(|(load, limit)| (*load, limit.cause)),
        Some((500, Cause::WrongAnswer))
    );
    s.requests.status = [(401, 500)].into();
    learn(&mut known, By::Connections, 62, s);
    assert_eq!(known.search.answer(), Answer::Impossible { least: 1 });
    assert_eq!(known.search.propose(), None);
}

#[test]
fn a_figure_that_no_step_measures_ends_the_search() {
    let mut known = up_to(4_000);
    let unknown = Some(limit(Cause::Unknown, 500));
    let mut s = Summary { verdict: Verdict::Fail, limit: unknown, ..Summary::default() };
    let why = "threshold latency.p99 < 200ms cannot be judged: nothing was measured".to_owned();
    s.reasons = vec![why.clone()];
    s.thresholds =
        vec![ThresholdResult { expr: "latency.p99 < 200ms".to_owned(), ..ThresholdResult::default() }];
    s.connections.held = 500;
    learn(&mut known, By::Connections, 500, s);
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    assert_eq!((found.outcome, found.curve.len()), (FindOutcome::Impossible, 1));
    let limit = found.limit.expect("it is known");
    assert_eq!((found.criterion, limit.sentence), (Some(why.clone()), why));
    assert!(limit.fix.contains("--think"), "{}", limit.fix);
}

#[test]
fn a_short_step_shows_that_each_connection_is_closed() {
    // 10 of 50 connections still wait for their response.
    let mut s = Summary { verdict: Verdict::Pass, ..Summary::default() };
    (s.connections.opened, s.connections.closed, s.connections.held) = (50, 40, 10);
    (s.requests.sent, s.requests.answered) = (50, 40);
    assert!(holds_none(50, &s));
    // Closes after a status that rejects them show a limit.
    s.faults = vec![fault(Stage::Exchange, Kind::WrongStatus, 30)];
    assert!(!holds_none(50, &s));
    s.faults.clear();
    // They have had their responses, and stay open.
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
    // Some are closed after several requests, and redialled.
    assert_eq!(closing(200, 0, 300), (false, None, None));
    assert_eq!(closing(0, 0, 500), (false, None, None));
}

/// A step of one second by rate.
fn step_by_rate(per_s: f64, failed: bool) -> Summary {
    let verdict = if failed { Verdict::Fail } else { Verdict::Pass };
    let limit = failed.then(|| limit(Cause::Closed, 50));
    let mut s = Summary { verdict, limit, ..Summary::default() };
    (s.duration_s, s.requests.per_s) = (1.0, per_s);
    s.reasons = vec!["the target reset 20 connections".to_owned(); usize::from(failed)];
    s
}

/// Fifty connections and 300 ms per response allow 166 requests/s, whatever the target could serve.
#[test]
fn the_connections_of_the_user_are_no_bound_of_the_target() {
    let searched = |by: By| {
        let mut known = up_to(4_000);
        known.search = Search::new(Range { least: 1, most: 400 }, TOLERANCE).climbing_from(100, 2);
        search(&mut known, by, |load| {
            let mut s = step_by_rate(load.min(166) as f64, load > 166);
            s.latency_us = Quantiles { count: 100, p50: 301e3 + load as f64, ..Quantiles::default() };
            s.connections.held = load.min(166);
            s.limit.iter_mut().for_each(|limit| {
                (limit.side, limit.cause) = (Side::Host, Cause::TooFewConnections);
            });
            s
        });
        let unloaded = known.unloaded;
        (unloaded, known.into_summary(by, &plan(&[]), None))
    };
    let (unloaded, found) = searched(By::Rate);
    assert_eq!(unloaded, Some(Nanos::from_micros(301_100)), "that of the lowest load");
    assert_eq!((found.outcome, found.invalid, found.exit_status()), (FindOutcome::NotReached, true, 4));
    assert!((160..=166).contains(&found.max) && found.error == 0, "{found:?}");
    assert_eq!(found.limit.map(|limit| limit.cause), Some(Cause::TooFewConnections));
    // In a search by connections, a rate that needs more of them is not a lower bound.
    assert_eq!(searched(By::Connections).1.outcome, FindOutcome::Found);
}

/// The result of a search in which loads below 510 pass. Above, the target fails up to `late`, and from there throng itself is late.
fn search_with(late: u64) -> FindSummary {
    let mut known = up_to(4_000);
    search(&mut known, By::Connections, |load| {
        let (verdict, side) = match load {
            0..510 => (Verdict::Pass, None),
            _ if load >= late => (Verdict::Invalid, Some(Side::Host)),
            _ => (Verdict::Fail, Some(Side::Target)),
        };
        let limit = side.map(|side| Limit { side, ..limit(Cause::Cpu, 0) });
        let mut s = Summary { verdict, limit, ..Summary::default() };
        s.connections.held = load;
        s
    });
    known.into_summary(By::Connections, &plan(&[]), None)
}

#[test]
fn what_throng_could_not_do_is_no_bound_of_the_target() {
    let found = search_with(510);
    assert!((400..510).contains(&found.max), "{found:?}");
    assert_eq!((found.outcome, found.error), (FindOutcome::NotReached, 0));
    assert_eq!((found.invalid, found.exit_status()), (true, 4));
    assert_eq!(found.limit.as_ref().map(|limit| limit.side), Some(Side::Host));
    assert!(found.curve.iter().all(|point| point.invalid != point.pass));
    // The target's own limit is below that.
    let found = search_with(900);
    assert!(found.failed.is_some_and(|failed| failed < 600) && !found.invalid, "{found:?}");
    assert!((490..530).contains(&found.max) && found.outcome == FindOutcome::Found, "{found:?}");
    // A limit of the target that was seen.
    let seen = |side, certainty| Limit { side, certainty, ..limit(Cause::OpenFiles, 0) };
    let is_ours = |limit: Limit| {
        let s = Summary { verdict: Verdict::Invalid, limit: Some(limit), ..Summary::default() };
        criteria::is_ours(By::Connections, &s)
    };
    assert!(!is_ours(seen(Side::Target, Certainty::Seen)));
    assert!(is_ours(seen(Side::Target, Certainty::Guess)) && is_ours(seen(Side::Host, Certainty::Seen)));
}

/// Exit status 0 would claim that the requested load passes.
#[test]
fn a_search_whose_time_is_over_before_anything_failed_is_unsettled() {
    for loads in [&[][..], &[500, 1_000]] {
        let mut known = Known { is_late: true, ..up_to(4_000) };
        for load in loads {
            let mut s = Summary { verdict: Verdict::Pass, ..Summary::default() };
            s.connections.held = *load;
            learn(&mut known, By::Connections, *load, s);
        }
        let found = known.into_summary(By::Connections, &plan(&[]), None);
        let max = loads.last().copied().unwrap_or(0);
        assert_eq!((found.outcome, found.max, found.error), (FindOutcome::Unsettled, max, 0));
        assert_eq!((found.exit_status(), found.interrupted, found.ended.is_some()), (1, false, true));
    }
}

#[test]
fn steps_that_contradict_each_other_settle_nothing() {
    let mut known = up_to(4_000);
    for (load, passes) in [(500, true), (1_000, false), (700, true), (600, false), (500, false)] {
        let verdict = if passes { Verdict::Pass } else { Verdict::Fail };
        let mut s = Summary { verdict, ..Summary::default() };
        s.connections.held = if passes { load } else { 0 };
        learn(&mut known, By::Connections, load, s);
    }
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    assert_eq!((found.outcome, found.max, found.exit_status()), (FindOutcome::Unsettled, 700, 1));
    assert!(found.error > 70, "{found:?}");
}

#[test]
fn an_interrupted_search_names_what_stopped_the_target() {
    let mut known = Known { interrupted: true, ..up_to(4_000) };
    for (load, held) in [(500, 500), (1_000, 9)] {
        let is_there = load == held;
        let verdict = if is_there { Verdict::Pass } else { Verdict::Fail };
        let limit = (!is_there).then(|| limit(Cause::OpenFiles, 9));
        let mut s = Summary { verdict, limit, ..Summary::default() };
        s.connections.held = held;
        learn(&mut known, By::Connections, load, s);
    }
    let found = known.into_summary(By::Connections, &plan(&[]), None);
    assert_eq!((found.outcome, found.max, found.failed), (FindOutcome::Unsettled, 500, Some(1_000)));
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

#[test]
fn a_limit_that_is_not_seen_is_in_doubt_while_it_is_narrowed() {
    let mut known = up_to(4_000);
    let is_in_doubt =
        |known: &Known| [Purpose::Climb, Purpose::Narrow, Purpose::Confirm].map(|p| known.is_in_doubt(p));
    assert_eq!(is_in_doubt(&known), [false, true, true]);
    let of = |cause| Limit { side: Side::Target, certainty: Certainty::Seen, ..limit(cause, 0) };
    // A connection limit may be that of one of several processes.
    known.limit = Some((2_000, of(Cause::ConnectionLimit)));
    assert_eq!(is_in_doubt(&known), [false, true, true]);
    known.limit = Some((2_000, of(Cause::OpenFiles)));
    assert_eq!(is_in_doubt(&known), [false; 3]);
}

/// A search from 4 to 100 whose scenario refuses loads from `refused` on, at a target that sustains less than `capacity`.
fn searched(refused: u64, capacity: u64) -> FindSummary {
    let by = By::number("users", (4, ""), move |load| match load {
        load if load >= refused => Err(format!("at most {}", refused - 1).into()),
        _ => Ok(Variant { plan: plan(&[]), text: None, flag: None }),
    });
    let search = Search::new(Range { least: 1, most: 100 }, 0.02).climbing_from(4, 2);
    let mut known = Known::new(search, &plan(&[]));
    while let Some(step) = known.propose(by) {
        assert!(step.load < refused, "{step:?}");
        let verdict = if step.load < capacity { Verdict::Pass } else { Verdict::Fail };
        let reasons = vec!["slow".to_owned(); usize::from(verdict == Verdict::Fail)];
        known.learn(by, step, Summary { verdict, reasons, ..Summary::default() }, &mut |_| {});
    }
    known.into_summary(by, &plan(&[]), None)
}

#[test]
fn a_load_that_is_refused_bounds_the_search() {
    let found = searched(20, 1_000);
    assert_eq!((found.outcome, found.max, found.error), (FindOutcome::NotReached, 19, 0));
    assert_eq!((found.exit_status(), found.ended.as_deref()), (0, Some("20 was refused: at most 19")));
    assert!(found.curve.len() < 8, "a refused load is no step: {found:?}");
}

#[test]
fn what_the_target_does_not_sustain_is_its_limit_whatever_is_refused() {
    let found = searched(24, 20);
    assert_eq!((found.outcome, found.ended.as_deref()), (FindOutcome::Found, None));
    assert!(found.max.abs_diff(19) <= 1 && found.failed.is_some_and(|load| load < 24), "{found:?}");
}

#[test]
fn a_baseline_that_is_refused_bounds_nothing() {
    let by = By::number("users", (400, ""), |load| match load {
        0..8 => Err("at least 8".to_owned().into()),
        _ => Ok(Variant { plan: plan(&[]), text: None, flag: None }),
    });
    let search = Search::new(Range { least: 1, most: 800 }, 0.02).climbing_from(400, 2).with_baseline(4);
    let mut known = Known::new(search, &plan(&[]));
    assert_eq!(known.propose(by).map(|step| (step.load, step.purpose)), Some((400, Purpose::Climb)));
    assert_eq!(known.refused, None);
}

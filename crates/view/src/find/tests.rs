use super::*;

fn found(outcome: FindOutcome, max: u64, error: u64, limit: Option<Limit>) -> FindSummary {
    let words = ("connections".into(), "connections".into());
    FindSummary { by: words.0, unit: words.1, max, error, outcome, limit, ..FindSummary::default() }
}

#[test]
fn the_result_is_one_sentence() {
    let limit = Limit {
        side: Side::Target,
        cause: Cause::OpenFiles,
        at_connections: 65_536,
        certainty: samples::Certainty::Seen,
        first_seen_s: None,
        sentence: "the target ran out of open files".to_owned(),
        detail: String::new(),
        fix: "raise LimitNOFILE".to_owned(),
    };
    let check =
        |found: FindSummary, text: &str| assert_eq!(find_text(&found, "connections"), format!("{text}\n"));
    check(
        found(FindOutcome::Found, 65_000, 1_000, Some(limit)),
        "max 65,000 ± 1,000 connections; the target ran out of open files; raise LimitNOFILE",
    );
    check(found(FindOutcome::Found, 9, 1, None), "max 9 ± 1 connections; the limit is not known");
    let idle = Some(samples::IdleTimeout { timeout_s: 5.04, think_s: [1.5, 3.0] });
    check(
        FindSummary { idle, ..found(FindOutcome::Found, 9, 1, None) },
        "max 9 ± 1 connections; the limit is not known; think 1.5s..3s: the server closes idle connections after 5.0 s",
    );
    let unsettled = FindSummary { failed: Some(500), ..found(FindOutcome::Unsettled, 1_350, 850, None) };
    check(
        unsettled,
        &format!(
            "unsettled: 1,350 connections passed ± 850; 500 did not pass; the limit is not known{SETTLE}"
        ),
    );
    // Nothing had failed, or nothing had been measured, when the time was over.
    for (max, passed) in [(0, "no load passed"), (2_000, "2,000 connections passed")] {
        let ended = Some("its time was over (--max-time)".to_owned());
        check(
            FindSummary { ended, ..found(FindOutcome::Unsettled, max, 0, None) },
            &format!("unsettled: its time was over (--max-time); {passed}; the limit is not known{SETTLE}"),
        );
    }
    check(
        found(FindOutcome::NotReached, 2_000, 0, None),
        "limit not reached: 2,000 connections pass; nothing larger was tried",
    );
    let ended = Some("2,001 was refused: load.toml:2:1: --streams: at most 2,000".to_owned());
    check(
        FindSummary { ended, ..found(FindOutcome::NotReached, 2_000, 0, None) },
        "limit not reached: 2,000 connections pass; 2,001 was refused: load.toml:2:1: --streams: at most 2,000",
    );
    check(
        found(FindOutcome::Impossible, 0, 0, None),
        "impossible: not even the smallest load passes; the limit is not known",
    );
}

#[test]
fn what_ended_a_search_before_its_time_is_said() {
    let text = |ended: Option<&str>, max| {
        let ended = ended.map(str::to_owned);
        let found = FindSummary { interrupted: true, ended, ..found(FindOutcome::NotReached, max, 0, None) };
        find_text(&found, "connections")
    };
    assert_eq!(text(None, 0), "interrupted: no load passed\n");
    let lost = text(Some("agent g2 was lost"), 500);
    assert_eq!(lost, "the search ended: agent g2 was lost; 500 connections passed\n");
}

#[test]
fn a_search_that_ends_at_its_first_load_tried_no_smaller_one() {
    let text = |loads: &[u64]| {
        let point = |load: &u64| Point { load: *load, ..Point::default() };
        let found = FindSummary {
            failed: loads.iter().min().copied(),
            criterion: Some("it is full".to_owned()),
            curve: loads.iter().map(point).collect(),
            ..found(FindOutcome::Impossible, 0, 0, None)
        };
        find_text(&found, "connections")
    };
    let end = "did not pass: it is full; the limit is not known\n";
    assert_eq!(text(&[500, 500]), format!("impossible: the first load, 500 connections, {end}"));
    assert_eq!(text(&[1, 500]), format!("impossible: not even the smallest load passes; 1 {end}"));
}

#[test]
fn each_figure_is_of_a_load_that_is_named() {
    let late = "throng was late: lag p99 14.0 ms > 10.0 ms (--max-lag)";
    let limit = Limit {
        side: Side::Host,
        cause: Cause::Cpu,
        certainty: samples::Certainty::Seen,
        sentence: late.to_owned(),
        fix: "give throng more processors".to_owned(),
        ..Limit::default()
    };
    let check = |criterion: &str, load: u64, end: &str| {
        let found = FindSummary {
            failed: Some(600),
            criterion: Some(criterion.to_owned()),
            limit_load: Some(load),
            ..found(FindOutcome::Found, 500, 10, Some(limit.clone()))
        };
        assert_eq!(
            find_text(&found, "requests/s"),
            format!("max 500 ± 10 requests/s; 600 did not pass: {end}\n")
        );
    };
    let fix = "give throng more processors";
    check(late, 600, &format!("{late}; {fix}"));
    let other = "580 of 600 requests/s answered";
    check(other, 600, &format!("{other}; {late}; {fix}"));
    check(other, 1_000, &format!("{other}; at 1,000: {late}; {fix}"));
    // The same cause with figures of another load.
    let later = "throng was late: lag p99 12.0 ms > 10.0 ms (--max-lag)";
    check(later, 1_000, &format!("{later}; at 1,000: {late}; {fix}"));
}

#[test]
fn the_baseline_is_shown_and_a_slow_one_is_warned_of() {
    let of = |loads: &[u64], probe_p99_us, allowed_us| {
        let baseline = Some(Baseline { load: 5, probe_p99_us, allowed_us });
        let curve = loads.iter().map(|load| Point { load: *load, ..Point::default() }).collect();
        let found = FindSummary { baseline, curve, ..found(FindOutcome::NotReached, 2_000, 0, None) };
        find_text(&found, "connections")
    };
    let text = |probe_p99_us, allowed_us| of(&[5, 2_000], probe_p99_us, allowed_us);
    let end = "limit not reached: 2,000 connections pass; nothing larger was tried\n";
    let line = "baseline: probe.held p99 2.4 ms at 5 connections, the lowest; limit per step 22 ms";
    assert_eq!(text(2_400.0, 22_400.0), format!("{line}\n{end}"));
    let slow = text(300_000.0, 1_500_000.0);
    assert!(slow.contains("\nwarning: the target is already slow at the baseline; "), "{slow}");
    assert!(slow.ends_with(end), "{slow}");
    // With only one load it is not known whether the load makes the target slow.
    let only = "only this load was measured, so there is no baseline for its latency";
    let slow = of(&[5, 5], 300_000.0, 1_500_000.0);
    assert!(slow.ends_with(&format!("\n{only}\n{end}")) && !slow.contains("warning"), "{slow}");
}

#[test]
fn what_throng_could_not_do_is_no_maximum() {
    let late = "throng was late: lag p99 14.0 ms > 10.0 ms (--max-lag)";
    let step = |load, invalid| Point { load, invalid, ..Point::default() };
    let text = |failed: u64, criterion: &str, found: FindSummary| {
        let criterion = Some(criterion.to_owned());
        find_text(&FindSummary { failed: Some(failed), criterion, ..found }, "requests/s")
    };
    let all_late = FindSummary {
        invalid: true,
        curve: vec![step(600, true)],
        ..found(FindOutcome::NotReached, 500, 0, None)
    };
    assert_eq!(
        text(600, late, all_late),
        format!(
            "at least 500 requests/s: beyond that, throng itself was the limit; 600 did not pass: {late}\n"
        )
    );
    let few = Limit {
        side: Side::Host,
        cause: Cause::TooFewConnections,
        certainty: samples::Certainty::Inferred,
        sentence: "too few connections: 50 carried 166 of the 174 requests that were due each second"
            .to_owned(),
        fix: "use -c 53 or more".to_owned(),
        ..Limit::default()
    };
    let all_few = FindSummary {
        invalid: true,
        limit_load: Some(600),
        curve: vec![step(600, true)],
        ..found(FindOutcome::NotReached, 500, 0, Some(few))
    };
    assert_eq!(
        text(600, "42 waited", all_few),
        "at least 500 requests/s: beyond that, the number of connections was the limit; 600 did not pass: 42 waited; probably \
        too few connections: 50 carried 166 of the 174 requests that were due each second; use -c 53 or more\n"
    );
    let both = FindSummary {
        curve: vec![step(600, true), step(1_000, false)],
        ..found(FindOutcome::Found, 500, 500, None)
    };
    assert_eq!(
        text(1_000, "it is full", both),
        "max 500 ± 500 requests/s; 1,000 did not pass: it is full; steps in between are invalid; \
        the limit is not known\n"
    );
    let line = find_line(&step(600, true), "requests/s");
    assert_eq!(line, "         600 requests/s  invalid");
}

#[test]
fn a_load_that_throng_could_not_repeat_is_not_confirmed() {
    let step = |load, pass, invalid| Point { load, pass, invalid, ..Point::default() };
    let text = |outcome, invalid, curve: Vec<Point>| {
        let found = FindSummary {
            invalid,
            failed: Some(102),
            criterion: Some("it is full".to_owned()),
            curve,
            ..found(outcome, 100, if invalid { 0 } else { 2 }, None)
        };
        find_text(&found, "requests/s")
    };
    let late = vec![step(100, true, false), step(102, false, true)];
    assert_eq!(
        text(FindOutcome::NotReached, true, late),
        "at least 100 requests/s (not confirmed): beyond that, throng itself was the limit; 102 did not pass: it is full\n"
    );
    let end = "; 102 did not pass: it is full; the limit is not known\n";
    let at_the_end = vec![step(100, true, false), step(100, false, true), step(102, false, false)];
    assert_eq!(
        text(FindOutcome::Found, false, at_the_end),
        format!("max 100 ± 2 requests/s (not confirmed){end}")
    );
    let confirmed = vec![step(100, true, false), step(100, true, false), step(102, false, false)];
    assert_eq!(text(FindOutcome::Found, false, confirmed), format!("max 100 ± 2 requests/s{end}"));
}

#[test]
fn loads_that_passed_before_a_smaller_one_failed_are_named() {
    let text = |passed: &[u64], limit: Option<Limit>| {
        let step = |load: &u64| Point { load: *load, pass: true, ..Point::default() };
        let found = FindSummary {
            interrupted: true,
            failed: Some(113),
            criterion: Some("9 of 113 connections held".to_owned()),
            curve: passed.iter().map(step).collect(),
            limit_load: limit.as_ref().map(|_| 113),
            ..found(FindOutcome::NotReached, 81, 0, limit)
        };
        find_text(&found, "connections")
    };
    let failed = "interrupted: 81 connections passed; 113 did not pass: 9 of 113 connections held";
    assert_eq!(text(&[81], None), format!("{failed}\n"));
    assert_eq!(text(&[81, 113], None), format!("{failed}; 113 had passed before\n"));
    let sentence = "the target ran out of open files".to_owned();
    let limit = Some(Limit { sentence, certainty: samples::Certainty::Seen, ..Limit::default() });
    let both = text(&[81, 113, 137, 137], limit);
    assert!(
        both.starts_with(&format!("{failed}; 113 and 137 had passed before; the target ran out")),
        "{both}"
    );
    let many = text(&[81, 113, 120, 137], None);
    assert_eq!(many, format!("{failed}; 3 loads from 113 to 137 had passed before\n"));
}

#[test]
fn arrivals_do_not_include_the_probe() {
    let text = |by: &'static str, probe_per_s| {
        let found = FindSummary { by: by.into(), probe_per_s, ..found(FindOutcome::Found, 129, 2, None) };
        find_text(&found, "connections/s")
    };
    let end = "; the limit is not known\n";
    assert_eq!(
        text("arrival", 20.0),
        format!("max 129 ± 2 connections/s, plus the probe's 20 requests/s, half on new connections{end}")
    );
    assert_eq!(text("arrival", 0.0), format!("max 129 ± 2 connections/s{end}"));
    assert_eq!(text("rate", 20.0), format!("max 129 ± 2 connections/s{end}"));
}

#[test]
fn what_is_impossible_on_this_machine_is_its_own_limit() {
    for (cause, begin) in [
        (Cause::Cpu, "impossible on this machine: no load passed"),
        (Cause::TooFewConnections, "impossible: not even the smallest load passes"),
    ] {
        let limit = Limit { side: Side::Host, cause, ..Limit::default() };
        let text = find_text(&found(FindOutcome::Impossible, 0, 0, Some(limit)), "requests/s");
        assert!(text.starts_with(begin), "{text}");
    }
}

#[test]
fn each_step_is_one_line() {
    let point = Point {
        load: 32_000,
        latency_p50_us: Some(100.0),
        latency_p95_us: Some(800.0),
        latency_p99_us: Some(1_200.0),
        probe_p99_us: Some(340.0),
        connect_p99_us: Some(50.0),
        reasons: vec!["5,000 of 32,000 connections held".to_owned()],
        ..Point::default()
    };
    assert_eq!(
        find_line(&point, "connections"),
        "      32,000 connections  fail  latency p50 100 µs p95 800 µs p99 1.2 ms  connect p99 50 µs  probe.held p99 340 µs  \
         (5,000 of 32,000 connections held)"
    );

    let silent = Point {
        latency_p50_us: None,
        latency_p95_us: None,
        latency_p99_us: None,
        no_response: 1.0,
        probe_p99_us: None,
        probe_no_response: 0.31,
        connect_no_response: 0.005,
        reasons: Vec::new(),
        ..point
    };
    assert_eq!(
        find_line(&silent, "requests/s"),
        "      32,000 requests/s  fail  latency p50 - p95 - p99 - (100 % without a response)  connect p99 50 µs (0.50 % without a \
         connection)  probe.held p99 - (31 % without a correct response)"
    );

    let only_held = Point {
        no_response: 0.0,
        connect_p99_us: None,
        connect_no_response: 0.0,
        pass: true,
        load: 500,
        ..silent
    };
    assert_eq!(
        find_line(&only_held, "connections"),
        "         500 connections  pass  probe.held p99 - (31 % without a correct response)"
    );
}

#[test]
fn the_line_before_a_step_says_what_is_known() {
    let ms = Nanos::from_millis;
    for (known, left, expected) in [
        ((None, None), ms(179_600), "  next 500 connections; 3m left at most"),
        ((Some(5), None), ms(61_200), "  next 500 connections; 5 passed; 1m1s left at most"),
        ((None, Some(900)), ms(900), "  next 500 connections; 900 did not pass; 1s left at most"),
        (
            (Some(400), Some(2_000)),
            ms(5_000),
            "  next 500 connections; 400 passed, 2,000 did not; 5s left at most",
        ),
    ] {
        assert_eq!(find_next(500, known, left, "connections"), expected);
    }
}

#[test]
fn one_is_singular() {
    let check = |load, unit, expected: &str| assert_eq!(load_of(load, unit), expected);
    check(1, "connections", "1 connection");
    check(2, "connections", "2 connections");
    check(1, "requests/s", "1 request/s");
    check(1_000, "connections/s", "1,000 connections/s");
    check(1, "population.chat.connections", "1 population.chat.connections");
}

/// A step at a load, with this p99 in milliseconds and this share of errors.
fn step(load: u64, pass: bool, p99_ms: f64, errors: f64) -> Point {
    let times = (Some(p99_ms * 1e3), Some(errors));
    Point { load, pass, latency_p99_us: times.0, errors: times.1, ..Point::default() }
}

#[test]
fn the_curve_is_drawn_with_its_knee() {
    let cpu = |cores: f64, thread: f64, point: Point| Point {
        target_cores: Some(cores),
        target_cores_limit: Some(2),
        target_thread: Some(thread),
        ..point
    };
    let curve = vec![
        cpu(0.02, 0.021, step(31, true, 2.0, 0.0)),
        Point { step: 4, ..cpu(0.5, 0.30, step(400, true, 2.4, 0.0)) },
        // The last measurement at a load is shown.
        Point { step: 2, ..cpu(0.6, 0.31, step(400, true, 9.9, 0.0)) },
        cpu(1.25, 0.64, step(800, true, 80.0, 0.0)),
        Point { invalid: true, ..step(810, false, 85.0, 0.0) },
        Point { latency_p99_us: None, errors: None, ..step(820, false, 0.0, 0.0) },
        step(820, true, 90.0, 0.5),
        cpu(2.0, 1.0, step(1_600, false, 160.0, 0.125)),
    ];
    let unit = "requests/s".into();
    let found = FindSummary { unit, curve, failed: Some(820), ..found(FindOutcome::Found, 800, 9, None) };
    let text = find_text(&found, "requests/s");
    let expected = "                                                             ███████
                                           ▁▁▁▁▁▁▁  ▂▂▂▂▂▂▂  ███████
                                  ███████  ███████  ███████  ███████
                ▁▁▁▁▁▁▁  ▁▁▁▁▁▁▁  ███████  ███████  ███████  ███████
latency p99      2.0 ms   2.4 ms    80 ms    85 ms    90 ms   160 ms
requests/s           31      400      800      810      820    1,600
errors              0 %      0 %      0 %      0 %     50 %     12 %
target CPU       0.02/2   0.50/2   1.25/2        -        -   2.00/2
busiest thread    2.1 %     30 %     64 %        -        -    100 %
result             pass     pass      max  invalid    mixed     fail
max 800 ± 9 requests/s; ";
    assert!(text.starts_with(expected) && text.lines().count() == 11, "{text}");
}

#[test]
fn a_curve_of_many_loads_has_those_that_count() {
    let load = |n: u64| 1_000_000 + 1_000 * n;
    let curve = (0..40).map(|n| step(load(n), n < 30, 2.0 + n as f64, 0.0)).collect();
    let unit = "connections at once".into();
    let found = found(FindOutcome::Found, load(29), 9, None);
    let text = find_text(&FindSummary { unit, curve, failed: Some(load(31)), ..found }, "connections");
    assert!(text.lines().take(8).all(|line| line.chars().count() <= 80), "{text}");
    let row = text.lines().find(|line| line.starts_with("load ")).unwrap_or_default();
    let loads: Vec<&str> = row.split_whitespace().skip(1).collect();
    assert_eq!((loads.len(), loads[0], *loads.last().unwrap()), (6, "1,000,000", "1,039,000"), "{text}");
    assert!(["1,029,000", "1,031,000"].iter().all(|named| loads.contains(named)), "{text}");
}

#[test]
fn a_result_that_was_not_tried_is_in_the_curve_and_no_curve_has_fewer_than_three_loads() {
    let steps = [step(10, true, 1.0, 0.0), step(20, true, 2.0, 0.0), step(30, false, 3.0, 0.0)];
    let text = |curve: &[Point], max| {
        let curve = curve.to_vec();
        find_text(&FindSummary { curve, ..found(FindOutcome::Found, max, 1, None) }, "connections")
    };
    let row = |text: String, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(text(&steps[..2], 20), "max 20 ± 1 connections; the limit is not known\n");
    assert_eq!(row(text(&steps, 25), "result"), "pass pass max fail");
    assert_eq!(row(text(&steps, 25), "errors"), "0 % 0 % - 0 %");
    // Connections that are only held have no latency except that of the probe.
    let probed = |point: &Point| Point { latency_p99_us: None, probe_p99_us: Some(5e3), ..point.clone() };
    let curve: Vec<Point> = steps.iter().map(probed).chain([step(40, false, 9.0, 0.0)]).collect();
    assert_eq!(row(text(&curve, 20), "probe.held p99"), "p99 5.0 ms 5.0 ms 5.0 ms -");
}

#[test]
fn each_step_is_a_test_case_and_none_of_them_fails() {
    let late = "throng was late".to_owned();
    let full = vec!["9 of 40 connections held".to_owned(), "1 < 2".to_owned()];
    let curve = vec![
        Point { step: 1, elapsed_s: 2.0614, ..step(10, true, 1.0, 0.0) },
        Point { step: 3, elapsed_s: 2.25, invalid: true, reasons: vec![late], ..step(20, false, 1.0, 0.0) },
        Point { step: 2, elapsed_s: 1.5, reasons: full.clone(), ..step(40, false, 1.0, 0.5) },
    ];
    let found = FindSummary {
        target: "http://t/?a=<b>".to_owned(),
        unit: "connections".into(),
        seed: 7,
        failed: Some(40),
        criterion: full.first().cloned(),
        curve,
        ..found(FindOutcome::Found, 10, 1, None)
    };
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/find-junit.xml");
    fixtures::check_golden(golden, &find_junit(&found, units::Date(1_700_000_000_250)));
}

#[test]
fn the_test_case_of_a_search_goes_by_its_exit_status() {
    let check = |found: FindSummary, expected: &str| {
        let text = find_junit(&found, units::Date(0));
        let case = text.lines().find(|line| line.contains("search by connections")).expect("it is there");
        assert!(case.contains(expected), "{:?}: {case}", found.outcome);
    };
    let of = |outcome| found(outcome, 5, 0, None);
    check(of(FindOutcome::Found), "time=\"0.000\"/>");
    check(of(FindOutcome::NotReached), "time=\"0.000\"/>");
    check(of(FindOutcome::Unsettled), "<failure message=\"unsettled: 5 connections passed");
    check(of(FindOutcome::Impossible), "<failure message=\"impossible: ");
    check(FindSummary { invalid: true, ..of(FindOutcome::NotReached) }, "<error message=\"at least 5");
    check(FindSummary { interrupted: true, ..of(FindOutcome::Found) }, "<error message=\"interrupted: ");
}

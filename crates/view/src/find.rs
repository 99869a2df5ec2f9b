//! A search as text: a line for each load that was tried, and the result.

use samples::{Baseline, Cause, FindOutcome, FindSummary, Limit, Point, Side};
use units::{Count, percent};

use crate::summary::time;

/// One load that was tried: `  32,000 connections   pass  latency p99 1.2 ms  probe.held p99 340 µs`. Each column is named like the
/// figure of thresholds: `probe.held.p99`, since `probe.p99` has the ramp too.
pub fn find_line(point: &Point, unit: &str) -> String {
    let shown = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| time(us, false));
    let without = |share: f64, end| match share {
        0.0 => String::new(),
        share => format!(" ({} without a {end})", percent(share)),
    };
    let verdict = match (point.pass, point.invalid) {
        (true, _) => "pass",
        (false, true) => "invalid",
        (false, false) => "fail",
    };
    let mut line = format!("  {:>10} {unit}  {verdict}", Count(point.load).to_string());
    // Connections that are only held have no request at full load, and those of the step before are not dialled.
    if point.latency_p99_us.is_some() || point.no_response > 0.0 {
        let [p50, p95, p99] = [point.latency_p50_us, point.latency_p95_us, point.latency_p99_us].map(shown);
        line += &format!("  latency p50 {p50} p95 {p95} p99 {p99}");
        line += &without(point.no_response, "response");
    }
    if point.connect_p99_us.is_some() || point.connect_no_response > 0.0 {
        line += &format!("  connect p99 {}", shown(point.connect_p99_us));
        line += &without(point.connect_no_response, "connection");
    }
    if point.probe_p99_us.is_some() || point.probe_no_response > 0.0 {
        line += &format!("  probe.held p99 {}", shown(point.probe_p99_us));
        line += &without(point.probe_no_response, "correct response");
    }
    if let Some(why) = point.reasons.first() {
        line += &format!("  ({why})");
    }
    line
}

/// The result, in the last line: `max 50,000 ± 1,000 connections; the target ran out of open files: 1,024 of 1,024 used; raise …`. Each
/// part has the figures of one load, which it names. Before it, what the probe was compared with.
pub fn find_text(found: &FindSummary, unit: &str) -> String {
    let baseline = found.baseline.map(|baseline| baseline_text(found, baseline, unit)).unwrap_or_default();
    baseline + &result(found, unit)
}

/// `baseline: probe.held p99 2.4 ms at 5 connections, the lowest; a step may have up to 22 ms`; with a warning where that is so
/// much that a target which is far too slow passes, or where it was compared with nothing.
fn baseline_text(found: &FindSummary, baseline: Baseline, unit: &str) -> String {
    let Baseline { load, probe_p99_us, allowed_us } = baseline;
    let is_only = found.curve.iter().all(|point| point.load == load);
    let (load, [p99, allowed]) = (Count(load), [probe_p99_us, allowed_us].map(|us| time(us, false)));
    let text = format!(
        "baseline: probe.held p99 {p99} at {load} {unit}, the lowest; a step may have up to {allowed}\n"
    );
    match is_only {
        true => text + ONLY,
        false if allowed_us > SLOW_US => text + SLOW,
        false => text,
    }
}

const ONLY: &str = "only this load was measured, so nothing shows whether it is slow because of it\n";

/// Who waits for longer than a second loses the thread (J. Nielsen, Usability Engineering, 1993).
const SLOW_US: f64 = 1e6;
const SLOW: &str = "warning: the target is slow at the baseline already; say what is acceptable, as with \
--threshold 'probe.held.p99 < 100ms'\n";

fn result(found: &FindSummary, unit: &str) -> String {
    let limited = match &found.limit {
        Some(limit) => limited(found, limit),
        None if found.outcome == FindOutcome::NotReached => String::new(),
        None => "; the limit is not known".to_owned(),
    };
    let criterion = found.criterion.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let why = match found.failed {
        Some(failed) => format!("; {} did not pass{criterion}", Count(failed)),
        None => String::new(),
    };
    // The search went no further down than where it began.
    let only = found
        .failed
        .filter(|failed| !found.curve.is_empty() && found.curve.iter().all(|point| point.load == *failed));
    match found.outcome {
        _ if found.interrupted => {
            let passed = match found.max {
                0 => "no load passed".to_owned(),
                max => format!("{} {unit} passed", Count(max)),
            };
            match &found.ended {
                Some(ended) => format!("the search ended: {ended}; {passed}{why}\n"),
                None => format!("interrupted: {passed}{why}\n"),
            }
        }
        FindOutcome::Found => {
            let late = late_between(found);
            format!("max {} ± {} {unit}{why}{late}{limited}\n", Count(found.max), Count(found.error))
        }
        FindOutcome::NotReached if found.invalid => {
            let max = Count(found.max);
            format!("at least {max} {unit}: throng itself was the limit above it{why}{limited}\n")
        }
        FindOutcome::NotReached => {
            format!("not reached: {} {unit} pass; larger loads were not tried\n", Count(found.max))
        }
        // Where throng itself was in the way, less of it was not tried.
        FindOutcome::Impossible if found.limit.as_ref().is_some_and(is_of_this_machine) => {
            format!("impossible on this machine: no load passed{why}{limited}\n")
        }
        FindOutcome::Impossible => match only {
            Some(first) => {
                let first = Count(first);
                format!("impossible: the first load, {first} {unit}, did not pass{criterion}{limited}\n")
            }
            None => format!("impossible: not even the smallest load passes{why}{limited}\n"),
        },
    }
}

/// That the steps between the result and the load that failed show nothing, where throng itself was their limit.
fn late_between(found: &FindSummary) -> &'static str {
    let is_between = |load: u64| found.max < load && found.failed.is_some_and(|failed| load < failed);
    let is_late = found.curve.iter().any(|point| point.invalid && is_between(point.load));
    if is_late { "; at loads between, throng itself was the limit" } else { "" }
}

/// What stopped it. After what the load that failed did not meet, which may be the same.
fn limited(found: &FindSummary, limit: &Limit) -> String {
    match found.limit_load {
        load if load == found.failed && found.criterion.as_ref() == Some(&limit.sentence) => {
            format!("; {}", limit.fix)
        }
        Some(load) if found.failed != Some(load) => {
            format!("; at {}: {}", Count(load), limit.sentence_with_fix())
        }
        _ => format!("; {}", limit.sentence_with_fix()),
    }
}

/// Too few connections for a rate are what the user wanted of it.
fn is_of_this_machine(limit: &Limit) -> bool {
    limit.side == Side::Host && limit.cause != Cause::TooFewConnections
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(outcome: FindOutcome, max: u64, error: u64, limit: Option<Limit>) -> FindSummary {
        FindSummary {
            schema: "throng.find/1".into(),
            by: "connections".into(),
            target: String::new(),
            seed: 7,
            max,
            error,
            outcome,
            failed: None,
            criterion: None,
            interrupted: false,
            ended: None,
            invalid: false,
            limit,
            limit_load: None,
            baseline: None,
            thresholds: Vec::new(),
            curve: Vec::new(),
        }
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
        let check = |found: FindSummary, text: &str| {
            assert_eq!(find_text(&found, "connections"), format!("{text}\n"))
        };
        check(
            found(FindOutcome::Found, 65_000, 1_000, Some(limit)),
            "max 65,000 ± 1,000 connections; the target ran out of open files; raise LimitNOFILE",
        );
        check(found(FindOutcome::Found, 9, 1, None), "max 9 ± 1 connections; the limit is not known");
        check(
            found(FindOutcome::NotReached, 2_000, 0, None),
            "not reached: 2,000 connections pass; larger loads were not tried",
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
            let found =
                FindSummary { interrupted: true, ended, ..found(FindOutcome::NotReached, max, 0, None) };
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
        // The same cause, with the figures of another load.
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
        let end = "not reached: 2,000 connections pass; larger loads were not tried\n";
        let line =
            "baseline: probe.held p99 2.4 ms at 5 connections, the lowest; a step may have up to 22 ms";
        assert_eq!(text(2_400.0, 22_400.0), format!("{line}\n{end}"));
        let slow = text(300_000.0, 1_500_000.0);
        assert!(slow.contains("\nwarning: the target is slow at the baseline already; "), "{slow}");
        assert!(slow.ends_with(end), "{slow}");
        // Of one load it is not known whether it is the load that makes the target slow.
        let only = "only this load was measured, so nothing shows whether it is slow because of it";
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
                "at least 500 requests/s: throng itself was the limit above it; 600 did not pass: {late}\n"
            )
        );
        let both = FindSummary {
            curve: vec![step(600, true), step(1_000, false)],
            ..found(FindOutcome::Found, 500, 500, None)
        };
        assert_eq!(
            text(1_000, "it is full", both),
            "max 500 ± 500 requests/s; 1,000 did not pass: it is full; at loads between, throng itself was the limit; \
            the limit is not known\n"
        );
        let line = find_line(&step(600, true), "requests/s");
        assert_eq!(line, "         600 requests/s  invalid");
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
            pass: false,
            invalid: false,
            held: 5_000,
            requests_per_s: 1.0,
            latency_p50_us: Some(100.0),
            latency_p95_us: Some(800.0),
            latency_p99_us: Some(1_200.0),
            no_response: 0.0,
            probe_p99_us: Some(340.0),
            probe_no_response: 0.0,
            connect_p99_us: Some(50.0),
            connect_no_response: 0.0,
            reasons: vec!["5,000 of 32,000 connections held".to_owned()],
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
}

use samples::{HostFacts, Latency, RunRecord, Summary};
use serde_json::{Value, json};
use stats::compare::{EqualLoad, FigureTolerance, Named, Run};
use units::Nanos;

use super::*;
use crate::format::made_up::check_golden;

/// A run with these figures and 5,000 responses at equal load.
fn run(id: &str, figures: Value, slowest_us: u64) -> Run {
    let summary = Summary::from_json(&figures).unwrap();
    Run::new(id.to_owned(), record(), Some(summary), &at_load(5_000, slowest_us))
}

/// Responses of one millisecond each, except for the slowest 2 %.
fn at_load(responses: u64, slowest_us: u64) -> Latency {
    let mut at_load = Latency::default();
    (0..responses).for_each(|n| {
        at_load.record(Nanos::from_micros(if n % 50 == 0 { slowest_us } else { 1_000 }));
    });
    at_load
}

fn record() -> RunRecord {
    let host = HostFacts { kernel: "6.1.0".to_owned(), cores: 4, memory_bytes: 8 << 30 };
    let words = ["run", "http://t/", "-c", "200"].map(str::to_owned).to_vec();
    RunRecord { host, words, version: "0.1.0".to_owned(), ..RunRecord::default() }
}

fn summary(verdict: &str, held: u64, per_s: f64, p99: f64, faults: u64) -> Value {
    let fault = json!({ "side": "target", "stage": "hold", "kind": "reset", "count": faults });
    json!({
        "verdict": verdict,
        "errors": { "of": 9_000 },
        "connections": { "wanted": 200, "held": held, "peak": 200, "open_per_s": 48_000.0 },
        "requests": { "due": 9_000, "per_s": per_s, "status": {} },
        "latency_us": { "count": 9_000, "p50": 500.0, "p95": 600.0, "p99": p99 },
        "connect_us": { "count": 200, "p99": 800.0 },
        "kernel_bytes_per_connection": { "value": 8_349.0 + p99 / 100.0 },
        "generator": { "user_bytes_per_connection": 0.0 },
        "faults": if faults > 0 { json!([fault]) } else { json!([]) },
    })
}

fn group(name: &str, runs: Vec<Run>) -> Group {
    Group { name: name.to_owned(), runs }
}

/// Repetitions before and after, and a single run on another machine that was itself the limit.
fn groups() -> Vec<Group> {
    let before = [(1_010.0, 9_480.0), (1_000.0, 9_510.0), (990.0, 9_495.0)];
    let after = [(1_250.0, 9_470.0), (1_190.0, 9_500.0), (1_220.0, 9_505.0)];
    let of = |name: &str, p99s: [(f64, f64); 3], faults| {
        let run = |(n, (p99, per_s)): (u64, (f64, f64))| {
            run(&format!("{name}{n}"), summary("pass", 200, per_s, p99, faults * n), 2 * p99 as u64)
        };
        group(&format!("tag:{name}"), (0..).zip(p99s).map(run).collect())
    };
    let mut elsewhere = record();
    elsewhere.host = HostFacts { kernel: "6.6.0".to_owned(), cores: 2, memory_bytes: 4 << 30 };
    elsewhere.words.extend(["--think", "1s"].map(str::to_owned));
    let figures = summary("invalid", 180, 4_000.0, 5_000.0, 0);
    let invalid = Summary::from_json(&figures).ok();
    let other = Run::new("0000007".to_owned(), elsewhere, invalid, &at_load(5_000, 9_000));
    let unfinished = Run::new("0000008".to_owned(), record(), None, &at_load(12, 9_000));
    vec![of("before", before, 0), of("after", after, 1), group("latest", vec![other, unfinished])]
}

fn tolerance(text: &str, grows: bool, share: f64) -> FigureTolerance {
    let path = text.split(' ').next().unwrap();
    let named = Named::usual().into_iter().find(|own| own.figure.key == path).unwrap();
    FigureTolerance { text: text.to_owned(), named, grows, share }
}

fn comparison() -> Comparison {
    let tolerances = [
        tolerance("latency_us.p99 +10%", true, 0.1),
        tolerance("latency_us.p99 +30%", true, 0.3),
        tolerance("requests.per_s -0%", false, 0.0),
        tolerance("faults +0%", true, 0.0),
        tolerance("probe.latency_us.p99 +10%", true, 0.1),
    ];
    Comparison::new(groups(), EqualLoad::of([200, 200]), &tolerances, &<[String]>::to_vec)
}

#[test]
fn a_terminal_gets_aligned_tables() {
    check_golden("compare", &text(&comparison()));
}

#[test]
fn markdown_has_the_same_cells() {
    let comparison = comparison();
    let markdown = markdown(&comparison);
    check_golden("compare-markdown", &markdown);
    for table in tables(&comparison) {
        for row in &table {
            assert!(markdown.contains(&format!("| {} |\n", row.join(" | "))), "{row:?}");
        }
    }
}

#[test]
fn json_has_every_value() {
    let document: Value = serde_json::from_str(&json(&comparison())).unwrap();
    assert_eq!(document["schema"], "throng.compare/1");
    assert_eq!(document["equal_load_connections"], 200);
    assert_eq!(document["groups"][1]["name"], "tag:after");
    assert_eq!(document["groups"][1]["runs"][2], json!({ "id": "after2", "verdict": "pass" }));
    let figure = |path: &str| {
        let figures = document["figures"].as_array().unwrap();
        figures.iter().find(|figure| figure["figure"] == path).unwrap_or_else(|| panic!("no {path}"))
    };
    let p99 = figure("latency_us.p99");
    assert_eq!(
        (&p99["unit"], &p99["groups"][0]["values"]),
        (&"us".into(), &json!([1_010.0, 1_000.0, 990.0]))
    );
    let after = &p99["groups"][1];
    // (1250 · 1190 · 1220 / (1010 · 1000 · 990))^(1/3)
    assert!((after["ratio"].as_f64().unwrap() - 1.219_795).abs() < 1e-6, "{after}");
    assert!((after["mean"].as_f64().unwrap() - 1_219.754).abs() < 1e-3, "{after}");
    assert_eq!(after["difference"], "larger");
    assert!(
        after["interval"][0].as_f64() > Some(1.1) && after["interval"][1].as_f64() < Some(1.3),
        "{after}"
    );
    assert_eq!(figure("requests.per_s")["groups"][1]["difference"], "within");
    assert_eq!(figure("latency_us.p99")["groups"][2]["difference"], "unknown");
    assert_eq!(figure("latency_us.p99")["groups"][2]["values"], json!([5_000.0, null]));
    let faults = &figure("faults")["groups"][1];
    assert_eq!(
        (&faults["mean"], &faults["ratio"], &faults["difference"]),
        (&1.0.into(), &Value::Null, &"differs".into())
    );
    let at_load = &figure("equal_load_us.p99")["groups"];
    assert!((at_load[0]["values"][1].as_f64().unwrap() / 2_000.0 - 1.0).abs() < 1e-3, "{at_load}");
    assert_eq!(document["fail_if"][0]["expr"], "latency_us.p99 +10%");
    assert_eq!(document["fail_if"].as_array().unwrap().len(), 10);
}

#[test]
fn a_group_fails_by_more_than_is_allowed_and_than_the_noise() {
    let comparison = comparison();
    let failed: Vec<(&str, &str)> = comparison
        .judged
        .iter()
        .filter(|judged| judged.failed)
        .map(|judged| (judged.text.as_str(), judged.group.as_str()))
        .collect();
    let expected = [
        ("latency_us.p99 +10%", "tag:after"),
        ("latency_us.p99 +10%", "latest"),
        ("latency_us.p99 +30%", "latest"),
        // Slightly less, but within the noise, so tag:after does not fail.
        ("requests.per_s -0%", "latest"),
        ("faults +0%", "tag:after"),
        ("faults +0%", "latest"),
        ("probe.latency_us.p99 +10%", "tag:after"),
        ("probe.latency_us.p99 +10%", "latest"),
    ];
    assert_eq!(failed, expected);
}

/// By its figures, which are equal, each group would pass.
#[test]
fn a_group_without_a_valid_run_cannot_be_judged() {
    let of = |name: &str, verdicts: [&str; 2]| {
        let one = |verdict: &str| run(&format!("{name}{verdict}"), summary(verdict, 200, 9e3, 1e3, 0), 1_000);
        group(name, verdicts.map(one).into())
    };
    let check = |base, other, expected: Option<&str>| {
        let tolerances = [tolerance("faults +0%", true, 0.0)];
        let groups = vec![of("a", base), of("b", other)];
        let comparison = Comparison::new(groups, None, &tolerances, &<[String]>::to_vec);
        let judged = &comparison.judged[0];
        let why = judged.void.then_some(judged.detail.as_str());
        assert_eq!((why, judged.failed), (expected, expected.is_some()), "{base:?} {other:?}");
        let document: Value = serde_json::from_str(&json(&comparison)).unwrap();
        assert_eq!(document["fail_if"][0]["void"], judged.void);
        let shown = format!("fail-if faults +0%: cannot be judged: {}\n", judged.detail);
        assert_eq!(text(&comparison).contains(&shown), judged.void, "{shown}");
    };
    let (valid, late, ended) = (["pass", "fail"], ["invalid", "invalid"], ["interrupted", "invalid"]);
    check(valid, valid, None);
    check(valid, ["invalid", "pass"], None);
    check(valid, late, Some("no valid run in b"));
    check(ended, valid, Some("no valid run in a"));
    check(late, ended, Some("no valid run in a and b"));
}

/// Three runs with verdict, p99 and faults.
type Three = [(&'static str, f64, u64); 3];

/// If the other runs counted, each of the first three results would be the opposite.
#[test]
fn only_valid_runs_are_judged() {
    let of = |name: &str, runs: Three| {
        let one = |(n, (verdict, p99, faults)): (usize, (&str, f64, u64))| {
            run(&format!("{name}{n}"), summary(verdict, 200, 9e3, p99, faults), 1_000)
        };
        group(name, runs.into_iter().enumerate().map(one).collect())
    };
    let check = |tolerance: &FigureTolerance, base, other, expected: (bool, &str)| {
        let groups = vec![of("a", base), of("b", other)];
        let tolerances = std::slice::from_ref(tolerance);
        let comparison = Comparison::new(groups, None, tolerances, &<[String]>::to_vec);
        let judged = &comparison.judged[0];
        assert_eq!((judged.failed, judged.detail.as_str()), expected, "{base:?} {other:?}");
        assert!(!judged.void, "{judged:?}");
    };
    let (p99, faults) = (tolerance("latency_us.p99 +10%", true, 0.1), tolerance("faults +0%", true, 0.0));
    let healthy: Three = [("pass", 1_010.0, 0), ("pass", 1_000.0, 0), ("pass", 990.0, 0)];
    let late: Three = [("pass", 2_000.0, 0), ("invalid", 900.0, 0), ("invalid", 80_000.0, 0)];
    let unknown = "b 2.00 ms, a 1.00 ms, +100.0 %: the noise is not known; 1 of 3 runs of b is valid";
    check(&p99, healthy, late, (true, unknown));
    let reset: Three = [("pass", 1_000.0, 0), ("fail", 1_010.0, 0), ("invalid", 1_000.0, 3)];
    check(&faults, healthy, reset, (false, "b 0, a 0, 0.0 %: allowed; 2 of 3 runs of b are valid"));
    let better: Three = [("pass", 1_000.0, 1), ("interrupted", 1_000.0, 0), ("pass", 1_000.0, 1)];
    check(
        &faults,
        reset,
        better,
        (true, "b 1, a 0: beyond the tolerance; 2 of 3 runs of a are valid; 2 of 3 runs of b are valid"),
    );
    check(&faults, healthy, healthy, (false, "b 0, a 0, 0.0 %: allowed"));
}

#[test]
fn the_same_run_twice_is_reported() {
    let twice = || group("latest", vec![run("0000007", summary("pass", 200, 1.0, 1_000.0, 0), 1_000)]);
    let text = text(&Comparison::new(vec![twice(), twice()], None, &[], &<[String]>::to_vec));
    assert!(text.contains("warning: in more than one group: run 0000007\n"), "{text}");
    assert!(text.contains("latest (1)") && text.contains("latest (2)"), "{text}");
    assert!(text.contains("p99 at equal load is not known: no load was held by every run\n"), "{text}");
}

/// Nine of ten requests get a fast response, the others none.
fn survivors(id: &str, judged_p99: Value) -> Run {
    let mut figures = summary("fail", 200, 9_000.0, 900.0, 0);
    figures["latency_us"]["censored"] =
        json!({ "count": 1_000, "share": 0.1, "p50": 510.0, "p99": judged_p99 });
    run(id, figures, 2_000)
}

fn run_with_responses(id: &str) -> Run {
    let mut figures = summary("pass", 200, 9_000.0, 1_000.0, 0);
    figures["latency_us"]["censored"] = Value::Null;
    run(id, figures, 2_000)
}

#[test]
fn a_percentile_without_unanswered_requests_is_marked() {
    let groups = || {
        let before = vec![run_with_responses("a0"), run_with_responses("a1")];
        let after = vec![survivors("b0", Value::Null), survivors("b1", json!(1_900.0))];
        vec![group("before", before), group("after", after)]
    };
    let tolerances = [tolerance("latency_us.p99 +10%", true, 0.1)];
    let comparison = Comparison::new(groups(), EqualLoad::of([200, 200]), &tolerances, &<[String]>::to_vec);
    let shown = text(&comparison);
    for line in [
        "warning: latency p50 500 µs covers responses only, but 10 % of the requests had no response; counting those as longer than all others it is 510 µs: run b0\n",
        "warning: latency p99 900 µs covers responses only, but 10 % of the requests had no response; counting those as longer than all others it is unknown: run b0\n",
        "; counting those as longer than all others it is 1.90 ms: run b1\n",
    ] {
        assert!(shown.contains(line), "{line}{shown}");
    }
    assert!(!shown.contains("run a0"), "{shown}");
    let row = shown.lines().find(|line| line.starts_with("no response")).expect("it is compared");
    assert!(row.contains("0.0 %") && row.contains("10.0 %") && row.ends_with("differs"), "{row}");
    // Without the missing responses, the figure would have fallen by a tenth.
    let judged = &comparison.judged[0];
    let detail = "it falls among the requests without a response in run b0";
    assert_eq!((judged.failed, judged.detail.as_str()), (true, detail));
    let none = Comparison::new(
        vec![group("a", vec![run_with_responses("a0")]), group("b", vec![run_with_responses("b0")])],
        None,
        &[],
        &<[String]>::to_vec,
    );
    assert!(!text(&none).contains("no response;"), "{}", text(&none));
}

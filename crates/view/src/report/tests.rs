use super::*;
use fixtures::{check_golden, header, seen};
use samples::{
    Censored, Figures, Limit, PopulationSummary, Quantiles, StepSummary, ThresholdResult, Verdict,
};
use units::Date;

/// The data inside a page.
fn data_of(html: &str) -> Value {
    let (before, rest) =
        html.split_once(r#"<script id="data" type="application/json">"#).expect("a place for data");
    let (data, after) = rest.split_once("</script>").expect("it ends");
    assert!(!before.contains(PLACE) && !after.contains(PLACE));
    let packed = STANDARD.decode(data).expect("base64");
    serde_json::from_reader(flate2::read::GzDecoder::new(packed.as_slice())).expect("gzip of JSON")
}

#[test]
fn a_search_has_a_page_without_runs() {
    let point = samples::Point { load: 9, pass: true, errors: Some(0.25), ..Default::default() };
    let found = FindSummary {
        target: "http://t/</script>".to_owned(),
        unit: "connections".into(),
        outcome: samples::FindOutcome::Found,
        max: 9,
        error: 1,
        curve: vec![point],
        ..FindSummary::default()
    };
    let began = Date(1_700_000_000_250);
    let data = data_of(&search_report_html(&found, began));
    assert_eq!((&data["schema"], &data["runs"]), (&json!("throng.report/1"), &json!([])));
    let sentence = "max 9 ± 1 connections; the limit is not known";
    let expected = json!({ "began_ms": 1_700_000_000_250_u64, "sentence": sentence, "found": found });
    assert_eq!(data["search"], expected);
    assert_eq!(serde_json::from_str::<Value>(&search_report_json(&found, began)).unwrap(), data);
}

/// A report on a run of three seconds.
fn report(target: &str) -> Report {
    let run = RunRecord {
        version: "1.2.3".to_owned(),
        words: ["run", target, "--message", "it's <b>"].map(str::to_owned).to_vec(),
        began_ms: Date(1_700_000_000_250),
        scenario: Some("# </script><script>alert(1)</script>\n".to_owned()),
        ..RunRecord::default()
    };
    let mut report = Report::new(run);
    report.begin(&samples::Header { target: target.to_owned(), ..header() });
    for (tick, samples) in [1, 2, 3].map(seen) {
        report.tick(&tick, &samples);
    }
    report
}

fn summary() -> Summary {
    let mut s = Summary {
        verdict: Verdict::Fail,
        reasons: vec!["27 of 30 connections held".to_owned()],
        ..Summary::default()
    };
    s.limit = Some(Limit {
        side: samples::Side::Target,
        cause: samples::Cause::OpenFiles,
        at_connections: 27,
        certainty: samples::Certainty::Seen,
        first_seen_s: None,
        sentence: "the target ran out of open files: 1,024 of 1,024 used".to_owned(),
        detail: "whoever came when 27 were open was reset".to_owned(),
        fix: "raise LimitNOFILE".to_owned(),
    });
    s.headline = format!("{}: {}", s.verdict.name(), s.limit.as_ref().unwrap().sentence_with_fix());
    (s.connections.wanted, s.connections.held, s.connections.open_per_s) = (30, 27, 1234.5);
    (s.requests.due, s.requests.sent, s.requests.answered) = (6_000, 6_000, 5_994);
    s.requests.per_s = 1_998.0;
    s.requests.status.extend([(200, 5_990), (503, 4)]);
    (s.requests.bytes_in, s.requests.bytes_in_per_s) = (1 << 20, 349_525.0);
    (s.requests.bytes_out, s.requests.bytes_out_per_s) = (372_000, 124_000.0);
    s.errors = samples::Errors { count: 10, of: 6_000 };
    s.latency_us = Quantiles {
        count: 5_994,
        p50: 1_000.0,
        p90: 1_800.0,
        p95: 1_900.0,
        p99: 2_990.0,
        p999: 3_000.0,
        max: 3_000.0,
        censored: Some(Censored { count: 6, share: 0.001, p99: Some(2_991.0), ..Censored::default() }),
        ..Quantiles::default()
    };
    // Not one dial of the ramp was completed.
    s.connect_us.censored = Some(Censored { count: 3, share: 1.0, ..Censored::default() });
    let login = StepSummary { latency_us: s.latency_us, ..StepSummary::default() };
    let figures = Figures { latency_us: s.latency_us, ..Figures::default() };
    let users = PopulationSummary { figures, steps: [("login".to_owned(), login)].into() };
    s.populations = [("idle".to_owned(), PopulationSummary::default()), ("users".to_owned(), users)].into();
    s.thresholds = vec![ThresholdResult {
        expr: "held >= 99%".to_owned(),
        value: Some(90.0),
        shown: "90 %".to_owned(),
        pass: false,
        unreliable: false,
    }];
    s.cost.target_bytes = Some(samples::Fit { value: 512.25, error: 1.5, r2: 0.9991 });
    s.cost.ceiling_connections = Some(1_000_000);
    s.kernel_bytes_per_connection = Some(samples::KernelCost { value: 8_400.0, both_ends: true });
    s
}

#[test]
fn the_markdown_is_as_it_was() {
    let mut report = report("http://t/a|b");
    report.name("gq18ppt".to_owned());
    report.finish(&summary());
    check_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/report.md"), &report.markdown());
}

#[test]
fn a_threshold_that_fails_by_what_had_no_response_reads_alike_everywhere() {
    let why = "2.3 % had no response in time";
    let silent = ThresholdResult {
        expr: "latency.p99 < 50ms".to_owned(),
        shown: why.to_owned(),
        ..Default::default()
    };
    let mut s = Summary { verdict: Verdict::Fail, thresholds: vec![silent], ..Summary::default() };
    s.headline = format!("fail: threshold latency.p99 < 50ms failed: {why}");
    let (mut report, run) = (report("http://t/"), RunRecord::default());
    report.finish(&s);
    let [text, json, junit] = [crate::text(&s), crate::json(&s), crate::junit(&run, &s)];
    for shown in [text, json, junit, report.markdown(), job_summary(&run, &s), s.headline] {
        assert!(shown.contains(why) && !shown.contains("nothing was measured"), "{shown}");
    }
}

#[test]
fn a_run_without_an_end_is_announced() {
    let text = report("http://t/").markdown();
    assert!(text.starts_with("# Load test unfinished: `http://t/`\n"), "{text}");
    assert!(text.contains("throng run http://t/ --message 'it'\\''s <b>' --seed 7\n"), "{text}");
    // The figures of the ticks so far.
    for row in ["| responses | 5,994 |", "| connections open at the end | 33 |"] {
        assert!(text.contains(row), "{row}: {text}");
    }
    let (id, run) = ("", RunRecord::default());
    assert!(!markdown::text(id, &run, None, Tick::none).contains('|'), "before its first tick");
}

#[test]
fn a_fault_has_its_detail() {
    let fault = samples::Fault::target(samples::Stage::Exchange, samples::Kind::BadAnswer);
    let faults =
        vec![samples::FaultCount::new(fault.with(samples::Detail::of_rule(samples::Rule::Chunk)), 1_200)];
    let mut report = report("http://t/");
    let mut s = summary();
    s.faults = faults;
    report.finish(&s);
    let text = report.markdown();
    assert!(text.contains("| target | exchange | bad-answer (malformed chunk) | 1,200 |"), "{text}");
}

/// GitHub does not show a table whose lines have different numbers of cells.
#[test]
fn tables_have_as_many_cells_in_each_line() {
    let mut report = report("http://t/");
    let unfinished = report.markdown();
    report.finish(&summary());
    let (text, brief) = (report.markdown(), job_summary(&RunRecord::default(), &summary()));
    for text in [unfinished, text, brief] {
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let lines: Vec<&str> = text.lines().collect();
        let tables = lines.windows(2).filter(|pair| pair.iter().all(|line| line.starts_with('|')));
        let differ: Vec<_> = tables.clone().filter(|pair| cells(pair[0]) != cells(pair[1])).collect();
        assert!(tables.count() > 2 && differ.is_empty(), "{differ:?}");
    }
}

#[test]
fn the_page_holds_all_of_it_and_nothing_breaks_out() {
    let mut report = report("http://t/</script>");
    report.finish(&summary());
    let html = report_html(&[report], None);
    let data = data_of(&html);
    let run = &data["runs"][0];
    assert_eq!((&data["schema"], &run["width"]), (&"throng.report/1".into(), &1.into()));
    assert_eq!(run["run"]["header"]["target"], "http://t/</script>");
    assert_eq!(run["summary"]["limit"]["cure"], "raise LimitNOFILE");
    let ticks: Vec<TickRecord> = serde_json::from_value(run["ticks"].clone()).expect("records");
    let (open, answered) =
        (ticks[2].tick.open, ticks.iter().map(|record| record.tick.counts.answered).sum::<u64>());
    assert_eq!((ticks.len(), open, answered), (3, 33, 999 * 6));
    assert_eq!(ticks[1].looks.target.as_ref().and_then(|target| target.open_files), Some(2));
}

#[test]
fn several_runs_are_one_report() {
    let data: Value =
        serde_json::from_str(&report_json(&[report("http://a/"), report("http://b/")], None)).unwrap();
    let targets: Vec<&str> = data["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["run"]["header"]["target"].as_str().unwrap())
        .collect();
    assert_eq!(targets, ["http://a/", "http://b/"]);
    assert!(data["runs"][0]["summary"].is_null());
}

/// A uniform random number from 0 to 1.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1_u64 << 53) as f64
}

/// Latencies as of a busy server: log-normal around a median; the normal numbers are sums of twelve uniform ones (Irwin-Hall).
fn busy(times: &mut samples::Latency, n: u64, median_us: f64, state: &mut u64) {
    for _ in 0..n {
        let normal = (0..12).map(|_| uniform(state)).sum::<f64>() - 6.0;
        times.record(units::Nanos((median_us * 1e3 * normal.exp()) as u64));
    }
}

#[test]
fn an_hour_of_a_million_connections_is_a_small_file() {
    let (_, samples) = seen(1);
    let mut report = report("http://t/");
    let mut state = 7;
    // The times of a second are two of these parts at random, so that seconds differ.
    let parts = |median_us: f64, state: &mut u64| -> Vec<samples::Latency> {
        let mut part = || {
            let mut times = samples::Latency::default();
            busy(&mut times, 1_500, median_us, state);
            times
        };
        (0..60).map(|_| part()).collect()
    };
    let (latencies, lags) = (parts(800.0, &mut state), parts(50.0, &mut state));
    let picked = |parts: &[samples::Latency], times: &mut samples::Latency, state: &mut u64| {
        for _ in 0..2 {
            times.merge(&parts[(uniform(state) * parts.len() as f64) as usize]);
        }
    };
    for second in 0..3_600 {
        let (from, until) = (units::Nanos::from_secs(second), units::Nanos::from_secs(second + 1));
        let mut tick =
            samples::Tick { from, until, open: 1_000_000, wanted: 1_000_000, ..samples::Tick::default() };
        (tick.counts.answered, tick.open_ns) = (40_000, 1_000_000_000_000_000);
        // Eight such seconds fill every bucket of the histograms that any number would fill.
        picked(&latencies, &mut tick.latency, &mut state);
        tick.first_byte = tick.latency.clone();
        picked(&lags, &mut tick.lag, &mut state);
        let mut probe = samples::Probe { sent: 20, answered: 20, ..samples::Probe::default() };
        busy(&mut probe.kept, 10, 900.0, &mut state);
        busy(&mut probe.fresh, 10, 1_500.0, &mut state);
        tick.probe = Some(Box::new(probe));
        report.tick(&tick, &samples);
    }
    report.finish(&summary());
    let html = report_html(&[report], None);
    assert!(html.len() < 5 << 20, "{} bytes", html.len());
}

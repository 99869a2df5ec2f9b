//! Checks that all outputs show the same number for the same figure. A run in which each account has a different number of entries is
//! passed to all outputs, both on one machine and on a fleet that has lost an agent.

#![allow(clippy::unwrap_used, reason = "tests only")]

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use exporters::Exporters;
use fixtures::{accounts, header, summary_of_accounts};
use samples::{
    Baseline, Figure, FindOutcome, FindSummary, Header, Point, RunRecord, Samples, Sink, Summary, Tick,
};
use serde_json::Value;
use stats::compare::{Comparison, EqualLoad, Group, Run};
use units::{Count, Date};
use view::{Report, ReportFormat, format::Whole};

/// The tick that the sinks get.
fn ticks(s: &Summary) -> Tick {
    let mut tick = accounts();
    if s.agents.is_empty() {
        // No requests are lost with an agent on one machine.
        let lost = fixtures::LOST[0];
        (tick.counts.due, tick.counts.sent) = (tick.counts.due - lost, tick.counts.sent - lost);
    }
    tick
}

fn alone() -> Header {
    Header { populations: vec!["load".to_owned()], destinations: Vec::new(), agents: Vec::new(), ..header() }
}

/// An output that can be read while it is written.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The metrics at the end of the run, as the exporters write them.
fn metrics(s: &Summary) -> Value {
    let written = Shared::default();
    let mut exporters = Exporters::patient(Date(0));
    exporters.jsonl("a test".to_owned(), written.clone());
    exporters.begin(&alone());
    exporters.tick(&ticks(s), &Samples::default());
    assert!(exporters.end().troubles.is_empty());
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn report(s: &Summary) -> Report {
    let mut report = Report::new(RunRecord::default());
    report.begin(&alone());
    report.tick(&ticks(s), &Samples::default());
    report.finish(s);
    report
}

fn both() -> [Summary; 2] {
    [false, true].map(summary_of_accounts)
}

#[test]
fn every_account_has_a_number_of_its_own_and_they_balance() {
    for s in both() {
        let (c, r) = (&s.connections, &s.requests);
        let accounts = [
            [r.due, r.sent, r.answered, r.wrong, r.failed, r.unanswered, r.missed],
            [c.opened, c.failed, c.given_up, c.dropped, c.closed, c.redialled, c.finished],
            [c.wanted, c.held, c.peak, s.errors.count, s.errors.of, r.told, r.messages],
        ];
        let mut all = accounts.concat();
        all.extend([r.lost, c.lost].into_iter().filter(|_| !s.agents.is_empty()));
        all.sort_unstable();
        assert!(all[0] > 0 && all.windows(2).all(|two| two[0] < two[1]), "{all:?}");
        assert_eq!(r.due, r.answered + r.failed + r.unanswered + r.missed + r.lost);
        assert_eq!(s.latency_us.censored_count(), r.failed + r.unanswered + r.missed);
        let lost: u64 = s.agents.iter().map(|agent| agent.requests_lost).sum();
        let lost_with: u64 = s.agents.iter().map(|agent| agent.lost_with).sum();
        assert_eq!((lost, lost_with), (r.lost, c.lost));
    }
}

/// A counter that is named like an account of the summary must have its value.
#[test]
fn metrics_have_the_numbers_of_the_summary() {
    for s in both() {
        let (metrics, json) = (metrics(&s), serde_json::to_value(&s).unwrap());
        let metric = |name: &str| metrics[name].as_u64();
        let mut found = 0;
        for (group, object) in [("connections", "throng_connections"), ("requests", "throng_requests")] {
            for (account, number) in json[group].as_object().unwrap() {
                let name = format!("{object}_{account}_total");
                let Some(counted) = metric(&name) else { continue };
                let revoked =
                    if account == "due" { metric("throng_requests_revoked_total").unwrap() } else { 0 };
                assert_eq!(Some(counted - revoked), number.as_u64(), "{name}");
                found += 1;
            }
        }
        assert_eq!(found, 11, "accounts that are counters: {metrics}");
        let number = |name: &str| metric(&format!("throng_{name}_total")).unwrap_or_else(|| panic!("{name}"));
        let r = &s.requests;
        let revoked = number("requests_withdrawn") + number("requests_revoked");
        assert_eq!(number("requests") - revoked, r.sent);
        assert_eq!((number("answers"), number("responses_wrong")), (r.answered, r.wrong));
        assert_eq!(number("requests_without_response"), s.latency_us.censored_count());
        assert_eq!((number("messages_told"), number("messages_received")), (r.told, r.messages));
        assert_eq!((number("received_bytes"), number("sent_bytes")), (r.bytes_in, r.bytes_out));
        let probe = s.probe.as_ref().unwrap();
        assert_eq!(
            ["requests", "answers", "failed", "unanswered"].map(|of| number(&format!("probe_{of}"))),
            [probe.sent, probe.answered, probe.failed, probe.unanswered]
        );
        let of = |prefix: &str| -> u64 {
            let all = metrics.as_object().unwrap().iter().filter(|(name, _)| name.starts_with(prefix));
            all.filter_map(|(_, n)| n.as_u64()).sum()
        };
        assert_eq!(Some(of("throng_faults_total") as f64), Figure::of_run("faults").unwrap().value(&s));
        assert_eq!(of("throng_statuses_total"), r.status.values().sum::<u64>());
    }
}

/// Checks that the text contains each number of the summary, in its pattern.
fn check(what: &str, text: &str, expected: &[(&str, u64)]) {
    for (pattern, number) in expected {
        let pattern = pattern.replace("{}", &Count(*number).to_string());
        assert!(text.contains(&pattern), "{what}: no {pattern:?} in\n{text}");
    }
}

#[test]
fn texts_have_the_numbers_of_the_summary() {
    for s in both() {
        let (c, r, e) = (&s.connections, &s.requests, &s.errors);
        let alone = e.of - r.due;
        let mut numbers = vec![
            ("{} held of", c.held),
            ("of {} wanted", c.wanted),
            (", {} failed", c.failed),
            (", {} given up at the end", c.given_up),
            (", {} dropped", c.dropped),
            (", {} closed with an announcement", c.closed),
            (", {} redialled", c.redialled),
            (", {} closed by throng as planned", c.finished),
            ("{} responses to", r.answered),
            ("to {} requests due", r.due),
            (", {} failed, ", r.failed),
            (", {} without a response at the end", r.unanswered),
            (", {} never sent", r.missed),
            ("missed        {} requests due", r.missed),
            ("({} of", e.count - alone),
            ("and {} connections failed", alone),
            ("messages      {} received", r.messages),
        ];
        if !s.agents.is_empty() {
            numbers
                .extend([(", {} lost with their agents", r.lost), (", {} lost with their agents", c.lost)]);
        }
        check("text", &view::text(&s), &numbers);
        check("junit", &view::junit(&RunRecord::default(), &s), &numbers);
    }
}

#[test]
fn markdown_has_the_numbers_of_the_summary() {
    for s in both() {
        let (c, r, e) = (&s.connections, &s.requests, &s.errors);
        let alone = e.of - r.due;
        let mut numbers = vec![
            ("| connections wanted | {} |", c.wanted),
            ("| connections held | {} |", c.held),
            ("| peak connections | {} |", c.peak),
            ("| requests due | {} |", r.due),
            ("| responses | {} |", r.answered),
            ("| requests failed | {} |", r.failed),
            ("| requests without a response at the end | {} |", r.unanswered),
            ("| requests never sent | {} |", r.missed),
            (" ({} of", e.count - alone),
            ("and {} connections failed", alone),
        ];
        if !s.agents.is_empty() {
            numbers.push(("| requests lost with their agents | {} |", r.lost));
        }
        check("markdown", &ReportFormat::Markdown.text(&report(&s)), &numbers);
        let brief = [("{} held of", c.held), (" ({} of", e.count - alone)];
        check("job summary", &view::job_summary(&RunRecord::default(), &s), &brief);
    }
}

/// The report of a run without a summary must show the accounts of its ticks under the same names.
#[test]
fn a_report_without_a_summary_has_the_numbers_of_the_ticks() {
    for s in both() {
        let mut report = Report::new(RunRecord::default());
        report.begin(&alone());
        report.tick(&ticks(&s), &Samples::default());
        let numbers = [
            ("| connections opened | {} |", s.connections.opened),
            ("| connections redialled | {} |", s.connections.redialled),
            ("| responses | {} |", s.requests.answered),
        ];
        check("markdown", &ReportFormat::Markdown.text(&report), &numbers);
    }
}

/// The page does not compute figures of the summary: it gets them, and ticks that add up to them.
#[test]
fn the_page_is_given_the_numbers_of_the_summary() {
    for s in both() {
        let report: Value = serde_json::from_str(&ReportFormat::Json.text(&report(&s))).unwrap();
        let run = &report["runs"][0];
        assert_eq!(run["summary"], serde_json::to_value(&s).unwrap());
        let ticks = Tick { counts: accounts().counts, ..Tick::default() };
        let counted = &run["ticks"][0]["tick"]["counts"];
        assert_eq!(counted["answered"], ticks.counts.answered, "{counted}");
        for (account, number) in [
            ("opened", s.connections.opened),
            ("failed", s.connections.failed),
            ("given_up", s.connections.given_up),
            ("dropped", s.connections.dropped),
            ("failed_requests", s.requests.failed),
            ("unanswered", s.requests.unanswered),
            ("missed", s.requests.missed),
        ] {
            assert_eq!(counted[account], number, "{account}");
        }
    }
}

#[test]
fn the_formats_of_other_tools_have_the_numbers_of_the_summary() {
    for s in both() {
        let mut whole = Whole::default();
        whole.begin(&alone());
        whole.tick(&ticks(&s), &Samples::default());
        let (c, r) = (&s.connections, &s.requests);
        // Requests that ended without a response after they were sent; the others are failed dials.
        let lost = r.failed + r.unanswered;
        let wrk = [("  {} requests in", r.answered), ("timeout {}\n", lost), ("connect {},", c.failed)];
        check("wrk", &view::format::wrk(&s, &whole), &wrk);
        let ab = [
            ("Complete requests:      {}\n", r.answered),
            ("Connect: {},", c.failed),
            ("Exceptions: {})", lost),
            ("Non-2xx responses:      {}\n", r.wrong),
        ];
        check("ab", &view::format::ab(&s, &whole), &ab);
        let fortio = [
            ("Code 200 : {} ", r.status[&200]),
            ("Code  -1 : {} ", lost + c.failed),
            ("Error cases : count {} ", lost + c.failed + r.wrong),
            ("All done {} calls", r.answered + lost + c.failed),
        ];
        check("fortio", &view::format::fortio(&s, &whole), &fortio);
        let httperf = [
            (" requests {} replies", r.sent),
            (" replies {} test", r.answered),
            ("Errors: total {} ", lost + c.failed),
            ("client-timo {} ", lost),
            ("connrefused {} ", c.failed),
        ];
        check("httperf", &view::format::httperf(&s, &whole), &httperf);
    }
}

#[test]
fn a_comparison_has_the_numbers_of_the_summary() {
    for s in both() {
        let of = |path: &str| Figure::of_run(path).unwrap().value(&s).map(|n| n as u64);
        let r = &s.requests;
        for (path, number) in [
            ("requests.due", r.due),
            ("requests.failed", r.failed),
            ("requests.missed", r.missed),
            ("requests.lost", r.lost),
            ("connections.given_up", s.connections.given_up),
            ("errors.count", s.errors.count),
            ("faults", s.faults.iter().map(|fault| fault.count).sum()),
        ] {
            assert_eq!(of(path), Some(number), "{path}");
        }
        let run = |id: &str| {
            Run::new(id.to_owned(), RunRecord::default(), Some(s.clone()), &samples::Latency::default())
        };
        let groups = ["a", "b"].map(|id| Group { name: id.to_owned(), runs: vec![run(id)] }).to_vec();
        let text = view::compare::text(&Comparison::new(groups, None::<EqualLoad>, &[], &|_| Vec::new()));
        let faults: u64 = s.faults.iter().map(|fault| fault.count).sum();
        for row in [
            format!("connections held {0} {0}", s.connections.held),
            format!("peak connections {0} {0}", s.connections.peak),
            format!("faults {faults} {faults}"),
        ] {
            let lines: Vec<String> =
                text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            assert!(lines.iter().any(|line| line.starts_with(&row)), "{row}:\n{text}");
        }
    }
}

/// Two steps of a search in which each figure has a different number.
fn search() -> FindSummary {
    let passed = Point {
        load: 1_100,
        pass: true,
        held: 1_101,
        requests_per_s: 1_102.0,
        latency_p50_us: Some(21_000.0),
        latency_p95_us: Some(22_000.0),
        latency_p99_us: Some(23_000.0),
        no_response: 0.01,
        probe_p99_us: Some(24_000.0),
        probe_no_response: 0.02,
        connect_p99_us: Some(25_000.0),
        connect_no_response: 0.03,
        errors: Some(0.04),
        target_cores: Some(1.25),
        target_cores_limit: Some(64),
        target_thread: Some(0.35),
        step: 1_104,
        elapsed_s: 1_105.0,
        ..Point::default()
    };
    let first = Point { load: 30, latency_p99_us: Some(31_000.0), errors: Some(0.0), ..passed.clone() };
    let failed = Point {
        load: 1_150,
        pass: false,
        reasons: vec!["1,103 of 1,150 connections are open".to_owned()],
        latency_p99_us: Some(26_000.0),
        ..passed.clone()
    };
    FindSummary {
        by: "connections".into(),
        outcome: FindOutcome::Found,
        max: passed.load,
        error: failed.load - passed.load,
        failed: Some(failed.load),
        criterion: failed.reasons.first().cloned(),
        baseline: Some(Baseline { load: 27, probe_p99_us: 28_000.0, allowed_us: 29_000.0 }),
        unit: "connections".into(),
        curve: vec![first, passed, failed],
        ..FindSummary::default()
    }
}

/// All numbers in a value, including those in texts, as words: times in milliseconds, shares in percent.
fn numbers(value: &Value, name: &str) -> Vec<String> {
    match value {
        Value::Object(object) => object.iter().flat_map(|(name, value)| numbers(value, name)).collect(),
        Value::Array(array) => array.iter().flat_map(|value| numbers(value, name)).collect(),
        Value::String(text) => words(text),
        Value::Number(n) if name.ends_with("_us") => vec![(n.as_f64().unwrap() / 1e3).to_string()],
        Value::Number(n) if name.contains("no_response") || ["errors", "target_thread"].contains(&name) => {
            vec![(n.as_f64().unwrap() * 100.0).round().to_string()]
        }
        Value::Number(n) => vec![n.as_f64().unwrap().to_string()],
        _ => Vec::new(),
    }
}

/// The numbers in a text.
fn words(text: &str) -> Vec<String> {
    let words = text.replace(',', "");
    let words = words.split(|c: char| !c.is_ascii_digit() && c != '.').map(|word| word.trim_matches('.'));
    words.filter_map(|word| word.parse::<f64>().ok()).map(|number| number.to_string()).collect()
}

/// The text of a search must show the figures of its JSON, and no others.
#[test]
fn the_text_of_a_search_has_the_numbers_of_its_json() {
    let found = search();
    let unit = "connections";
    for point in &found.curve {
        let line = view::find_line(point, unit).replace("p50 ", "").replace("p95 ", "").replace("p99 ", "");
        let json = numbers(&serde_json::to_value(point).unwrap(), "");
        assert!(words(&line).iter().all(|number| json.contains(number)), "{line}: {json:?}");
        // A load's connections and responses per second are only in its report, errors and the target's CPU only in the curve, and
        // the index and time of a step are not shown.
        let others = ["1101", "1102", "1104", "1105", "0", "4", "1.25", "64", "35"];
        let is_shown = |number: &String| words(&line).contains(number) || others.contains(&&**number);
        let unseen: Vec<&String> = json.iter().filter(|number| !is_shown(number)).collect();
        assert!(unseen.is_empty(), "{line}: {unseen:?}");
    }
    let text = view::find_text(&found, unit).replace("p99 ", "");
    let json = numbers(&serde_json::to_value(&found).unwrap(), "");
    assert!(words(&text).iter().all(|number| json.contains(number)), "{text}: {json:?}");
    for number in ["30", "31", "26", "4", "1.25", "64", "35", "27", "28", "29", "1100", "50", "1150", "1103"]
    {
        assert!(words(&text).contains(&number.to_owned()), "{number}: {text}");
    }
}

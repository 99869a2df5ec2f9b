//! The summary in the formats of other tools, and the histograms of each second.

use std::{fs, time::Duration};

use crate::{
    program::{Ended, Program, Serving, file},
    scripted::{Scripted, ok},
    summary::{Summary, run},
    usage::check,
};

/// A run in the format of another tool; what it printed, and the same run's own summary.
fn form(tool: &str, target: &str, args: &[&str]) -> (Ended, Summary) {
    let json = file(&format!("form-{tool}.json"));
    let own = ["run", target, "--format", tool, "--live", "off", "--json", json.to_str().unwrap()];
    let ended = Program::start(&[&own, args].concat()).end();
    let summary = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    (ended, Summary(summary))
}

/// The number behind `label`.
fn number(text: &str, label: &str) -> f64 {
    let behind = text.split_once(label).unwrap_or_else(|| panic!("no {label:?} in {text}")).1.trim_start();
    let end = behind.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(behind.len());
    behind[..end].parse().unwrap_or_else(|e| panic!("{label:?}: {e}: {text}"))
}

/// The format and, of its figures, the number of responses, their rate, and the mean and longest latency in milliseconds.
struct Figures {
    tool: &'static str,
    answered: f64,
    per_s: f64,
    mean_ms: f64,
    max_ms: f64,
}

fn figures(tool: &'static str, out: &str) -> Figures {
    let n = |label: &str| number(out, label);
    let row = |label: &str, at: usize| -> f64 {
        let line = out.lines().find(|line| line.trim_start().starts_with(label)).expect("a row");
        line.split_whitespace().nth(at).unwrap().trim_end_matches("ms").parse().unwrap()
    };
    let (answered, per_s, mean_ms, max_ms) = match tool {
        "wrk" => (before(out, " requests in "), n("Requests/sec:"), row("Latency", 1), row("Latency", 3)),
        "fortio" => {
            let times = out.split_once("Aggregated Function Time").expect("its times").1;
            let n = |label: &str| number(times, label);
            (n(" : count"), number(out, " calls. qps="), n(" avg") * 1e3, n(" max") * 1e3)
        }
        "ab" => {
            (n("Complete requests:"), n("Requests per second:"), row("Processing:", 2), row("Processing:", 5))
        }
        _ => (n(" replies"), n("Request rate:"), n("response") + n("transfer"), f64::NAN),
    };
    Figures { tool, answered, per_s, mean_ms, max_ms }
}

/// The number before `label`.
fn before(text: &str, label: &str) -> f64 {
    let before = text.split_once(label).expect("it is there").0;
    before.rsplit(char::is_whitespace).next().unwrap().parse().unwrap()
}

#[test]
fn every_format_reports_our_numbers() {
    let server = Serving::start(&["--threads", "1"]);
    for tool in ["wrk", "fortio", "ab", "httperf"] {
        let (ended, s) =
            form(tool, &server.url("/delay?for=20ms&length=50"), &["-c", "8", "-d", "1s", "--ramp", "1k/s"]);
        let Figures { tool, answered, per_s, mean_ms, max_ms } = figures(tool, &ended.stdout);
        let expected = s.count("requests.answered") as f64;
        assert_eq!(answered, expected, "{tool}: {}", ended.stdout);
        // On a busy machine throng may be late, and then it judges nothing; its figures are right.
        let is_late = ended.status == Some(4) && ended.stderr.contains("throng was late");
        assert!(ended.status == Some(0) || is_late, "{tool}: {ended:?}");
        let rate = expected / s.number("elapsed_s");
        assert!((per_s / rate - 1.0).abs() < 0.01, "{tool}: {per_s}/s, {rate}/s: {}", ended.stdout);
        // All requests, those of the ramp included; ab rounds to whole milliseconds.
        let parts = ["latency_us", "ramp_latency_us"];
        let sum: f64 = parts
            .map(|part| s.number(&format!("{part}.mean")) * s.count(&format!("{part}.count")) as f64)
            .iter()
            .sum();
        assert!((mean_ms - sum / expected / 1e3).abs() <= 0.6, "{tool}: {mean_ms} ms: {}", ended.stdout);
        let max = parts.map(|part| s.number(&format!("{part}.max"))).into_iter().fold(0.0, f64::max) / 1e3;
        assert!(
            max_ms.is_nan() || (max_ms - max).abs() <= 0.6,
            "{tool}: {max_ms}, {max} ms: {}",
            ended.stdout
        );
        let passed = ended.stderr.contains("pass: all 8 connections held");
        assert!(passed || is_late, "{tool}: {}", ended.stderr);
        if tool == "httperf" {
            // All were open from the ramp on, and through the drain.
            let open_ms = number(&ended.stdout, "Connection time [ms]: min 0.0 avg");
            let (ramp_ms, all_ms) = (s.number("ramp_s") * 1e3, s.number("elapsed_s") * 1e3);
            let most = ended.took_s * 1e3;
            assert!((all_ms - ramp_ms..most).contains(&open_ms), "{open_ms} of {all_ms} ms, {most} at most");
        }
    }
}

#[test]
fn sizes_are_those_of_the_responses() {
    let response = ok(&"x".repeat(70));
    let (head, all) = (response.len() - 70, response.len());
    let server = Scripted::responding(response);
    let (ended, s) = form("fortio", &server.url("/"), &["-c", "2", "-n", "50", "--think", "10ms"]);
    let n = s.count("requests.answered");
    assert_eq!(n, 50, "{}", ended.stderr);
    for (of, size) in [("Header", head), ("Body/Total", all)] {
        let sum = size as u64 * n;
        let line =
            format!("Response {of} Sizes : count {n} avg {size} +/- 0 min {size} max {size} sum {sum}\n");
        assert!(ended.stdout.contains(&line), "{line}{}", ended.stdout);
    }
    assert!(
        ended.stdout.contains("Sockets used: 2 (for perfect keepalive, would be 2)\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn faults_are_reported_too() {
    let server = Scripted::responding("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let args = ["-c", "2", "-d", "300ms", "--think", "50ms"];
    let (ended, s) = form("wrk", &server.url("/"), &args);
    let n = s.count("requests.answered");
    let line = format!("  Non-2xx or 3xx responses: {n}\n");
    assert!(n > 2 && ended.stdout.contains(&line) && !ended.stdout.contains("Socket errors"), "{ended:?}");
    // A figure's limitation is printed beside it.
    assert!(ended.stderr.contains(&format!("unexpected status: 503 × {n}")), "{ended:?}");
    assert_eq!(ended.status, Some(1));
    let (ended, _) = form("ab", &server.url("/"), &args);
    assert_eq!(number(&ended.stdout, "Keep-Alive requests:"), 0.0, "each answer closed its connection");
}

/// Held connections, and three connections of twenty requests each beside them.
fn two(server: &Serving) -> String {
    let (users, calls) = (server.url("/?length=20"), server.url("/delay?for=5ms&length=1024"));
    format!(
        r#"
[[stage]]
name = "users"
of = ["users"]
for = "500ms"
[[stage]]
name = "calls"
of = ["calls"]
for = "2s"
[[population]]
name = "users"
target = "{users}"
connections = 5
think = "50ms"
[[population]]
name = "calls"
target = "{calls}"
arrive = "1k/s"
total = 3
calls = 20
"#
    )
}

#[test]
fn a_population_may_have_the_format_for_itself() {
    let (server, scenario) = (Serving::start(&["--threads", "1"]), file("form.toml"));
    fs::write(&scenario, two(&server)).unwrap();
    let scenario = scenario.to_str().unwrap();
    for tool in ["wrk", "fortio", "ab", "httperf"] {
        let (ended, s) = form(&format!("{tool}:calls"), scenario, &[]);
        let Figures { answered, per_s, .. } = figures(tool, &ended.stdout);
        let [expected, all] =
            ["populations.calls.requests.answered", "requests.answered"].map(|n| s.count(n));
        assert!(expected == 60 && all > 60, "{tool}: {expected} of {all} answers: {ended:?}");
        assert_eq!(answered, 60.0, "{tool}: {}", ended.stdout);
        // They complete long before their stage ends.
        let elapsed_s = s.number("populations.calls.elapsed_s");
        assert!((0.1..s.number("elapsed_s")).contains(&elapsed_s), "{tool}: {elapsed_s} s");
        assert!((per_s * elapsed_s / 60.0 - 1.0).abs() < 0.01, "{tool}: {per_s}/s in {elapsed_s} s");
        assert!(ended.stdout.contains("/delay?for=5ms&length=1024"), "{tool}: {}", ended.stdout);
    }
    let (ended, _) = form("ab:calls", scenario, &[]);
    for line in [
        "Document Path:          /delay?for=5ms&length=1024",
        "Document Length:        1024 bytes",
        "Concurrency Level:      3",
    ] {
        assert!(ended.stdout.lines().any(|own| own == line), "{line}: {}", ended.stdout);
    }
    let (ended, s) = form("ab", scenario, &[]);
    assert_eq!(number(&ended.stdout, "Complete requests:"), s.count("requests.answered") as f64);
    let first = "Document Path:          /?length=20\n";
    assert!(ended.stdout.contains(first), "where the first population goes: {}", ended.stdout);
}

#[test]
fn a_population_that_is_not_there_is_a_mistake() {
    let scenario = file("form-wrong.toml");
    let path = scenario.to_str().unwrap();
    let text = two(&Serving::start(&["--threads", "1"]));
    fs::write(&scenario, &text).unwrap();
    let own = "--format: no such population; use ab:users or ab:calls: \"ab:call\"";
    check(&["run", path, "--format", "ab:call"], 2, &[own]);
    // The population that a wrong file means is not known.
    fs::write(&scenario, text.replace("name = \"calls\"\ntarget", "nmae = \"calls\"\ntarget")).unwrap();
    let ended = Program::start(&["run", path, "--format", "ab:calls", "--seed", "x"]).end();
    assert!(ended.stderr.contains("nmae") && ended.stderr.contains("--seed"), "{ended:?}");
    assert!(ended.status == Some(2) && !ended.stderr.contains("--format"), "{ended:?}");
}

#[test]
fn beside_json_on_standard_output_the_form_is_for_people() {
    let server = Serving::start(&["--threads", "1"]);
    // `run` reads all of standard output as one JSON document.
    let (ended, s) = run(&server.url("/"), &["-c", "2", "-n", "100", "--format", "ab"]);
    let answered = number(&ended.stderr, "Complete requests:");
    assert_eq!(answered, s.count("requests.answered") as f64, "{}", ended.stderr);
}

#[test]
fn the_first_byte_is_not_the_last() {
    const PAUSE: Duration = Duration::from_millis(80);
    let server = Scripted::start(|peer| {
        while peer.request().is_some() && peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n") {
            peer.is_silent_for(PAUSE);
            if !peer.send("hello") {
                return;
            }
        }
    });
    let (_, s) = run(&server.url("/"), &["-c", "2", "-n", "12"]);
    assert_eq!((s.count("first_byte_us.count"), s.count("latency_us.count")), (12, 12));
    // Of each the pause lies between the two.
    let (first, whole) = (s.number("first_byte_us.mean"), s.number("latency_us.mean"));
    assert!(whole - first >= 60e3, "first byte {first} us, whole answer {whole} us");
}

#[test]
fn a_handshake_is_timed_once_a_connection() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/ws/echo").replace("http://", "ws://");
    let (_, s) = run(&url, &["-c", "7", "-d", "300ms", "--ping", "50ms"]);
    assert_eq!((s.count("handshake_us.count"), s.count("first_byte_us.count")), (7, 0));
    assert!(s.number("handshake_us.min") > 0.0 && s.number("handshake_us.max") < 5e6, "{:#}", s.0);
}

#[test]
fn the_histogram_log_has_a_line_for_each_second_and_figure() {
    let (server, log) = (Serving::start(&["--threads", "1"]), file("seconds.hlog"));
    let args = ["-c", "3", "-d", "2s", "--think", "5ms", "--hlog", log.to_str().unwrap()];
    let (ended, s) = run(&server.url("/"), &args);
    let text = fs::read_to_string(log).unwrap();
    let lines = |tag: &str| text.lines().filter(|line| line.starts_with(&format!("Tag={tag},"))).count();
    // Seconds of the clock: the first and the last are cut off.
    assert!((2..=2 + ended.took_s as usize).contains(&lines("latency")), "{text}");
    assert_eq!(
        (lines("first_byte"), lines("lag"), lines("connect")),
        (lines("latency"), lines("latency"), 1)
    );
    assert_eq!(lines("handshake"), 0);
    let largest = text.lines().filter(|line| line.starts_with("Tag=latency,"));
    let largest = largest.map(|line| line.split(',').nth(3).unwrap().parse::<f64>().unwrap());
    let (largest, max) = (largest.fold(0.0, f64::max), s.number("latency_us.max") / 1e3);
    assert!((largest / max - 1.0).abs() < 0.002, "{largest} ms, {max} ms");
}

#[test]
fn a_histogram_log_that_cannot_be_written_is_reported() {
    let server = Serving::start(&["--threads", "1"]);
    let start =
        |path: &str| Program::start(&["run", &server.url("/"), "-c", "2", "-n", "100", "--hlog", path]).end();
    let nowhere = start("/no/such/folder/x.hlog");
    assert_eq!((nowhere.status, nowhere.stdout.as_str()), (Some(2), ""), "before the run: {nowhere:?}");
    let full = start("/dev/full");
    assert_eq!(full.status, Some(3), "{full:?}");
    for ended in [&nowhere, &full] {
        assert!(ended.stderr.contains("throng: --hlog /"), "{ended:?}");
    }
}

//! Runs compared with runs: real ones, tagged, repeated, and one made worse.

use std::fs;

use serde_json::Value;

use crate::{
    program::{Program, Serving, Signal, file},
    stores::Data,
};

/// One run of 80 connections to a path that takes its time, with a tag: some thousand responses.
fn run(url: &str, tag: &str) -> Vec<String> {
    let line = format!("run {url} -c 80 --think 50ms -d 2s --live off --max-lag 1s --tag {tag}");
    line.split(' ').map(str::to_owned).collect()
}

/// Three repetitions each, in turn: `slow` waits five times as long as `fast` does.
fn repeated(data: &Data, server: &Serving) {
    let [fast, slow] = ["/delay?for=20ms", "/delay?for=100ms"].map(|path| server.url(path));
    for _ in 0..3 {
        let both = [run(&fast, "fast"), run(&slow, "slow")].map(|args| {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            Program::from(data.throng(&args))
        });
        both.into_iter().for_each(|program| program.end().assert_status(0));
    }
}

fn figure<'a>(document: &'a Value, path: &str) -> &'a Value {
    let found = document["figures"].as_array().unwrap().iter().find(|figure| figure["figure"] == path);
    found.unwrap_or_else(|| panic!("no {path}: {document}"))
}

#[test]
fn repetitions_distinguish_a_difference_from_noise() {
    let (data, server) = (Data::new("compared"), Serving::start(&["--threads", "1"]));
    repeated(&data, &server);
    let tags: Vec<Value> = data.runs().iter().map(|run| run["tags"].clone()).collect();
    assert_eq!(tags.iter().filter(|tags| **tags == Value::from(vec!["slow"])).count(), 3, "{tags:?}");

    let json = file("compared.json");
    let ended = data.end(&["compare", "tag:fast", "tag:slow", "--json", json.to_str().unwrap()]);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let text = &ended.stdout;
    for part in [
        "equal load  80 connections, the largest load that every run held\n",
        "tag:fast    3 runs ",
        "\nlatency p99 at equal load ",
        "\nlatency p50 ",
        "larger than the noise\n",
        "\nwarning: different plan (http://",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let document: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(
        (&document["schema"], &document["equal_load_connections"]),
        (&"throng.compare/1".into(), &80.into())
    );
    let p50 = &figure(&document, "latency_us.p50")["groups"][1];
    let ratio = p50["ratio"].as_f64().unwrap();
    assert!((2.0..6.0).contains(&ratio) && p50["difference"] == "larger", "{p50}");
    let at_load = &figure(&document, "equal_load_us.p99")["groups"];
    let known = at_load[0]["values"].as_array().unwrap().iter().filter_map(Value::as_f64);
    assert!(known.clone().count() == 3 && known.clone().all(|us| us > 19_900.0), "{at_load}");
    assert_eq!(figure(&document, "faults")["groups"][1]["difference"], "same");

    let failing =
        ["compare", "tag:fast", "tag:slow", "--fail-if", "latency.p50 +10%", "--fail-if", "per_s -5%"];
    let ended = data.end(&failing);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    // 100 ms, and what a busy machine adds.
    assert!(
        lines.len() == 2
            && lines[0].starts_with("throng: --fail-if latency.p50 +10%: tag:slow 1")
            && lines[1].starts_with("throng: --fail-if per_s -5%: tag:slow "),
        "{ended:?}"
    );
    // The other way round nothing is worse.
    let better = [&failing[..1], &["tag:slow", "tag:fast"], &failing[3..]].concat();
    let ended = data.end(&[&better[..], &["--fail-if", "faults +0%", "--markdown"]].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.contains("\n| latency p50 | 1"), "{ended:?}");
    assert!(ended.stdout.contains("- fail-if faults +0%: not failed: "), "{ended:?}");
}

#[test]
fn one_run_alone_has_no_noise_and_faults_are_counted() {
    let data = Data::new("compared-alone");
    let (right, stalling) =
        (Serving::start(&["--threads", "1"]), Serving::start(&["--threads", "1", "--stall", "5%"]));
    for server in [&right, &stalling] {
        let url = server.url("/");
        let args = ["run", &url, "-c", "20", "--think", "50ms", "-d", "1s", "--timeout", "200ms"];
        // What a busy machine does to lag is of no interest here.
        data.end(&[&args[..], &["--live", "off", "--max-lag", "5s"]].concat());
    }
    let runs = data.runs();
    let [base, other] = [&runs[0]["id"], &runs[1]["id"]].map(|id| id.as_str().unwrap());
    let ended = data.end(&["compare", base, "latest", "--fail-if", "faults +0%", "--json", "-"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("throng: --fail-if faults +0%: latest "), "{ended:?}");
    assert!(ended.stderr.contains("the noise of a single run is not known"), "{ended:?}");
    assert!(ended.stderr.contains("fewer than 1,000 responses at "), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    assert_eq!(document["groups"][1]["runs"][0]["id"], other);
    assert_eq!(figure(&document, "latency_us.p50")["groups"][1]["difference"], "unknown");
    assert_eq!(figure(&document, "latency_us.p50")["groups"][1]["interval"], Value::Null);
    assert_eq!(figure(&document, "faults")["groups"][0]["mean"], 0.0);
    let unwritten = data.end(&["compare", base, "latest", "--json", "/dev/full"]);
    assert_eq!(unwritten.status, Some(3), "{unwritten:?}");
    assert!(unwritten.stderr.contains("throng: --json /dev/full: "), "{unwritten:?}");
}

#[test]
fn a_side_without_a_valid_run_neither_passes_nor_fails() {
    let (data, server) = (Data::new("compared-void"), Serving::start(&["--threads", "1"]));
    let url = server.url("/");
    let load = ["run", &url, "-c", "5", "--think", "20ms", "--max-lag", "1m", "-d"];
    data.end(&[&load[..], &["300ms"]].concat()).assert_status(0);
    let mut interrupted = Program::from(data.throng(&[&load[..], &["forever"]].concat()));
    interrupted.wait_for("hold  open 5 ");
    interrupted.signal(Signal::INT);
    interrupted.end().assert_status(130);
    let runs = data.runs();
    let base = runs[0]["id"].as_str().unwrap();
    let gate = |other: &str| data.end(&["compare", base, other, "--fail-if", "faults +0%"]);
    let ended = gate("latest");
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert_eq!(ended.stderr, "throng: --fail-if faults +0%: no valid run in latest\n", "{ended:?}");
    assert_eq!(gate(base).status, Some(0));
    let compared = data.end(&["compare", base, "latest"]);
    assert_eq!(compared.status, Some(0), "without a gate it is shown: {compared:?}");
}

#[test]
fn usage_errors_are_reported_at_once() {
    let data = Data::new("compared-wrong");
    let check = |args: &[&str], expected: &[&str]| {
        let ended = data.end(&[&["compare"], args].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(expected.iter().all(|expected| ended.stderr.contains(expected)), "{expected:?}: {ended:?}");
    };
    check(&[], &["<RUN> <RUN>"]);
    check(&["latest"], &["2 values required"]);
    let wrong = ["latest", "tag:before", "--fail-if", "latency.p99", "--fail-if", "helds -5%"];
    check(
        &wrong,
        &[
            "throng: no stored run yet; `throng run` stores each of its runs\n",
            "throng: no run has the tag before; list runs with `throng runs`\n",
            "throng: --fail-if: \"latency.p99\" is not a change of a figure; use 'latency.p99 +10%'\n",
            "throng: --fail-if: \"helds\" is not a figure of the summary; use held; all figures:\n  times: latency, ",
        ],
    );
    fs::create_dir_all(data.0.join("throng")).unwrap();
    fs::write(data.0.join("throng/runs.db"), [7; 9000]).unwrap();
    let damaged = data.end(&["compare", "latest", "latest"]);
    assert_eq!(damaged.status, Some(3), "{damaged:?}");
    assert!(damaged.stderr.contains("move it away"), "{damaged:?}");
}

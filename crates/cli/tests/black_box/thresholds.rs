//! `--threshold`: what the run is judged by, and how that is reported.

use crate::{
    program::{Program, Serving},
    scripted::taken_port,
    summary::run,
};

/// Runs with these thresholds: (status, each with its value and whether it is met).
fn check(target: &str, args: &[&str], thresholds: &[&str], status: i32, expected: &[(Option<f64>, bool)]) {
    let given: Vec<&str> = thresholds.iter().flat_map(|expr| ["--threshold", expr]).collect();
    let (ended, s) = run(target, &[args, &given].concat());
    assert_eq!(ended.status, Some(status), "{thresholds:?}: {:#}", s.0);
    let judged = s.at("thresholds").as_array().expect("a list");
    assert_eq!(judged.len(), thresholds.len());
    for ((result, expr), (value, pass)) in judged.iter().zip(thresholds).zip(expected) {
        assert_eq!(result["expr"], **expr);
        assert_eq!(
            (result["value"].as_f64(), result["pass"].as_bool()),
            (*value, Some(*pass)),
            "{expr}: {result}"
        );
        let line = format!(" {expr}: {}, ", if *pass { "met" } else { "failed" });
        assert!(ended.stderr.contains(&line), "{line}: {}", ended.stderr);
    }
    let met = expected.iter().filter(|(_, pass)| *pass).count();
    let (verdict, all) = (s.text("verdict"), expected.len());
    let last = match all - met {
        0 => format!("{verdict}: {all} of {all} thresholds met"),
        1 => format!("{verdict}: threshold "),
        failed => format!("{verdict}: {failed} of {all} thresholds failed, the first "),
    };
    let output = ended.stderr.trim_end().lines().last().unwrap_or_default();
    assert!(output.starts_with(&last), "{last}: {output}");
    let missed = s.at("reasons").to_string().matches("threshold ").count();
    assert_eq!(missed, expected.len() - met, "{}", s.at("reasons"));
}

const HELD: [&str; 6] = ["-c", "5", "-d", "300ms", "--think", "1h"];

#[test]
fn they_are_judged_each_and_all() {
    let server = Serving::start(&["--threads", "1"]);
    let met = ["held == 5", "held >= 100%", "faults == 0", "requests.status.200 == 5", "answered >= 99.9%"];
    let values = [5.0, 100.0, 0.0, 5.0, 100.0].map(|value| (Some(value), true));
    check(&server.url("/"), &HELD, &met, 0, &values);
    let mixed = ["held >= 6", "connections.peak == 5", "dropped > 0"];
    check(&server.url("/"), &HELD, &mixed, 1, &[(Some(5.0), false), (Some(5.0), true), (Some(0.0), false)]);
    // One request each, in the ramp: at full load nothing was measured.
    check(&server.url("/"), &HELD, &["latency.p99 < 10s"], 1, &[(None, false)]);
}

#[test]
fn a_fault_that_is_allowed_is_no_failure() {
    let (_socket, address) = taken_port(None);
    let target = format!("http://{address}/");
    let args = ["-c", "7", "-d", "200ms"];
    check(&target, &args, &["failed <= 7", "held == 0"], 0, &[(Some(7.0), true), (Some(0.0), true)]);
    check(&target, &args, &["failed < 7", "failed <= 50%"], 1, &[(Some(7.0), false), (Some(100.0), false)]);
}

#[test]
fn latency_is_judged_in_the_users_unit() {
    let server = Serving::start(&["--threads", "1"]);
    let (ended, s) = run(
        &server.url("/delay?for=50ms"),
        &[
            "-c",
            "4",
            "-d",
            "1s",
            "--threshold",
            "latency.p50 >= 50ms",
            "--threshold",
            "latency_us.p50 < 5000000",
        ],
    );
    ended.assert_status(0);
    let value = s.at("thresholds")[0]["value"].as_f64().unwrap();
    assert_eq!((value, Some(value)), (s.number("latency_us.p50"), s.at("thresholds")[1]["value"].as_f64()));
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let ended = Program::start(&[
        "run",
        "http://127.0.0.1:9/",
        "--threshold",
        "latncy.p99 < 1s",
        "--threshold",
        "faults == 0",
        "--threshold",
        "latency.p99 < 200",
        "--threshold",
        "held",
        "-c",
        "none",
    ])
    .end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    for text in [
        "--threshold: \"latncy.p99\" is not a figure of the summary; use latency.p99",
        "--threshold: \"200\" is not a time; use 200ms",
        "--threshold: \"held\" is not a threshold; use latency.p99 < 200ms",
        "--connections: ",
    ] {
        assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
    }
    assert_eq!(ended.stderr.matches("--threshold: ").count(), 3, "{}", ended.stderr);
}

/// Losses that a threshold allows: their cause did not limit a run that passed.
#[test]
fn a_pass_is_limited_by_nothing() {
    let server = Serving::start(&["--threads", "1", "--reset-after", "200ms"]);
    let flags = ["-c", "20", "-d", "20s", "--think", "50ms", "--max-lag", "1m", "--threshold", "faults >= 0"];
    let (ended, s) = run(&server.url("/"), &flags);
    assert_eq!((s.text("verdict"), ended.status), ("pass", Some(0)), "{ended:?}");
    assert!(!s.faults().is_empty() && s.at("limit").is_object(), "{:#}", s.0);
    assert_eq!(s.text("headline"), "pass: 1 of 1 thresholds met");
    assert!(!ended.stderr.contains("limited by"), "{}", ended.stderr);
}

//! `serve` misbehaves on request, and `run` reports how.

use crate::{
    caller::Caller,
    program::{Program, Serving},
    summary::{Expected, run},
};

/// All connections are lost, and with the last of them the run ends.
fn check(knob: [&str; 2], args: &[&str], faults: &[(&str, u64)], counts: &[(&str, u64)]) {
    let server = Serving::start(&[&["--threads", "2"], knob.as_slice()].concat());
    Expected { status: 1, verdict: "fail", faults, counts }.check(&server.url("/"), args);
}

#[test]
fn the_surplus_is_accepted_and_closed() {
    let server = Serving::start(&["--threads", "2", "--max-open", "6"]);
    let mut asking = Caller::dial(server.address);
    asking.get("/stats");
    let counts = &[("connections.opened", 8), ("connections.held", 5), ("connections.dropped", 3)];
    Expected { status: 1, verdict: "fail", faults: &[("target·hold·closed", 3)], counts }
        .check(&server.url("").replace("http", "tcp"), &["-c", "8", "-d", "2s"]);
    let stats: serde_json::Value = serde_json::from_str(asking.get("/stats").text()).unwrap();
    assert_eq!((&stats["refused"], &stats["accepted"], &stats["peak"]), (&3.into(), &6.into(), &6.into()));
}

#[test]
fn the_silent_are_cut() {
    check(
        ["--idle-cut", "300ms"],
        &["-c", "5", "--think", "1m", "-d", "20s"],
        &[("target·hold·closed", 5)],
        &[("connections.held", 0), ("connections.dropped", 5), ("requests.answered", 5)],
    );
    // A connection that sends something in time is kept.
    let server = Serving::start(&["--idle-cut", "1s"]);
    run(&server.url("/"), &["-c", "5", "--think", "100ms", "-d", "1500ms"]).0.assert_status(0);
}

#[test]
fn all_are_reset_in_time() {
    check(
        ["--reset-after", "300ms"],
        &["-c", "5", "--think", "1m", "-d", "20s"],
        &[("target·hold·reset", 5)],
        &[("connections.held", 0), ("connections.dropped", 5)],
    );
}

#[test]
fn some_never_get_a_response() {
    check(
        ["--stall", "100%"],
        &["-c", "5", "--timeout", "400ms", "-d", "20s"],
        &[("target·exchange·timeout", 5)],
        &[("connections.held", 0), ("requests.answered", 0), ("requests.sent", 5)],
    );
    // One in ten of each thread's: 20 connections with a request each, and none after that.
    let server = Serving::start(&["--threads", "1", "--stall", "0.1"]);
    let (_, summary) =
        run(&server.url("/"), &["-c", "20", "--think", "1h", "--timeout", "400ms", "-d", "1s"]);
    assert_eq!((summary.count("requests.answered"), summary.count("connections.dropped")), (18, 2));
}

#[test]
fn accepts_are_as_slow_as_configured() {
    let server = Serving::start(&["--threads", "2", "--slow-accept", "20/s"]);
    let args = ["-c", "20", "--ramp", "1m/s", "--think", "1h", "-d", "2s"];
    let (ended, summary) = run(&server.url("/"), &args);
    ended.assert_status(0);
    // The last of the twenty waits for a second; connections fall to the two threads by chance.
    let last = summary.number("ramp_latency_us.max");
    assert!((600e3..ended.took_s * 1e6).contains(&last), "{last} us");
}

#[test]
fn mistakes_are_reported_at_once() {
    let ended = Program::start(&[
        "serve",
        "delay",
        "--after",
        "long",
        "--max-open",
        "many",
        "--idle-cut",
        "0",
        "--reset-after",
        "soon",
        "--stall",
        "2",
        "--slow-accept",
        "0/s",
        "--threads",
        "0",
        "--listen",
        "here",
    ])
    .end();
    ended.assert_status(2);
    for flag in [
        "--after",
        "--max-open",
        "--idle-cut",
        "--reset-after",
        "--stall",
        "--slow-accept",
        "--threads",
        "--listen",
    ] {
        assert!(ended.stderr.contains(&format!("{flag}: ")), "{flag}: {}", ended.stderr);
    }
    let ended = Program::start(&["serve", "http", "--after", "5s"]).end();
    ended.assert_status(2);
    assert!(ended.stderr.contains("--after: only for `serve delay`"), "{}", ended.stderr);
}

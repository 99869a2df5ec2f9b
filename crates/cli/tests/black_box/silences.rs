//! Targets that go silent, are stopped, or have limits that show only in their accept queue and in how they close: what `run`
//! reports.

use std::{path::Path, process::Command};

use rustix::process::Signal;

use crate::{
    program::{Program, Serving, skip, throng, until},
    summary::{Summary, run},
};

fn limit(s: &Summary) -> (&str, &str, &str) {
    (s.text("limit.side"), s.text("limit.cause"), s.text("limit.certainty"))
}

/// A server with a limit of its own; see `limited.py`.
pub(crate) fn limited(kind: &str, most: &str) -> Serving {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/black_box/limited.py");
    let mut command = Command::new("python3");
    command.arg(script).args([kind, most]);
    Serving::from(command, &[])
}

/// Runs to its end; the target, which has responded before, is stopped until two seconds of the run have passed without a response.
fn run_stopped(server: &Serving, args: &[&str]) -> Summary {
    let url = server.url("/");
    let args =
        [&["run", &url, "-c", "20", "--think", "20ms..60ms", "-d", "6s", "--json", "-"], args].concat();
    let mut running = Program::start(&args);
    let seconds = |running: &mut Program, is_silent: bool| {
        assert!(!running.is_ended(), "{}", running.stderr());
        let output = running.stderr();
        let seconds = output.lines().filter(|line| line.contains("open 20 of 20"));
        seconds.filter(|line| line.contains("requests 0/s") == is_silent).count()
    };
    until("a second with responses", || seconds(&mut running, false) > 0);
    let before = seconds(&mut running, true);
    server.program.signal(Signal::STOP);
    // The first one may have begun before the stop.
    until("two seconds without", || seconds(&mut running, true) >= before + 2);
    server.program.signal(Signal::CONT);
    let ended = running.end();
    Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")))
}

#[test]
fn a_target_that_is_stopped_for_a_while_is_named() {
    let server = Serving::start(&["--threads", "1"]);
    let s = run_stopped(&server, &["--threshold", "latency.max < 300ms"]);
    assert_eq!(limit(&s), ("target", "stall", "seen"), "{:#}", s.at("limit"));
    assert_eq!(s.count("limit.at_connections"), 20);
    let detail = s.text("limit.detail");
    assert!(detail.contains("was stopped (process ") && detail.contains("state T"), "{detail}");
}

#[test]
fn a_silence_is_a_warning_on_a_pass() {
    let server = Serving::start(&["--threads", "1"]);
    let s = run_stopped(&server, &[]);
    assert!(s.at("limit").is_null() || s.text("verdict") != "pass", "{:#}", s.at("limit"));
    let reasons = s.at("reasons").as_array().unwrap();
    let warned =
        |reason: &&serde_json::Value| reason.as_str().unwrap().contains("no connection received a response");
    assert_eq!(
        reasons.iter().filter(warned).count(),
        usize::from(s.text("verdict") == "pass"),
        "{reasons:?}"
    );
}

#[test]
fn connections_in_the_queue_of_a_stopped_process_are_not_held() {
    let server = Serving::start(&["--threads", "1"]);
    server.program.signal(Signal::STOP);
    let (ended, s) = run(&server.url("").replace("http", "tcp"), &["-c", "100", "-d", "1s"]);
    server.program.signal(Signal::CONT);
    let counts =
        ["connections.opened", "connections.held", "connections.unaccepted"].map(|path| s.count(path));
    assert_eq!(counts, [100, 0, 100], "{:#}", s.at("connections"));
    assert_eq!((ended.status, limit(&s)), (Some(1), ("target", "stall", "seen")), "{:#}", s.at("limit"));
    let (_, s) = run(&server.url("").replace("http", "tcp"), &["-c", "100", "-d", "1s"]);
    let counts =
        ["connections.opened", "connections.held", "connections.unaccepted"].map(|path| s.count(path));
    assert_eq!((counts, s.text("verdict")), ([100, 100, 0], "pass"), "{:#}", s.at("connections"));
    assert!(s.text("headline").contains("no requests sent"), "{}", s.text("headline"));
}

#[test]
fn a_standing_queue_is_named_even_without_overflows() {
    let server = limited("accepts", "40");
    let args = ["-c", "60", "--think", "1m", "-d", "3s", "--timeout", "2s"];
    let (_, s) = run(&server.url("/"), &args);
    assert_eq!(limit(&s), ("target", "accept-queue", "seen"), "{:#}", s.at("limit"));
    assert_eq!((s.count("limit.at_connections"), s.count("connections.held")), (40, 40), "{:#}", s.0);
    let detail = s.text("limit.detail");
    assert!(detail.starts_with("20 connections were in its accept queue of 500"), "{detail}");
}

/// Its queue overflows when all dial at once, and again when their SYNs are sent again: of some of them only throng has an end.
#[test]
fn connections_that_only_throng_has_are_not_held() {
    let server = limited("short", "5");
    let args = ["-c", "200", "-d", "2s", "--timeout", "3s", "--threshold", "held >= 99%"];
    let (ended, s) = run(&server.url("/"), &args);
    let [held, there] = ["connections.held", "connections.seen_by_target"].map(|path| s.count(path));
    assert!(held <= there, "{:#}", s.at("connections"));
    if held < 198 {
        ended.assert_status(1);
        assert_eq!(limit(&s), ("target", "accept-queue", "seen"), "{:#}", s.at("limit"));
        let sentence = s.text("limit.sentence");
        assert!(
            sentence.starts_with("the target's accept queue of 5 was full: it overflowed "),
            "{sentence}"
        );
    } else {
        assert!(ended.status == Some(0) || ended.status == Some(4), "{:#}", s.0);
    }
}

#[test]
fn a_number_of_responses_is_recognised() {
    for args in [&[][..], &["--reconnect", "10ms..100ms"]] {
        let server = limited("answers", "10");
        let load = [&["-c", "20", "-d", "2s", "--think", "20ms..60ms"], args].concat();
        let (_, s) = run(&server.url("/"), &load);
        let expected = ("target", "requests-per-connection", "inferred");
        assert_eq!(limit(&s), expected, "{args:?} {:#}", s.at("limit"));
        assert!(s.text("limit.detail").contains("after 10 responses"), "{}", s.text("limit.detail"));
    }
}

#[test]
fn a_server_that_makes_room_has_no_idle_timeout() {
    let server = limited("keeps", "100");
    let (ended, s) = run(&server.url("/"), &["-c", "120", "--ramp", "100/s", "--think", "1m", "-d", "2s"]);
    assert_eq!(limit(&s), ("target", "connection-limit", "inferred"), "{:#}", s.at("limit"));
    assert_eq!(s.count("limit.at_connections"), 100);
    assert!(s.text("limit.detail").contains("as others opened"), "{}", s.text("limit.detail"));
    let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
    assert!(
        last.contains("fail: probably the target closed ")
            && last.contains(" to admit new ones, and keeps about 100; raise its limit"),
        "{last}"
    );
}

#[test]
fn both_ends_on_one_processor_share_the_limit() {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    if online.trim() == "0" {
        skip("one processor is always shared");
        return;
    }
    let pinned = |bare: Command| {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(bare.get_program()).args(bare.get_args());
        command
    };
    let serve = throng(&["serve", "--listen", "127.0.0.1:0", "--until-stdin-ends", "--threads", "1"]);
    let server = Serving::from(pinned(serve), &[]);
    let args =
        ["run", &server.url("/"), "-c", "50", "-d", "2s", "--json", "-", "--threshold", "latency.p50 < 1us"];
    let ended = Program::from(pinned(throng(&args))).end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")));
    assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("host", "cpu"), "{:#}", s.at("limit"));
    // If other programs use that processor too, throng is starved; else both ends use all of it.
    let detail = s.text("limit.detail");
    assert!(detail.contains("the same processors (0)") || detail.starts_with("throng was "), "{detail}");
}

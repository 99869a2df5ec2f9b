//! The last line of a run: what limited it in one sentence, with the number that matters, and a fix that fits.

use rustix::process::Signal;

use crate::{
    causes::python,
    program::{Ended, Program, Serving},
    scripted::{Peer, Scripted, taken_port},
    summary::{Summary, run},
};

/// Runs, and compares the last line, of which the fix may be the beginning only.
fn check(target: &str, args: &[&str], expected: &str) -> (Ended, Summary) {
    let (ended, s) = run(target, args);
    check_last(&ended, &s, expected);
    (ended, s)
}

fn check_last(ended: &Ended, s: &Summary, expected: &str) {
    let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
    assert!(last.starts_with(expected), "{expected}\n{last}\n{:#}", s.at("limit"));
    assert_eq!(last, s.text("headline"));
}

#[test]
fn a_refused_port() {
    let (_socket, address) = taken_port(None);
    let sentence = format!("fail: connection refused: nothing listens on {address}; start the server, or");
    let (ended, s) = check(&format!("http://{address}/"), &["-c", "3", "-d", "200ms"], &sentence);
    assert_eq!((s.count("errors.count"), s.count("errors.of")), (3, 3));
    assert!(ended.stderr.contains("  errors        100 % (3 of 3 connections failed)\n"), "{}", ended.stderr);
    // Nothing opened: there is no rate of it, and no time.
    assert!(!ended.stderr.contains("connects/s") && !ended.stderr.contains(" 0 ns"), "{}", ended.stderr);
}

#[test]
fn a_process_that_exits() {
    let server = Serving::start(&["--threads", "1"]);
    let args = ["run", &server.url("/"), "-c", "40", "-d", "1m", "--think", "100ms", "--json", "-"];
    let mut running = Program::start(&args);
    running.wait_for("hold  open 40 of 40");
    server.program.signal(Signal::KILL);
    // Once nothing is left, it ends by itself.
    let ended = running.end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert_eq!(s.text("limit.sentence"), "the target's process exited at 40 connections", "{:#}", s.0);
    let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
    assert!(
        last.contains("the target's process exited at 40 connections; check its log and exit status"),
        "{last}"
    );
}

#[test]
fn an_unexpected_status_is_counted_and_reproduced() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/missing");
    let (ended, s) = run(&url, &["-c", "3", "-d", "300ms", "--think", "20ms"]);
    let n = units_of(s.count("requests.status.404"));
    let sentence = format!(
        "fail: unexpected status: 404 × {n}; check the path of the target; reproduce it with: curl -i -H User-Agent: -H Accept: {url}"
    );
    check_last(&ended, &s, &sentence);
    assert!(ended.stderr.contains(&format!("  status        404 × {n}\n")), "{}", ended.stderr);
    assert!(
        ended.stderr.contains(&format!("  errors        100 % ({n} of {n} requests failed)\n")),
        "{}",
        ended.stderr
    );
    // Expected, it is none.
    let (ended, s) = run(&url, &["-c", "1", "-d", "200ms", "--think", "20ms", "--expect", "status=404"]);
    ended.assert_status(0);
    assert_eq!(s.count("errors.count"), 0);
}

fn units_of(n: u64) -> String {
    units::Count(n).to_string()
}

/// The fix of a latency that is too long is neither strace nor a guess at a cause.
#[test]
fn a_failed_latency_threshold() {
    let server = Serving::start(&["--threads", "1"]);
    let args =
        ["-c", "4", "-d", "500ms", "--think", "5ms", "--threshold", "latency.p99 < 1ns", "--max-lag", "10s"];
    let (ended, s) = run(&server.url("/"), &args);
    let shown = s.at("thresholds")[0]["shown"].as_str().unwrap().to_owned();
    // On a busy machine with the lag that is allowed here.
    let time = shown.split(", including throng's own lag (p99 ").next().unwrap();
    assert!(time.ends_with(" µs") || time.ends_with(" ms"), "{shown}");
    check_last(&ended, &s, &format!("fail: threshold latency.p99 < 1ns failed: {shown}; "));
    let line = format!("  threshold     latency.p99 < 1ns: failed, {shown}\n");
    assert!(ended.stderr.contains(&line), "{}", ended.stderr);
    assert!(!s.text("headline").contains("strace"), "{}", s.text("headline"));
    // On a busy machine a few responses stand out, and then it is they that are to be looked at.
    if s.text("limit.cause") == "unknown" && !s.text("headline").contains(" of responses took ") {
        let begins = format!("search the highest load that meets it (throng find {} ", server.url("/"));
        // The flags of the run that a search has.
        for part in
            [&*begins, " --think 5ms", " --max-lag 10s", " --threshold 'latency.p99 < 1ns'), or profile"]
        {
            assert!(s.text("headline").contains(part), "{part}: {}", s.text("headline"));
        }
    }
}

/// The load that was asked for cannot meet it: no other is to be searched below.
#[test]
fn a_failed_throughput_threshold() {
    let server = Serving::start(&["--threads", "1"]);
    let (threshold, lag) = (["--threshold", "per_s > 1000"], ["--max-lag", "10s"]);
    let args = [&["-c", "4", "-d", "1s", "--rate", "100/s"][..], &threshold, &lag].concat();
    let (ended, s) = run(&server.url("/"), &args);
    let shown = s.at("thresholds")[0]["shown"].as_str().unwrap().to_owned();
    check_last(&ended, &s, &format!("fail: threshold per_s > 1000 failed: {shown}; "));
    assert!(!s.text("headline").contains("throng find"), "{}", s.text("headline"));
    // A busy machine may have another cause, or reach less of the rate.
    if s.text("limit.cause") == "unknown" && (95.0..101.0).contains(&s.number("requests.per_s")) {
        let fix = "; all requests at 100/s completed; raise --rate to 1100/s";
        assert!(s.text("headline").ends_with(fix), "{}", s.text("headline"));
    }
}

#[test]
fn an_error_rate_is_a_threshold() {
    // Each third request fails.
    let server = Scripted::start(|peer: &mut Peer| {
        for n in 0.. {
            let status = if n % 3 == 2 { "500 Oops" } else { "200 OK" };
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
            if peer.request().is_none() || !peer.send(&response) {
                return;
            }
        }
    });
    let args = [
        "-c",
        "1",
        "-n",
        "20",
        "--think",
        "10ms",
        "--threshold",
        "errors < 1%",
        "--threshold",
        "errors < 50%",
    ];
    let (ended, s) = run(&server.url("/"), &args);
    ended.assert_status(1);
    let (wrong, sent) = (s.count("requests.status.500"), s.count("requests.sent"));
    assert_eq!((s.count("errors.count"), s.count("errors.of")), (wrong, sent));
    let share = s.at("thresholds")[0]["value"].as_f64().unwrap();
    assert!((share - 100.0 * wrong as f64 / sent as f64).abs() < 1e-9 && wrong > 3, "{share} {wrong} {sent}");
    let sentence = format!(
        "fail: threshold errors < 1% failed: {} %; unexpected status: 500 × {wrong}; ",
        (share * 1e3).round() / 1e3
    );
    check_last(&ended, &s, &sentence);
}

#[test]
fn the_targets_open_files() {
    let server = python(&["prlimit", "--nofile=300"], ["512", "0", "0", "0"]);
    let args = ["-c", "600", "--ramp", "5k/s", "--think", "1m", "-d", "3s", "--timeout", "2s"];
    check(
        &server.url("/"),
        &args,
        "fail: the target ran out of open files: 300 of 300 used; raise its limit: prlimit --pid ",
    );
}

#[test]
fn requests_that_time_out() {
    let server = Scripted::start(|peer: &mut Peer| {
        peer.request();
        peer.wait_gone();
    });
    let args = ["-c", "4", "-d", "20s", "--timeout", "300ms"];
    let (_, s) = run(&server.url("/"), &args);
    let sentence = s.text("limit.sentence");
    assert!(sentence.contains("requests timed out"), "{sentence}");
    assert!(s.text("headline").contains(sentence), "{}", s.text("headline"));
}

#[test]
fn connections_that_are_closed_without_a_byte() {
    // It does not speak TLS either: that is asked after the load.
    let server = Scripted::start(|peer: &mut Peer| {
        peer.request();
    });
    let (_, s) = run(&server.url("/"), &["-c", "4", "-d", "20s"]);
    let expected = "the target closed 4 connections without sending a byte";
    assert_eq!(s.text("limit.sentence"), expected, "{:#}", s.at("limit"));
    assert!(s.text("headline").starts_with(&format!("fail: {expected}; ")), "{}", s.text("headline"));
}

#[test]
fn a_refused_upgrade_has_its_status_and_reason() {
    for (status, reason) in [
        ("401 Unauthorized", "it requires credentials; send them with the upgrade: -H 'Authorization: …'"),
        ("403 Forbidden", "probably it requires an Origin"),
        ("404 Not Found", "there is no WebSocket at this path"),
        ("426 Upgrade Required", "it requires another version or sub-protocol"),
    ] {
        let server = Scripted::responding(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
        let target = format!("ws://{}/chat", server.address);
        let (ended, s) = run(&target, &["-c", "3", "-d", "200ms"]);
        let code = &status[..3];
        assert_eq!(s.count(&format!("requests.status.{code}")), 3, "{:#}", s.0);
        check_last(&ended, &s, &format!("fail: WebSocket upgrade refused with status {code} × 3: {reason}"));
        let command = format!(
            "-H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' http://{}/chat",
            server.address
        );
        assert!(s.text("headline").ends_with(&command), "{}", s.text("headline"));
        assert!(ended.stderr.contains(&format!("  status        {code} × 3\n")), "{}", ended.stderr);
    }
}

/// The command of the headline gets the status that the run got.
#[test]
fn the_command_of_a_refused_upgrade_reproduces_it() {
    let server = Serving::start(&["--threads", "1"]);
    let (_, s) = run(&format!("ws://{}/missing", server.address), &["-c", "2", "-d", "200ms"]);
    let headline = s.text("headline");
    let command = headline.split_once("reproduce it with: ").expect("it has one").1;
    let output =
        std::process::Command::new("sh").args(["-c", &format!("{command} --max-time 5")]).output().unwrap();
    let response = String::from_utf8_lossy(&output.stdout);
    let status = s.at("requests.status").as_object().unwrap().keys().next().expect("there is one").clone();
    assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{command}: {response}");
}

/// The rate needs more connections: the sentence has how many, and does not send anyone to strace.
#[test]
fn too_few_connections_for_the_rate() {
    let server = Serving::start(&["--threads", "1"]);
    let args = ["-c", "2", "--rate", "100/s", "-d", "1s", "--max-lag", "1m"];
    let (ended, s) = run(&server.url("/delay?for=200ms"), &args);
    ended.assert_status(1);
    let (sent, missed) = (s.count("requests.sent"), s.count("requests.missed"));
    assert!(missed > sent, "{:#}", s.at("requests"));
    assert_eq!(
        (s.text("limit.cause"), s.text("limit.side")),
        ("too-few-connections", "host"),
        "{:#}",
        s.at("limit")
    );
    let per_s = |n: u64| (n as f64 / s.number("duration_s")).round();
    let sentence = format!(
        "fail: probably too few connections: 2 carried {} of the {} requests that were due each second; use -c {} or more",
        per_s(sent),
        per_s(sent + missed),
        (2 * (sent + missed)).div_ceil(sent)
    );
    check_last(&ended, &s, &sentence);
}

/// Not curl, which would show an upgrade that works.
#[test]
fn a_server_that_does_not_echo() {
    let server = Scripted::start(|peer: &mut Peer| while peer.line("ping") && peer.send("pong") {});
    let target = format!("tcp://{}", server.address);
    let (ended, s) = run(&target, &["-c", "2", "-d", "300ms", "--message", "ping", "--ping", "50ms"]);
    assert_eq!(s.text("limit.cause"), "wrong-answer", "{:#}", s.at("limit"));
    let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
    assert!(
        last.contains("if the target does not echo, use --message ''") && !last.contains("curl"),
        "{last}"
    );
}

/// What came instead says what the port is for.
#[test]
fn a_port_of_another_protocol() {
    let banner = format!("SSH-2.0-OpenSSH_9.2\r\n{}", "x".repeat(60));
    let server = Scripted::responding(banner);
    let (ended, s) = run(&server.url("/"), &["-c", "2", "-d", "20s"]);
    let sentence = "fail: response that the protocol does not allow (neither HTTP/1.0 nor HTTP/1.1) × 2; it begins with \"SSH-2.0-OpenSSH_9.2\": check that the port is";
    check_last(&ended, &s, sentence);
}

#[test]
fn the_allowed_lag_can_be_set() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    // Nothing is on time to the nanosecond.
    let args = ["-c", "4", "-d", "500ms", "--think", "5ms", "--threshold", "latency.p99 < 10s"];
    let strict = [&args[..], &["--max-lag", "1ns"]].concat();
    let (ended, s) = run(&url, &strict);
    let is_late = s.number("lag_us.p99") > 0.05 * s.number("latency_us.p99");
    if is_late {
        ended.assert_status(4);
        let headline = s.text("headline");
        let parts =
            ["invalid: ", "throng was late: lag p99 ", "; where that lag does not matter, raise --max-lag"];
        assert!(parts.iter().all(|part| headline.contains(part)), "{headline}");
    }
    let (_, s) = run(&url, &[&args[..], &["--max-lag", "1m"]].concat());
    assert_eq!(s.text("verdict"), "pass", "{:#}", s.0);
    let refused = Program::start(&["run", &url, "--max-lag", "0"]).end();
    assert_eq!(refused.status, Some(2));
    assert!(
        refused.stderr.contains("--max-lag: \"0\" is not a time greater than 0; use 50ms"),
        "{}",
        refused.stderr
    );
}

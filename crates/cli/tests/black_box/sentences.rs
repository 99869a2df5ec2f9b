//! The last line of a run, and the text before it: what limited it in one sentence, with the number that matters, and a fix that
//! fits. The sentences of each cause are judged on the stored runs of `corpus`.

use crate::{
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

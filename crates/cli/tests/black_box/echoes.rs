//! WebSocket, with both ends ours and with each end alone; and the server of delayed responses.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::{
    caller::{Caller, get},
    program::{Program, Serving, until},
    scripted::Scripted,
    summary::{Expected, run},
};

/// The example of RFC 6455 section 1.3.
const UPGRADE: &str = "GET /ws/echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

fn ws(server: &Serving) -> String {
    server.url("/ws/echo").replace("http://", "ws://")
}

#[test]
fn echoes_are_right_timed_and_counted_on_both_sides() {
    let server = Serving::start(&["--threads", "2"]);
    let long = "ö".repeat(20_000);
    for (message, length) in [("ping", 4), ("", 0), (&long, 40_000)] {
        let before = Caller::dial(server.address).get("/stats");
        let args = ["-c", "50", "--ping", "200ms", "--message", message, "-n", "250"];
        let expected =
            Expected { status: 0, verdict: "pass", faults: &[], counts: &[("connections.held", 50)] };
        let summary = expected.check(&ws(&server), &args);
        let answered = summary.count("requests.answered");
        // One per 200 ms on each; the first after up to 200 ms.
        let most = 50.0 * (summary.number("elapsed_s") / 0.2 + 1.0);
        assert!(answered == 250 && most >= 250.0, "{answered} echoes of {message:.9}, {most} at most");
        assert_eq!(summary.count("requests.sent"), answered);
        assert_eq!(summary.count("requests.body_bytes_in"), answered * length);
        assert!(
            summary.number("latency_us.p50") > 0.0
                && summary.at("requests.status").as_object().unwrap().is_empty()
        );
        let after = Caller::dial(server.address).get("/stats");
        let requests = |response: &crate::caller::Response| {
            serde_json::from_str::<serde_json::Value>(response.text()).unwrap()["requests"].as_u64().unwrap()
        };
        // The upgrades, the messages, and the request itself.
        assert_eq!(requests(&after) - requests(&before), 50 + answered + 1);
    }
}

#[test]
fn a_closed_loop_of_messages() {
    let server = Serving::start(&["--threads", "1"]);
    let (ended, summary) = run(&ws(&server), &["-c", "4", "--ping", "0", "-n", "2000"]);
    ended.assert_status(0);
    assert_eq!((summary.count("requests.answered"), summary.count("latency_us.count")), (2_000, 2_000));
}

#[test]
fn the_server_follows_the_rfc() {
    let server = Serving::start(&["--threads", "1"]);
    let mut caller = Caller::dial(server.address);
    caller.send(UPGRADE);
    let head = caller.head();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains(&format!("Sec-WebSocket-Accept: {ACCEPT}\r\n")), "{head}");
    // Text in two fragments, a ping between them, all in one segment (RFC 6455 section 5.7 has such frames).
    let mask = |frame: &[u8]| [&frame[..2], &[0; 4], &frame[2..]].concat();
    let frames = [mask(b"\x01\x83Hel"), mask(b"\x89\x82hi"), mask(b"\x80\x82lo")].concat();
    caller.send_bytes(&frames);
    assert_eq!(caller.take(13), b"\x01\x03Hel\x8a\x02hi\x80\x02lo");
    caller.send_bytes(&mask(b"\x88\x82\x03\xe8"));
    assert_eq!(caller.take(4), b"\x88\x02\x03\xe8");
    assert!(caller.is_over());
}

#[test]
fn a_request_without_a_valid_upgrade_is_rejected() {
    let server = Serving::start(&["--threads", "1"]);
    let check = |request: &str, status: &str| {
        let mut caller = Caller::dial(server.address);
        caller.send(request);
        let head = caller.head();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {head}");
        head
    };
    let required = check(&get("/ws/echo"), "426");
    assert!(required.contains("Sec-WebSocket-Version: 13\r\n"), "{required}");
    check(&UPGRADE.replace("Version: 13", "Version: 8"), "426");
    check(&UPGRADE.replace("dGhlIHNhbXBsZSBub25jZQ==", "short"), "400");
    // An upgrade that the server does not offer is a plain request (RFC 9110 section 7.8).
    check(&UPGRADE.replace("/ws/echo", "/"), "200");
}

#[test]
fn a_stopping_server_sends_close_frames() {
    let server = Serving::start(&["--threads", "1"]);
    let mut caller = Caller::dial(server.address);
    caller.send(UPGRADE);
    caller.head();
    server.program.signal(Signal::TERM);
    assert_eq!(caller.take(4), b"\x88\x02\x03\xe9", "1001, going away");
    server.program.end().assert_status(0);
}

#[test]
fn a_refused_upgrade_is_a_fault_of_the_handshake() {
    let server = Scripted::responding("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let counts = &[("connections.failed", 3), ("connections.opened", 0), ("requests.sent", 0)];
    let faults = &[("target·handshake·wrong-status", 3)];
    Expected { status: 1, verdict: "fail", faults, counts }
        .check(&server.url("/").replace("http://", "ws://"), &["-c", "3", "-d", "1s"]);
}

#[test]
fn delayed_responses_come_late_and_once() {
    let server = Program::start(&["serve", "delay", "--after", "300ms", "--listen", "127.0.0.1:0"]);
    until("its address", || server.stdout().contains("listening on tcp://"));
    let line = server.stdout();
    let address = line.split_whitespace().find_map(|word| word.strip_prefix("tcp://")).expect("an address");
    let mut caller = Caller::dial(address.parse().unwrap());
    let begun = Instant::now();
    caller.send("anything");
    let response = caller.response();
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    assert_eq!((response.status, response.text()), (200, "omglolwtf"));
    assert!(caller.is_over());
    until("its second line of figures", || server.stdout().contains("finished: 1\n"));
    assert!(server.stdout().contains("incoming: 0\noutgoing: 0\nfinished: 1\nrate: "), "{}", server.stdout());
    server.signal(Signal::TERM);
    server.end().assert_status(0);
}

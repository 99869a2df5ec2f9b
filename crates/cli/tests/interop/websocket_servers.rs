//! `throng run ws://…` against WebSocket servers: npm's `ws`, Python's `websockets`, uvicorn.

use std::fs;

use serde_json::Value;

use crate::{
    program::until,
    right::check,
    server::{PYTHON, Server, fetch, folder, program, source},
    summary::{Summary, run},
};

pub(crate) fn ws() -> Server {
    Server::announcing("listening on ", program("node", &[&source("node/ws_server.js")]))
}

/// A counter of [`ws`].
pub(crate) fn counted(server: &Server, name: &str) -> u64 {
    let text = fetch(&server.url("/counts"));
    let counts: Value = serde_json::from_str(text.rsplit("\r\n\r\n").next().unwrap()).unwrap();
    counts[name].as_u64().unwrap_or_else(|| panic!("{name}: {counts}"))
}

fn url(server: &Server, path: &str) -> String {
    format!("ws://{}{path}", server.address)
}

/// Each message has its echo, on kept connections.
fn check_echoes(target: &str, args: &[&str]) -> Summary {
    let s = check(target, &[&["-c", "20", "-d", "1s", "--ping", "150ms"], args].concat());
    let (sent, answered) = (s.count("requests.sent"), s.count("requests.answered"));
    assert_eq!((answered, s.count("connections.held")), (sent, 20), "{target} {args:.60?}");
    // The first after a random part of the interval: six or seven in a second, and those of the ramp; fewer where both ends
    // wait for a processor.
    let most = 20.0 * (s.number("elapsed_s") / 0.15 + 1.0);
    assert!(sent >= 20 * 2 && sent as f64 <= most, "{sent} messages, {most} at most");
    assert_eq!((s.count("connections.closed"), s.count("connections.redialled")), (0, 0));
    s
}

/// The same with each of these, at the same time.
fn check_messages(target: &str, messages: &[&str]) {
    std::thread::scope(|all| {
        for message in messages {
            all.spawn(move || check_echoes(target, &["--message", message]));
        }
    });
}

#[test]
fn both_ends_count_the_same() {
    let server = ws();
    let s = check_echoes(&url(&server, "/echo"), &["--message", "hello"]);
    assert_eq!(counted(&server, "messages"), s.count("requests.sent"));
    assert_eq!(counted(&server, "connections"), s.count("connections.opened"));
    assert_eq!(counted(&server, "pings"), 0);
    let s = check_echoes(&url(&server, "/echo"), &["--message", ""]);
    assert_eq!(counted(&server, "pings"), s.count("requests.sent"), "an empty message is a control ping");
    assert_eq!(counted(&server, "connections"), 40);
}

#[test]
fn messages_of_all_lengths_come_back() {
    let server = ws();
    let target = url(&server, "/echo");
    std::thread::scope(|all| {
        for message in [1, 125, 126, 127, 65_535, 65_536].map(|length| "x".repeat(length)) {
            let target = &target;
            all.spawn(move || {
                let args = ["-c", "4", "-n", "16", "--ping", "40ms", "--message", &message];
                let s = check(target, &args);
                assert_eq!(s.count("requests.answered"), 16, "{} bytes", message.len());
            });
        }
    });
    check_echoes(&url(&server, "/echo"), &["--message", "Grüße, 世界 🌍"]);
}

#[test]
fn an_echo_may_come_in_frames() {
    check_messages(&url(&ws(), "/fragments"), &["hello", &"x".repeat(65_536)]);
}

#[test]
fn its_pings_get_pongs() {
    let server = ws();
    check_echoes(&url(&server, "/heartbeat"), &["--message", "hello"]);
    // Six of each in a second, fewer where the server waits for a processor; without a pong it would have cut the connection.
    assert!(counted(&server, "pongs") >= 20 * 2, "of 20 connections");
}

#[test]
fn control_pings_keep_connections_alive_beside_messages() {
    let server = ws();
    let file = folder("ws-control-pings").join("load.toml");
    let text = format!(
        "target = \"{}\"\n[[population]]\nname = \"users\"\nconnections = 10\nthink = \"400ms\"\n\
             [[population.on]]\nevery = \"100ms\"\nsend = \"\"\n\
             [[population.step]]\nsend = \"hello\"\nexpect = {{ echo = true }}\n",
        url(&server, "/echo")
    );
    fs::write(&file, text).unwrap();
    let s = check(file.to_str().unwrap(), &["-d", "1s"]);
    let told = s.count("requests.told");
    assert!(told >= 10 * 4 && s.count("requests.answered") == s.count("requests.sent"), "{told}");
    // The server may still have to read the last ones.
    until("all pings are read", || counted(&server, "pings") >= told);
    assert_eq!(counted(&server, "pings"), told);
}

#[test]
fn its_close_handshake_is_an_announcement() {
    let server = ws();
    let args = ["-c", "10", "-d", "3s", "--ping", "200ms", "--message", "hello"];
    let s = check(&url(&server, "/bye"), &args);
    let (closed, redialled) = (s.count("connections.closed"), s.count("connections.redialled"));
    assert!(closed >= 20 && redialled >= 10, "{closed} closed, {redialled} dialled again");
    // Each of the ten may have been dialled once more at the very end: there it was opened, and here not any more.
    let (opened, most) = (s.count("connections.opened"), 10 + redialled + 10);
    until("all handshakes", || (opened..=most).contains(&counted(&server, "connections")));
    // Both ends have sent a close; those that were open at the end of the run may have, too.
    until("as many goodbyes there", || counted(&server, "goodbyes") >= closed);
}

/// A run against a server that does this to all ten connections.
fn misdeed(server: &Server, path: &str) -> Summary {
    let args = ["-c", "10", "-d", "2s", "--ping", "150ms", "--message", "hello", "--timeout", "600ms"];
    let (ended, s) = run(&url(server, path), &args);
    ended.assert_status(1);
    assert_eq!(s.text("limit.side"), "target", "{path}: {}", ended.stderr);
    assert_eq!(s.count("connections.redialled"), 0, "{path}: {}", ended.stderr);
    s
}

#[test]
fn its_misdeeds_have_their_faults() {
    let server = ws();
    let s = misdeed(&server, "/wrong");
    let answered = s.count("requests.answered");
    assert_eq!(s.faults(), [("target·exchange·wrong-echo".to_owned(), answered)]);
    assert_eq!((s.count("connections.held"), s.text("limit.cause")), (10, "wrong-answer"));
    let lost = [
        ("/silent", "target·exchange·timeout", "timeout"),
        ("/nothing", "target·handshake·wrong-status", "wrong-answer"),
    ];
    std::thread::scope(|both| {
        for (path, fault, cause) in lost {
            let server = &server;
            both.spawn(move || {
                let s = misdeed(server, path);
                assert_eq!(s.faults(), [(fault.to_owned(), 10)]);
                assert_eq!((s.count("connections.held"), s.text("limit.cause")), (0, cause), "{path}");
            });
        }
    });
    // Without a close frame, between two messages or in the middle of one.
    let s = misdeed(&server, "/cut");
    let faults = s.faults();
    // Reset if it had unread input.
    let is_closed = |kind: &str| kind.ends_with("·closed") || kind.ends_with("·reset");
    let all_closed = |(kind, _): &(String, u64)| kind.starts_with("target·") && is_closed(kind);
    assert!(faults.iter().all(all_closed), "{faults:?}");
    assert_eq!(faults.iter().map(|(_, n)| n).sum::<u64>(), 10, "{faults:?}");
    assert_eq!((s.count("connections.dropped"), s.count("connections.closed")), (10, 0));
}

#[test]
fn python_websockets_echoes() {
    // It pings ten times a second, and says of each connection that has ended whether it had pongs.
    let server = Server::announcing("listening on ", program(PYTHON, &[&source("python/echo.py"), "0.1"]));
    check_messages(&url(&server, "/"), &["hello", "", &"x".repeat(65_536)]);
    until("60 connections had pongs", || server.program.stdout().matches("pongs").count() >= 60);
    assert!(!server.program.stdout().contains("no pong"));
}

#[test]
fn uvicorn_echoes() {
    let server = crate::python::uvicorn(&[]);
    check_messages(&url(&server, "/"), &["hello", &"x".repeat(65_536)]);
}

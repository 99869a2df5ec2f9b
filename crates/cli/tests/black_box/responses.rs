//! What servers may send as a response: RFC 9112 as found in the wild.

use std::time::Duration;

use crate::{
    scripted::{Scripted, ok},
    summary::{Expected, Summary},
};

const CONNECTIONS: u64 = 2;
const REQUESTS: u64 = 12;

/// Correct responses that keep the connection: nothing is closed, `body` bytes of each response are content.
fn check_kept(response: &str, body: u64) {
    let server = Scripted::responding(response);
    let s =
        pass(&server, &[("connections.closed", 0), ("connections.redialled", 0), ("connections.held", 2)]);
    server.assert_accepted(CONNECTIONS, response);
    let answered = s.count("requests.answered");
    assert_eq!((answered, server.log.requests()), (REQUESTS, REQUESTS), "{response:?}");
    assert_eq!(s.count("requests.body_bytes_in"), answered * body, "{response:?}");
    assert_eq!(s.count("requests.bytes_in"), answered * response.len() as u64, "{response:?}");
    assert_eq!(s.count("requests.bytes_out"), server.log.bytes().len() as u64, "{response:?}");
}

/// Correct responses after each of which the server closes: announced, so the connection is dialled again.
fn check_closing(response: &'static str, body: u64) {
    let server = Scripted::start(move |peer| {
        let _ = peer.request().is_some_and(|_| peer.send(response));
    });
    let s = pass(&server, &[]);
    let dialled = s.count("connections.opened") + s.count("connections.redialled");
    assert_eq!(s.count("connections.closed"), REQUESTS, "each answer closes: {response:?}");
    // A connection dialled just before the end has no request.
    let each = REQUESTS..=REQUESTS + CONNECTIONS;
    assert!(each.contains(&dialled), "{dialled} dials, {REQUESTS} requests: {response:?}");
    server.assert_accepted(dialled, response);
    assert_eq!(s.count("requests.body_bytes_in"), REQUESTS * body, "{response:?}");
    assert!(s.count("connections.peak") <= CONNECTIONS, "{response:?}");
}

/// A run of so many requests that each connection, or the one dialled in its place, has more than one.
fn pass(server: &Scripted, counts: &[(&str, u64)]) -> Summary {
    let all =
        [("connections.opened", CONNECTIONS), ("requests.sent", REQUESTS), ("requests.answered", REQUESTS)];
    let requests = REQUESTS.to_string();
    pass_with(server, &["-n", &requests, "--think", "20ms"], &[&all, counts].concat())
}

fn pass_with(server: &Scripted, load: &[&str], counts: &[(&str, u64)]) -> Summary {
    let counts = [&[("connections.dropped", 0)], counts].concat();
    let expected = Expected { status: 0, verdict: "pass", faults: &[], counts: &counts };
    expected.check(&server.url("/"), &[&["-c", "2"], load].concat())
}

#[test]
fn a_response_is_framed_by_its_length() {
    check_kept(&ok("Hello World!"), 12);
    check_kept("HTTP/1.1 200 OK\r\ncontent-length:3\r\nserver: x\r\n\r\nabc", 3);
    check_kept(&ok(""), 0);
    check_kept(&ok(&"x".repeat(1 << 17)), 1 << 17);
}

#[test]
fn a_response_is_framed_by_its_chunks() {
    let chunks =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n6;x=y\r\n World\r\n0\r\n\r\n";
    check_kept(chunks, 11);
    check_kept(&chunks.replace("0\r\n\r\n", "0\r\nDigest: 1\r\nServer-Timing: 2\r\n\r\n"), 11);
}

#[test]
fn interim_responses_precede_the_response() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    check_kept(&format!("HTTP/1.1 100 Continue\r\n\r\n{}", ok("Hello")), 5);
    check_kept(&format!("{hints}{hints}{}", ok("Hello")), 5);
}

#[test]
fn a_response_without_content_is_whole() {
    check_kept("HTTP/1.1 204 No Content\r\n\r\n", 0);
    check_kept("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", 0);
}

#[test]
fn http_1_0_keeps_the_connection_if_announced() {
    check_kept("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nHi", 2);
    check_closing("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nHi", 2);
}

#[test]
fn the_close_may_end_the_response() {
    check_closing("HTTP/1.1 200 OK\r\n\r\nHello", 5);
    check_closing("HTTP/1.0 200 OK\r\n\r\nHello there", 11);
}

#[test]
fn connection_close_is_an_announcement() {
    check_closing("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nHi", 2);
    check_closing(
        "HTTP/1.1 200 OK\r\nconnection: Close\r\ntransfer-encoding: chunked\r\n\r\n2\r\nHi\r\n0\r\n\r\n",
        2,
    );
}

#[test]
fn statuses_are_counted_each() {
    let server = Scripted::start(|peer| {
        for status in ["200 OK", "404 Not Found", "503 Busy", "200 OK"].iter().cycle() {
            let response = ok("x").replace("200 OK", status);
            if peer.request().is_none() || !peer.send(&response) {
                return;
            }
        }
    });
    let (ended, s) =
        crate::summary::run(&server.url("/"), &["-c", "1", "-n", "19", "--think", "5ms", "--threads", "1"]);
    let answered = s.count("requests.answered");
    assert_eq!(answered, 19, "{}", ended.stderr);
    let times = |at: u64| (answered + 3 - at) / 4;
    assert_eq!(s.count("requests.status.404"), times(1));
    assert_eq!(s.count("requests.status.503"), times(2));
    assert_eq!(s.count("requests.status.200"), times(0) + times(3));
    let wrong = ("target·exchange·wrong-status".to_owned(), times(1) + times(2));
    assert_eq!(s.faults(), [wrong]);
    ended.assert_status(1);
}

#[test]
fn a_slow_body_is_no_fault() {
    const PIECES: u32 = 10;
    let server = Scripted::start(|peer| {
        while peer.request().is_some() {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
            for _ in 0..PIECES {
                std::thread::sleep(Duration::from_secs(1) / PIECES);
                peer.send(&"x".repeat(10));
            }
        }
    });
    let counts = [("requests.sent", 2), ("requests.answered", 2), ("requests.body_bytes_in", 200)];
    let s = pass_with(&server, &["-n", "2"], &counts);
    let fastest = s.number("latency_us.min");
    assert!(fastest >= 1e6, "until the last byte: {fastest} us");
}

#[test]
fn an_invalid_response_is_named() {
    let wrong = |response: &str, faults: &[(&str, u64)]| {
        let server = Scripted::responding(response);
        let counts = [("connections.dropped", CONNECTIONS), ("connections.held", 0)];
        let expected = Expected { status: 1, verdict: "fail", faults, counts: &counts };
        let s = expected.check(&server.url("/"), &["-c", "2", "-d", "20s", "--think", "50ms"]);
        assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("target", "wrong-answer"));
    };
    let bad = [("target·exchange·bad-answer", CONNECTIONS)];
    wrong("SSH-2.0-OpenSSH_9.2\r\n\r\n", &bad);
    wrong("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", &bad);
    wrong("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nHello\r\n", &bad);
    // Two responses to one request.
    wrong(&ok("one").repeat(2), &bad);
}

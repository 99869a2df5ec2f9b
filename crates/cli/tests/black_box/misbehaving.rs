//! A server that misbehaves, for each kind of fault: side, stage, kind and count, and that `limit` names it.
//!
//! Dials that fail are in `dials`, wrong lengths and statuses in `expects`; faults of the network are in the interop
//! tests, between namespaces.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use crate::{
    program::{ASKS, until},
    scripted::{Peer, Scripted, ok},
    summary::{Expected, Summary},
};

const CONNECTIONS: u64 = 6;

/// The fault of each connection, and the text of `limit`.
struct Misdeed {
    fault: &'static str,
    cause: &'static str,
    /// A part of its detail.
    detail: &'static str,
    /// A part of its fix.
    cure: &'static str,
}

const CLOSED: Misdeed = Misdeed {
    fault: "target·exchange·closed",
    cause: "closed",
    detail: "6 connections were lost: closed by the peer",
    cure: "it closed them instead of responding",
};
const RESET: Misdeed = Misdeed {
    fault: "target·exchange·reset",
    detail: "6 connections were lost: reset by the peer",
    ..CLOSED
};
const TRUNCATED: Misdeed = Misdeed {
    fault: "target·exchange·truncated",
    cause: "wrong-answer",
    detail: "6 responses were wrong: cut off in the middle",
    cure: "curl -i",
};
const BAD: Misdeed = Misdeed {
    fault: "target·exchange·bad-answer",
    detail: "6 responses were wrong: not allowed by the protocol",
    ..TRUNCATED
};
const TIMEOUT: Misdeed = Misdeed {
    fault: "target·exchange·timeout",
    cause: "timeout",
    detail: "6 requests timed out",
    cure: "--timeout",
};

impl Misdeed {
    /// Each connection of a run meets this server, and is lost by it.
    fn check(&self, script: impl Fn(&mut Peer) + Send + Sync + 'static, args: &[&str]) -> Summary {
        let server = Scripted::start(script);
        let counts = [
            ("connections.opened", CONNECTIONS),
            ("connections.dropped", CONNECTIONS),
            ("connections.failed", 0),
            ("connections.closed", 0),
            ("connections.redialled", 0),
            ("connections.held", 0),
        ];
        let faults = [(self.fault, CONNECTIONS)];
        let fail = Expected { status: 1, verdict: "fail", faults: &faults, counts: &counts };
        // It ends with its last connection.
        let args = [&["-c", "6", "-d", "20s", "--ramp", "10k/s", ASKS], args].concat();
        let s = fail.check(&server.url("/"), &args);
        assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("target", self.cause));
        // What follows is how much of responses had come.
        assert!(s.text("limit.detail").starts_with(self.detail), "{}", s.text("limit.detail"));
        // On a busy machine some are lost before others are connected.
        assert!((1..=CONNECTIONS).contains(&s.count("limit.at_connections")), "{:#}", s.at("limit"));
        assert!(s.text("limit.cure").contains(self.cure), "{}", s.text("limit.cure"));
        server.assert_accepted(CONNECTIONS + s.experiments().len() as u64, "nothing is dialled again");
        s
    }

    /// The same for servers that send these responses, and close; all at the same time.
    fn check_responses(&self, responses: &[&'static str]) {
        std::thread::scope(|all| {
            for &response in responses {
                let says = move |peer: &mut Peer| {
                    peer.request();
                    wait_for_all(peer);
                    peer.send(response);
                };
                all.spawn(move || self.check(says, &[]));
            }
        });
    }
}

/// Waits until all connections have sent a request: by then all are open, and the peak is all of them.
fn wait_for_all(peer: &Peer) {
    until("a request on each connection", || peer.log.requests() >= CONNECTIONS);
}

/// A reset overtakes what was not read yet: let it be read.
const WHILE_READ: Duration = Duration::from_millis(400);

#[test]
fn a_response_may_end_anywhere() {
    TRUNCATED.check_responses(&[
        "H",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n0\r\n",
    ]);
    // An announcement is no response.
    CLOSED.check_responses(&["HTTP/1.1 100 Continue\r\n\r\n", ""]);
}

#[test]
fn a_reset_may_come_anywhere() {
    for response in ["", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nHello"] {
        let resets = move |peer: &mut Peer| {
            peer.request();
            peer.send(response);
            wait_for_all(peer);
            peer.is_silent_for(WHILE_READ);
            peer.reset();
        };
        RESET.check(resets, &[]);
    }
}

#[test]
fn other_protocols_are_no_response() {
    BAD.check_responses(&[
        "220 mail.example ESMTP\r\n",
        "-ERR unknown command\r\n",
        // HTTP/2's first frame, SETTINGS.
        "\0\0\0\u{4}\0\0\0\0\0",
        "<html>Hello</html>",
    ]);
}

#[test]
fn an_ambiguous_response_is_a_fault() {
    BAD.check_responses(&[
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nHello!",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello!!",
        "HTTP/1.1 99 Early\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello!",
    ]);
}

#[test]
fn a_head_has_an_end() {
    let endless = |peer: &mut Peer| {
        peer.request();
        wait_for_all(peer);
        let mut goes_on = peer.send("HTTP/1.1 200 OK\r\n");
        // A megabyte, unless it is stopped.
        for _ in 0..10_000 {
            goes_on = goes_on && peer.send(&format!("X-Filler: {}\r\n", "x".repeat(90)));
        }
    };
    BAD.check(endless, &[]);
}

#[test]
fn a_trickling_request_is_given_up_in_time() {
    let trickles = |text: &'static str| {
        move |peer: &mut Peer| {
            peer.request();
            for byte in text.chars().cycle() {
                if !peer.is_silent_for(Duration::from_millis(40)) || !peer.send(&byte.to_string()) {
                    return;
                }
            }
        }
    };
    let args = ["--timeout", "200ms"];
    TIMEOUT.check(trickles("HTTP/1.1 200 OK, and this is only the beginning of it"), &args);
    let interim = |peer: &mut Peer| {
        peer.request();
        while peer.is_silent_for(Duration::from_millis(40)) && peer.send("HTTP/1.1 102 Processing\r\n\r\n") {}
    };
    TIMEOUT.check(interim, &args);
}

#[test]
fn one_bad_server_among_good_ones_is_counted_alone() {
    let is_first = AtomicBool::new(true);
    let server = Scripted::start(move |peer| {
        let bad = is_first.swap(false, Relaxed);
        while peer.request().is_some() {
            if bad {
                return;
            }
            peer.send(&ok("Hello"));
        }
    });
    let args = ["-c", "8", "-d", "500ms", "--think", "20ms", "--ramp", "100/s", "--threads", "1"];
    let faults = [("target·exchange·closed", 1)];
    let counts = [("connections.dropped", 1), ("connections.held", 7), ("connections.opened", 8)];
    let fail = Expected { status: 1, verdict: "fail", faults: &faults, counts: &counts };
    let s = fail.check(&server.url("/"), &args);
    assert_eq!(s.count("requests.sent"), s.count("requests.answered") + 1);
    assert!(s.at("reasons").to_string().contains("7 of 8 connections held"), "{}", s.at("reasons"));
}

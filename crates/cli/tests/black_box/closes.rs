//! How connections end: with an announcement, without one, in the middle, or not at all.

use std::time::{Duration, Instant};

use crate::{
    program::{ASKS, Program, Serving, file},
    scripted::{Peer, Scripted, ok},
    summary::{Expected, Summary},
};

/// Four connections to a server that does this to each.
fn check(script: impl Fn(&mut Peer) + Send + Sync + 'static, args: &[&str], expected: &Expected) -> Summary {
    let server = Scripted::start(script);
    let s = expected.check(&server.url("/"), &[&["-c", "4", ASKS], args].concat());
    let asked = s.connections_of_experiments();
    let dialled = s.count("connections.opened") + s.count("connections.redialled") + asked;
    server.assert_accepted(dialled, "both ends count the same connections");
    s
}

/// All four are lost, by one fault, and with the last of them the run ends.
fn check_lost(script: impl Fn(&mut Peer) + Send + Sync + 'static, args: &[&str], fault: &str) -> Summary {
    let args = [&["-d", "20s"], args].concat();
    let counts = [
        ("connections.opened", 4),
        ("connections.dropped", 4),
        ("connections.held", 0),
        ("connections.closed", 0),
    ];
    let s = check(
        script,
        &args,
        &Expected { status: 1, verdict: "fail", faults: &[(fault, 4)], counts: &counts },
    );
    assert_eq!(s.count("connections.redialled"), 0, "nothing is refilled silently");
    assert_eq!(s.text("limit.side"), "target");
    s
}

/// Responds, announces that it keeps the connection for a second, and does.
fn keeps_for_a_second(peer: &mut Peer) {
    let response = ok("x").replace("\r\n\r\n", "\r\nKeep-Alive: timeout=1\r\n\r\n");
    while peer.request().is_some() && peer.send(&response) {
        if peer.is_silent_for(Duration::from_secs(1)) {
            return;
        }
    }
}

#[test]
fn never_means_not_even_after_an_announcement() {
    let counts = [
        ("connections.closed", 4),
        ("connections.redialled", 0),
        ("connections.dropped", 0),
        ("connections.held", 0),
        ("requests.sent", 4),
    ];
    let pass = Expected { status: 0, verdict: "pass", faults: &[], counts: &counts };
    check(keeps_for_a_second, &["-d", "1800ms", "--think", "1200ms", "--reconnect", "never"], &pass);
}

#[test]
fn a_close_without_announcement_is_a_loss() {
    let closes_idle = |peer: &mut Peer| {
        let _ = peer.request().is_some_and(|_| peer.send(&ok("x")));
    };
    let s = check_lost(closes_idle, &["--think", "1m"], "target·hold·closed");
    assert_eq!((s.count("requests.sent"), s.count("requests.answered")), (4, 4));
    let limit = (s.text("limit.cause"), s.text("limit.detail"));
    let detail = "it closes each connection after its response without announcing it";
    assert_eq!(limit, ("requests-per-connection", detail));
    let hangs_up = |peer: &mut Peer| drop(peer.request());
    let s = check_lost(hangs_up, &[], "target·exchange·closed");
    assert_eq!((s.count("requests.sent"), s.count("requests.answered")), (4, 0));
}

/// As `openssl s_server` and many load balancers: a connection that begins without TLS is closed without a byte.
#[test]
fn a_target_that_closes_without_a_byte_is_probed_for_tls() {
    let tls = |peer: &mut Peer| {
        if peer.wait_for_more() && peer.has("\x16\x03") {
            peer.send("\x15\x03\x03\0\x02\x02\x28");
        }
    };
    let s = check_lost(tls, &[], "target·exchange·closed");
    let limit = (s.text("limit.cause"), s.text("limit.certainty"));
    assert_eq!((limit, s.count("requests.bytes_in")), (("tls-expected", "seen"), 0), "{:#}", s.at("limit"));
    // A server that closes every connection does not count as one.
    let hangs_up = |peer: &mut Peer| assert!(peer.wait_for_more());
    let s = check_lost(hangs_up, &[], "target·exchange·closed");
    assert_eq!(s.text("limit.cause"), "closed", "{:#}", s.at("limit"));
}

#[test]
fn a_reset_is_distinguished_from_a_close() {
    let resets = |peer: &mut Peer| {
        peer.request();
        peer.reset();
    };
    check_lost(resets, &[], "target·exchange·reset");
    let resets_idle = |peer: &mut Peer| {
        let _ = peer.request().is_some_and(|_| peer.send(&ok("x")));
        // A reset overtakes what was not read yet: let it be read.
        peer.is_silent_for(Duration::from_millis(400));
        peer.reset();
    };
    check_lost(resets_idle, &["--think", "1m"], "target·hold·reset");
}

#[test]
fn half_a_response_is_truncated() {
    let half = |response: &'static str| {
        move |peer: &mut Peer| {
            let _ = peer.request().is_some_and(|_| peer.send(response));
        }
    };
    let fault = "target·exchange·truncated";
    let s = check_lost(half("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nHello"), &[], fault);
    assert_eq!((s.count("requests.answered"), s.text("limit.cause")), (0, "wrong-answer"));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n";
    check_lost(half(chunked), &[], fault);
}

/// The server's clock: from a request's arrival until the client gave up.
fn check_gives_up(while_waiting: fn(&mut Peer)) {
    let server = Scripted::start(move |peer| {
        if peer.request().is_some() {
            let start = Instant::now();
            while_waiting(peer);
            peer.log.times.lock().unwrap().push(start.elapsed());
        }
    });
    let counts = [("connections.dropped", 4), ("connections.held", 0), ("requests.answered", 0)];
    let faults = [("target·exchange·timeout", 4)];
    let fail = Expected { status: 1, verdict: "fail", faults: &faults, counts: &counts };
    let s = fail.check(&server.url("/"), &["-c", "4", "-d", "20s", "--timeout", "1s"]);
    assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("target", "timeout"));
    let times = server.log.times.lock().unwrap().clone();
    // Well before the end of its time, which would close them too.
    let in_time = |time: &Duration| (Duration::from_millis(900)..Duration::from_secs(10)).contains(time);
    assert!(times.len() == 4 && times.iter().all(in_time), "given up after {times:?}");
}

#[test]
fn a_missing_response_is_waited_for_until_the_timeout() {
    check_gives_up(Peer::wait_gone);
}

#[test]
fn the_timeout_covers_the_whole_response() {
    check_gives_up(|peer| {
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while peer.is_silent_for(Duration::from_millis(50)) && peer.send("x") {}
    });
}

#[test]
fn an_unsolicited_response_is_a_fault() {
    let talks = |peer: &mut Peer| {
        let _ = peer.request().is_some_and(|_| peer.send(&ok("x")));
        peer.is_silent_for(Duration::from_millis(300));
        peer.send(&ok("by the way"));
        peer.wait_gone();
    };
    check_lost(talks, &["--think", "1m"], "target·hold·bad-answer");
}

#[test]
fn outstanding_responses_are_waited_for_at_the_end() {
    let slow = |peer: &mut Peer| {
        while peer.request().is_some() {
            std::thread::sleep(Duration::from_millis(600));
            peer.send(&ok("x"));
        }
    };
    let counts = [("requests.sent", 8), ("requests.answered", 8), ("connections.held", 4)];
    let pass = Expected { status: 0, verdict: "pass", faults: &[], counts: &counts };
    // The second requests are due at 0.6 s, and their responses here at 1.2 s.
    check(slow, &["-d", "1s"], &pass);
}

/// A server that ends while the last responses are outstanding: what was held counts as held.
#[test]
fn losses_after_the_load_are_not_of_those_held() {
    let (server, json) = (Serving::start(&["--threads", "1"]), file("after-the-load.json"));
    let (url, path) = (server.url("/delay?for=4s"), json.to_str().unwrap());
    let mut run = Program::start(&["run", &url, "-c", "5", "-d", "600ms", "--timeout", "9s", "--json", path]);
    run.wait_for(" drain ");
    drop(server);
    let ended = run.end();
    let s = Summary(serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap());
    assert_eq!((ended.status, s.text("verdict")), (Some(1), "fail"), "{ended:?}");
    let count = |name: &str| s.count(&format!("connections.{name}"));
    assert_eq!((count("held"), count("dropped"), count("dropped_in_drain")), (5, 5, 5), "{:#}", s.0);
    assert!(
        ended.stdout.contains("5 held of 5 wanted, 5 dropped after the end of the load"),
        "{}",
        ended.stdout
    );
}

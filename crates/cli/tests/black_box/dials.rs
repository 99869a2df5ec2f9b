//! Targets that accept nothing, and targets whose connections are only held.

use crate::{
    program::skip,
    scripted::{Peer, Scripted, taken_port},
    summary::{Expected, run},
};

#[test]
fn a_refusal_is_the_targets_doing() {
    let (_socket, address) = taken_port(None);
    let counts = [
        ("connections.wanted", 7),
        ("connections.opened", 0),
        ("connections.failed", 7),
        ("connections.held", 0),
        ("connections.peak", 0),
        ("connections.dropped", 0),
        ("requests.sent", 0),
        ("latency_us.count", 0),
        ("connect_us.count", 0),
        ("limit.at_connections", 0),
    ];
    let faults = [("target·dial·refused", 7)];
    let fail = Expected { status: 1, verdict: "fail", faults: &faults, counts: &counts };
    let s = fail.check(&format!("http://{address}/"), &["-c", "7", "-d", "200ms"]);
    assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("target", "refused"));
    assert!(s.text("limit.detail").contains('7') && !s.text("limit.cure").is_empty());
    let reasons = s.at("reasons").to_string();
    assert!(reasons.contains("0 of 7 connections held"), "{reasons}");
    assert!(reasons.contains("7 dials were refused"), "{reasons}");
}

#[test]
fn a_full_accept_queue_shows_as_dial_timeouts() {
    // It lets two wait, one more than its backlog; none is ever accepted.
    let (_socket, address) = taken_port(Some(1));
    let target = format!("http://{address}/");
    let (ended, s) = run(&target, &["-c", "6", "-d", "500ms", "--timeout", "1s", "--threads", "1"]);
    let faults = s.faults();
    let count = |fault: &str| faults.iter().find(|(kind, _)| kind == fault).map_or(0, |(_, n)| *n);
    let (dials, responses) = (count("target·dial·timeout"), count("target·exchange·timeout"));
    assert_eq!((dials, responses, faults.len()), (4, 2, 2), "{}", ended.stderr);
    assert_eq!((s.count("connections.failed"), s.count("connections.dropped")), (4, 2));
    // This process is the target: if a thread of another test ends just then, that is named first.
    let cause = s.text("limit.cause");
    assert!(
        s.text("limit.side") == "target" && ["accept-queue", "thread"].contains(&cause),
        "{}",
        s.at("limit")
    );
    let cure = s.text("limit.cure");
    assert!(cause == "thread" || cure.contains("backlog"), "{cure}");
    assert!(s.number("ramp_s") > 0.9, "the ramp ends with the last outcome: {}", s.number("ramp_s"));
    assert_eq!((s.text("verdict"), ended.status), ("fail", Some(1)));
}

#[test]
fn raw_tcp_is_opened_and_held_in_silence() {
    let server = Scripted::start(Peer::wait_gone);
    let counts = [
        ("connections.opened", 25),
        ("connections.held", 25),
        ("connections.peak", 25),
        ("requests.sent", 0),
        ("requests.bytes_out", 0),
        ("requests.bytes_in", 0),
        ("connect_us.count", 25),
    ];
    let pass = Expected { status: 0, verdict: "pass", faults: &[], counts: &counts };
    pass.check(&format!("tcp://{}", server.address), &["-c", "25", "-d", "700ms"]);
    server.assert_accepted(25, "all that are held");
    assert_eq!(server.log.bytes(), Vec::<u8>::new());
}

#[test]
fn raw_tcp_takes_a_greeting_and_notices_a_loss() {
    let server = Scripted::start(|peer| {
        peer.send("220 hello\r\n");
    });
    let counts = [
        ("connections.dropped", 3),
        ("connections.held", 0),
        ("connections.redialled", 0),
        ("requests.bytes_in", 33),
    ];
    let faults = [("target·hold·closed", 3)];
    let fail = Expected { status: 1, verdict: "fail", faults: &faults, counts: &counts };
    fail.check(&format!("tcp://{}", server.address), &["-c", "3", "-d", "20s"]);
}

#[test]
fn the_ramp_keeps_to_its_rate() {
    let server = Scripted::start(Peer::wait_gone);
    let target = format!("tcp://{}", server.address);
    for ramp in ["100/s", "600ms"] {
        let (ended, s) = run(&target, &["-c", "60", "-d", "100ms", "--ramp", ramp]);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let (ramp_s, rate) = (s.number("ramp_s"), s.number("connections.open_per_s"));
        // The first is due at once, so the last comes a period before 0.6 s.
        let took_s = ended.took_s;
        assert!((0.585..took_s).contains(&ramp_s), "--ramp {ramp}: {ramp_s} s of {took_s} s");
        assert!((rate * ramp_s - 60.0).abs() < 1e-6, "--ramp {ramp}: {rate}/s in {ramp_s} s");
    }
}

#[test]
fn a_name_of_both_families_is_dialled_where_it_is_served() {
    let Ok(listener) = std::net::TcpListener::bind("[::1]:0") else {
        skip("no IPv6 here");
        return;
    };
    let port = listener.local_addr().expect("a bound socket has an address").port();
    // Held by the accept queue.
    let (ended, s) = run(&format!("tcp://localhost:{port}"), &["-c", "5", "-d", "100ms"]);
    assert_eq!((s.count("connections.opened"), s.faults()), (5, Vec::new()), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("[::1]") && ended.stderr.contains("dialling only that one"),
        "{}",
        ended.stderr
    );
}

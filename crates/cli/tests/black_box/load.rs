//! Load models: the open loop, connections that arrive and leave, the probe, and redials of lost connections.

use serde_json::Value;

use crate::{
    caller::Caller,
    program::{Program, Serving},
    scripted::{Scripted, ok},
    summary::{Expected, run},
};

#[test]
fn an_open_loop_sends_at_its_rate() {
    let server = Serving::start(&["--threads", "1"]);
    let expected = Expected {
        status: 0,
        verdict: "pass",
        faults: &[],
        counts: &[
            ("requests.sent", 1_000),
            ("requests.answered", 1_000),
            ("requests.missed", 0),
            ("latency_us.count", 1_000),
            ("ramp_latency_us.count", 0),
            ("connections.held", 20),
        ],
    };
    let (s, took_s) = expected.check_timed(&server.url("/"), &["-c", "20", "--rate", "500/s", "-d", "2s"]);
    assert_eq!(s.count("lag_us.count"), 1_000 + s.stalled());
    let duration_s = s.number("duration_s");
    assert!((1.99..took_s).contains(&duration_s), "{duration_s} of {took_s} s");
    // The thousand except for responses that a busy machine sent after the end.
    let answered = s.number("requests.per_s") * duration_s;
    assert!((800.0..1_000.5).contains(&answered), "{answered} at full load");
}

/// `-n`: exactly this number of requests, by the server's own count, over each protocol.
#[test]
fn a_number_of_requests_is_exact() {
    for args in [
        &["-n", "1000", "-c", "7"][..],
        &["-n", "1000", "-c", "7", "--http2", "--streams", "7"],
        &["-n", "100", "-c", "7", "--rate", "1000"],
        &["-n", "3"],
    ] {
        let server = Serving::start(&["--threads", "1"]);
        let wanted = args[1].parse().unwrap();
        let counts = [("requests.sent", wanted), ("requests.answered", wanted), ("latency_us.count", wanted)];
        let expected = Expected { status: 0, verdict: "pass", faults: &[], counts: &counts };
        expected.check(&server.address.to_string(), args);
        let mut asking = Caller::dial(server.address);
        let stats: Value = serde_json::from_str(asking.get("/stats").text()).unwrap();
        assert_eq!(stats["requests"].as_u64(), Some(wanted + 1), "with this one, {args:?}: {stats}");
    }
}

#[test]
fn missed_slots_are_reported() {
    // One connection, 50 ms per response: twenty of the hundred a second.
    let server = Serving::start(&["--threads", "1"]);
    let target = server.url("/delay?for=50ms");
    let (ended, s) = run(&target, &["-c", "1", "--rate", "100/s", "-d", "1s", "--timeout", "300ms"]);
    let (sent, missed) = (s.count("requests.sent"), s.count("requests.missed"));
    assert!(sent + missed == 100 && missed >= 75, "{sent} sent, {missed} missed");
    // Waiting for the connection is latency.
    assert!(s.number("latency_us.max") > 100e3, "{:#}", s.0);
    let output = s.at("reasons").to_string();
    assert!(output.contains("requests were due but not sent"), "{output}");
    ended.assert_status(1);
    let text =
        Program::start(&["run", &target, "-c", "1", "--rate", "100/s", "-d", "1s", "--timeout", "300ms"])
            .end();
    assert!(text.stdout.contains("missed") && text.stdout.contains("no connection free"), "{text:?}");
}

#[test]
fn connections_come_make_their_calls_and_go() {
    let server = Serving::start(&["--threads", "1"]);
    let mut asking = Caller::dial(server.address);
    let expected = Expected {
        status: 0,
        verdict: "pass",
        faults: &[],
        counts: &[
            ("connections.wanted", 100),
            ("connections.opened", 100),
            ("connections.finished", 100),
            ("connections.held", 0),
            ("requests.sent", 300),
            ("requests.answered", 300),
            ("latency_us.count", 300),
        ],
    };
    let args = ["--arrive", "200/s", "--total", "100", "--calls", "3"];
    let (s, took_s) = expected.check_timed(&server.url("/"), &args);
    // The hundredth comes after 99 times 5 ms.
    assert!((0.495..took_s).contains(&s.number("duration_s")), "{} of {took_s} s", s.number("duration_s"));
    let stats: Value = serde_json::from_str(asking.get("/stats").text()).unwrap();
    // The connection and request of the query included.
    assert_eq!((stats["accepted"].as_u64(), stats["requests"].as_u64()), (Some(101), Some(301)), "{stats}");
    let ended = Program::start(&[&["run", &server.url("/")], &args[..]].concat()).end();
    assert!(ended.stdout.contains("100 closed by throng as planned"), "{}", ended.stdout);
}

#[test]
fn arrivals_end_with_their_duration_too() {
    let server = Serving::start(&["--threads", "1"]);
    let (ended, s) =
        run(&server.url("/"), &["--arrive", "100/s", "--total", "1k", "-d", "500ms", "--max-lag", "1m"]);
    // Those due in that time; a busy machine has not opened all of them at its end, and may notice the end late.
    let (opened, most) = (s.count("connections.opened"), 100.0 * s.number("elapsed_s") + 2.0);
    assert!(opened >= 20 && opened as f64 <= most, "{opened}: {:#}", s.0);
    let ended_early = s.at("reasons").as_array().is_some_and(|reasons| {
        matches!(&reasons[..], [only] if only.as_str().is_some_and(|why| {
            why.starts_with("ended after ") && why.ends_with(&format!(" s with {opened} of 1,000 connections"))
        }))
    });
    assert!(ended_early, "{:#}", s.at("reasons"));
    ended.assert_status(0);
}

#[test]
fn the_probe_runs_beside_the_load() {
    let server = Serving::start(&["--threads", "1"]);
    let mut asking = Caller::dial(server.address);
    let args = ["-c", "30", "--think", "500ms", "-d", "2s", "--probe", "50/s"];
    let (ended, s) = run(&server.url("/"), &args);
    let (sent, answered) = (s.count("probe.sent"), s.count("probe.answered"));
    let most = 50.0 * ended.took_s + 2.0;
    assert!(sent >= 80 && sent as f64 <= most, "{sent}, {most} at most");
    assert_eq!(answered + s.count("probe.unanswered"), sent, "{:#}", s.at("probe"));
    let (fresh, kept) = (s.count("probe.fresh_us.count"), s.count("probe.kept_us.count"));
    assert_eq!(
        (fresh + kept, s.count("probe.latency_us.count"), s.count("probe.failed")),
        (answered, answered, 0)
    );
    assert!(fresh.abs_diff(kept) <= 2 + sent - answered && s.number("probe.rate") == 50.0, "{fresh}, {kept}");
    assert!(s.number("probe.fresh_us.p50") > s.number("probe.connect_us.p50"));
    let curve = s.at("probe.by_connections").as_array().unwrap();
    let last = curve.last().expect("a point of the hold");
    assert_eq!(last["connections"].as_u64(), Some(30), "{curve:?}");
    assert!(last["latency_p99_us"].as_f64() >= last["latency_p50_us"].as_f64());
    assert!(last["connect_p99_us"].as_f64() > Some(0.0));
    // Neither its connections nor its requests count for the population.
    assert_eq!((s.count("connections.opened"), s.count("connections.peak")), (30, 30));
    let stats: Value = serde_json::from_str(asking.get("/stats").text()).unwrap();
    assert_eq!(
        stats["requests"].as_u64(),
        Some(s.count("requests.sent") + sent + 1),
        "and the question: {stats}"
    );
    ended.assert_status(0);
    let text =
        Program::start(&["run", &server.url("/"), "-c", "3", "-d", "500ms", "--think", "50ms", "--probe"])
            .end();
    for row in ["probe fresh", "probe kept", "probe connect"] {
        assert!(text.stdout.contains(row), "{row}: {}", text.stdout);
    }
}

/// The load ends on its own, when the last connection has left, with probes outstanding: they are waited for.
#[test]
fn an_outstanding_probe_is_waited_for_when_the_load_ends_on_its_own() {
    let server = Serving::start(&["--threads", "1"]);
    let args = ["--arrive", "100/s", "--total", "50", "--probe", "100/s"];
    let (ended, s) = run(&server.url("/delay?for=100ms"), &args);
    let (sent, answered) = (s.count("probe.sent"), s.count("probe.answered"));
    assert!(sent > 40 && sent == answered, "{answered} of {sent}: {:#}", s.at("reasons"));
    assert_eq!((s.count("probe.unanswered"), s.count("connections.finished")), (0, 50), "{ended:?}");
    ended.assert_status(0);
}

#[test]
fn lost_connections_are_redialled_after_a_back_off() {
    let server = Scripted::start(|peer| {
        if peer.number <= 10 {
            peer.request();
            return peer.reset();
        }
        while peer.request().is_some() && peer.send(&ok("x")) {}
    });
    // The ramp dials the ten at once, well before the first of them comes back.
    let expected = Expected {
        status: 1,
        verdict: "fail",
        faults: &[("target·exchange·reset", 10)],
        counts: &[
            ("connections.opened", 10),
            ("connections.dropped", 10),
            ("connections.redialled", 10),
            ("connections.held", 10),
        ],
    };
    let args = ["-c", "10", "--ramp", "0s", "--think", "50ms", "-d", "3s", "--reconnect", "500ms..1s"];
    expected.check(&server.url("/"), &args);
    server.assert_accepted(20, "each of ten is dialled again once");
}

#[test]
fn a_closed_loop_opens_all_its_connections_before_it_sends() {
    // One response at a time, 2 ms each: connections that are open could use up all of them.
    let turn = std::sync::Arc::new(std::sync::Mutex::new(()));
    let server = Scripted::start(move |peer| {
        while peer.request().is_some() {
            let own = turn.lock().expect("nobody panics");
            std::thread::sleep(std::time::Duration::from_millis(2));
            drop(own);
            if !peer.send(&ok("x")) {
                return;
            }
        }
    });
    let (ended, s) = run(&server.url("/"), &["-c", "200", "-d", "2s", "--max-lag", "1s"]);
    assert_eq!(s.count("connections.held"), 200, "{}", ended.stderr);
    assert!(s.count("ramp_latency_us.count") == 0 && s.count("latency_us.count") > 0, "{}", ended.stderr);
    // It takes 15 s and more where each round of responses lets one more dial.
    assert!(s.number("ramp_s") < 5.0, "{}", ended.stderr);
}

//! A fixed number of requests: exactly that many are sent, and the run ends with the last response.

use net::Close::{Graceful, Reset};
use samples::{Counts, Verdict};
use stage::{
    RunResult, connections, listening, measured, network, plan, play, scenario,
    scripted::{Act, Script, Scripted, Then},
    servers,
};
use units::Nanos;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const OK_FOR_5S: &[u8] = b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 5\r\n\r\nhello";
const OK_AND_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

const RIGHT: Script = |_| Act { send: OK, then: Then::Stay };

/// Runs against a scripted server. Returns also the number of requests that arrived there.
fn run(flags: &str, shards: u32, script: Script) -> (RunResult, u64, (Verdict, Vec<String>)) {
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.1:80/", flags, 1);
    let at = plan.destinations()[0];
    let mut server = listening(&net, at, connections(&plan) + 64, Scripted::new(script));
    let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
    let judged = result.judge(&plan);
    (result, server.program().requests, (judged.verdict, judged.reasons))
}

/// Checks that all requests have a response, at full load.
fn check(flags: &str, shards: u32, script: Script, n: u64) -> Counts {
    let (result, came, judged) = run(flags, shards, script);
    let c = result.whole.counts;
    assert_eq!((c.sent - c.withdrawn, c.answered, c.answered_at_load), (n, n, n), "{flags} on {shards}");
    assert_eq!(came, c.sent, "{flags} on {shards}");
    assert_eq!((result.whole.latency.count(), result.whole.ramp_latency.count()), (n, 0));
    assert_eq!(judged, (Verdict::Pass, Vec::new()), "{flags} on {shards}");
    c
}

#[test]
fn so_many_are_sent_and_no_more() {
    for shards in [1, 2, 5] {
        for (connections, n) in [(7, 1_000), (1, 3), (10, 3), (8, 8)] {
            let flags = format!("connections={connections} requests={n}");
            let c = check(&flags, shards, RIGHT, n);
            assert_eq!((c.opened, c.closed, c.dropped), (connections, 0, 0));
        }
    }
    // If the number of connections is not given, it does not exceed that of requests.
    assert_eq!(check("requests=3", 2, RIGHT, 3).opened, 3);
    assert_eq!(check("requests=300", 2, RIGHT, 300).opened, 50);
    check("connections=10 requests=95 think=10ms..30ms ramp=100/s", 2, RIGHT, 95);
}

/// The connections come back in a later stage.
#[test]
fn a_stage_without_connections_ends_no_number_of_requests() {
    let stages = "[[stage]]\nfor = \"500ms\"\n[[stage]]\nto = \"0%\"\nramp = \"0\"\nfor = \"300ms\"\n\
        [[stage]]\nto = \"100%\"\nramp = \"0\"\nfor = \"9s\"\n";
    let own = "[[population]]\nname = \"main\"\nconnections = 3\nrequests = 40\nthink = \"100ms\"\n";
    let plan = scenario(&format!("target = \"http://127.0.0.1:80/\"\n{own}{stages}"), 1);
    for shards in [1, 3] {
        let net = network(1, |_| {});
        let mut server = listening(&net, plan.destinations()[0], 100, Scripted::new(RIGHT));
        let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
        let c = &result.whole.counts;
        assert_eq!((c.due, c.answered, c.finished), (40, 40, 3), "{c:?}");
    }
}

/// throng itself closed them as planned, so they count as held.
#[test]
fn connections_that_were_closed_as_planned_were_held() {
    for rate in ["", "rate = \"500/s\""] {
        let keys = format!("requests = 200\ncalls = 7\n{rate}");
        let plan = scenario(&format!("target = \"http://127.0.0.1:80/\"\nconnections = 5\n{keys}"), 1);
        let net = network(1, |_| {});
        let mut server = listening(&net, plan.destinations()[0], 100, Scripted::new(RIGHT));
        let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
        let (c, s) = (&result.whole.counts, result.judge(&plan));
        assert!(c.finished >= 25, "{rate}: {c:?}");
        assert_eq!((c.answered, server.program().requests), (200, 200), "{rate}");
        assert_eq!(s.verdict, Verdict::Pass, "{rate}: {:?}", s.reasons);
    }
}

#[test]
fn a_rate_ends_with_its_last_request() {
    for shards in [1, 3] {
        check("connections=5 requests=250 rate=100/s", shards, RIGHT, 250);
        let (result, ..) = run("connections=5 requests=250 rate=100/s", shards, RIGHT);
        let lasted = result.hold_until.since(result.hold_from);
        // The first is due at once, the last 2.49 s later.
        let most = Nanos::from_millis(2_490 + 20);
        assert!((Nanos::from_millis(2_480)..most).contains(&lasted), "{lasted:?}");
        assert!(measured(&result.whole.latency).max < 20_000.0);
    }
}

/// The server closes after each response, as announced, so that each request needs a connection. Superfluous dials are at most those
/// outstanding when the last request begins.
#[test]
fn there_are_hardly_more_connections_than_requests() {
    let script: Script = |_| Act { send: OK_AND_CLOSE, then: Then::Close(Graceful) };
    let c = check("connections=4 requests=100", 2, script, 100);
    assert_eq!((c.opened, c.closed), (4, 100));
    assert!((100..104).contains(&(c.opened + c.redialled)), "{c:?}");
}

/// A request that crosses with an announced close is due again, and counts once.
#[test]
fn a_request_that_is_sent_again_counts_once() {
    let script: Script = |request| match request.nth {
        1 => Act { send: b"", then: Then::Close(Graceful) },
        _ => Act { send: OK_FOR_5S, then: Then::Stay },
    };
    let c = check("connections=2 requests=10 think=6s", 2, script, 10);
    assert!(c.withdrawn > 2, "{c:?}");
}

#[test]
fn it_ends_where_no_connection_is_left() {
    let script: Script = |request| match request.nth {
        2 => Act { send: b"", then: Then::Close(Reset) },
        _ => Act { send: OK, then: Then::Stay },
    };
    let (result, came, (verdict, reasons)) = run("connections=10 requests=1k", 2, script);
    let c = result.whole.counts;
    assert_eq!((c.sent, c.answered, c.dropped, came), (30, 20, 10, 30));
    assert_eq!(verdict, Verdict::Fail);
    assert!(reasons.contains(&"30 of 1,000 requests sent".to_owned()), "{reasons:?}");
    // If a connection is lost, the others send the remaining requests.
    let script: Script = |request| match (request.conn, request.nth) {
        (0, 2) => Act { send: b"", then: Then::Close(Reset) },
        _ => Act { send: OK, then: Then::Stay },
    };
    let c = run("connections=10 requests=1k", 2, script).0.whole.counts;
    assert_eq!((c.sent, c.answered, c.dropped), (1_000, 999, 1));
}

#[test]
fn a_time_may_end_it_before() {
    let (result, _, (verdict, reasons)) =
        run("connections=10 requests=1k think=1s duration=2500ms", 2, RIGHT);
    assert_eq!((result.whole.counts.sent, verdict), (30, Verdict::Pass));
    assert_eq!(reasons, ["ended after 2.5 s with 30 of 1,000 requests"]);
}

#[test]
fn messages_are_counted_too() {
    for (target, flags) in [
        ("ws://127.0.0.1:80/ws/echo", "connections=3 requests=100 ping=0"),
        ("ws://127.0.0.1:80/ws/echo", "connections=3 requests=100 ping=50ms"),
        ("ws://127.0.0.1:80/ws/echo", "connections=3 requests=100 ping=50ms http2= streams=4"),
        ("ws://127.0.0.1:80/ws/echo", "connections=3 requests=100 rate=200/s"),
    ] {
        let net = network(1, |_| {});
        let plan = plan(target, flags, 1);
        let (mut server, _) = servers(&net, plan.destinations()[0], 1, 100);
        let result = play(&net, &plan, 2, &mut [&mut server[0]], |_, _| {});
        let c = &result.whole.counts;
        assert_eq!((c.sent, c.answered, result.faults()), (100, 100, Vec::new()), "{target} {flags}");
        assert_eq!(result.judge(&plan).verdict, Verdict::Pass, "{target} {flags}");
    }
}

/// All requests are sent before the stage with the plan's largest number of connections.
#[test]
fn a_number_of_requests_may_end_before_a_later_stage() {
    let check = |number: u32, stages: &str, expected: (u64, u64, u64)| {
        let own = format!("connections = 10\nrequests = {number}\nthink = \"50ms\"\n{stages}");
        let plan = scenario(&format!("target = \"http://127.0.0.1:80/\"\n{own}"), 1);
        let net = network(1, |_| {});
        let mut server = listening(&net, plan.destinations()[0], 100, Scripted::new(RIGHT));
        let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
        let s = result.judge(&plan);
        assert_eq!((s.verdict, s.requests.missed), (Verdict::Pass, 0), "{stages}: {:?}", s.reasons);
        let c = &s.connections;
        assert_eq!((c.wanted, c.held, s.requests.due), expected, "{stages}: {:?}", s.reasons);
        assert_eq!(s.requests.answered, s.requests.due, "{stages}");
    };
    let half = "[[stage]]\nto = \"50%\"\nfor = \"500ms\"\n[[stage]]\nto = \"100%\"\nfor = \"500ms\"\n";
    check(40, half, (5, 5, 40));
    // In a last stage without connections, no more requests become due, and the stage lasts for its time.
    let none = "[[stage]]\nfor = \"290ms\"\n[[stage]]\nto = \"0%\"\nfor = \"300ms\"\n";
    check(100, none, (10, 10, 70));
}

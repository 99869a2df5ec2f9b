//! Bad networks: nothing panics, and every loss is counted exactly once, as the right fault. The balance of the accounts is checked at
//! every tick, in `stage`.

use net::{Close, io::sim::Faults};
use samples::{Destination, Kind, Stage, Verdict};
use stage::{
    RunResult, connections, listening, measured, network, plan, play,
    scripted::{Act, Request, Script, Scripted, Then},
    servers, turns,
};
use units::{Count, Nanos};

const N: u64 = 2_000;
const WORDS: &str =
    "connections=2k think=1s..3s duration=20s timeout=5s expect=status=200,length=$1 ramp=2k/s";

struct Seen {
    result: RunResult,
    server: serve::Stats,
}

/// Runs with network faults and three seeds; each result must be as expected.
fn check(change: fn(&mut Faults), expected: fn(&Seen)) {
    for seed in 1..=3 {
        let net = network(seed, change);
        let plan = plan("http://127.0.0.1:8000/?length={rand 1 10240}", WORDS, seed);
        let at = plan.destinations()[0];
        let (mut servers, counters) = servers(&net, at, 2, connections(&plan));
        let mut turns = turns(&mut servers);
        let result = play(&net, &plan, 3, &mut turns, |_, _| {});
        let c = &result.whole.counts;
        assert_eq!(c.opened + c.failed, N, "each dial is decided, seed {seed}");
        assert_eq!(
            (c.closed, c.redialled, result.whole.counts.withdrawn),
            (0, 0, 0),
            "nothing is announced, seed {seed}"
        );
        let lost = c.failed + c.dropped;
        assert_eq!(result.whole.open + c.ended_after, N - lost, "what is lost stays lost, seed {seed}");
        expected(&Seen { result, server: counters.read() });
    }
}

/// Nothing is lost, and both ends have the same counts.
fn all_is_well(Seen { result, server }: &Seen) {
    let c = &result.whole.counts;
    assert_eq!(result.faults(), []);
    assert_eq!((c.answered, c.sent, server.open), (server.requests, server.requests, N));
    assert_eq!((c.bytes_in, c.bytes_out), (server.bytes_out, server.bytes_in));
}

/// Asserts a fraction of `of`, within five standard deviations of a binomial distribution.
fn assert_about(n: u64, share: f64, of: u64) {
    let mean = share * of as f64;
    let sigma = (mean * (1.0 - share)).sqrt();
    assert!((n as f64 - mean).abs() < 5.0 * sigma, "{n} of {of}, {mean:.0} ± {sigma:.0} expected");
}

/// Three destinations: nothing listens at the second one, and the third one resets every fourth request.
#[test]
fn each_destination_is_counted_separately() {
    const OK: Act = Act { send: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", then: Then::Stay };
    let resets = |request: Request| {
        if request.nth == 3 { Act { send: b"", then: Then::Close(Close::Reset) } } else { OK }
    };
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.{1..3}:80/", "connections=90 think=100ms duration=2s", 1);
    let at = plan.destinations();
    let mut good = listening(&net, at[0], 128, Scripted::new(|_| OK));
    let mut bad = listening(&net, at[2], 128, Scripted::new(resets));
    let result = play(&net, &plan, 2, &mut [&mut good, &mut bad], |_, _| {});
    let each = |of: fn(&Destination) -> u64| result.whole.destinations.iter().map(of).collect::<Vec<_>>();
    assert_eq!((each(|own| own.opened), each(|own| own.failed)), (vec![30, 0, 30], vec![0, 30, 0]));
    assert_eq!((each(|own| own.dropped), each(Destination::open)), (vec![0, 0, 30], vec![30, 0, 0]));
    assert_eq!(each(|own| own.faults.total()), [0, 30, 30]);
    let answered = each(|own| own.answered);
    assert!(answered[0] > 30 * 15 && answered[1..] == [0, 90], "{answered:?}");
    assert!(each(|own| own.latency.count())[0] > 30 * 15);
    // Requests without a response at full load are reported separately from the percentiles.
    assert_eq!((each(|own| own.latency.censored()), result.whole.latency.censored()), (vec![0, 0, 30], 30));
}

/// Two destinations, one of which stops responding at its third request: outstanding requests are reported separately from its latency.
#[test]
fn a_destinations_outstanding_requests_are_beside_its_latency() {
    const OK: Act = Act { send: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", then: Then::Stay };
    let falls_silent =
        |request: Request| if request.nth > 2 { Act { send: b"", then: Then::Stay } } else { OK };
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.{1..2}:80/", "connections=60 think=100ms duration=3s timeout=500ms", 1);
    let at = plan.destinations();
    let mut good = listening(&net, at[0], 128, Scripted::new(|_| OK));
    let mut silent = listening(&net, at[1], 128, Scripted::new(falls_silent));
    let result = play(&net, &plan, 2, &mut [&mut good, &mut silent], |_, _| {});
    let [good, silent] = &result.whole.destinations[..] else { panic!("two destinations") };
    assert_eq!((good.opened, silent.opened, good.latency.censored()), (30, 30, 0));
    assert!(good.latency.count() > 30 * 15, "{}", good.latency.count());
    assert_eq!((silent.faults.total(), silent.latency.censored()), (30, 30), "each timed out once");
    assert!(silent.latency.count() > 0 && silent.latency.censored_share() > 0.0);
    assert_eq!(result.whole.latency.censored(), 30);
}

/// A server with eight threads, each of which serves a single connection while that sends: others are served only after the load.
#[test]
fn connections_that_the_load_did_not_serve_are_no_pass() {
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let script = |request: Request| match request.conn {
        0..8 => Act { send: OK, then: Then::Stay },
        _ => Act { send: b"", then: Then::SendAfter(Nanos::from_secs(6), OK) },
    };
    for (flags, shards) in [
        ("connections=100 duration=2s", 2),
        ("connections=100 duration=2s ramp=1k/s", 2),
        ("connections=100 think=50ms duration=2s ramp=1k/s", 2),
        // With two shards, one of them may have no connection that is served.
        ("connections=100 rate=400/s duration=2s ramp=1k/s", 1),
    ] {
        let net = network(1, |_| {});
        let plan = plan("http://127.0.0.1:80/", flags, 1);
        let mut server = listening(&net, plan.destinations()[0], 200, Scripted::new(script));
        let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
        let c = &result.whole.counts;
        assert_eq!((result.faults(), result.whole.served, c.answered), (vec![], 8, c.sent), "{flags}");
        let judged = result.judge(&plan);
        let seen = format!(
            "92 of 100 connections had no response by the end of the load, while the other 8 had {} at full load",
            Count(c.answered_at_load)
        );
        assert_eq!((judged.verdict, &judged.reasons[..]), (Verdict::Fail, &[seen][..]), "{flags}");
        let limit = judged.limit.expect("something is the reason");
        assert_eq!((limit.cause.name(), limit.at_connections), ("connection-limit", 8), "{flags}");
        assert_eq!(
            limit.sentence,
            "the target serves 8 connections at a time: 92 others had no response by the end of the load"
        );
    }
}

/// What servers that expect TLS send in reply to a plain request: recognised as a separate kind of fault.
#[test]
fn a_target_that_speaks_tls_is_recognised() {
    const ALERT: Act = Act { send: b"\x15\x03\x01\x00\x02\x02\x46", then: Then::Close(Close::Graceful) };
    const PAGE: Act = Act {
        send: b"HTTP/1.1 400 Bad Request\r\nContent-Length: 49\r\nConnection: close\r\n\r\n\
               The plain HTTP request was sent to HTTPS port\r\n\r\n",
        then: Then::Close(Close::Graceful),
    };
    const GO: Act = Act {
        send: b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
        then: Then::Close(Close::Graceful),
    };
    for (act, target, stage) in [
        ((|_| ALERT) as Script, "http://127.0.0.1:80/", Stage::Exchange),
        (|_| PAGE, "http://127.0.0.1:80/", Stage::Exchange),
        (|_| GO, "http://127.0.0.1:80/", Stage::Exchange),
        (|_| ALERT, "ws://127.0.0.1:80/", Stage::Handshake),
        (|_| PAGE, "ws://127.0.0.1:80/", Stage::Handshake),
        (|_| GO, "ws://127.0.0.1:80/", Stage::Handshake),
    ] {
        let net = network(1, |_| {});
        let plan = plan(target, "connections=20 duration=1s", 1);
        let mut server = listening(&net, plan.destinations()[0], 128, Scripted::new(act));
        let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
        assert_eq!(result.faults(), [(stage, Kind::TlsExpected, 20)], "{target}");
        assert_eq!(result.whole.counts.answered, 0, "{target}");
    }
}

/// A server that closes without a byte may expect TLS. That is only a guess here, since it cannot be probed, and is not made if any byte
/// came.
#[test]
fn a_target_that_closes_without_a_byte_may_speak_tls() {
    const CLOSE: Act = Act { send: b"", then: Then::Close(Close::Graceful) };
    const OK: Act = Act { send: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", then: Then::Stay };
    let at_last: Script = |request| if request.nth == 2 { CLOSE } else { OK };
    for (target, script, fault, cause) in [
        ("http://127.0.0.1:80/", (|_| CLOSE) as Script, Stage::Exchange, Some("tls-expected")),
        ("ws://127.0.0.1:80/", |_| CLOSE, Stage::Handshake, Some("tls-expected")),
        ("http://127.0.0.1:80/", at_last, Stage::Exchange, Some("requests-per-connection")),
    ] {
        let net = network(1, |_| {});
        let plan = plan(target, "connections=20 duration=1s", 1);
        let mut server = listening(&net, plan.destinations()[0], 128, Scripted::new(script));
        let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
        assert_eq!(result.faults(), [(fault, Kind::Closed, 20)], "{target}");
        let limit = result.judge(&plan).limit;
        assert_eq!(limit.as_ref().map(|limit| limit.cause.name()), cause, "{target}: {limit:?}");
    }
}

#[test]
fn lost_segments_come_later() {
    check(
        |f| f.loss = 10_000,
        |seen| {
            all_is_well(seen);
            // A segment is retransmitted after 200 ms, a SYN after 1 s: one response in fifty is that late.
            let (latency, connect) =
                (measured(&seen.result.whole.latency), measured(&seen.result.whole.connect));
            assert!(latency.p90 <= 400.0 && latency.p99 > 200e3 && latency.max < 1.1e6, "{latency:?}");
            assert!(connect.p50 < 400.0 && connect.p999 > 1e6, "{connect:?}");
        },
    );
}

#[test]
fn segments_cut_in_two_are_read_as_one() {
    check(|f| f.split = true, all_is_well);
}

#[test]
fn a_small_window_slows_and_loses_nothing() {
    check(
        |f| (f.window, f.split) = (500, true),
        |seen| {
            all_is_well(seen);
            assert!(measured(&seen.result.whole.latency).p90 > 1_000.0, "several rounds for an answer");
        },
    );
}

#[test]
fn resets_are_losses() {
    check(
        |f| f.reset = 2_000,
        |seen| {
            let c = &seen.result.whole.counts;
            // A reset affects a request or its response, never an idle connection.
            assert_eq!(seen.result.faults(), [(Stage::Exchange, Kind::Reset, c.dropped)]);
            // A request that is reset has no response that could be reset too.
            assert_about(c.dropped, 1.0 - 0.998f64.powi(2), c.sent);
            assert!(c.failed == 0 && c.dropped > 50);
            assert_eq!(seen.server.open, seen.result.whole.open);
        },
    );
}

#[test]
fn a_refused_dial_is_not_tried_again() {
    check(
        |f| f.refuse = 100_000,
        |seen| {
            let c = &seen.result.whole.counts;
            assert_eq!(seen.result.faults(), [(Stage::Dial, Kind::Refused, c.failed)]);
            assert_about(c.failed, 0.1, N);
            assert_eq!((c.dropped, seen.server.accepted), (0, c.opened));
        },
    );
}

#[test]
fn silent_connections_are_given_up_after_the_timeout() {
    check(
        |f| f.half_open = 50_000,
        |seen| {
            let c = &seen.result.whole.counts;
            assert_eq!(seen.result.faults(), [(Stage::Exchange, Kind::Timeout, c.dropped)]);
            assert_about(c.dropped, 0.05, N);
            assert_eq!((c.failed, c.sent - c.answered), (0, c.dropped));
            // Five seconds after the last of them was opened, all are gone.
            assert!(seen.result.held == seen.result.whole.open);
        },
    );
}

#[test]
fn a_dial_without_a_syn_ack_times_out() {
    check(
        |f| f.loss = 900_000,
        |seen| {
            let c = &seen.result.whole.counts;
            let at = |s, k| seen.result.faults().iter().find(|f| (f.0, f.1) == (s, k)).map_or(0, |f| f.2);
            assert_eq!(at(Stage::Dial, Kind::Timeout), c.failed);
            // SYNs at 0, 1 and 3 s, each lost with a probability of 90 %; responses to those that arrived are lost too.
            assert!(c.failed as f64 > 0.7 * N as f64 && c.opened > 0, "{} failed", c.failed);
        },
    );
}

#[test]
fn everything_at_once_keeps_the_laws() {
    check(
        |f| {
            f.delay = (Nanos::from_millis(1), Nanos::from_millis(300));
            (f.loss, f.reset, f.refuse, f.half_open) = (50_000, 3_000, 20_000, 20_000);
            (f.split, f.window, f.backlog) = (true, 3_000, 20);
        },
        |seen| {
            let c = &seen.result.whole.counts;
            let stages: Vec<_> = seen.result.faults().iter().map(|f| (f.0, f.1)).collect();
            for expected in [
                (Stage::Dial, Kind::Refused),
                (Stage::Exchange, Kind::Reset),
                (Stage::Exchange, Kind::Timeout),
            ] {
                assert!(stages.contains(&expected), "{stages:?}");
            }
            assert!(c.answered > N && story_is_plausible(seen), "{c:?}");
        },
    );
}

/// The server has all connections that the client holds open.
fn story_is_plausible(Seen { result, server }: &Seen) -> bool {
    server.open >= result.whole.open && server.requests >= result.whole.counts.answered
}

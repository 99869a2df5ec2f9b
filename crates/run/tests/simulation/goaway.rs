//! A server that ends an HTTP/2 session while requests cross with its GOAWAY.

use net::{Shard, io::sim::SimIo};
use samples::{Kind, Stage, Verdict};
use stage::{RunResult, listening, measured, network, plan, play};
use units::Nanos;
use wire::http2::Code;

use crate::http2_listener::{Http2Listener, Received, Reply};

/// One-way delay of the network.
const WAY: Nanos = Nanos::from_millis(1);

fn run(
    flags: &str,
    script: impl Fn(&Received) -> Vec<Reply> + 'static,
) -> (RunResult, Http2Listener, (Verdict, Vec<String>)) {
    serve(flags, Http2Listener::new(true, script))
}

fn serve(flags: &str, server: Http2Listener) -> (RunResult, Http2Listener, (Verdict, Vec<String>)) {
    let net = network(1, |f| f.delay = (WAY, WAY));
    let plan = plan("http://127.0.0.1:80/", &format!("http2= {flags}"), 1);
    let mut server: Shard<SimIo, Http2Listener> = listening(&net, plan.destinations()[0], 1_000, server);
    let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
    let judged = result.judge(&plan);
    let server = std::mem::replace(server.program(), Http2Listener::new(true, |_| vec![]));
    (result, server, (judged.verdict, judged.reasons))
}

fn ok() -> Reply {
    Reply::Response(200, vec![], "hello".to_owned())
}

/// Responds to three requests on each connection; the fourth crosses with the GOAWAY. The server closes the connection at once, or leaves
/// that to the client.
fn three(received: &Received, code: Code, closes: bool) -> Vec<Reply> {
    match received.stream {
        1 | 3 | 5 => vec![ok()],
        7 if closes => vec![Reply::GoawayAt(5, code), Reply::Close],
        7 => vec![Reply::GoawayAt(5, code)],
        _ => vec![],
    }
}

#[test]
fn what_crosses_with_the_goaway_is_sent_on_the_next_connection() {
    for flags in ["think=0s", "think=0s streams=4", "think=30ms", "rate=10/s streams=4"] {
        for closes in [false, true] {
            let (result, server, (verdict, reasons)) =
                run(&format!("connections=2 duration=5s {flags}"), move |received| {
                    three(received, Code::NO_ERROR, closes)
                });
            let c = &result.whole.counts;
            assert_eq!((result.faults(), c.dropped, c.missed), (vec![], 0, 0), "{flags} {closes}: {c:?}");
            assert_eq!(verdict, Verdict::Pass, "{flags} {closes}: {reasons:?} {c:?}");
            // Three responses on each connection, except those closed after the end.
            assert!(c.redialled > 10 && c.answered >= 3 * (c.closed - 2), "{flags} {closes}: {c:?}");
            assert!(c.withdrawn >= c.closed - 2, "{flags} {closes}: {c:?}");
            let accepted = server.by_connection().len() as u64;
            assert!(accepted - (c.opened + c.redialled) <= 2, "{flags} {closes}: {accepted} {c:?}");
            assert_eq!(c.sent, c.answered + c.withdrawn + c.unanswered, "{flags} {closes}: {c:?}");
        }
    }
}

/// The session has free streams, but is not used any more.
#[test]
fn a_session_that_ends_while_it_acts_on_requests_takes_no_more_of_a_rate() {
    for (last, withdrawn) in [(5, 0), (3, 3)] {
        // Requests that the server acts on get no response, and end with their timeout.
        let (result, server, _) = run(
            "connections=3 rate=40/s streams=5 duration=5s timeout=500ms",
            move |received| match received.stream {
                5 => vec![Reply::GoawayAt(last, Code::NO_ERROR)],
                _ => vec![],
            },
        );
        let c = &result.whole.counts;
        // Only those sent before the GOAWAY arrived.
        assert!(server.received.iter().all(|received| received.stream <= 9), "{c:?}");
        assert!(c.redialled >= 9 && c.withdrawn >= withdrawn && c.sent > 30, "{c:?}");
    }
}

#[test]
fn a_number_of_requests_is_reached_over_such_ends() {
    for streams in [1, 4] {
        for closes in [false, true] {
            let flags = format!("connections=2 requests=100 think=0s streams={streams}");
            let (result, _, (verdict, reasons)) =
                run(&flags, move |received| three(received, Code::NO_ERROR, closes));
            let c = &result.whole.counts;
            assert_eq!((c.sent - c.withdrawn, c.answered), (100, 100), "{flags} {closes}: {c:?}");
            assert_eq!(verdict, Verdict::Pass, "{flags} {closes}: {reasons:?} {c:?}");
        }
    }
}

/// Its second connection gets the first response of its slot, which therefore counts as served.
#[test]
fn a_connection_that_is_ended_before_its_first_response_is_served_by_the_next() {
    let (result, _, (verdict, reasons)) = run("connections=10 duration=5s think=0s", |received| {
        if received.conn < 5 { vec![Reply::GoawayAt(0, Code::NO_ERROR), Reply::Close] } else { vec![ok()] }
    });
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.redialled, result.whole.served), (10, 5, 10), "{c:?}");
    assert_eq!(verdict, Verdict::Pass, "{reasons:?} {c:?}");
}

/// The wait for the end of the first connection and for the next one is part of the latency.
#[test]
fn what_is_sent_again_has_been_due_since_before() {
    let (result, ..) =
        run("connections=1 duration=5s think=0s", |received| three(received, Code::NO_ERROR, true));
    let latency = measured(&result.whole.latency);
    // One in three responses is to a request that was sent twice, after a GOAWAY of 17 bytes, a dial and a preface.
    assert!(latency.p50 * 1.5 < latency.p90, "{latency:?}");
}

/// A server that acts on no request, on any connection.
#[test]
fn it_is_sent_again_once() {
    for streams in [1, 4] {
        let (result, server, _) =
            run(&format!("connections=2 duration=5s think=0s streams={streams}"), |received| {
                (received.stream == 1).then_some(Reply::GoawayAt(0, Code::NO_ERROR)).into_iter().collect()
            });
        let c = &result.whole.counts;
        assert_eq!((c.closed, c.dropped, c.answered, result.whole.open), (2, 2, 0, 0), "{c:?}");
        assert!(
            result.faults().iter().all(|(stage, kind, _)| (*stage, *kind) == (Stage::Exchange, Kind::Closed))
        );
        assert_eq!(server.by_connection().len(), 4);
    }
}

/// With an error it is not a planned close, even if all requests have a response: without `reconnect` the connection is not redialled.
#[test]
fn an_error_is_a_fault_with_its_name() {
    for streams in [1, 4] {
        let flags = format!("connections=2 duration=5s think=0s streams={streams}");
        let (result, _, (verdict, reasons)) =
            run(&flags, |received| three(received, Code::ENHANCE_YOUR_CALM, true));
        let c = &result.whole.counts;
        assert_eq!(result.faults(), [(Stage::Hold, Kind::Closed, 2)], "{streams}: {c:?}");
        assert_eq!((c.answered, c.dropped, c.closed, c.redialled), (6, 2, 0, 0), "{streams}: {c:?}");
        // Requests that the server did not act on have not failed.
        assert_eq!(c.sent, 6 + c.withdrawn, "{streams}: {c:?}");
        // They are missed together with their connection, whose fault is not counted as another error.
        assert_eq!((c.missed, c.connection_faults), (c.withdrawn, 0), "{streams}: {c:?}");
        assert_eq!(verdict, Verdict::Fail);
        let named = "2 connections were lost: closed by the peer (ENHANCE_YOUR_CALM)".to_owned();
        assert!(reasons.contains(&named), "{reasons:?}");
    }
    let (result, ..) = run("connections=2 duration=5s think=0s reconnect=10ms", |received| {
        three(received, Code::INTERNAL_ERROR, false)
    });
    let c = &result.whole.counts;
    assert!(c.redialled > 10 && c.dropped >= c.redialled && c.closed <= 2, "{c:?}");
}

/// SETTINGS_MAX_CONCURRENT_STREAMS = 0.
const NO_STREAMS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\0";

/// Between requests, or with an outstanding one: the connection is of no further use.
#[test]
fn a_server_that_allows_no_streams_any_more_ends_the_session() {
    for flags in ["think=200ms", "think=0s", "think=0s streams=4", "rate=10/s"] {
        let (result, ..) =
            run(&format!("connections=2 duration=5s {flags}"), |received| match received.stream {
                3 => vec![ok(), Reply::Settings(NO_STREAMS)],
                _ => vec![ok()],
            });
        let c = &result.whole.counts;
        assert_eq!((result.faults(), c.dropped, c.answered), (vec![], 0, c.sent), "{flags}: {c:?}");
        assert!(c.redialled > 4 && c.withdrawn == 0, "{flags}: {c:?}");
    }
}

#[test]
fn a_server_that_allows_no_streams_from_the_start_is_no_session() {
    let server = Http2Listener::new(true, |_| vec![ok()]).with_preface(NO_STREAMS);
    let (result, server, _) = serve("connections=2 duration=5s think=0s timeout=1s", server);
    assert_eq!(result.faults(), [(Stage::Handshake, Kind::Timeout, 2)]);
    assert!(server.received.is_empty());
}

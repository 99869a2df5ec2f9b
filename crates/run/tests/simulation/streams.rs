//! Servers that allow fewer streams per connection than requested: SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113, section 6.5.2).

use net::{Shard, io::sim::SimIo};
use samples::{StreamLimit, Summary, Verdict};

use crate::http2_listener::{Http2Listener, Received, Reply};
use stage::{RunResult, listening, network, plan, play, scenario};

/// SETTINGS with such a limit.
const THREE: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x03";
const TWO: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x02";
const NONE: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\0";
/// The same, with extended CONNECT (RFC 8441).
const THREE_WEBSOCKETS: &[u8] = b"\0\0\x0c\x04\0\0\0\0\0\0\x03\0\0\0\x03\0\x08\0\0\0\x01";
/// SETTINGS without a limit.
const UNLIMITED: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

fn serve(
    target: &str,
    flags: &str,
    preface: &'static [u8],
    script: impl Fn(&Received) -> Vec<Reply> + 'static,
) -> (RunResult, Summary) {
    let net = network(1, |_| {});
    let http2 = if target.starts_with("grpc:") { "" } else { "http2=" };
    let plan = plan(target, &format!("{http2} connections=2 {flags}"), 1);
    let server = Http2Listener::new(true, script).with_preface(preface);
    let mut server: Shard<SimIo, Http2Listener> = listening(&net, plan.destinations()[0], 1_000, server);
    let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
    let summary = result.judge(&plan);
    (result, summary)
}

fn check(
    flags: &str,
    preface: &'static [u8],
    script: impl Fn(&Received) -> Vec<Reply> + 'static,
    expected: Option<(u64, u64)>,
) {
    let (result, s) = serve("http://127.0.0.1:80/", flags, preface, script);
    let limit = expected.map(|(wanted, allowed)| StreamLimit { wanted, allowed });
    assert_eq!(result.whole.streams_allowed, limit.map(|limit| limit.allowed), "{flags}");
    assert_eq!(s.streams, limit, "{flags}");
    assert!(s.populations.values().all(|own| own.streams == limit), "{flags}");
    let expected: Vec<String> = limit.iter().map(|limit| format!("note: {}", limit.sentence())).collect();
    let notes: Vec<&String> = s.reasons.iter().filter(|reason| reason.starts_with("note: ")).collect();
    assert_eq!(notes, expected.iter().collect::<Vec<_>>(), "{flags}");
    assert_eq!(s.verdict, Verdict::Pass, "{flags}: {:?}", s.reasons);
    assert!(result.whole.counts.answered > 4, "{flags}");
}

fn ok(_: &Received) -> Vec<Reply> {
    vec![Reply::Response(200, vec![], "hello".to_owned())]
}

#[test]
fn fewer_streams_than_wanted_are_reported() {
    const LOOP: &str = "duration=5s think=0s";
    check(&format!("{LOOP} streams=4"), THREE, ok, Some((4, 3)));
    check(&format!("{LOOP} streams=4"), TWO, ok, Some((4, 2)));
    check("duration=5s rate=10/s streams=250", TWO, ok, Some((250, 2)));
    // As many streams as allowed, no limit, and one request at a time.
    check(&format!("{LOOP} streams=3"), THREE, ok, None);
    check(&format!("{LOOP} streams=4"), UNLIMITED, ok, None);
    check(&format!("{LOOP} streams=1"), TWO, ok, None);
}

#[test]
fn the_smallest_limit_is_reported_and_none_at_all_is_an_end() {
    let later = |settings: &'static [u8]| {
        move |received: &Received| match received.stream {
            3 => [ok(received), vec![Reply::Settings(settings)]].concat(),
            _ => ok(received),
        }
    };
    let flags = "duration=5s think=0s streams=4";
    check(flags, UNLIMITED, later(THREE), Some((4, 3)));
    check(flags, THREE, later(TWO), Some((4, 2)));
    check(flags, TWO, later(THREE), Some((4, 2)));
    let (result, s) = serve("http://127.0.0.1:80/", flags, UNLIMITED, later(NONE));
    assert_eq!((result.whole.streams_allowed, s.streams), (None, None));
    assert!(result.whole.counts.closed > 2, "it ends connections");
}

#[test]
fn websockets_of_a_connection_are_fewer_too() {
    let script = |received: &Received| match received.line.starts_with("CONNECT") {
        true => vec![Reply::Response(200, vec![], String::new())],
        false => vec![],
    };
    let flags = "duration=2s ping=1s streams=8";
    let (result, s) = serve("ws://127.0.0.1:80/", flags, THREE_WEBSOCKETS, script);
    assert_eq!((result.whole.counts.opened, result.whole.streams_allowed), (2, Some(3)));
    assert_eq!(s.streams, Some(StreamLimit { wanted: 8, allowed: 3 }));
    let note = "note: the server allows 3 streams on a connection; --streams 8 was reduced to 3";
    assert!(s.reasons.contains(&note.to_owned()), "{:?}", s.reasons);
}

/// Ten connections for 2 s, then half of them for 4 s. `keys`: top-level keys of the scenario.
fn serve_fewer(keys: &str, script: impl Fn(&Received) -> Vec<Reply> + 'static) -> (RunResult, Summary) {
    let stages = "[[stage]]\nfor = \"2s\"\n[[stage]]\nto = \"50%\"\nfor = \"4s\"\n";
    let text = format!("{keys}\n{stages}[[population]]\nname = \"a\"\nconnections = 10\n");
    let (net, plan) = (network(1, |_| {}), scenario(&text, 1));
    let mut server = listening(&net, plan.destinations()[0], 1_000, Http2Listener::new(false, script));
    let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
    let summary = result.judge(&plan);
    (result, summary)
}

const HTTP2: &str = "target = \"http://127.0.0.1:80/\"\nhttp2 = true";

/// Concurrent requests do not keep a surplus connection open.
#[test]
fn fewer_connections_are_held_while_others_have_several_requests_under_way() {
    let (result, s) = serve_fewer(&format!("{HTTP2}\nstreams = 3"), ok);
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.finished, result.held, result.faults()), (10, 5, 5, vec![]), "{c:?}");
    // The others continue with as many requests at a time.
    assert!((s.requests.per_s * s.latency_us.mean / 1e6 - 20.0).abs() < 8.0, "{:?}", s.requests);
}

/// Nor do requests that end without a response.
#[test]
fn fewer_connections_are_held_also_where_requests_time_out() {
    for streams in [1, 3] {
        let keys = format!("{HTTP2}\nstreams = {streams}\ntimeout = \"700ms\"");
        let (result, _) = serve_fewer(&keys, |_| vec![]);
        let c = &result.whole.counts;
        assert_eq!((c.opened, c.finished, result.held), (10, 5, 5), "{streams}: {c:?}");
    }
}

/// A message, and then silence.
fn quiet(_: &Received) -> Vec<Reply> {
    vec![Reply::Begun("application/grpc", b"\0\0\0\0\x02hi")]
}

#[test]
fn all_calls_of_a_connection_that_stay_open_end_with_the_load() {
    for streams in [1, 2, 4] {
        let flags = format!("server-streaming= streams={streams} duration=9s timeout=20s");
        let (result, s) = serve("grpc://127.0.0.1:80/a.B/C", &flags, UNLIMITED, quiet);
        let c = &result.whole.counts;
        assert_eq!((c.sent, c.revoked, c.messages), (2 * streams, 2 * streams, 2 * streams), "{c:?}");
        assert_eq!((result.faults(), s.verdict), (vec![], Verdict::Pass), "{streams}: {:?}", s.reasons);
        // The silence until the end of the load counts as a gap.
        assert_eq!(s.gap_us.count, 2 * streams);
        assert!(s.gap_us.min > 7e6, "{:?}", s.gap_us);
    }
}

/// The next message did not arrive in time, which counts as a gap as long as the timeout.
#[test]
fn a_gap_that_a_timeout_ends_is_one() {
    let (result, s) =
        serve("grpc://127.0.0.1:80/a.B/C", "server-streaming= timeout=2s duration=3s", UNLIMITED, quiet);
    let failed = result.whole.counts.failed_requests;
    assert!(failed >= 2, "{:?}", result.whole.counts);
    // Calls cut off by the end of the load have gaps as long as they were open.
    assert_eq!(s.gap_us.count, 2 * failed, "{failed} failed: {:?}", s.gap_us);
    assert!((2e6..2.01e6).contains(&s.gap_us.max) && s.gap_us.min < 1.1e6, "{:?}", s.gap_us);
}

#[test]
fn calls_that_stay_open_end_with_their_connection_where_fewer_are_wanted() {
    let keys = "target = \"grpc://127.0.0.1:80/a.B/C\"\nserver-streaming = true\nstreams = 2";
    let (result, _) = serve_fewer(keys, quiet);
    let c = &result.whole.counts;
    assert_eq!((c.finished, c.revoked, result.held, result.faults()), (5, 20, 5, vec![]), "{c:?}");
}

#[test]
fn a_response_of_another_type_is_none_of_grpc() {
    let html = |_: &Received| vec![Reply::Begun("text/html", b"\0\0\0\0\x02hi")];
    let (result, s) = serve("grpc://127.0.0.1:80/a.B/C", "requests=6", UNLIMITED, html);
    let faults = result.faults();
    assert_eq!(faults, [(samples::Stage::Exchange, samples::Kind::BadAnswer, 6)]);
    assert_eq!((result.whole.counts.answered, s.verdict), (0, Verdict::Fail));
}

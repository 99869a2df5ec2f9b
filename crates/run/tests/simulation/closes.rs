//! Everything that a server may do to a connection and to a response: what counts as a loss, and as which fault.

use net::Close::{Graceful, Reset};
use samples::{Kind, Stage, Verdict};
use stage::{
    RunResult, connections,
    fates::Killed,
    listening, measured, network, plan, play,
    scripted::{Act, Request, Script, Scripted, Then},
};
use units::Nanos;

const N: u64 = 10;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const OK_FOR_5S: &[u8] = b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 5\r\n\r\nhello";
const OK_AND_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

const fn act(send: &'static [u8], then: Then) -> Act {
    Act { send, then }
}

/// A correct response; the connection stays open.
const RIGHT: Act = act(OK, Then::Stay);
const SOON: Nanos = Nanos::from_millis(300);

/// The outcome of a run.
struct Outcome {
    result: RunResult,
    server: Scripted,
}

/// Runs ten connections (unless `flags` say otherwise) in two shards against a scripted server.
fn run(flags: &str, script: Script) -> Outcome {
    let flags =
        format!("connections={N} think=1s duration=10s timeout=2s expect=status=200,length=5 {flags}");
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.1:80/", &flags, 1);
    let at = plan.destinations()[0];
    let mut server = listening(&net, at, connections(&plan) + 64, Scripted::new(script));
    let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
    let server = std::mem::replace(server.program(), Scripted::new(script));
    assert_eq!(server.requests, result.whole.counts.sent, "all requests have arrived");
    Outcome { result, server }
}

/// Each connection meets the same fault once; whether it is lost by that.
fn check(script: Script, fault: (Stage, Kind), lost: bool) {
    let Outcome { result, server } = run("", script);
    let c = &result.whole.counts;
    assert_eq!(result.faults(), [(fault.0, fault.1, N)]);
    let dropped = if lost { N } else { 0 };
    assert_eq!((c.opened, c.dropped, c.closed, c.redialled), (N, dropped, 0, 0), "{fault:?}");
    assert_eq!((result.whole.open, server.accepted_at.len() as u64), (N - dropped, N), "{fault:?}");
}

/// A script that treats the second request like this, and all others correctly.
macro_rules! second {
    ($send:expr, $then:expr) => {
        |request: Request| if request.nth == 1 { act($send, $then) } else { RIGHT }
    };
}

#[test]
fn wrong_responses_are_faults_and_the_connection_lasts() {
    use Kind::{WrongLength, WrongStatus};
    let exchange = |kind| (Stage::Exchange, kind);
    check(
        second!(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello", Then::Stay),
        exchange(WrongStatus),
        false,
    );
    check(
        second!(b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello", Then::Stay),
        exchange(WrongStatus),
        false,
    );
    check(
        second!(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell", Then::Stay),
        exchange(WrongLength),
        false,
    );
    check(
        second!(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!", Then::Stay),
        exchange(WrongLength),
        false,
    );
    check(second!(b"HTTP/1.1 204 No Content\r\n\r\n", Then::Stay), exchange(WrongStatus), false);
    // A response that is wrong in both ways counts once.
    check(
        second!(b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno", Then::Stay),
        exchange(WrongStatus),
        false,
    );
}

#[test]
fn broken_responses_lose_the_connection() {
    use Kind::{BadAnswer, Truncated};
    let exchange = |kind| (Stage::Exchange, kind);
    check(second!(b"GARBAGE\r\n\r\n", Then::Stay), exchange(BadAnswer), true);
    check(
        second!(b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", Then::Stay),
        exchange(BadAnswer),
        true,
    );
    check(
        second!(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world", Then::Stay),
        exchange(BadAnswer),
        true,
    );
    check(
        second!(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Then::Close(Graceful)),
        exchange(Truncated),
        true,
    );
    check(
        second!(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            Then::Close(Graceful)
        ),
        exchange(Truncated),
        true,
    );
    check(
        second!(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Then::Close(Reset)),
        exchange(Kind::Reset),
        true,
    );
}

#[test]
fn unannounced_ends_lose_the_connection() {
    let (exchange, hold) = (|kind| (Stage::Exchange, kind), |kind| (Stage::Hold, kind));
    check(second!(b"", Then::Stay), exchange(Kind::Timeout), true);
    check(second!(b"", Then::Close(Graceful)), exchange(Kind::Closed), true);
    check(second!(b"", Then::Close(Reset)), exchange(Kind::Reset), true);
    check(second!(b"HTTP/1.1 200 OK\r\nContent-Le", Then::Stay), exchange(Kind::Timeout), true);
    check(
        second!(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Then::Stay),
        exchange(Kind::Timeout),
        true,
    );
    check(second!(OK, Then::CloseAfter(SOON, Graceful)), hold(Kind::Closed), true);
    check(second!(OK, Then::CloseAfter(SOON, Reset)), hold(Kind::Reset), true);
    check(second!(OK, Then::SendAfter(SOON, b"surprise")), hold(Kind::BadAnswer), true);
    // The close was announced for five seconds later, not for now.
    check(second!(OK_FOR_5S, Then::CloseAfter(SOON, Graceful)), hold(Kind::Closed), true);
    // Closed at once, after a response that did not announce it.
    check(second!(OK, Then::Close(Graceful)), hold(Kind::Closed), true);
}

#[test]
fn silence_counts_from_the_last_input() {
    let check = |script: Script, expected: Option<Nanos>| {
        let silence = run("", script).result.whole.silence;
        assert_eq!(silence.count(), if expected.is_some() { N } else { 0 });
        for q in [0.0, 1.0] {
            // Announced for 50 ms, part of which the network delay uses up.
            let (got, expected) = (silence.quantile(q), expected.unwrap_or_default());
            assert!(
                got.since(expected).max(expected.since(got)) <= Nanos::from_millis(60),
                "{got} {expected}"
            );
        }
    };
    check(second!(OK, Then::CloseAfter(SOON, Graceful)), Some(SOON));
    check(second!(OK_FOR_5S, Then::CloseAfter(SOON, Reset)), Some(SOON));
    // A request had just been sent: the idle time before is not the reason.
    check(second!(b"", Then::Close(Reset)), Some(Nanos::ZERO));
    // Given up by throng, not closed by the peer.
    check(second!(b"", Then::Stay), None);
}

#[test]
fn late_and_interim_responses_are_right() {
    let scripts: [Script; 3] = [
        |_| RIGHT,
        |_| {
            act(
                b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                Then::Stay,
            )
        },
        |_| act(b"HTTP/1.1 200 OK\r\nContent-Le", Then::SendAfter(SOON, b"ngth: 5\r\n\r\nhello")),
    ];
    for script in scripts {
        let Outcome { result, .. } = run("", script);
        let c = &result.whole.counts;
        assert_eq!((result.faults(), c.answered, result.whole.open), (vec![], c.sent, N));
        assert!(c.sent >= 8 * N);
    }
}

/// Announced closes: no faults, no losses, redialled for as long as requests are due. Returns the outcome.
fn check_announced(flags: &str, script: Script) -> Outcome {
    let outcome = run(flags, script);
    let c = &outcome.result.whole.counts;
    assert_eq!((outcome.result.faults(), c.dropped, c.failed, c.opened), (vec![], 0, 0, N), "{flags}");
    assert_eq!(c.answered + outcome.result.whole.counts.withdrawn, c.sent, "{flags}");
    assert_eq!(outcome.server.accepted_at.len() as u64, c.opened + c.redialled, "{flags}");
    outcome
}

/// The times at which the single connection is redialled.
fn gaps(outcome: &Outcome) -> Vec<f64> {
    outcome.server.accepted_at.windows(2).map(|w| w[1].since(w[0]).secs_f64()).collect()
}

#[test]
fn a_close_after_the_response_is_redialled_when_the_next_request_is_due() {
    let scripts: [Script; 4] = [
        |_| act(OK_AND_CLOSE, Then::Close(Graceful)),
        // Announced, and left to the client.
        |_| act(OK_AND_CLOSE, Then::Stay),
        // The end of the connection is the end of the response (RFC 9112, section 6.3).
        |_| act(b"HTTP/1.1 200 OK\r\n\r\nhello", Then::Close(Graceful)),
        |_| act(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", Then::Close(Graceful)),
    ];
    for script in scripts {
        let outcome = check_announced("", script);
        let c = &outcome.result.whole.counts;
        assert_eq!(
            (c.closed, c.redialled, outcome.result.whole.counts.withdrawn),
            (c.answered, c.answered - N, 0)
        );
        // One per second: at 0, 1, … 10 s.
        assert!((10 * N..=11 * N).contains(&c.answered), "{}", c.answered);
        assert_eq!(outcome.result.whole.open, 0);
    }
}

#[test]
fn a_closed_loop_dials_again_at_once() {
    let outcome = check_announced("think=0s duration=1s", |_| act(OK_AND_CLOSE, Then::Close(Graceful)));
    let c = &outcome.result.whole.counts;
    // A dial and a request: two round trips of 220 µs each, for a second.
    let expected = 1.0 / 440e-6 * N as f64;
    assert!((c.answered as f64 / expected - 1.0).abs() < 0.05, "{} answers, {expected:.0}", c.answered);
    // The dial is part of the latency of each request but the first.
    assert!(measured(&outcome.result.whole.latency).p50 > 400.0);
}

#[test]
fn the_end_of_a_keep_alive_timeout_is_announced() {
    let script: Script = |_| act(OK_FOR_5S, Then::CloseAfter(Nanos::from_secs(5), Graceful));
    // Idle for longer than the timeout: closed, and redialled after seven seconds each.
    let outcome = check_announced("connections=10 think=7s duration=30s", script);
    let c = &outcome.result.whole.counts;
    // At 0, 7, … 28 s; the last of these would be closed at 33 s.
    assert_eq!((c.answered, c.closed, c.redialled), (5 * N, 4 * N, 4 * N));
    assert_eq!((outcome.result.whole.counts.withdrawn, outcome.result.whole.open), (0, N));
    // Idle for less: never closed.
    let outcome = check_announced("think=4s duration=30s", script);
    let c = &outcome.result.whole.counts;
    assert_eq!((c.answered, c.closed, outcome.result.whole.open), (8 * N, 0, N));
}

/// The second request gets no response, and its connection is closed at the announced time: the request has failed. Only a request sent
/// when the server may close, and closed within a second, is sent again.
#[test]
fn a_request_that_hangs_until_the_announced_end_has_failed() {
    let hangs = |think: &str, script: Script| {
        let outcome = run(&format!("think={think} timeout=20s duration=9s"), script);
        let c = &outcome.result.whole.counts;
        assert_eq!((c.opened, c.answered, c.unanswered), (N, N, 0), "{c:?}");
        (outcome.result.faults(), c.failed_requests, c.withdrawn)
    };
    let failed = (vec![(Stage::Exchange, Kind::Closed, N)], N, 0);
    let long: Script = |request| match request.nth {
        0 => act(OK_FOR_5S, Then::Stay),
        _ => act(b"", Then::CloseAfter(Nanos::from_secs(6), Graceful)),
    };
    assert_eq!(hangs("1s", long), failed, "long after it was sent, before the end was announced for");
    let about_then: Script = |request| match request.nth {
        0 => act(OK_FOR_5S, Then::Stay),
        _ => act(b"", Then::CloseAfter(Nanos::from_secs(2), Graceful)),
    };
    assert_eq!(hangs("4500ms", about_then), failed, "sent about then, and received long before the close");
}

#[test]
fn a_redial_is_made_when_the_request_is_due() {
    let outcome = {
        let net = network(1, |_| {});
        let plan = plan("http://127.0.0.1:80/", "connections=1 think=7s duration=60s", 1);
        let script: Script = |_| act(OK_FOR_5S, Then::CloseAfter(Nanos::from_secs(5), Graceful));
        let mut server = listening(&net, plan.destinations()[0], 128, Scripted::new(script));
        let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
        Outcome { result, server: std::mem::replace(server.program(), Scripted::new(script)) }
    };
    let gaps = gaps(&outcome);
    assert_eq!(gaps.len(), 8);
    // Seven seconds after the response, on the next full millisecond.
    assert!(gaps.iter().all(|gap| (7.0..7.003).contains(gap)), "{gaps:?}");
}

#[test]
fn never_is_not_dialled_again() {
    let outcome = check_announced("reconnect=never", |_| act(OK_AND_CLOSE, Then::Close(Graceful)));
    let c = &outcome.result.whole.counts;
    assert_eq!((c.answered, c.closed, c.redialled, outcome.result.whole.open), (N, N, 0, 0));
}

/// The second request on each connection meets a close that was announced by then, and is retried on a new one.
#[test]
fn a_request_that_crosses_the_announced_close_is_sent_again() {
    let scripts: [Script; 2] = [
        |request| if request.nth == 1 { act(b"", Then::Close(Graceful)) } else { act(OK_FOR_5S, Then::Stay) },
        |request| if request.nth == 1 { act(b"", Then::Close(Reset)) } else { act(OK_FOR_5S, Then::Stay) },
    ];
    for script in scripts {
        let outcome = check_announced("think=6s duration=20s", script);
        let c = &outcome.result.whole.counts;
        // At 0, 6, 12 and 18 s; each but the first is sent twice.
        assert_eq!((c.answered, outcome.result.whole.counts.withdrawn), (4 * N, 3 * N));
        assert_eq!((c.closed, c.redialled), (3 * N, 3 * N));
        // The request has been due since before it was first sent.
        assert!(measured(&outcome.result.whole.latency).p50 > 600.0);
    }
}

/// An announcement on one connection does not apply to the next one.
#[test]
fn an_announcement_ends_with_its_connection() {
    let script: Script = |request| match (request.conn < N, request.nth) {
        (true, 0) => act(OK_FOR_5S, Then::CloseAfter(Nanos::from_secs(5), Graceful)),
        _ => act(b"", Then::Close(Graceful)),
    };
    let Outcome { result, .. } = run("think=6s duration=20s", script);
    let c = &result.whole.counts;
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Closed, N)]);
    assert_eq!((c.sent, c.answered, c.closed, c.redialled, c.dropped), (2 * N, N, N, N, N));
}

/// The server exits between an announced close and the redial.
#[test]
fn a_redial_that_is_refused_is_a_failed_dial() {
    let net = network(1, |f| f.refuse = 500_000);
    let plan = plan("http://127.0.0.1:80/", "connections=200 think=1s duration=10s", 1);
    let script: Script = |_| act(OK_AND_CLOSE, Then::Close(Graceful));
    let mut server = listening(&net, plan.destinations()[0], 300, Scripted::new(script));
    let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
    let c = &result.whole.counts;
    // Each is finally refused, after ten tosses of a coin.
    assert_eq!(result.faults(), [(Stage::Dial, Kind::Refused, c.failed)]);
    assert!(c.failed >= 199 && c.redialled > 50 && c.opened < 150, "{c:?}");
    assert_eq!((c.closed, c.dropped, result.whole.resolved), (c.opened + c.redialled, 0, 200));
}

/// If dials take long, some connections are between an announced close and their redial when the load ends. They are not losses, whatever
/// happens to them afterwards.
#[test]
fn connections_that_are_being_dialled_again_at_the_end_are_excused() {
    let mut between = 0;
    for seed in 0..20 {
        let net = network(seed, |f| f.delay = (Nanos::from_millis(20), Nanos::from_millis(40)));
        let plan = plan("http://127.0.0.1:80/", "connections=10 duration=2s timeout=2s", seed);
        let at = plan.destinations()[0];
        let script: Script = |_| act(OK_AND_CLOSE, Then::Close(Graceful));
        let mut server = listening(&net, at, 200, Scripted::new(script));
        let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
        let summary = result.judge(&plan);
        assert_eq!(summary.verdict, Verdict::Pass, "seed {seed}: {}", summary.headline);
        between += N - result.held;
    }
    assert!(between > 20, "{between} connections were not open at the end of the load");
}

/// The ticks of the shards end at different times.
#[test]
fn a_target_that_ends_in_the_ramp_had_all_connections_that_were_opened() {
    for (seed, at) in (1..).zip([1_070, 1_150, 1_201, 1_399]) {
        let net = network(seed, |faults| faults.delay = (Nanos::from_micros(50), Nanos::from_millis(30)));
        let plan = plan("http://127.0.0.1:80/", "connections=3k ramp=1k/s duration=2s", seed);
        let server = Scripted::new(|_| RIGHT);
        let mut server = listening(&net, plan.destinations()[0], connections(&plan) + 64, server);
        let mut killed = Killed::new(&net, &mut server, Nanos::from_millis(at));
        let result = play(&net, &plan, 3, &mut [&mut killed], |_, _| {});
        let (opened, peak) = (result.whole.counts.opened, result.judge(&plan).connections.peak);
        assert!(opened > 900 && peak.abs_diff(opened) <= opened / 50, "{at}: {peak} of {opened}");
    }
}

/// A slow server that does not respond to the third request, but closes about when it had announced that: what it has read counts as
/// received. Unread input it reports by a reset.
#[test]
fn a_slow_server_that_hangs_until_about_the_announced_end_has_failed() {
    const OK_FOR_1S: &[u8] = b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 5\r\n\r\nhello";
    const SLOW: Act = act(b"", Then::SendAfter(Nanos::from_millis(250), OK_FOR_1S));
    const fn after(ms: u64, close: net::Close) -> Act {
        act(b"", Then::CloseAfter(Nanos::from_millis(ms), close))
    }
    let check = |think: &str, script: Script, expected: (u64, u64)| {
        let outcome = run(&format!("think={think} duration=3s"), script);
        let c = &outcome.result.whole.counts;
        assert_eq!((c.failed_requests, c.withdrawn), expected, "{think}: {c:?}");
    };
    check("0s", |request| if request.nth == 2 { after(900, Graceful) } else { SLOW }, (N, 0));
    check("700ms", |request| if request.nth == 2 { after(300, Graceful) } else { SLOW }, (N, 0));
    check("700ms", |request| if request.nth == 2 { after(300, Reset) } else { SLOW }, (0, N));
}

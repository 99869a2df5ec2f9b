//! A server with one process per served connection, and a fixed number of processes: other connections wait in its queue until one of the
//! served ones closes.

use std::collections::VecDeque;

use net::{Cx, Gone, Io, Key, Program};
use run::By;
use samples::{Summary, Verdict};
use stage::{
    RunResult, connections, listening, network, plan, play,
    scripted::{Act, Request, Scripted, Then},
};
use units::{Count, Nanos};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
/// Maximum number of pending accepts: the kernel accepts all.
const ACCEPTS: u32 = 64;
/// Connections of each run, and the number served at a time.
const N: u64 = 20;
const PROCESSES: usize = 8;

#[derive(Default)]
struct Prefork {
    accepting: u32,
    served: Vec<Key>,
    queue: VecDeque<Key>,
    /// Requests without a response, by index.
    requests: Vec<u32>,
}

impl Prefork {
    fn serve<I: Io>(&mut self, cx: &mut Cx<I>) {
        while self.served.len() < PROCESSES
            && let Some(k) = self.queue.pop_front()
        {
            self.served.push(k);
        }
        for k in &self.served {
            for _ in 0..std::mem::take(&mut self.requests[k.index as usize]) {
                cx.send_static(*k, OK);
            }
        }
    }
}

impl Program for Prefork {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.accepting -= 1;
        let at = k.index as usize;
        self.requests.resize(self.requests.len().max(at + 1), 0);
        self.requests[at] = 0;
        self.queue.push_back(k);
        self.serve(cx);
    }

    fn due<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {}

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        // A client sends one request at a time, without content.
        assert!(input.ends_with(b"\r\n\r\n"), "one request at a time");
        self.requests[k.index as usize] += 1;
        self.serve(cx);
        input.len()
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, _: Gone) {
        self.served.retain(|own| *own != k);
        self.queue.retain(|own| *own != k);
        self.serve(cx);
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while self.accepting < ACCEPTS {
            assert!(cx.accept(), "the server has a place for everyone");
            self.accepting += 1;
        }
        Nanos::NEVER
    }
}

/// All requests get their response in time, since connections with nothing more to send are closed to make room.
fn check(flags: &str, shards: u32) -> RunResult {
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.1:80/", &format!("connections={N} {flags}"), 1);
    let places = connections(&plan) + ACCEPTS;
    let mut server = listening(&net, plan.destinations()[0], places, Prefork::default());
    let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
    let c = &result.whole.counts;
    assert_eq!((result.faults(), result.cut), (vec![], 0), "{flags} on {shards}");
    assert_eq!((c.answered, c.opened, c.finished, c.dropped), (c.sent, N, 0, 0), "{flags} on {shards}");
    assert!(c.ended_after >= N - PROCESSES as u64, "{flags} on {shards}: {c:?}");
    // They were held until then.
    assert_eq!(result.judge(&plan).connections.held, N, "{flags} on {shards}");
    result
}

#[test]
fn those_that_wait_at_the_end_have_their_response() {
    for shards in [1, 4] {
        for flags in ["duration=2s", "duration=2s think=100ms", "duration=2s rate=100/s"] {
            check(flags, shards);
        }
    }
}

/// Dials `n` connections at once as a search step. Returns the summary, and why it fails.
fn burst(n: u64) -> (Summary, Vec<String>) {
    let net = network(1, |_| {});
    let flags = format!("connections={n} ramp=0s think=30s..90s probe=20/s duration=2s");
    let plan = plan("http://127.0.0.1:80/", &flags, 1);
    let places = plan.places() + ACCEPTS;
    let mut server = listening(&net, plan.destinations()[0], places, Prefork::default());
    let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
    let summary = run::judge_step(&plan, &result.record, By::Burst.judged(), false, None);
    let reasons = run::reasons(By::Burst, n, &summary, None);
    (summary, reasons)
}

/// The end of a burst makes room for connections that waited all the time, including the probe's.
#[test]
fn what_only_the_end_of_a_burst_serves_fails_a_search() {
    let (s, reasons) = burst(N);
    let why = "no probe had a correct response at full load".to_owned();
    assert!(s.verdict == Verdict::Fail && reasons.contains(&why), "{reasons:?}");
    assert_eq!(s.probe.expect("there is one").held_us.count, 0);
    // There is room for all of these and for the probe's.
    let (s, reasons) = burst(4);
    assert_eq!((s.verdict, &reasons[..]), (Verdict::Pass, &[][..]));
    assert!(s.probe.expect("there is one").held_us.count > 30);
}

/// Also by shards whose connections have all waited until then.
#[test]
fn a_number_of_requests_is_sent_by_all() {
    for shards in [1, 4, 20] {
        for flags in ["requests=2k", "requests=200 rate=1k/s"] {
            let c = check(flags, shards).whole.counts;
            let expected = if flags == "requests=2k" { 2_000 } else { 200 };
            assert_eq!((c.sent, c.missed), (expected, 0), "{flags} on {shards}");
        }
    }
}

/// A run whose connections are redialled.
fn redialled(program: impl Program) -> (RunResult, Summary) {
    let net = network(1, |_| {});
    let flags = format!("connections={N} think=10ms duration=4s timeout=1s reconnect=100ms");
    let plan = plan("http://127.0.0.1:80/", &flags, 1);
    let mut server = listening(&net, plan.destinations()[0], 4 * ACCEPTS, program);
    let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
    assert_eq!(result.whole.counts.opened, N);
    let summary = result.judge(&plan);
    (result, summary)
}

#[test]
fn those_that_are_dialled_again_in_vain_are_named() {
    let (result, s) = redialled(Prefork::default());
    let c = &result.whole.counts;
    assert!(c.redialled > 20 && result.whole.served == PROCESSES as u64, "{c:?}");
    let seen = format!(
        "12 of 20 connections had no response by the end of the load, while the other 8 had {} at full load",
        Count(c.answered_at_load)
    );
    assert!(s.reasons.contains(&seen), "{:?}", s.reasons);
    let limit = s.limit.expect("something is the reason");
    assert_eq!((limit.cause.name(), limit.at_connections), ("connection-limit", 8), "{limit:?}");
}

#[test]
fn those_that_are_served_when_they_are_dialled_again_are_not() {
    let script = |Request { conn, .. }| match conn {
        0..10 => Act { send: b"", then: Then::Stay },
        _ => Act { send: OK, then: Then::Stay },
    };
    let (result, s) = redialled(Scripted::new(script));
    let c = &result.whole.counts;
    assert_eq!((c.dropped, c.redialled, result.whole.served), (10, 10, N), "{c:?}");
    assert!(s.reasons.iter().all(|why| !why.contains("by the end of the load")), "{:?}", s.reasons);
    assert_ne!(s.limit.map(|limit| limit.cause.name()), Some("connection-limit"));
}

/// Even after the last request has begun: all are served at a time, a few of them slowly.
#[test]
fn a_slow_first_response_is_no_wait_for_room() {
    let script = |Request { conn, nth }| {
        let is_slow = conn < 4 && nth == 0;
        let after = Nanos::from_millis(if is_slow { 1_200 } else { 20 });
        Act { send: b"", then: Then::SendAfter(after, OK) }
    };
    let net = network(1, |_| {});
    // The requests of the other 16 take 0.9 s.
    let plan = plan("http://127.0.0.1:80/", "connections=20 requests=724", 1);
    let places = connections(&plan) + ACCEPTS;
    let mut server = listening(&net, plan.destinations()[0], places, Scripted::new(script));
    let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
    let (c, s) = (&result.whole.counts, result.judge(&plan));
    assert_eq!((c.answered, c.ended_after, result.whole.served), (724, 0, 20), "{c:?}");
    assert_eq!(s.verdict, Verdict::Pass, "{:?}", s.reasons);
}

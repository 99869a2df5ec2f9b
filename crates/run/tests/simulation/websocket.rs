//! WebSocket, and raw TCP with a message: as many echoes as the schedule implies, each compared with what was sent, and everything that a
//! server may do instead.

use std::{cell::RefCell, rc::Rc};

use net::{Close, Cx, Gone, Io, Key, Program};
use samples::{Kind, Stage};
use stage::{RunResult, connections, listening, measured, network, plan, play, servers, turns};
use units::Nanos;
use wire::websocket::{Event, Frames, Role, accept_key};

/// Runs against two shards of the reference server.
fn run(flags: &str, seed: u64) -> (RunResult, serve::Stats) {
    let net = network(seed, |_| {});
    let plan = plan("ws://127.0.0.{1..3}:8000/ws/echo?{rand 1 9}", flags, seed);
    let at = "0.0.0.0:8000".parse().unwrap();
    let (mut servers, counters) = servers(&net, at, 2, connections(&plan));
    let mut turns = turns(&mut servers);
    let result = play(&net, &plan, 4, &mut turns, |_, _| {});
    assert!(result.faults().is_empty(), "{:?}", result.faults());
    (result, counters.read())
}

#[test]
fn echoes_follow_the_schedule() {
    const N: u64 = 6_000;
    let (result, server) = run("connections=6k ping=10s message=hello duration=2m", 5);
    let c = &result.whole.counts;
    assert_eq!((c.opened, result.held, result.peak, c.failed, c.dropped, c.closed), (N, N, N, 0, 0, 0));
    // Each connection sends a message every 10 s, the first one after a random part of that: T / 10 s messages in time T on average. The
    // deviation over all connections is less than √N.
    let expected = N as f64 * result.hold_until.secs_f64() / 10.0;
    assert!(
        (c.sent as f64 - expected).abs() < 2.0 * (N as f64).sqrt(),
        "{} sent, {expected:.0} expected",
        c.sent
    );
    assert!(result.ramped_at < Nanos::from_secs(1), "the time above counts from the first dial");
    // The server counts upgrades too.
    assert_eq!((c.sent, c.answered, c.body_bytes_in), (server.requests - N, c.sent, 5 * c.sent));
    assert_eq!((c.bytes_in, c.bytes_out), (server.bytes_out, server.bytes_in));
    assert_eq!((server.open, server.accepted, server.errors), (N, N, 0));
    let latency = measured(&result.whole.latency);
    assert!((latency.mean / 220.0 - 1.0).abs() < 0.02 && latency.max <= 400.0, "{latency:?}");
    result.assert_on_time();
    assert_eq!(result.whole.status.iter().sum::<u64>(), 0, "an upgrade is no answer");
}

#[test]
fn control_pings_are_timed_by_their_pongs() {
    let (result, server) = run("connections=300 ping=1s message= duration=20s", 6);
    let c = &result.whole.counts;
    assert!(c.answered > 300 * 19 && c.answered == c.sent, "{c:?}");
    assert_eq!((c.body_bytes_in, server.requests), (0, c.sent + 300));
}

#[test]
fn without_a_pause_the_next_message_follows_the_echo() {
    let (result, _) = run("connections=50 ping=0 duration=2s", 3);
    let per_s =
        result.whole.counts.answered_at_load as f64 / result.hold_until.since(result.hold_from).secs_f64();
    assert!((per_s / (50.0 / 220e-6) - 1.0).abs() < 0.01, "{per_s:.0} messages a second");
    result.assert_on_time();
    // The latency of an echo starts when its message was due; echoes of the hold are counted there.
    let latency = measured(&result.whole.latency);
    assert!(latency.count.abs_diff(result.whole.counts.answered_at_load) <= 100, "{latency:?}");
    assert!((latency.p50 / 220.0 - 1.0).abs() < 0.01 && latency.max < 1e3, "{latency:?}");
}

/// The behaviour of a scripted server.
#[derive(Clone, Copy)]
struct Script {
    /// Its response to an upgrade; `{accept}` stands for the correct key.
    welcome: &'static str,
    /// Its reply to the nth message on a connection.
    replies: fn(u64) -> &'static [u8],
    closes: bool,
}

const WELCOME: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
Sec-WebSocket-Accept: {accept}\r\n\r\n";

/// Its input other than messages.
#[derive(Debug, Default, PartialEq)]
struct Received {
    pongs: Vec<Vec<u8>>,
    closes: Vec<Option<u16>>,
}

struct Server {
    script: Script,
    accepting: u32,
    /// The state of each connection after its upgrade, and its messages so far.
    conns: Vec<(Option<Frames>, u64)>,
    received: Rc<RefCell<Received>>,
}

impl Server {
    fn welcome<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let head = String::from_utf8(input.to_vec()).unwrap();
        assert!(head.ends_with("\r\n\r\n"), "a whole head and no more: {head}");
        let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
        let accept = accept_key(key.as_bytes());
        let text = self.script.welcome.replace("{accept}", str::from_utf8(&accept).unwrap());
        if !text.is_empty() {
            cx.send(k, text.len(), |out| {
                out[..text.len()].copy_from_slice(text.as_bytes());
                text.len()
            });
        }
        self.conns[k.index as usize].0 = Some(Frames::new(Role::Server));
        if self.script.closes {
            cx.finish(k);
        }
        input.len()
    }
}

impl Program for Server {
    fn opened<I: Io>(&mut self, _: &mut Cx<I>, k: Key) {
        self.accepting -= 1;
        let at = k.index as usize;
        self.conns.resize(self.conns.len().max(at + 1), (None, 0));
        self.conns[at] = (None, 0);
    }

    fn due<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {}

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let (Some(frames), nth) = &mut self.conns[k.index as usize] else {
            return self.welcome(cx, k, input);
        };
        let mut used = 0;
        loop {
            match frames.handle_bytes(&input[used..], 1000).unwrap() {
                (0, None) => return used,
                (n, event) => {
                    used += n;
                    match event {
                        Some(Event::Data(data)) if data.ends => {
                            let replies = (self.script.replies)(*nth);
                            *nth += 1;
                            if !replies.is_empty() {
                                cx.send_static(k, replies);
                            }
                        }
                        Some(Event::Pong(pong)) => {
                            self.received.borrow_mut().pongs.push(pong.bytes().collect())
                        }
                        Some(Event::Closing(closing)) => {
                            self.received.borrow_mut().closes.push(closing.code);
                            cx.close(k, Close::Graceful);
                            return input.len();
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: Gone) {}

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while self.accepting < 10 && cx.accept() {
            self.accepting += 1;
        }
        Nanos::NEVER
    }
}

/// Ten connections for five seconds, with one `ping` and its echo per second.
fn against(script: Script) -> (RunResult, Received) {
    against_load(script, "connections=10 ping=1s duration=5s timeout=2s")
}

fn against_load(script: Script, flags: &str) -> (RunResult, Received) {
    let net = network(9, |_| {});
    let plan = plan("ws://127.0.0.1:8000/", flags, 9);
    let received = Rc::new(RefCell::default());
    let server = Server { script, accepting: 0, conns: Vec::new(), received: received.clone() };
    let mut server = listening(&net, plan.destinations()[0], 100, server);
    let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
    (result, received.take())
}

const GOOD: Script = Script { welcome: WELCOME, replies: |_| b"\x81\x04ping", closes: false };

/// Checks that all are held, without faults.
fn check_right(what: &str, replies: fn(u64) -> &'static [u8]) -> Received {
    let (result, received) = against(Script { replies, ..GOOD });
    let c = &result.whole.counts;
    assert_eq!((result.faults(), result.held, c.dropped, c.closed), (vec![], 10, 0, 0), "{what}");
    assert!(c.sent >= 45 && c.answered == c.sent, "{what}: {c:?}");
    received
}

#[test]
fn valid_server_behaviour() {
    check_right("an echo", |_| b"\x81\x04ping");
    check_right("a message of its own", |_| b"\x81\x04ping\x81\x03new");
    check_right("parts of one, around the echo of the next", |n| match n {
        0 => b"\x81\x04ping\x01\x03new",
        _ => b"\x80\x03est\x81\x04ping\x01\x03new",
    });
    let received =
        check_right("an echo in fragments, and a ping between them", |_| b"\x01\x02pi\x89\x01x\x80\x02ng");
    assert!(received.pongs.len() >= 45 && received.pongs.iter().all(|pong| pong == b"x"), "{received:?}");
}

/// A pong and the next message are sent in one call, in either order, and so are several pongs: they leave as one segment, as the
/// simulator asserts for every call.
#[test]
fn sends_of_one_call_leave_as_one_segment() {
    let orders: [fn(u64) -> &'static [u8]; 3] = [
        |_| b"\x89\x01x\x81\x04ping",
        |_| b"\x81\x04ping\x89\x01x",
        |_| b"\x89\x01x\x01\x02pi\x89\x01x\x80\x02ng\x89\x01x",
    ];
    for replies in orders {
        let pings = replies(0).windows(3).filter(|three| *three == b"\x89\x01x").count() as u64;
        let (result, received) =
            against_load(Script { replies, ..GOOD }, "connections=10 ping=0 duration=1s timeout=2s");
        let c = &result.whole.counts;
        assert_eq!((result.faults(), result.held, c.dropped), (vec![], 10, 0));
        assert!(c.sent > 1_000 && c.answered == c.sent, "{c:?}");
        let pongs = received.pongs.len() as u64;
        // At the end a pong may reach a server that is gone.
        assert!(
            pongs <= pings * c.answered && pongs + 10 * pings >= pings * c.answered,
            "{pongs} of {pings} each: {c:?}"
        );
        assert!(received.pongs.iter().all(|pong| pong == b"x"));
    }
}

/// Checks the faults with their counts, and (failed, dropped).
fn check_wrong(what: &str, script: Script, stage: Stage, kind: Kind, (failed, dropped): (u64, u64)) {
    let (result, _) = against(script);
    let c = &result.whole.counts;
    assert_eq!((c.failed, c.dropped, c.closed), (failed, dropped, 0), "{what}");
    let wrong = if failed + dropped > 0 { 10 } else { c.answered };
    assert_eq!(result.faults(), [(stage, kind, wrong)], "{what}");
}

#[test]
fn invalid_server_behaviour() {
    let replies = |replies| Script { replies, ..GOOD };
    let welcomes = |welcome| Script { welcome, ..GOOD };
    let wrong = |what, script| check_wrong(what, script, Stage::Exchange, Kind::WrongEcho, (0, 0));
    wrong("another text", replies(|_| b"\x81\x04pong"));
    wrong("more than was sent", replies(|_| b"\x81\x05pings"));
    wrong("less", replies(|_| b"\x81\x03pin"));
    let lost = |what, replies_, kind| check_wrong(what, replies(replies_), Stage::Exchange, kind, (0, 10));
    lost("silence", |_| b"", Kind::Timeout);
    lost("a masked frame", |_| b"\x81\x84\0\0\0\0ping", Kind::BadAnswer);
    let refused = |what, script, kind| check_wrong(what, script, Stage::Handshake, kind, (10, 0));
    refused(
        "no such place",
        welcomes("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        Kind::WrongStatus,
    );
    refused("an echo of HTTP", welcomes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Kind::WrongStatus);
    let stale = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    refused("the answer to another key", welcomes(stale), Kind::BadAnswer);
    refused("no HTTP at all", welcomes("SSH-2.0-OpenSSH_9\r\n\r\n"), Kind::BadAnswer);
    refused("no answer", welcomes(""), Kind::Timeout);
    refused("a close instead", Script { welcome: "", closes: true, ..GOOD }, Kind::Closed);
}

#[test]
fn a_closing_handshake_is_no_loss() {
    // The first message of each connection gets a reply, the second one a close: it is sent again on the next connection.
    let replies: fn(u64) -> &'static [u8] = |n| if n == 0 { b"\x81\x04ping" } else { b"\x88\x05\x03\xe9bye" };
    let (result, received) = against(Script { replies, ..GOOD });
    let c = &result.whole.counts;
    assert_eq!((result.faults(), c.failed, c.dropped), (vec![], 0, 0));
    assert!(c.closed >= 35 && c.closed == c.redialled && result.held == 10, "{c:?}");
    assert_eq!(received.closes, vec![Some(1001); c.closed as usize], "the code comes back");
    assert_eq!((c.answered, result.whole.counts.withdrawn), (c.sent - c.closed, c.closed));
}

#[test]
fn a_closing_handshake_with_an_error_is_a_loss() {
    // The first message of each connection gets a reply, the second one a close because of an internal error.
    let replies: fn(u64) -> &'static [u8] = |n| if n == 0 { b"\x81\x04ping" } else { b"\x88\x05\x03\xf3bye" };
    let (result, received) = against(Script { replies, ..GOOD });
    let c = &result.whole.counts;
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Closed, 10)]);
    assert_eq!((c.sent, c.answered, c.dropped, c.closed, result.held), (20, 10, 10, 0, 0), "{c:?}");
    assert_eq!(received.closes, [Some(1011); 10], "the code comes back");
    let names = |result: &RunResult| -> Vec<_> {
        result.whole.faults.iter().map(|(fault, _)| fault.detail.name()).collect()
    };
    assert_eq!(names(&result), ["1011 internal error"]);
    // 4401, an application's code: no message is sent again.
    let (result, received) = against(Script { replies: |_| b"\x88\x05\x11\x31bye", ..GOOD });
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Closed, 10)]);
    assert_eq!((result.whole.counts.sent, names(&result)), (10, vec!["4401 of the application".to_owned()]));
    assert_eq!(received.closes, [Some(4401); 10]);
}

#[test]
fn a_close_instead_of_a_response_is_a_fault_the_second_time() {
    let (result, _) = against(Script { replies: |_| b"\x88\x05\x03\xe9bye", ..GOOD });
    let c = &result.whole.counts;
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Closed, 10)]);
    assert!(result.whole.faults.iter().all(|(fault, _)| fault.detail == samples::Detail::ANNOUNCED));
    // Each was sent, withdrawn, sent again on a new connection, and lost with that.
    assert_eq!((c.sent, c.withdrawn, c.answered, c.dropped, c.closed), (20, 10, 0, 10, 10), "{c:?}");
}

/// Echoes its input.
struct Echo;

impl Program for Echo {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, _: Key) {
        cx.accept();
    }
    fn due<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {}
    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        cx.send(k, input.len(), |out| {
            out[..input.len()].copy_from_slice(input);
            input.len()
        });
        input.len()
    }
    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: Gone) {}
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        if cx.taken() == 0 {
            cx.accept();
        }
        Nanos::NEVER
    }
}

#[test]
fn raw_tcp_echoes_too() {
    let net = network(4, |_| {});
    let plan = plan("tcp://127.0.0.1:8000", "connections=100 ping=1s message=hello duration=10s", 4);
    let mut server = listening(&net, plan.destinations()[0], 200, Echo);
    let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
    let c = &result.whole.counts;
    assert_eq!((result.faults(), result.held, c.answered), (vec![], 100, c.sent));
    assert!((c.sent as i64 - 1010).abs() < 40, "{} messages", c.sent);
    assert_eq!((c.bytes_in, c.bytes_out, c.body_bytes_in), (5 * c.sent, 5 * c.sent, 5 * c.sent));
}

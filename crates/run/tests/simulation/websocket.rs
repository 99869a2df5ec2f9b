//! WebSocket and raw TCP with a message: as many echoes as the schedule asks for, each held against what was sent,
//! and everything that a server may do about it.

use std::{cell::RefCell, rc::Rc};

use net::{Close, Cx, Gone, Io, Key, Program, io::sim::Turn};
use samples::{Kind, Stage};
use units::Nanos;
use wire::websocket::{Event, Frames, Role, accept_key};

use crate::stage::{Story, connections, listening, measured, network, plan, play, servers};

/// One run against two shards of the reference server.
fn run(words: &str, seed: u64) -> (Story, serve::Stats) {
    let net = network(seed, |_| {});
    let plan = plan("ws://127.0.0.{1..3}:8000/ws/echo?{rand 1 9}", words, seed);
    let at = "0.0.0.0:8000".parse().unwrap();
    let (mut servers, counters) = servers(&net, at, 2, connections(&plan));
    let mut turns: Vec<&mut dyn Turn> = servers.iter_mut().map(|s| s as &mut dyn Turn).collect();
    let story = play(&net, &plan, 4, &mut turns, |_, _| {});
    assert!(story.faults().is_empty(), "{:?}", story.faults());
    (story, counters.read())
}

#[test]
fn echoes_come_as_often_as_the_schedule_says() {
    const N: u64 = 6_000;
    let (story, server) = run("connections=6k ping=10s message=hello duration=2m", 5);
    let c = &story.whole.counts;
    assert_eq!((c.opened, story.held, story.peak, c.failed, c.dropped, c.closed), (N, N, N, 0, 0, 0));
    // Each connection says something each 10 s, the first time after a random part of that: in time T it does so
    // T / 10 s times in the mean, and of all connections together the deviation is less than √N.
    let expected = N as f64 * story.hold_until.secs_f64() / 10.0;
    assert!(
        (c.sent as f64 - expected).abs() < 2.0 * (N as f64).sqrt(),
        "{} sent, {expected:.0} expected",
        c.sent
    );
    assert!(story.ramped_at < Nanos::from_secs(1), "the time above counts from the first dial");
    // The server counts upgrades too.
    assert_eq!((c.sent, c.answered, c.body_bytes_in), (server.requests - N, c.sent, 5 * c.sent));
    assert_eq!((c.bytes_in, c.bytes_out), (server.bytes_out, server.bytes_in));
    assert_eq!((server.open, server.accepted, server.errors), (N, N, 0));
    let latency = measured(&story.whole.latency);
    assert!((latency.mean / 220.0 - 1.0).abs() < 0.02 && latency.max <= 400.0, "{latency:?}");
    story.assert_on_time();
    assert_eq!(story.whole.status.iter().sum::<u64>(), 0, "an upgrade is no answer");
}

#[test]
fn control_pings_are_timed_by_their_pongs() {
    let (story, server) = run("connections=300 ping=1s message= duration=20s", 6);
    let c = &story.whole.counts;
    assert!(c.answered > 300 * 19 && c.answered == c.sent, "{c:?}");
    assert_eq!((c.body_bytes_in, server.requests), (0, c.sent + 300));
}

#[test]
fn without_a_pause_the_next_message_follows_the_echo() {
    let (story, _) = run("connections=50 ping=0 duration=2s", 3);
    let per_s =
        story.whole.counts.answered_at_load as f64 / story.hold_until.since(story.hold_from).secs_f64();
    assert!((per_s / (50.0 / 220e-6) - 1.0).abs() < 0.01, "{per_s:.0} messages a second");
    story.assert_on_time();
    // Each echo from its own moment, and those of the hold counted there.
    let latency = measured(&story.whole.latency);
    assert!(latency.count.abs_diff(story.whole.counts.answered_at_load) <= 100, "{latency:?}");
    assert!((latency.p50 / 220.0 - 1.0).abs() < 0.01 && latency.max < 1e3, "{latency:?}");
}

/// What a scripted server does.
#[derive(Clone, Copy)]
struct Script {
    /// What it says to the request for an upgrade; `{accept}` stands for the right key.
    welcome: &'static str,
    /// What it says to the nth message, counted over each connection.
    says: fn(u64) -> &'static [u8],
    closes: bool,
}

const WELCOME: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
Sec-WebSocket-Accept: {accept}\r\n\r\n";

/// What it heard besides messages.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    pongs: Vec<Vec<u8>>,
    closes: Vec<Option<u16>>,
}

struct Server {
    script: Script,
    accepting: u32,
    /// The machine of each connection once it is upgraded, and its messages so far.
    conns: Vec<(Option<Frames>, u64)>,
    heard: Rc<RefCell<Heard>>,
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
                            let says = (self.script.says)(*nth);
                            *nth += 1;
                            if !says.is_empty() {
                                cx.send_static(k, says);
                            }
                        }
                        Some(Event::Pong(pong)) => self.heard.borrow_mut().pongs.push(pong.bytes().collect()),
                        Some(Event::Closing(closing)) => {
                            self.heard.borrow_mut().closes.push(closing.code);
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

/// Ten connections for five seconds, a message a second, `ping` and its echo.
fn against(script: Script) -> (Story, Heard) {
    against_load(script, "connections=10 ping=1s duration=5s timeout=2s")
}

fn against_load(script: Script, words: &str) -> (Story, Heard) {
    let net = network(9, |_| {});
    let plan = plan("ws://127.0.0.1:8000/", words, 9);
    let heard = Rc::new(RefCell::default());
    let server = Server { script, accepting: 0, conns: Vec::new(), heard: heard.clone() };
    let mut server = listening(&net, plan.destinations()[0], 100, server);
    let story = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
    (story, heard.take())
}

const GOOD: Script = Script { welcome: WELCOME, says: |_| b"\x81\x04ping", closes: false };

/// All are held, and nothing is wrong.
fn check_right(what: &str, says: fn(u64) -> &'static [u8]) -> Heard {
    let (story, heard) = against(Script { says, ..GOOD });
    let c = &story.whole.counts;
    assert_eq!((story.faults(), story.held, c.dropped, c.closed), (vec![], 10, 0, 0), "{what}");
    assert!(c.sent >= 45 && c.answered == c.sent, "{what}: {c:?}");
    heard
}

#[test]
fn what_a_server_may_do() {
    check_right("an echo", |_| b"\x81\x04ping");
    check_right("a message of its own", |_| b"\x81\x04ping\x81\x03new");
    check_right("parts of one, around the echo of the next", |n| match n {
        0 => b"\x81\x04ping\x01\x03new",
        _ => b"\x80\x03est\x81\x04ping\x01\x03new",
    });
    let heard =
        check_right("an echo in fragments, and a ping between them", |_| b"\x01\x02pi\x89\x01x\x80\x02ng");
    assert!(heard.pongs.len() >= 45 && heard.pongs.iter().all(|pong| pong == b"x"), "{heard:?}");
}

/// A pong and the next message are sent in one call, in either order, and several pongs too: they leave as one, as the
/// simulator asserts of every call.
#[test]
fn what_a_call_sends_leaves_as_one() {
    let orders: [fn(u64) -> &'static [u8]; 3] = [
        |_| b"\x89\x01x\x81\x04ping",
        |_| b"\x81\x04ping\x89\x01x",
        |_| b"\x89\x01x\x01\x02pi\x89\x01x\x80\x02ng\x89\x01x",
    ];
    for says in orders {
        let pings = says(0).windows(3).filter(|three| *three == b"\x89\x01x").count() as u64;
        let (story, heard) =
            against_load(Script { says, ..GOOD }, "connections=10 ping=0 duration=1s timeout=2s");
        let c = &story.whole.counts;
        assert_eq!((story.faults(), story.held, c.dropped), (vec![], 10, 0));
        assert!(c.sent > 1_000 && c.answered == c.sent, "{c:?}");
        let pongs = heard.pongs.len() as u64;
        // At the end a pong may meet a server that has gone.
        assert!(
            pongs <= pings * c.answered && pongs + 10 * pings >= pings * c.answered,
            "{pongs} of {pings} each: {c:?}"
        );
        assert!(heard.pongs.iter().all(|pong| pong == b"x"));
    }
}

/// Faults with their counts, and (failed, dropped).
fn check_wrong(what: &str, script: Script, stage: Stage, kind: Kind, (failed, dropped): (u64, u64)) {
    let (story, _) = against(script);
    let c = &story.whole.counts;
    assert_eq!((c.failed, c.dropped, c.closed), (failed, dropped, 0), "{what}");
    let wrong = if failed + dropped > 0 { 10 } else { c.answered };
    assert_eq!(story.faults(), [(stage, kind, wrong)], "{what}");
}

#[test]
fn what_a_server_must_not_do() {
    let says = |says| Script { says, ..GOOD };
    let welcomes = |welcome| Script { welcome, ..GOOD };
    let wrong = |what, script| check_wrong(what, script, Stage::Exchange, Kind::WrongEcho, (0, 0));
    wrong("another text", says(|_| b"\x81\x04pong"));
    wrong("more than was sent", says(|_| b"\x81\x05pings"));
    wrong("less", says(|_| b"\x81\x03pin"));
    let lost = |what, says_, kind| check_wrong(what, says(says_), Stage::Exchange, kind, (0, 10));
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
    // The first message of each connection is answered, the second one by a close: it is sent again on the next.
    let says: fn(u64) -> &'static [u8] = |n| if n == 0 { b"\x81\x04ping" } else { b"\x88\x05\x03\xe9bye" };
    let (story, heard) = against(Script { says, ..GOOD });
    let c = &story.whole.counts;
    assert_eq!((story.faults(), c.failed, c.dropped), (vec![], 0, 0));
    assert!(c.closed >= 35 && c.closed == c.redialled && story.held == 10, "{c:?}");
    assert_eq!(heard.closes, vec![Some(1001); c.closed as usize], "the code comes back");
    assert_eq!((c.answered, story.whole.counts.withdrawn), (c.sent - c.closed, c.closed));
}

#[test]
fn a_close_instead_of_a_response_is_a_fault_the_second_time() {
    let (story, _) = against(Script { says: |_| b"\x88\x05\x03\xe9bye", ..GOOD });
    let c = &story.whole.counts;
    assert_eq!(story.faults(), [(Stage::Exchange, Kind::Closed, 10)]);
    // Each was sent, withdrawn, sent again on a connection of its own, and lost with that.
    assert_eq!((c.sent, c.withdrawn, c.answered, c.dropped, c.closed), (20, 10, 0, 10, 10), "{c:?}");
}

/// Sends back what comes.
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
    let story = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
    let c = &story.whole.counts;
    assert_eq!((story.faults(), story.held, c.answered), (vec![], 100, c.sent));
    assert!((c.sent as i64 - 1010).abs() < 40, "{} messages", c.sent);
    assert_eq!((c.bytes_in, c.bytes_out, c.body_bytes_in), (5 * c.sent, 5 * c.sent, 5 * c.sent));
}

//! Concurrent requests on a connection, with a protocol made for these tests ([`crate::protocol::streams`]).

use std::collections::BTreeMap;

use net::Io;
use samples::{Kind, Stage};
use units::{Nanos, Rate};

use super::{Instead, MS, Outcome, Output, Serve, WAY, plan, run};
use crate::protocol::{
    Protocol,
    streams::{HEADER, KEEPALIVE, PLACES, read_header, write},
};

/// The request on which the script decides: its number, and its number on its connection, both from 0.
#[derive(Clone, Copy, Debug)]
struct Request {
    nth: u64,
    of_connection: u64,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    EchoAfter(Nanos),
    /// An echo, and an unsolicited message.
    EchoAndPush,
    Ignore,
    /// Closes the connection after this time.
    CloseAfter(Nanos),
}

struct Scripted {
    script: fn(Request) -> Act,
    /// Whether it replies to keepalives.
    is_alive: bool,
    requests: u64,
    pushed: u64,
    cancelled: u64,
    /// Keepalives received, and replies to its keepalives.
    keepalives: u64,
    replies: u64,
    /// Most concurrent requests on a connection, and most that came in one read.
    most_at_once: usize,
    most_together: usize,
}

impl Scripted {
    fn new(script: fn(Request) -> Act) -> Scripted {
        Scripted {
            script,
            is_alive: true,
            requests: 0,
            pushed: 0,
            cancelled: 0,
            keepalives: 0,
            replies: 0,
            most_at_once: 0,
            most_together: 0,
        }
    }

    fn act(&mut self, conn: &mut Conn, number: u16, text: &[u8], now: Nanos) {
        let request = Request { nth: self.requests, of_connection: conn.requests };
        (self.requests, conn.requests) = (self.requests + 1, conn.requests + 1);
        let mut later = |at, bytes| {
            conn.later.insert((at, request.nth), bytes);
        };
        match (self.script)(request) {
            Act::EchoAfter(wait) => later(now + wait, Some((number, text.to_vec()))),
            Act::EchoAndPush => {
                self.pushed += 1;
                later(now, Some((number, text.to_vec())));
                conn.pushes.extend([frame(2, b"news"), frame(0, b"?")].concat());
            }
            Act::Ignore => {}
            Act::CloseAfter(wait) => later(now + wait, None),
        }
    }
}

type Echo = (u16, Vec<u8>);

#[derive(Default)]
struct Conn {
    requests: u64,
    /// What to send when: the stream and its text; `None`: close.
    later: BTreeMap<(Nanos, u64), Option<Echo>>,
    /// What to send with the next response.
    pushes: Vec<u8>,
    under_way: Vec<u16>,
}

fn frame(number: u16, text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + text.len()];
    write(number, text, &mut bytes);
    bytes
}

impl Serve for Scripted {
    type Conn = Conn;

    fn read<I: Io>(&mut self, conn: &mut Conn, input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        let (mut used, mut together) = (0, 0);
        while let Some((length, number)) = read_header(&input[used..])
            && let Some(text) = input[used + HEADER..].get(..length)
        {
            used += HEADER + length;
            match (number, text) {
                (0, b"?") => {
                    self.keepalives += 1;
                    if self.is_alive {
                        out.send(&frame(0, b"!"));
                    }
                }
                (0, text) => {
                    assert_eq!(text, b"!");
                    self.replies += 1;
                }
                (number, b"") => {
                    self.cancelled += 1;
                    conn.under_way.retain(|its| *its != number);
                }
                (number, text) => {
                    together += 1;
                    conn.under_way.push(number);
                    self.most_at_once = self.most_at_once.max(conn.under_way.len());
                    self.act(conn, number, text, out.now());
                }
            }
        }
        self.most_together = self.most_together.max(together);
        self.due(conn, out);
        used
    }

    fn due<I: Io>(&mut self, conn: &mut Conn, out: &mut Output<'_, I>) {
        while let Some(first) = conn.later.first_entry()
            && first.key().0 <= out.now()
        {
            match first.remove() {
                None => return out.close(),
                Some((number, text)) => {
                    // In two frames and an empty one.
                    let (a, b) = text.split_at(text.len() / 2);
                    let frames = [frame(number, a), std::mem::take(&mut conn.pushes), frame(number, b)];
                    out.send(&[frames.concat(), frame(number, b"")].concat());
                    conn.under_way.retain(|its| *its != number);
                }
            }
        }
        if let Some(((at, _), _)) = conn.later.first_key_value() {
            out.wake_at(*at);
        }
    }
}

/// Runs the load of these lines; every message is distinct, and replies are checked against it.
fn against(lines: &str, rate: Option<u32>, hold: Nanos, server: &mut Scripted) -> Outcome {
    let rate_line = rate.map_or(String::new(), |rate| format!("rate = \"{rate}/s\"\n"));
    let text = format!(
        "target = \"tcp://127.0.0.1:80\"\n[[population]]\nname = \"a\"\n{rate_line}{lines}\n\
         [[population.step]]\nsend = \"message {{seq}}\"\nexpect = {{ echo = true }}\n"
    );
    let instead = Instead { protocol: Some(Protocol::Streams), ..Instead::default() };
    let outcome = run(&plan(&text), rate.map(Rate::per_s), hold, instead, server);
    outcome.obey_the_laws();
    outcome
}

#[test]
fn as_many_requests_are_under_way_as_there_are_places() {
    // Replies to later requests come first.
    let mut server = Scripted::new(|request| Act::EchoAfter(MS(40 - 10 * (request.nth % 4))));
    let outcome = against("connections = 3", None, MS(1_000), &mut server);
    let c = &outcome.tick.counts;
    assert_eq!((outcome.faults(), outcome.held, c.answered), (vec![], 3, c.sent));
    assert_eq!((server.most_at_once, server.requests), (PLACES, c.sent));
    assert_eq!(server.most_together, PLACES, "what is due at once leaves as one");
    // Four at a time, 27 ms each on average: Little's law.
    let per_s = outcome.tick.counts.answered_at_load as f64;
    assert!((per_s / (3.0 * 4.0 / 0.027) - 1.0).abs() < 0.1, "{per_s} in a second");
}

#[test]
fn each_is_timed_from_when_it_was_due() {
    // One of them takes half a second, on the only connection.
    let slow = |request: Request| Act::EchoAfter(if request.nth == 50 { MS(500) } else { MS(3) });
    let mut server = Scripted::new(slow);
    let outcome = against("connections = 1", Some(100), MS(2_000), &mut server);
    let c = &outcome.tick.counts;
    assert_eq!((outcome.faults(), c.sent, c.answered, c.missed), (vec![], 200, 200, 0));
    let latency = outcome.tick.latency.quantiles();
    let slowest = MS(500) + WAY + WAY;
    assert!((latency.max / (slowest.0 as f64 / 1e3) - 1.0).abs() < 0.01, "{latency:?}");
    let expected = (199.0 * 5_000.0 + 502_000.0) / 200.0;
    assert!((latency.mean / expected - 1.0).abs() < 0.01, "{latency:?}, {expected} expected");
}

#[test]
fn without_a_place_a_request_waits_and_is_timed_from_when_it_was_due() {
    // Four places of 102 ms each carry 39 of the 50 requests a second that are due.
    let mut server = Scripted::new(|_| Act::EchoAfter(MS(100)));
    let outcome = against("connections = 1", Some(50), MS(2_000), &mut server);
    let c = &outcome.tick.counts;
    assert_eq!((outcome.faults(), c.sent + c.missed, server.most_at_once), (vec![], 100, PLACES));
    let latency = outcome.tick.latency.quantiles();
    assert!(latency.max > 400e3 && latency.p50 > 200e3, "{latency:?}");
}

#[test]
fn connections_take_turns_with_their_places() {
    let mut server = Scripted::new(|request| {
        assert!(request.of_connection < 11, "a connection with more requests than the others");
        Act::EchoAfter(MS(35))
    });
    let outcome = against("connections = 10", Some(100), MS(1_000), &mut server);
    let c = &outcome.tick.counts;
    assert_eq!((outcome.faults(), c.sent, c.answered, c.missed), (vec![], 100, 100, 0));
}

#[test]
fn one_times_out_while_the_others_go_on() {
    for rate in [None, Some(100)] {
        let script = |request: Request| if request.nth == 20 { Act::Ignore } else { Act::EchoAfter(MS(20)) };
        let mut server = Scripted::new(script);
        let outcome = against("connections = 1\ntimeout = \"400ms\"", rate, MS(2_000), &mut server);
        let c = &outcome.tick.counts;
        assert_eq!(outcome.faults(), [(Stage::Exchange, Kind::Timeout, 1)], "{rate:?}");
        assert_eq!((c.dropped, outcome.held, c.answered, c.unanswered), (0, 1, c.sent - 1, 0), "{c:?}");
        assert_eq!((server.cancelled, server.requests), (1, c.sent));
    }
}

#[test]
fn outstanding_requests_fail_with_their_connection() {
    let script = |request: Request| match request.nth {
        7 => Act::CloseAfter(MS(10)),
        _ => Act::EchoAfter(MS(100)),
    };
    let mut server = Scripted::new(script);
    let outcome = against("connections = 1", None, MS(1_000), &mut server);
    let c = &outcome.tick.counts;
    assert_eq!(outcome.faults(), [(Stage::Exchange, Kind::Closed, PLACES as u64)]);
    assert_eq!((c.sent, c.answered, c.dropped, outcome.held), (8, 4, 1, 0), "{c:?}");
}

#[test]
fn an_unsolicited_message_is_counted_as_one() {
    let mut server = Scripted::new(|_| Act::EchoAndPush);
    let outcome = against("connections = 2", Some(50), MS(1_000), &mut server);
    let c = &outcome.tick.counts;
    assert_eq!((outcome.faults(), c.sent, c.answered, c.pushed), (vec![], 50, 50, 50));
    assert_eq!((server.pushed, server.replies), (50, 50), "one keepalive of the server each time");
}

#[test]
fn the_protocols_own_timeouts_come_between_requests() {
    // A request every three seconds, a keepalive every two.
    let mut server = Scripted::new(|_| Act::EchoAfter(MS(3)));
    let outcome = against("connections = 1\nthink = \"3s\"", None, MS(14_000), &mut server);
    let c = &outcome.tick.counts;
    assert_eq!((outcome.faults(), c.answered, outcome.held), (vec![], c.sent, 1));
    // The first response came after 6 ms, and each request is due 3 s after the previous response.
    assert_eq!((c.sent, server.keepalives), (5, (Nanos::from_secs(20).0 / KEEPALIVE.0)), "{c:?}");
    assert_eq!(outcome.tick.lag.max(), Nanos::ZERO);
}

#[test]
fn a_server_that_is_not_there_is_lost() {
    let mut server = Scripted { is_alive: false, ..Scripted::new(|_| Act::EchoAfter(MS(3))) };
    let outcome = against("connections = 1\nthink = \"30s\"", None, MS(14_000), &mut server);
    let c = &outcome.tick.counts;
    assert_eq!(outcome.faults(), [(Stage::Hold, Kind::Timeout, 1)]);
    assert_eq!((c.sent, c.answered, c.dropped, server.keepalives), (1, 1, 1, 1), "{c:?}");
}

//! Keep-alive PINGs beside requests, against a scripted HTTP/2 server.

use std::collections::HashMap;

use net::Io;
use samples::{Kind, Stage};
use units::{Nanos, Rate};
use wire::http2::{
    Connection, Context, Event, Response, Role, SERVER_PREFACE, SETTINGS_ACK, Scratch, Stream, write_pong,
    write_response_fields,
};

use super::{Instead, MS, Outcome, Output, Serve, WAY, plan, run};

/// Room for a response.
const ROOM: usize = 256;

type Payload = [u8; 8];

struct Scripted {
    /// Time until a response.
    wait: Nanos,
    /// The payload with which a PING is acknowledged, if at all.
    acknowledge: fn(Payload) -> Option<Payload>,
    /// When PINGs came.
    pings: Vec<Nanos>,
    requests: u64,
    scratch: Scratch,
}

impl Scripted {
    fn new(wait: Nanos, acknowledge: fn(Payload) -> Option<Payload>) -> Scripted {
        Scripted { wait, acknowledge, pings: vec![], requests: 0, scratch: Scratch::new() }
    }
}

#[derive(Default)]
struct Conn {
    connection: Option<Connection>,
    streams: HashMap<u32, Stream>,
    /// When responses are due on which streams, in this order.
    later: Vec<(Nanos, u32)>,
}

impl Serve for Scripted {
    type Conn = Conn;

    fn read<I: Io>(&mut self, conn: &mut Conn, input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        let Conn { connection, streams, later } = conn;
        let connection = connection.get_or_insert_with(|| {
            out.send(SERVER_PREFACE);
            Connection::new(Role::Server)
        });
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let id = connection.reads(rest);
            let context =
                Context { scratch: &mut self.scratch, table: None, second: 0, expected: &[], fields: None };
            let read = connection.handle_bytes(rest, streams.get_mut(&id), context);
            let (n, event) = read.expect("a client that keeps to the RFC");
            used += n;
            match event {
                None if n == 0 => break,
                Some(Event::Opened | Event::Settings) => out.send(SETTINGS_ACK),
                Some(Event::Ping(payload)) => {
                    self.pings.push(out.now());
                    if let Some(payload) = (self.acknowledge)(payload) {
                        let mut frame = [0; ROOM];
                        let length = write_pong(&mut frame, payload).expect("room");
                        out.send(&frame[..length]);
                    }
                }
                Some(Event::Request(_, stream)) => {
                    self.requests += 1;
                    streams.insert(id, stream);
                    later.push((out.now() + self.wait, id));
                }
                _ => {}
            }
        }
        self.due(conn, out);
        used
    }

    fn due<I: Io>(&mut self, conn: &mut Conn, out: &mut Output<'_, I>) {
        let Conn { connection: Some(connection), streams, later } = conn else { return };
        while let Some((at, id)) = later.first().copied() {
            if at > out.now() {
                return out.wake_at(at);
            }
            later.remove(0);
            let mut stream = streams.remove(&id).expect("it was requested");
            let (mut block, mut frame) = ([0; ROOM], [0; ROOM]);
            let response = Response { status: 200, content_type: "", content_length: None };
            let length = write_response_fields(&mut block, &response).expect("room");
            let length = connection.write_headers(&mut frame, &mut stream, &block[..length], true);
            out.send(&frame[..length.expect("room")]);
        }
    }
}

/// A run of one connection with these keys, whose server responds after `wait`.
fn against(keys: &str, rate: Option<u32>, hold: Nanos, server: &mut Scripted) -> Outcome {
    let rate_line = rate.map_or(String::new(), |rate| format!("rate = \"{rate}/s\"\n"));
    let text = format!(
        "target = \"http://127.0.0.1:80/\"\n[[population]]\nname = \"a\"\nhttp2 = true\nconnections = 1\n\
         {rate_line}{keys}\n"
    );
    let outcome = run(&plan(&text), rate.map(Rate::per_s), hold, Instead::default(), server);
    outcome.obey_the_laws();
    outcome
}

/// Checks that all PINGs are acknowledged and none counts as a request; returns their number.
fn check(keys: &str, rate: Option<u32>, (wait, hold): (Nanos, Nanos), requests: u64) -> usize {
    let mut server = Scripted::new(wait, Some);
    let outcome = against(keys, rate, hold, &mut server);
    let (c, rtt) = (&outcome.tick.counts, &outcome.tick.ping_rtt);
    assert_eq!((outcome.faults(), outcome.held), (vec![], 1), "{keys}");
    assert_eq!((c.sent, c.answered, server.requests), (requests, requests, requests), "{keys}");
    assert_eq!((rtt.count(), rtt.censored()), (server.pings.len() as u64, 0), "{keys}");
    let (mean, way_and_back) = (rtt.quantiles().mean, (WAY + WAY).0 as f64 / 1e3);
    assert!((mean / way_and_back - 1.0).abs() < 0.05, "{keys}: {mean} us");
    server.pings.len()
}

#[test]
fn a_ping_goes_out_when_nothing_has_come_for_its_time() {
    // A response restarts the interval, and so does an acknowledgement: two fit between two requests, and after the last.
    assert_eq!(check("think = \"3s\"\nping = \"1300ms\"", None, (MS(3), MS(11_000)), 4), 4 * 2);
    // With a rate, two more before the first request.
    assert_eq!(check("ping = \"300ms\"", Some(1), (MS(3), MS(3_000)), 3), 2 + 3 * 3);
    // In a closed loop, while a response is awaited.
    assert_eq!(check("think = 0\nping = \"100ms\"", None, (MS(450), MS(2_000)), 7), 6 * 4 + 1);
    // In steps with a pause in between.
    let steps = "[[population.step]]\nrequest = \"/\"\n[[population.step]]\nwait = \"3s\"\n";
    assert_eq!(check(&format!("ping = \"1300ms\"\n{steps}"), None, (MS(3), MS(11_000)), 4), 4 * 2);
}

#[test]
fn where_something_comes_more_often_there_are_none() {
    for (keys, rate) in [("think = \"500ms\"\nping = \"1s\"", None), ("ping = \"2s\"", Some(5))] {
        let mut server = Scripted::new(MS(3), Some);
        let outcome = against(keys, rate, MS(5_000), &mut server);
        assert_eq!((outcome.faults(), server.pings.len()), (vec![], 0), "{keys}");
        assert_eq!(outcome.tick.ping_rtt.count(), 0);
    }
}

#[test]
fn without_its_reply_in_time_the_connection_is_lost() {
    // None, or the acknowledgement of another PING.
    let replies: [fn(Payload) -> Option<Payload>; 3] = [|_| None, |_| Some([9; 8]), |_| Some([0xff; 8])];
    for acknowledge in replies {
        let mut server = Scripted::new(MS(3), acknowledge);
        let keys = "think = \"30s\"\nping = \"1s\"\ntimeout = \"2s\"";
        let outcome = against(keys, None, MS(11_000), &mut server);
        let (c, rtt) = (&outcome.tick.counts, &outcome.tick.ping_rtt);
        assert_eq!(outcome.faults(), [(Stage::Hold, Kind::Timeout, 1)]);
        assert_eq!((c.sent, c.answered, c.dropped, outcome.held), (1, 1, 1, 0), "{c:?}");
        assert_eq!((server.pings.len(), rtt.count(), rtt.censored()), (1, 0, 1));
    }
}

#[test]
fn a_new_connection_begins_anew() {
    let mut server = Scripted::new(MS(3), |_| None);
    let keys = "think = \"30s\"\nping = \"1s\"\ntimeout = \"500ms\"\nreconnect = \"10ms\"";
    let outcome = against(keys, None, MS(9_000), &mut server);
    let c = &outcome.tick.counts;
    assert!((5..=6).contains(&c.dropped) && c.redialled >= 5, "{c:?}");
    assert_eq!(outcome.faults(), [(Stage::Hold, Kind::Timeout, c.dropped)]);
    assert_eq!(outcome.tick.ping_rtt.censored(), c.dropped);
    // Each time a second of silence, and half a second without an acknowledgement.
    let apart = server.pings.windows(2).map(|two| two[1].since(two[0]));
    apart.for_each(|time| assert!((MS(1_500)..MS(1_540)).contains(&time), "{time}"));
}

//! Bodies longer than what a connection sends at once, whatever the server does meanwhile. The simulated network refuses to
//! buffer more than 8 MiB for a server that does not read.

use net::Io;
use plan::Plan;
use samples::{Kind, Stage};
use units::Nanos;

use super::{Instead, MS, Outcome, Output, Serve, plan, run};

/// Length of the longest body.
const LONGEST: usize = 16 << 20;

fn octet(at: usize) -> u8 {
    (at as u32).wrapping_mul(0x9e37_79b1).to_be_bytes()[0]
}

/// A closed loop of requests with this body; `keys` are keys of the step.
fn posts(of_population: &str, keys: &str, body: usize) -> Plan {
    let step = format!("[[population.step]]\nrequest = \"POST /{{seq}}\"\nbody-file = \"b\"\n{keys}\n");
    let mut plan = plan(&format!(
        "target = \"http://127.0.0.1:80/\"\nduration = \"1s\"\n[[population]]\nname = \"a\"\nconnections = 2\n{of_population}\n{step}"
    ));
    for population in plan.all_populations_mut() {
        population
            .contents()
            .into_iter()
            .for_each(|(_, content)| content.bytes = (0..body).map(octet).collect());
    }
    plan
}

/// How the server treats a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    /// Responds to the complete body.
    Respond,
    /// Responds to the head, reads the body, and keeps the connection open.
    RespondEarly,
    /// Responds to the head, and closes the connection.
    Refuse,
    /// Reads nothing after the head.
    Hang,
}

struct Http1 {
    act: Act,
    heads: u64,
    bodies: u64,
}

/// How much of the body has come; `None` before the head.
#[derive(Default)]
struct Upload(Option<usize>);

impl Serve for Http1 {
    type Conn = Upload;

    fn read<I: Io>(&mut self, Upload(came): &mut Upload, input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        let Some(at) = *came else {
            let Some(end) = input.windows(4).position(|part| part == b"\r\n\r\n") else { return 0 };
            let head = String::from_utf8(input[..end].to_vec()).expect("a head is text");
            assert!(
                head.starts_with("POST /") && head.contains(&format!("Content-Length: {LONGEST}")),
                "{head}"
            );
            self.heads += 1;
            *came = Some(0);
            match self.act {
                Act::RespondEarly => out.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
                Act::Refuse => {
                    out.send(b"HTTP/1.1 413 \r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
                    out.close();
                }
                Act::Respond | Act::Hang => {}
            }
            let used = end + 4;
            return if self.act == Act::Refuse {
                used
            } else {
                used + self.read(&mut Upload(*came), &mut [], out)
            };
        };
        if self.act == Act::Hang {
            return 0;
        }
        let n = input.len().min(LONGEST - at);
        assert!(
            input[..n].iter().zip(at..).all(|(byte, at)| *byte == octet(at)),
            "a body garbled after {at}"
        );
        *came = Some(at + n).filter(|came| *came < LONGEST);
        if came.is_none() {
            self.bodies += 1;
            if self.act == Act::Respond {
                out.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
        n
    }
}

/// The outcome of a run against such a server, with the number of heads and bodies received.
fn over_http1(act: Act, keys: &str, hold: Nanos) -> (Outcome, u64, u64) {
    let mut server = Http1 { act, heads: 0, bodies: 0 };
    let outcome = run(&posts("", keys, LONGEST), None, hold, Instead::default(), &mut server);
    outcome.obey_the_laws();
    (outcome, server.heads, server.bodies)
}

#[test]
fn a_body_of_16_mib_arrives_whole() {
    let (outcome, heads, bodies) = over_http1(Act::Respond, "", MS(2_000));
    let c = &outcome.tick.counts;
    assert_eq!((c.answered, heads, bodies), (c.sent, c.sent, c.sent), "{c:?} {:?}", outcome.faults());
    assert!(c.sent > 2 && c.bytes_out > c.sent * LONGEST as u64, "{c:?}");
}

#[test]
fn the_rest_of_a_body_goes_before_the_next_request() {
    let (outcome, heads, bodies) = over_http1(Act::RespondEarly, "", MS(2_000));
    let c = &outcome.tick.counts;
    assert_eq!((c.answered, c.closed, outcome.faults()), (c.sent, 0, vec![]), "{c:?}");
    assert!(
        c.sent > 2 && heads == c.sent && (c.sent - 2..=c.sent).contains(&bodies),
        "{heads} {bodies} {c:?}"
    );
}

#[test]
fn a_response_that_ends_an_upload_is_one() {
    let (outcome, heads, bodies) = over_http1(Act::Refuse, "expect = { status = 413 }", MS(500));
    let c = &outcome.tick.counts;
    assert_eq!((c.answered, heads, bodies, outcome.faults()), (c.sent, c.sent, 0, vec![]), "{c:?}");
    assert!(c.closed >= c.sent && c.sent > 2, "{c:?}");
}

#[test]
fn the_timeout_applies_to_a_body_that_nobody_reads() {
    let of_population = "timeout = \"1s\"";
    let mut server = Http1 { act: Act::Hang, heads: 0, bodies: 0 };
    let plan = posts(of_population, "", LONGEST);
    let outcome = run(&plan, None, MS(1_500), Instead::default(), &mut server);
    outcome.obey_the_laws();
    assert_eq!(outcome.faults(), [(Stage::Exchange, Kind::Timeout, 2)]);
    // What the network buffers, and a piece.
    let each = outcome.tick.counts.bytes_out / 2;
    assert!((256 * 1024..1024 * 1024).contains(&each), "{each} bytes sent");
}

/// A minimal HTTP/2 server.
struct Http2 {
    /// SETTINGS_INITIAL_WINDOW_SIZE, and by how much the connection's window is first raised.
    window: u32,
    /// Number of PINGs sent every 100 ms, while it reads nothing.
    pings: usize,
    /// Whether it responds to heads instead of bodies.
    is_early: bool,
    heads: u64,
    resets: u64,
    most_open: usize,
}

#[derive(Default)]
struct Peer {
    has_begun: bool,
    open: Vec<u32>,
}

/// Number of streams that it allows.
const STREAMS: u32 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

impl Http2 {
    fn new(window: u32) -> Http2 {
        Http2 { window, pings: 0, is_early: false, heads: 0, resets: 0, most_open: 0 }
    }

    fn preface(&self) -> Vec<u8> {
        let entries = [[0, 3], [0, 4]].into_iter().zip([STREAMS, self.window]);
        let entries: Vec<u8> =
            entries.flat_map(|(id, value)| [&id[..], &value.to_be_bytes()].concat()).collect();
        [frame(4, 0, 0, &entries), frame(8, 0, 0, &(self.window).to_be_bytes())].concat()
    }
}

impl Serve for Http2 {
    type Conn = Peer;

    fn read<I: Io>(&mut self, peer: &mut Peer, input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        let mut at = 0;
        if !peer.has_begun {
            if input.len() < 24 {
                return 0;
            }
            (peer.has_begun, at) = (true, 24);
            out.send(&self.preface());
            out.wake_at(out.now() + MS(100));
        }
        while let Some(&[a, b, c, kind, flags, _, d, e, f]) = input[at..].first_chunk() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            let stream = u32::from_be_bytes([0, d, e, f]);
            let is_body = kind == 0;
            if is_body && self.pings > 0 || input.len() < at + 9 + length {
                break;
            }
            at += 9 + length;
            let ends = flags & 1 != 0;
            if kind == 1 {
                self.heads += 1;
                peer.open.push(stream);
                self.most_open = self.most_open.max(peer.open.len());
            }
            if kind == 3 {
                self.resets += 1;
                peer.open.retain(|open| *open != stream);
            }
            if kind == 1 && self.is_early {
                out.send(&frame(1, 5, stream, &[0x08, 3, b'4', b'1', b'3']));
            } else if ends && matches!(kind, 0 | 1) {
                peer.open.retain(|open| *open != stream);
                out.send(&frame(1, 5, stream, &[0x88]));
            } else if is_body && self.window > 65_535 {
                let by = (length as u32).to_be_bytes();
                out.send(&[frame(8, 0, 0, &by), frame(8, 0, stream, &by)].concat());
            }
        }
        at
    }

    fn due<I: Io>(&mut self, _: &mut Peer, out: &mut Output<'_, I>) {
        (0..self.pings).for_each(|_| out.send(&frame(6, 0, 0, &[7; 8])));
        out.wake_at(out.now() + MS(100));
    }
}

#[test]
fn a_response_before_the_end_of_a_body_leaves_no_stream_open() {
    // The windows are never raised: no body is sent completely.
    let mut server = Http2 { is_early: true, ..Http2::new(65_535) };
    let plan = posts("http2 = true\nstreams = 4", "expect = { status = 413 }", 1 << 20);
    let outcome = run(&plan, None, MS(1_000), Instead::default(), &mut server);
    outcome.obey_the_laws();
    let c = &outcome.tick.counts;
    assert_eq!((c.answered, server.heads, outcome.faults()), (c.sent, c.sent, vec![]), "{c:?}");
    assert!(c.sent > 100 && c.opened == 2 && c.closed == 0, "{c:?}");
    assert_eq!((server.resets, server.most_open), (c.sent, STREAMS as usize));
}

#[test]
fn bodies_of_16_mib_share_a_connection_of_http2() {
    let mut server = Http2::new(1 << 20);
    let plan = posts("http2 = true\nstreams = 4", "", LONGEST);
    let outcome = run(&plan, None, MS(3_000), Instead::default(), &mut server);
    outcome.obey_the_laws();
    let c = &outcome.tick.counts;
    assert_eq!((c.answered, server.heads, outcome.faults()), (c.sent, c.sent, vec![]), "{c:?}");
    assert!(c.sent > 4 && c.bytes_out > c.sent * LONGEST as u64, "{c:?}");
}

#[test]
fn replies_that_the_server_does_not_read_have_a_bound() {
    let mut server = Http2 { pings: 150, ..Http2::new(1 << 30) };
    let plan = posts("http2 = true\ntimeout = \"20s\"", "", LONGEST);
    let outcome = run(&plan, None, MS(5_000), Instead::default(), &mut server);
    outcome.obey_the_laws();
    assert_eq!(outcome.faults(), [(Stage::Exchange, Kind::BadAnswer, 2)]);
}

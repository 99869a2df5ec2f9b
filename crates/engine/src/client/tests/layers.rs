//! A minimal layer between socket and protocol: a handshake, records, and bytes that are unsealed in place.
//!
//! A record is a length of two bytes, a type, and that many bytes: a hello (the server's carries the key), data, or an alert.

use net::{Io, Layer, Opening, Unsealed};
use samples::{Kind, Stage};
use units::Rate;
use wire::websocket::{Event, Frames, Role};

use super::{Instead, MS, Outcome, Output, Serve, plan, run};

const HELLO: u8 = 0;
const DATA: u8 = 1;
const ALERT: u8 = 2;
const HEADER: usize = 3;
/// Longest record: short, so that heads and frames span several.
const MOST: usize = 16;

fn seal(key: u8, sort: u8, bytes: &[u8], out: &mut Vec<u8>) {
    for part in bytes.chunks(MOST) {
        out.extend_from_slice(&[0, part.len() as u8, sort]);
        out.extend(part.iter().map(|byte| byte ^ key));
    }
}

/// Type and length of a complete record.
fn record(input: &[u8]) -> Option<(u8, usize)> {
    let [_, length, sort] = *input.first_chunk()?;
    let length = usize::from(length);
    (input.len() >= HEADER + length).then_some((sort, length))
}

/// The client's end of the layer.
#[derive(Default)]
struct Xor {
    /// Per connection: its key once open, and whether its hello is still to be sent.
    conns: Vec<(Option<u8>, bool)>,
    /// How often each connection has sent, and after how many sends its keys are used up, if ever.
    sent: Vec<u32>,
    used_up_after: Option<u32>,
}

impl Layer for Xor {
    type Error = tls::Error;

    fn open(&mut self, index: u32, _: u16) -> Result<(), tls::Error> {
        let at = index as usize;
        self.conns.resize(self.conns.len().max(at + 1), (None, false));
        assert_eq!(self.conns[at], (None, false), "it has ended before");
        self.conns[at] = (None, true);
        self.sent.resize(self.conns.len(), 0);
        self.sent[at] = 0;
        Ok(())
    }

    fn handle_bytes(&mut self, index: u32, input: &mut [u8]) -> Result<Unsealed, tls::Error> {
        let Some((sort, length)) = record(input) else { return Ok(Unsealed::More(0)) };
        let used = HEADER + length;
        let (key, _) = &mut self.conns[index as usize];
        match (sort, *key) {
            (HELLO, None) => {
                *key = Some(input[HEADER]);
                Ok(Unsealed::Opened(used, Opening::default()))
            }
            (DATA, Some(key)) => {
                input[HEADER..used].iter_mut().for_each(|byte| *byte ^= key);
                Ok(Unsealed::Bytes(used, HEADER..used))
            }
            _ => Err(tls::Error::Malformed),
        }
    }

    fn poll_output(&mut self, index: u32) -> Vec<u8> {
        let says_hello = std::mem::take(&mut self.conns[index as usize].1);
        if says_hello { vec![0, 1, HELLO, b'!'] } else { Vec::new() }
    }

    fn is_used_up(&self, index: u32) -> bool {
        self.used_up_after.is_some_and(|most| self.sent[index as usize] >= most)
    }

    fn close(&mut self, _: u32) {}

    fn is_closed(&self, _: u32) -> bool {
        false
    }

    fn sealed_len(&self, length: usize) -> usize {
        length + HEADER * length.div_ceil(MOST)
    }

    fn seal(&mut self, index: u32, bytes: &[u8], out: &mut [u8]) -> usize {
        let key = self.conns[index as usize].0.expect("nothing is sent before it is open");
        self.sent[index as usize] += 1;
        let mut sealed = Vec::new();
        seal(key, DATA, bytes, &mut sealed);
        out[..sealed.len()].copy_from_slice(&sealed);
        sealed.len()
    }

    fn end(&mut self, index: u32) {
        if let Some(conn) = self.conns.get_mut(index as usize) {
            *conn = (None, false);
        }
    }

    fn shrink(&mut self) -> bool {
        false
    }
}

/// The server's end of the layer. `respond` maps the input so far of a connection to the number of bytes used, and the response.
struct Sealed {
    respond: fn(&[u8]) -> (usize, Vec<u8>),
    /// Header of the server's hello, which precedes the key; `None`: no hello.
    hello: Option<[u8; HEADER]>,
    /// Record type of a response.
    sort: u8,
    connections: u8,
    bytes_in: u64,
    bytes_out: u64,
    /// The most records that came together on an open connection.
    most_together: usize,
}

#[derive(Default)]
struct Conn {
    key: u8,
    plain: Vec<u8>,
}

impl Serve for Sealed {
    type Conn = Conn;

    fn read<I: Io>(&mut self, conn: &mut Conn, input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        let (mut used, mut lines, mut together) = (0, Vec::new(), 0);
        while let Some((sort, length)) = record(&input[used..]) {
            let bytes = &input[used + HEADER..][..length];
            match sort {
                HELLO => {
                    self.connections += 1;
                    conn.key = self.connections | 0x80;
                    if let Some(hello) = self.hello {
                        lines.extend_from_slice(&hello);
                        lines.push(conn.key);
                    }
                }
                _ => {
                    together += 1;
                    conn.plain.extend(bytes.iter().map(|byte| byte ^ conn.key));
                }
            }
            used += HEADER + length;
        }
        loop {
            let (n, respond) = (self.respond)(&conn.plain);
            if n == 0 {
                break;
            }
            conn.plain.drain(..n);
            seal(conn.key, self.sort, &respond, &mut lines);
        }
        self.most_together = self.most_together.max(together);
        self.bytes_in += used as u64;
        self.bytes_out += lines.len() as u64;
        if !lines.is_empty() {
            out.send(&lines);
        }
        used
    }
}

/// A run of five connections to this target for two seconds.
fn against(target: &str, lines: &str, rate: Option<u32>, server: &mut Sealed) -> Outcome {
    let rate_line = rate.map_or(String::new(), |rate| format!("rate = \"{rate}/s\"\n"));
    let text = format!("target = \"{target}\"\nconnections = 5\ntimeout = \"1s\"\n{rate_line}{lines}\n");
    let instead = Instead { layer: Some(Box::new(Xor::default())), splits: true, ..Instead::default() };
    let outcome = run(&plan(&text), rate.map(Rate::per_s), MS(2_000), instead, server);
    outcome.obey_the_laws();
    outcome
}

fn server(respond: fn(&[u8]) -> (usize, Vec<u8>)) -> Sealed {
    let (connections, bytes_in, bytes_out) = (0, 0, 0);
    Sealed {
        respond,
        hello: Some([0, 1, HELLO]),
        sort: DATA,
        connections,
        bytes_in,
        bytes_out,
        most_together: 0,
    }
}

/// The length of a complete head.
fn head(plain: &[u8]) -> Option<usize> {
    plain.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

fn http(plain: &[u8]) -> (usize, Vec<u8>) {
    match head(plain) {
        None => (0, Vec::new()),
        Some(n) => (n, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec()),
    }
}

fn websocket(plain: &[u8]) -> (usize, Vec<u8>) {
    if plain.starts_with(b"GET") {
        let Some(n) = head(plain) else { return (0, Vec::new()) };
        return (n, super::accepts(&plain[..n]));
    }
    match Frames::new(Role::Server).handle_bytes(plain, 1_000) {
        Ok((n, Some(Event::Data(data)))) if data.ends => {
            let text: Vec<u8> = data.payload.bytes().collect();
            (n, [&[0x81, text.len() as u8], &text[..]].concat())
        }
        _ => (0, Vec::new()),
    }
}

/// Checks that all connections are held, nothing is wrong, and every byte is counted as on the wire.
fn check(target: &str, lines: &str, rate: Option<u32>, respond: fn(&[u8]) -> (usize, Vec<u8>)) -> u64 {
    let mut server = server(respond);
    let outcome = against(target, lines, rate, &mut server);
    let c = &outcome.tick.counts;
    assert_eq!((outcome.faults(), outcome.held, c.answered), (vec![], 5, c.sent), "{lines}");
    assert_eq!((c.bytes_in, c.bytes_out), (server.bytes_out, server.bytes_in), "{lines}");
    assert_eq!(server.connections, 5);
    c.sent
}

#[test]
fn http_and_websocket_are_spoken_through_a_layer() {
    assert_eq!(check("http://127.0.0.1:80/", "", Some(100), http), 200);
    assert!(check("http://127.0.0.1:80/", "", None, http) > 1_000);
    assert!(check("http://127.0.0.1:80/{rand 1 1000}", "think = \"50ms\"", None, http) > 150);
    let sent = check(
        "ws://127.0.0.1:80/",
        "ping = \"100ms\"\nmessage = \"a message of some length\"",
        None,
        websocket,
    );
    // From the ramp on, each sends ten times a second for three seconds.
    assert!((140..=150).contains(&sent), "{sent}");
}

#[test]
fn sends_through_a_layer_leave_as_one_segment() {
    let mut server = server(http);
    let text =
        "target = \"http://127.0.0.1:80/a-path-that-makes-a-long-head\"\nconnections = 1\nthink = \"1s\"\n";
    let instead = Instead { layer: Some(Box::new(Xor::default())), ..Instead::default() };
    let outcome = run(&plan(text), None, MS(1_000), instead, &mut server);
    assert!(outcome.tick.counts.sent > 0 && server.most_together >= 4, "{} records", server.most_together);
}

#[test]
fn a_layer_that_does_not_open_is_a_fault_of_its_own() {
    for (hello, kind) in [(None, Kind::Timeout), (Some([0, 1, ALERT]), Kind::BadAnswer)] {
        let mut server = Sealed { hello, ..server(http) };
        let outcome = against("http://127.0.0.1:80/", "", None, &mut server);
        let c = &outcome.tick.counts;
        assert_eq!((outcome.faults(), c.failed, c.opened), (vec![(Stage::Tls, kind, 5)], 5, 0));
        assert_eq!(outcome.tick.connect.count(), 5, "the transport was open");
    }
}

#[test]
fn a_layer_that_fails_once_it_is_open_is_a_fault_of_the_exchange() {
    let mut server = Sealed { sort: ALERT, ..server(http) };
    let outcome = against("http://127.0.0.1:80/", "", None, &mut server);
    let c = &outcome.tick.counts;
    assert_eq!(outcome.faults(), vec![(Stage::Exchange, Kind::BadAnswer, 5)]);
    assert_eq!((c.sent, c.answered, c.opened, c.failed, c.dropped), (5, 0, 5, 0, 5));
}

#[test]
fn a_connection_whose_key_is_used_up_is_closed_as_announced_and_dialled_again() {
    for lines in ["think = \"10ms\"", ""] {
        let mut server = server(http);
        let text = format!("target = \"http://127.0.0.1:80/\"\nconnections = 2\n{lines}\n");
        let layer = Xor { used_up_after: Some(10), ..Xor::default() };
        let instead = Instead { layer: Some(Box::new(layer)), ..Instead::default() };
        let outcome = run(&plan(&text), None, MS(1_000), instead, &mut server);
        outcome.obey_the_laws();
        let c = &outcome.tick.counts;
        assert_eq!((outcome.faults(), c.answered, c.dropped), (vec![], c.sent, 0), "{lines}");
        // The first connection has ten requests, and so has each that follows it.
        assert!(c.sent > 100 && c.closed >= (c.sent - 20) / 10 && c.closed <= c.sent / 10, "{c:?}");
        assert!(c.opened == 2 && c.closed - c.redialled <= 2, "{c:?}");
    }
}

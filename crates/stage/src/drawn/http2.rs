//! HTTP/2, as the drawn server speaks it: connections, streams and requests; gRPC calls are in [`super::grpc`].

use std::collections::HashMap;

use units::Nanos;
use wire::http2::{
    Code, Connection, Context, Event, Response, Role, SETTINGS_ACK, Scratch, Stream, write_field,
    write_goaway, write_ping, write_pong, write_reset, write_response_fields, write_window_update,
};

use super::{
    books::Outcome,
    server::{Speaks, Step, Turn},
};

/// Room for a part of a response.
const ROOM: usize = 256;
const CODES: [Code; 5] =
    [Code::REFUSED_STREAM, Code::INTERNAL_ERROR, Code::CANCEL, Code::ENHANCE_YOUR_CALM, Code::NO_ERROR];

/// Maximum window of a stream.
pub(super) const WINDOW: usize = 5_000;

/// Treats the request on a stream in one of the ways.
type Respond = fn(&mut Conn, u32, &mut Turn<'_>, u8);
/// Refuses a request before its body has come.
type Refuse = fn(&mut Conn, u32, &mut Turn<'_>);

/// A protocol over HTTP/2.
pub(super) struct Http2 {
    scratch: Scratch,
    respond: Respond,
    refuse: Refuse,
    /// Number of ways of `respond`; with a body, there are [`EARLY`] more.
    ways: u8,
}

/// Number of ways to treat a request before its body has come; a request without a body is treated rightly instead.
const EARLY: u8 = 5;

impl Http2 {
    /// HTTP requests.
    pub(super) fn new() -> Http2 {
        let refuse =
            |conn: &mut Conn, id, turn: &mut Turn<'_>| complete(conn, id, turn, Nanos::ZERO, (413, b""));
        Http2::with(respond, refuse, 6 + INTERFERENCES)
    }

    pub(super) fn with(respond: Respond, refuse: Refuse, ways: u8) -> Http2 {
        Http2 { scratch: Scratch::new(), respond, refuse, ways }
    }
}

/// A connection.
pub(super) struct Conn {
    connection: Connection,
    streams: HashMap<u32, Stream>,
    /// How incomplete requests will be treated, by stream.
    ways: HashMap<u32, u8>,
    /// The last stream that the server acts on.
    last: u32,
    /// The stream whose window is not raised.
    starved: u32,
}

impl Speaks for Http2 {
    type Conn = Conn;

    fn ways(&self) -> u8 {
        self.ways + EARLY
    }

    fn begin(&mut self, turn: &mut Turn<'_>) -> Conn {
        let window = [WINDOW as u16, 20_000, 65_535][turn.random.below(3) as usize].to_be_bytes();
        let settings = [0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 0];
        turn.send(Nanos::ZERO, [&settings[..], &window].concat());
        let (streams, ways) = (HashMap::new(), HashMap::new());
        Conn { connection: Connection::new(Role::Server), streams, ways, last: u32::MAX, starved: 0 }
    }

    fn read(&mut self, conn: &mut Conn, input: &[u8], turn: &mut Turn<'_>) -> usize {
        let id = conn.connection.reads(input);
        let stream = conn.streams.get_mut(&id);
        let context =
            Context { scratch: &mut self.scratch, table: None, second: 0, expected: &[], fields: None };
        let (used, event) =
            conn.connection.handle_bytes(input, stream, context).expect("a client that keeps to the RFC");
        match event {
            Some(Event::Settings | Event::Opened) => turn.send(Nanos::ZERO, SETTINGS_ACK),
            Some(Event::Request(request, stream)) => {
                conn.streams.insert(id, stream);
                let way = turn.way();
                if request.ends {
                    self.received(conn, id, turn, if way > self.ways { 0 } else { way });
                } else {
                    turn.page.upload();
                    self.begun(conn, id, turn, way);
                }
            }
            Some(Event::Data(data)) => {
                raise(conn, id, turn, data.bytes.len() as u32);
                if data.ends {
                    match conn.ways.remove(&id) {
                        Some(way) => self.received(conn, id, turn, way),
                        // It already has its response.
                        None => drop(conn.streams.remove(&id)),
                    }
                }
            }
            Some(Event::Reset(_)) => {
                conn.streams.remove(&id);
                conn.ways.remove(&id);
                turn.page.blame();
                turn.forget(id, false);
            }
            Some(Event::Ping(payload)) => turn.send(Nanos::ZERO, frame(|out| write_pong(out, payload))),
            // The client ends the session.
            Some(Event::Goaway { .. }) => turn.books.farewell(turn.now, used as u64),
            _ => {}
        }
        used
    }
}

impl Http2 {
    /// A request is complete.
    fn received(&self, conn: &mut Conn, id: u32, turn: &mut Turn<'_>, way: u8) {
        turn.received(id, 0);
        if id > conn.last {
            turn.forget(id, true);
        } else if turn.meets_hardship() {
            turn.flood();
        } else {
            (self.respond)(conn, id, turn, way);
        }
    }

    /// The head of a request has come, and its body is under way.
    fn begun(&self, conn: &mut Conn, id: u32, turn: &mut Turn<'_>, way: u8) {
        match way.saturating_sub(self.ways) {
            _ if id > conn.last => {}
            0 => drop(conn.ways.insert(id, way)),
            1 => {
                conn.starved = id;
                conn.ways.insert(id, 0);
                // The client sends bodies one after another.
                turn.page.slow_down();
            }
            early => {
                turn.received(id, 0);
                match early {
                    2 => (self.respond)(conn, id, turn, 0),
                    3 => (self.refuse)(conn, id, turn),
                    // The client need not send the rest (RFC 9113, section 8.1).
                    4 => {
                        (self.refuse)(conn, id, turn);
                        turn.send(Nanos::ZERO, frame(|out| write_reset(out, id, Code::NO_ERROR)));
                    }
                    _ => reset(id, turn, Nanos::ZERO),
                }
            }
        }
    }
}

fn reset(id: u32, turn: &mut Turn<'_>, after: Nanos) {
    let code = CODES[turn.random.below(5) as usize];
    turn.plan(after, Step::Frame(id, frame(|out| write_reset(out, id, code))));
    turn.plan(after, Step::Forget(id));
}

/// Raises the client's windows by what was received.
fn raise(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, by: u32) {
    // The server's own limit is above what the client knows.
    conn.connection.take_credit();
    if by > 0 {
        turn.send(Nanos::ZERO, frame(|out| write_window_update(out, 0, by)));
    }
    if by > 0 && conn.starved != id && conn.ways.contains_key(&id) {
        turn.send(Nanos::ZERO, frame(|out| write_window_update(out, id, by)));
    }
}

pub(super) fn frame(write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut out = vec![0; ROOM];
    let length = write(&mut out).expect("room");
    out.truncate(length);
    out
}

/// A part of a response.
pub(super) enum Part<'a> {
    Head(u16, &'a [(&'a str, &'a str)]),
    Data(&'a [u8]),
    Trailers(&'a [(&'a str, &'a str)]),
}

/// Encodes these parts as frames; the last one ends the stream.
pub(super) fn parts(conn: &mut Conn, id: u32, parts: &[Part<'_>]) -> Vec<Vec<u8>> {
    let Conn { connection, streams, .. } = conn;
    let stream = streams.get_mut(&id).expect("it was requested");
    let frames = (1..).zip(parts).map(|(nth, part)| {
        let ends = nth == parts.len();
        match part {
            Part::Head(status, fields) => {
                let response = Response { status: *status, content_type: "", content_length: None };
                let mut block = frame(|out| write_response_fields(out, &response));
                add(&mut block, fields);
                frame(|out| connection.write_headers(out, stream, &block, ends))
            }
            Part::Trailers(fields) => {
                let mut block = Vec::new();
                add(&mut block, fields);
                frame(|out| connection.write_headers(out, stream, &block, ends))
            }
            Part::Data(bytes) => frame(|out| Some(connection.write_data(out, stream, bytes, ends).0)),
        }
    });
    let frames = frames.collect();
    if stream.is_closed() {
        streams.remove(&id);
    }
    frames
}

fn add(block: &mut Vec<u8>, fields: &[(&str, &str)]) {
    for (name, value) in fields {
        block.extend(frame(|out| write_field(out, name, value.as_bytes())));
    }
}

/// The parts of a response: head and content.
fn response<'a>(status: u16, content: &'a [u8]) -> Vec<Part<'a>> {
    let mut all = vec![Part::Head(status, &[])];
    all.extend((!content.is_empty()).then_some(Part::Data(content)));
    all
}

/// The expected response.
const RIGHT: (u16, &[u8]) = (200, b"hello");

fn outcome(status: u16, is_right: bool) -> Outcome {
    Outcome { status: Some(status), is_right, is_sure: true }
}

/// Sends a complete response.
fn complete(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, after: Nanos, (status, content): (u16, &[u8])) {
    let frames = parts(conn, id, &response(status, content)).concat();
    turn.plan(after, Step::Frame(id, frames));
    turn.done(after, id, outcome(status, (status, content) == RIGHT));
}

fn respond(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, way: u8) {
    let soon = turn.within(20);
    match way {
        0 => complete(conn, id, turn, Nanos::ZERO, RIGHT),
        1 => {
            let late = turn.within(150);
            complete(conn, id, turn, late, RIGHT);
        }
        2 => {
            let frames = parts(conn, id, &response(200, b"hello"));
            begin(id, turn, frames);
        }
        3 => {
            let frames = parts(conn, id, &response(200, b"hello"));
            let at = one_by_one(id, turn, frames);
            turn.done(at, id, outcome(200, true));
        }
        4 => complete(conn, id, turn, soon, (503, b"no")),
        5 => complete(conn, id, turn, soon, (200, b"hell")),
        6 => complete(conn, id, turn, soon, (404, b"")),
        _ => {
            interfere(conn, id, turn, way - 7, |conn, id, turn, after| complete(conn, id, turn, after, RIGHT))
        }
    }
}

/// Sends all but the last of these frames; the connection may then be closed.
pub(super) fn begin(id: u32, turn: &mut Turn<'_>, mut frames: Vec<Vec<u8>>) {
    frames.pop();
    let at = one_by_one(id, turn, frames);
    if turn.coin() {
        turn.close(at);
    }
}

/// Sends these frames one after another; returns when the last one is sent.
pub(super) fn one_by_one(id: u32, turn: &mut Turn<'_>, frames: Vec<Vec<u8>>) -> Nanos {
    let mut at = Nanos::ZERO;
    for (nth, frame) in frames.into_iter().enumerate() {
        at = if nth > 0 { at + turn.within(20) } else { at };
        turn.plan(at, Step::Frame(id, frame));
    }
    at
}

/// Number of ways of [`interfere`].
pub(super) const INTERFERENCES: u8 = 12;

/// Interferes with a session whatever it carries; `complete` sends the right response.
pub(super) fn interfere(
    conn: &mut Conn,
    id: u32,
    turn: &mut Turn<'_>,
    way: u8,
    complete: fn(&mut Conn, u32, &mut Turn<'_>, Nanos),
) {
    let (now, soon) = (Nanos::ZERO, turn.within(20));
    match way {
        // No response.
        0 => {}
        1 => {
            let late = turn.within(300);
            turn.close(late);
        }
        2 => {
            reset(id, turn, soon);
        }
        3 | 4 => goaway(conn, id, turn, if way == 3 { now } else { soon }),
        5 | 6 => {
            complete(conn, id, turn, now);
            goaway(conn, id, turn, if way == 5 { now } else { soon });
        }
        7 => {
            complete(conn, id, turn, now);
            settings(turn, soon);
        }
        8 => {
            complete(conn, id, turn, now);
            let later = turn.within(200);
            turn.close(later);
        }
        9 => {
            turn.send(now, frame(|out| write_ping(out, *b"whatever")));
            complete(conn, id, turn, soon);
        }
        // DATA on a stream that has not begun.
        10 => {
            turn.page.doubt();
            turn.send(soon, b"\0\0\x01\0\0\0\0\x03\xe7x".as_slice());
        }
        _ => turn.close(soon),
    }
}

/// Ends the session with any last stream, perhaps with an error; the connection is closed, or left to the client.
fn goaway(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, after: Nanos) {
    let last = [0, id.saturating_sub(2), id, id, u32::MAX >> 1][turn.random.below(5) as usize];
    let code = if turn.random.below(4) == 0 { Code::ENHANCE_YOUR_CALM } else { Code::NO_ERROR };
    conn.last = conn.last.min(last);
    turn.plan(after, Step::Send(frame(|out| write_goaway(out, last, code)).into()));
    turn.plan(after, Step::Announce(Nanos::ZERO));
    turn.plan(after, Step::Goaway(last));
    if code != Code::NO_ERROR {
        turn.plan(after, Step::Blame);
    }
    match turn.random.below(4) {
        0 => {
            let ending = turn.ending();
            turn.finish(after, ending);
        }
        1 => {
            let later = after + turn.within(100);
            turn.close(later);
        }
        _ => {}
    }
}

/// Allows fewer streams from now on, or none.
fn settings(turn: &mut Turn<'_>, after: Nanos) {
    let most = turn.random.below(3) as u8;
    turn.send(after, vec![0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, most]);
    if most == 0 {
        turn.plan(after, Step::Announce(Nanos::ZERO));
    }
}

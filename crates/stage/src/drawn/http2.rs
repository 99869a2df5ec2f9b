//! HTTP/2, as the drawn server speaks it: connections and streams, with requests on them; calls are in [`super::grpc`].

use std::collections::HashMap;

use net::Close;
use units::Nanos;
use wire::http2::{
    Code, Connection, Context, Event, Response, Role, SERVER_PREFACE, SETTINGS_ACK, Scratch, Stream,
    write_field, write_goaway, write_ping, write_pong, write_reset, write_response_fields,
    write_window_update,
};

use super::{
    books::Outcome,
    server::{Speaks, Step, Turn},
};

/// Room for a part of a response.
const ROOM: usize = 256;
const CODES: [Code; 5] =
    [Code::REFUSED_STREAM, Code::INTERNAL_ERROR, Code::CANCEL, Code::ENHANCE_YOUR_CALM, Code::NO_ERROR];

/// Treats the request on a stream in one of its ways.
type Respond = fn(&mut Conn, u32, &mut Turn<'_>, u8);

/// A protocol over HTTP/2.
pub(super) struct Http2 {
    scratch: Scratch,
    respond: Respond,
    ways: u8,
}

impl Http2 {
    /// Of requests.
    pub(super) fn new() -> Http2 {
        Http2::with(respond, 6 + INTERFERENCES)
    }

    pub(super) fn with(respond: Respond, ways: u8) -> Http2 {
        Http2 { scratch: Scratch::new(), respond, ways }
    }
}

/// A connection.
pub(super) struct Conn {
    connection: Connection,
    streams: HashMap<u32, Stream>,
    /// The last stream that it acts on.
    last: u32,
    /// The windows of streams are raised.
    is_generous: bool,
}

impl Speaks for Http2 {
    type Conn = Conn;

    fn ways(&self) -> u8 {
        self.ways
    }

    fn begin(&mut self, turn: &mut Turn<'_>) -> Conn {
        turn.send(Nanos::ZERO, SERVER_PREFACE);
        let connection = Connection::new(Role::Server);
        Conn { connection, streams: HashMap::new(), last: u32::MAX, is_generous: true }
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
                if request.ends {
                    self.received(conn, id, turn, used);
                }
            }
            Some(Event::Data(data)) => {
                raise(conn, id, turn, data.bytes.len() as u32);
                if data.ends {
                    self.received(conn, id, turn, used);
                }
            }
            Some(Event::Reset(_)) => {
                conn.streams.remove(&id);
                turn.page.blame();
                turn.forget(id, false);
            }
            Some(Event::Ping(payload)) => turn.send(Nanos::ZERO, frame(|out| write_pong(out, payload))),
            // The client leaves.
            Some(Event::Goaway { .. }) => turn.books.farewell_bytes += used as u64,
            _ => {}
        }
        used
    }
}

impl Http2 {
    /// A request is complete.
    fn received(&self, conn: &mut Conn, id: u32, turn: &mut Turn<'_>, used: usize) {
        turn.received(id, used);
        if id > conn.last {
            turn.forget(id, true);
        } else {
            let way = turn.way();
            (self.respond)(conn, id, turn, way);
        }
    }
}

/// Raises the client's windows by what has come.
fn raise(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, by: u32) {
    if let Some(by) = conn.connection.take_credit() {
        turn.send(Nanos::ZERO, frame(|out| write_window_update(out, 0, by)));
    }
    if by > 0 && conn.is_generous && conn.streams.contains_key(&id) {
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

/// The frames of these parts; the last one ends the stream.
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

/// Head and content.
fn response<'a>(status: u16, content: &'a [u8]) -> Vec<Part<'a>> {
    let mut all = vec![Part::Head(status, &[])];
    all.extend((!content.is_empty()).then_some(Part::Data(content)));
    all
}

/// What a right response has.
const RIGHT: (u16, &[u8]) = (200, b"hello");

fn outcome(status: u16, is_right: bool) -> Outcome {
    Outcome { status: Some(status), is_right, is_sure: true }
}

/// A whole response.
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

/// All but the last of these frames, which does not come before the connection has ended.
pub(super) fn begin(id: u32, turn: &mut Turn<'_>, mut frames: Vec<Vec<u8>>) {
    frames.pop();
    let at = one_by_one(id, turn, frames);
    if turn.coin() {
        turn.close(at);
    }
}

/// Sends these frames one after the other; returns when the last one leaves.
pub(super) fn one_by_one(id: u32, turn: &mut Turn<'_>, frames: Vec<Vec<u8>>) -> Nanos {
    let mut at = Nanos::ZERO;
    for (nth, frame) in frames.into_iter().enumerate() {
        at = if nth > 0 { at + turn.within(20) } else { at };
        turn.plan(at, Step::Frame(id, frame));
    }
    at
}

/// Ways of [`interfere`].
pub(super) const INTERFERENCES: u8 = 12;

/// What happens to a session whatever it carries; `complete` responds rightly.
pub(super) fn interfere(
    conn: &mut Conn,
    id: u32,
    turn: &mut Turn<'_>,
    way: u8,
    complete: fn(&mut Conn, u32, &mut Turn<'_>, Nanos),
) {
    let (now, soon) = (Nanos::ZERO, turn.within(20));
    match way {
        // Nothing.
        0 => {}
        1 => {
            let late = turn.within(300);
            turn.close(late);
        }
        2 => {
            let code = CODES[turn.random.below(5) as usize];
            turn.plan(soon, Step::Frame(id, frame(|out| write_reset(out, id, code))));
            turn.plan(soon, Step::Forget(id));
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
        // Data of a stream that has not begun.
        10 => {
            turn.page.doubt();
            turn.send(soon, b"\0\0\x01\0\0\0\0\x03\xe7x".as_slice());
        }
        _ => turn.close(soon),
    }
}

/// The end of the session, with any last stream, and perhaps with an error; the connection is closed, or left to the client.
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
        0 => turn.plan(after, Step::Close(Close::Graceful)),
        1 => {
            let later = after + turn.within(100);
            turn.close(later);
        }
        _ => {}
    }
}

/// Fewer streams from now on, or none.
fn settings(turn: &mut Turn<'_>, after: Nanos) {
    let most = turn.random.below(3) as u8;
    turn.send(after, vec![0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, most]);
    if most == 0 {
        turn.plan(after, Step::Announce(Nanos::ZERO));
    }
}

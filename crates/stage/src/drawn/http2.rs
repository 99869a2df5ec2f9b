//! HTTP/2, as the drawn server speaks it.

use std::collections::HashMap;

use net::Close;
use units::Nanos;
use wire::http2::{
    Code, Connection, Context, Event, Response, Role, SERVER_PREFACE, SETTINGS_ACK, Scratch, Stream,
    write_goaway, write_ping, write_pong, write_reset, write_response_fields,
};

use super::{
    books::Outcome,
    server::{Speaks, Step, Turn},
};

/// Room for a response.
const ROOM: usize = 256;
const CODES: [Code; 5] =
    [Code::REFUSED_STREAM, Code::INTERNAL_ERROR, Code::CANCEL, Code::ENHANCE_YOUR_CALM, Code::NO_ERROR];

/// Requests have no content.
pub(super) struct Http2 {
    scratch: Scratch,
}

impl Http2 {
    pub(super) fn new() -> Http2 {
        Http2 { scratch: Scratch::new() }
    }
}

/// A connection.
pub(super) struct Conn {
    connection: Connection,
    streams: HashMap<u32, Stream>,
    /// The last stream that it acts on.
    last: u32,
}

impl Speaks for Http2 {
    type Conn = Conn;
    const WAYS: u8 = 18;

    fn begin(&mut self, turn: &mut Turn<'_>) -> Conn {
        turn.send(Nanos::ZERO, SERVER_PREFACE);
        Conn { connection: Connection::new(Role::Server), streams: HashMap::new(), last: u32::MAX }
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
            Some(Event::Request(_, stream)) => {
                conn.streams.insert(id, stream);
                turn.received(id, used);
                if id > conn.last {
                    turn.forget(id, true);
                } else {
                    let way = turn.way();
                    respond(conn, id, turn, way);
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

fn frame(write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut out = vec![0; ROOM];
    let length = write(&mut out).expect("room");
    out.truncate(length);
    out
}

/// Head and content.
fn response(conn: &mut Conn, id: u32, status: u16, content: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let stream = conn.streams.get_mut(&id).expect("it was requested");
    let fields =
        frame(|out| write_response_fields(out, &Response { status, content_type: "", content_length: None }));
    let head = frame(|out| conn.connection.write_headers(out, stream, &fields, content.is_empty()));
    let body = match content {
        [] => Vec::new(),
        _ => frame(|out| Some(conn.connection.write_data(out, stream, content, true).0)),
    };
    conn.streams.remove(&id);
    (head, body)
}

fn complete(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, after: Nanos, (status, content): (u16, &[u8])) {
    let (mut head, body) = response(conn, id, status, content);
    head.extend(body);
    turn.plan(after, Step::Frame(id, head));
    turn.done(after, id, Outcome { status, is_right: (status, content) == RIGHT, is_sure: true });
}

const RIGHT: (u16, &[u8]) = (200, b"hello");

fn respond(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, way: u8) {
    let (now, soon) = (Nanos::ZERO, turn.within(20));
    match way {
        0 => complete(conn, id, turn, now, RIGHT),
        1 => {
            let late = turn.within(150);
            complete(conn, id, turn, late, RIGHT);
        }
        2 => {}
        3 => {
            let late = turn.within(300);
            turn.close(late);
        }
        4 | 5 => {
            let (head, body) = response(conn, id, 200, b"hello");
            turn.plan(now, Step::Frame(id, head));
            match way {
                // It begins, and does not end before the connection does.
                4 if turn.coin() => turn.close(soon),
                4 => {}
                _ => {
                    turn.plan(soon, Step::Frame(id, body));
                    turn.done(soon, id, Outcome { status: 200, is_right: true, is_sure: true });
                }
            }
        }
        6 => complete(conn, id, turn, soon, (503, b"no")),
        7 => complete(conn, id, turn, soon, (200, b"hell")),
        8 => complete(conn, id, turn, soon, (404, b"")),
        9 => {
            let code = CODES[turn.random.below(5) as usize];
            turn.plan(soon, Step::Frame(id, frame(|out| write_reset(out, id, code))));
            turn.plan(soon, Step::Forget(id));
        }
        10 | 11 => {
            complete(conn, id, turn, now, RIGHT);
            goaway(conn, id, turn, if way == 10 { now } else { soon });
        }
        12 | 13 => goaway(conn, id, turn, if way == 12 { now } else { soon }),
        14 => {
            complete(conn, id, turn, now, RIGHT);
            settings(turn, soon);
        }
        15 => {
            complete(conn, id, turn, now, RIGHT);
            let later = turn.within(200);
            turn.close(later);
        }
        16 => {
            turn.send(now, frame(|out| write_ping(out, *b"whatever")));
            complete(conn, id, turn, soon, RIGHT);
        }
        // Data of a stream that has not begun.
        17 => {
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

//! WebSocket over HTTP/2 (RFC 8441), as the drawn server speaks it: one per stream; the close of one closes all.

use std::collections::HashMap;

use units::Nanos;
use wire::{
    http2::{
        Code, Connection, Context, Event, Role, SERVER_PREFACE, SETTINGS_ACK, Scratch, Stream, write_goaway,
        write_pong, write_reset, write_window_update,
    },
    websocket::{Event as Message, Frames, Role as End, write_close},
};

use super::{
    books::Outcome,
    http2::frame,
    server::{Speaks, Step, Turn},
};

/// The server's echo of the client's message.
const ECHO: &[u8] = b"\x81\x05hello";
const LONGEST: u64 = 1_000;
const RIGHT: Outcome = Outcome { status: None, is_right: true, is_sure: true };
const WRONG: Outcome = Outcome { is_right: false, ..RIGHT };
const CODES: [u16; 3] = [1000, 1001, 4401];
/// Octets of a masked close with a code, in an HTTP/2 frame.
const CLOSE: u64 = 9 + 8;
/// SETTINGS without extended CONNECT; with it and a limit of 0 or 1 streams; and a later limit of 8 streams.
const WITHOUT: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const NO_STREAM: &[u8] = b"\0\0\x0c\x04\0\0\0\0\0\0\x08\0\0\0\x01\0\x03\0\0\0\0";
const ONE_STREAM: &[u8] = b"\0\0\x0c\x04\0\0\0\0\0\0\x08\0\0\0\x01\0\x03\0\0\0\x01";
const EIGHT_STREAMS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x08";
/// Number of wrong ways to begin a session; they follow the wrong ways to treat a message.
const OPENINGS: u8 = 9;
const MESSAGES: u8 = 18;

/// The protocol: sessions, upgrades, messages, and closing handshakes.
pub(super) struct Tunnels {
    scratch: Scratch,
}

impl Tunnels {
    pub(super) fn new() -> Tunnels {
        Tunnels { scratch: Scratch::new() }
    }
}

/// A connection.
pub(super) struct Conn {
    connection: Connection,
    tunnels: HashMap<u32, Tunnel>,
    /// How the next request for a WebSocket is treated.
    opening: u8,
    /// The end of the session is planned: no more replies.
    is_closing: bool,
    /// A client that takes a pushed message for its reply sends its next message, so each push adds one to those under way.
    has_pushed: bool,
}

/// A WebSocket.
struct Tunnel {
    stream: Stream,
    frames: Frames,
    /// The incomplete frame.
    begun: Vec<u8>,
}

impl Speaks for Tunnels {
    type Conn = Conn;

    fn ways(&self) -> u8 {
        MESSAGES + OPENINGS
    }

    fn begin(&mut self, turn: &mut Turn<'_>) -> Conn {
        let opening = turn.way().saturating_sub(MESSAGES);
        // A late limit is still in time, and one stream is enough.
        if !matches!(opening, 0 | 3 | 4) {
            turn.page.blame();
        }
        let soon = turn.within(60);
        match opening {
            1 => turn.send(Nanos::ZERO, WITHOUT),
            2 | 3 => {
                turn.send(Nanos::ZERO, NO_STREAM);
                if opening == 3 {
                    turn.send(soon, EIGHT_STREAMS);
                }
            }
            4 => turn.send(Nanos::ZERO, ONE_STREAM),
            _ => turn.send(Nanos::ZERO, SERVER_PREFACE),
        }
        let connection = Connection::new(Role::Server);
        Conn { connection, tunnels: HashMap::new(), opening, is_closing: false, has_pushed: false }
    }

    fn read(&mut self, conn: &mut Conn, input: &[u8], turn: &mut Turn<'_>) -> usize {
        let id = conn.connection.reads(input);
        let stream = conn.tunnels.get_mut(&id).map(|tunnel| &mut tunnel.stream);
        let context =
            Context { scratch: &mut self.scratch, table: None, second: 0, expected: &[], fields: None };
        let (used, event) =
            conn.connection.handle_bytes(input, stream, context).expect("a client that keeps to the RFC");
        match event {
            Some(Event::Settings | Event::Opened) => turn.send(Nanos::ZERO, SETTINGS_ACK),
            Some(Event::Request(request, stream)) => {
                assert_eq!((request.method, request.protocol), ("CONNECT", Some("websocket")));
                let frames = Frames::new(End::Server);
                conn.tunnels.insert(id, Tunnel { stream, frames, begun: Vec::new() });
                welcome(conn, id, turn);
            }
            Some(Event::Data(data)) => {
                if let Some(tunnel) = conn.tunnels.get_mut(&id) {
                    tunnel.begun.extend(data.bytes);
                }
                digest(conn, id, turn);
                raise(conn, id, turn);
            }
            Some(Event::Reset(_)) => {
                conn.tunnels.remove(&id);
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

/// Raises the client's windows when due.
fn raise(conn: &mut Conn, id: u32, turn: &mut Turn<'_>) {
    let own = conn.tunnels.get_mut(&id).and_then(|it| conn.connection.take_stream_credit(&mut it.stream));
    for (id, by) in [(0, conn.connection.take_credit()), (id, own)] {
        if let Some(by) = by {
            turn.send(Nanos::ZERO, frame(|out| write_window_update(out, id, by)));
        }
    }
}

/// A WebSocket is requested.
fn welcome(conn: &mut Conn, id: u32, turn: &mut Turn<'_>) {
    let soon = turn.within(20);
    let mut head = |status: &[u8], ends| {
        let stream = &mut conn.tunnels.get_mut(&id).expect("it was asked for").stream;
        frame(|out| conn.connection.write_headers(out, stream, status, ends))
    };
    // Indices of the HPACK static table: 404 and 200.
    match conn.opening {
        5 => turn.send(soon, head(b"\x8d", true)),
        6 => turn.send(soon, frame(|out| write_reset(out, id, Code::REFUSED_STREAM))),
        7 => {}
        8 => {
            let late = turn.within(150);
            turn.send(late, head(b"\x88", false));
        }
        9 => turn.close(soon),
        _ => turn.send(Nanos::ZERO, head(b"\x88", false)),
    }
}

/// Reads the input of a WebSocket.
fn digest(conn: &mut Conn, id: u32, turn: &mut Turn<'_>) {
    loop {
        let Some(Tunnel { frames, begun, .. }) = conn.tunnels.get_mut(&id) else { return };
        let (used, event) = frames.handle_bytes(begun, LONGEST).expect("a client that keeps to the RFC");
        let (is_message, is_close) = match event {
            Some(Message::Data(data)) => (data.ends, false),
            Some(Message::Closing(_)) => (false, true),
            _ => (false, false),
        };
        begun.drain(..used);
        if is_close {
            turn.books.farewell(turn.now, CLOSE);
        }
        if is_message {
            turn.received(id, used);
            let is_ended = conn.tunnels.get(&id).is_some_and(|it| it.stream.is_sent());
            if !conn.is_closing && !is_ended {
                let way = turn.way();
                respond(conn, id, turn, way);
            }
        }
        if used == 0 {
            return;
        }
    }
}

/// Sends these bytes on a WebSocket.
fn send(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, after: Nanos, bytes: &[u8]) {
    let Some(Tunnel { stream, .. }) = conn.tunnels.get_mut(&id) else { return };
    turn.send(after, frame(|out| Some(conn.connection.write_data(out, stream, bytes, false).0)));
}

fn complete(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, after: Nanos, (bytes, outcome): (&[u8], Outcome)) {
    send(conn, id, turn, after, bytes);
    turn.done(after, id, outcome);
}

fn respond(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, way: u8) {
    let (now, soon) = (Nanos::ZERO, turn.within(20));
    let right = (ECHO, RIGHT);
    if turn.meets_hardship() {
        return turn.flood();
    }
    let pushes = matches!(way, 9 | 11);
    let way = if pushes && conn.has_pushed { 0 } else { way };
    conn.has_pushed |= pushes;
    match way {
        1 => {
            let late = turn.within(150);
            complete(conn, id, turn, late, right);
        }
        2 => {}
        3 => {
            let late = turn.within(300);
            turn.close(late);
        }
        4 | 5 => {
            send(conn, id, turn, soon, &ECHO[..4]);
            if way == 5 {
                turn.close(soon);
            }
        }
        6 => {
            send(conn, id, turn, now, b"\x01\x02he\x89\x01x");
            complete(conn, id, turn, soon, (b"\x80\x03llo", RIGHT));
        }
        7 => {
            complete(conn, id, turn, now, right);
            let later = turn.within(200);
            turn.close(later);
        }
        8 => complete(conn, id, turn, soon, (b"\x81\x05hullo", WRONG)),
        9..=11 => {
            // The next message may be under way by then, or the pushed message is taken for its reply.
            turn.page.doubt();
            let bytes: [&[u8]; 3] =
                [b"\x81\x05hello\x81\x03new", b"\x81\x85\0\0\0\0hello", b"\x81\x03new\x81\x05hello"];
            complete(conn, id, turn, soon, (bytes[usize::from(way - 9)], RIGHT));
        }
        12 | 13 => {
            if way == 12 {
                complete(conn, id, turn, now, right);
            }
            leave(conn, id, turn, soon);
        }
        14 => {
            let code = [Code::REFUSED_STREAM, Code::NO_ERROR, Code::CANCEL][turn.random.below(3) as usize];
            turn.send(soon, frame(|out| write_reset(out, id, code)));
            turn.plan(soon, Step::Blame);
        }
        15 | 16 => {
            if way == 15 {
                complete(conn, id, turn, now, right);
            }
            goaway(turn, soon);
            conn.is_closing = true;
        }
        // The stream ends without a close frame.
        17 => end(conn, id, turn, soon),
        18 => {
            complete(conn, id, turn, now, right);
            turn.send(soon, ONE_STREAM);
        }
        _ => complete(conn, id, turn, now, right),
    }
}

fn end(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, after: Nanos) {
    if let Some(Tunnel { stream, .. }) = conn.tunnels.get_mut(&id) {
        turn.send(after, frame(|out| Some(conn.connection.write_data(out, stream, b"", true).0)));
    }
    turn.plan(after, Step::Blame);
}

/// Announces the end: nothing after this is a response.
fn part(turn: &mut Turn<'_>, after: Nanos) {
    turn.plan(after, Step::Announce(Nanos::ZERO));
    turn.plan(after, Step::Goaway(0));
}

/// Ends the session; the connection is closed, or left to the client.
fn goaway(turn: &mut Turn<'_>, after: Nanos) {
    let code = if turn.random.below(4) == 0 { Code::ENHANCE_YOUR_CALM } else { Code::NO_ERROR };
    turn.send(after, frame(|out| write_goaway(out, u32::MAX >> 1, code)));
    part(turn, after);
    if code != Code::NO_ERROR {
        turn.plan(after, Step::Blame);
    }
    if turn.random.below(3) == 0 {
        turn.close(after);
    }
}

/// Closes one WebSocket.
fn leave(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, after: Nanos) {
    let code = CODES[turn.random.below(3) as usize];
    let mut close = [0; 8];
    let length = write_close(&mut close, Some(code), None).expect("room");
    send(conn, id, turn, after, &close[..length]);
    if code <= 1001 {
        part(turn, after);
    } else {
        turn.plan(after, Step::Blame);
    }
    conn.is_closing = true;
    if turn.random.below(3) == 0 {
        turn.close(after);
    }
}

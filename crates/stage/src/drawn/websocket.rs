//! WebSocket, as the drawn server speaks it.

use units::Nanos;
use wire::websocket::{Event, Frames, Role, accept_key, write_close};

use super::{
    books::Outcome,
    server::{Speaks, Step, Turn},
};

/// The server's echo of the client's message.
const ECHO: &[u8] = b"\x81\x05hello";
const LONGEST: u64 = 1_000;
const RIGHT: Outcome = Outcome { status: None, is_right: true, is_sure: true };
/// Close codes; the first two are planned closes.
const CODES: [u16; 4] = [1000, 1001, 1011, 4401];

/// The protocol: upgrades, messages, and closing handshakes.
pub(super) struct WebSocket;

/// A connection.
pub(super) struct Conn {
    frames: Option<Frames>,
    /// The server has sent its close.
    is_closing: bool,
    /// A client that takes a pushed message for its reply sends its next message, so each push adds one to those under way.
    has_pushed: bool,
}

impl Speaks for WebSocket {
    type Conn = Conn;

    fn ways(&self) -> u8 {
        14
    }

    fn begin(&mut self, _: &mut Turn<'_>) -> Conn {
        Conn { frames: None, is_closing: false, has_pushed: false }
    }

    fn read(&mut self, conn: &mut Conn, input: &[u8], turn: &mut Turn<'_>) -> usize {
        let Some(frames) = &mut conn.frames else { return welcome(conn, input, turn) };
        let (used, event) = frames.handle_bytes(input, LONGEST).expect("a client that keeps to the RFC");
        match event {
            Some(Event::Data(data)) if data.ends => {
                turn.received(0, used);
                if !conn.is_closing {
                    let way = turn.way();
                    respond(conn, turn, way);
                }
            }
            Some(Event::Closing(_)) => {
                turn.books.farewell(turn.now, used as u64);
                turn.plan(Nanos::ZERO, Step::Leave);
            }
            _ => {}
        }
        used
    }
}

fn welcome(conn: &mut Conn, input: &[u8], turn: &mut Turn<'_>) -> usize {
    let Some(at) = input.windows(4).position(|four| four == b"\r\n\r\n") else { return 0 };
    let head = str::from_utf8(&input[..at]).expect("text");
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key");
    let accept = accept_key(key.as_bytes());
    let accept = str::from_utf8(&accept).expect("base64");
    let right = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    let soon = turn.within(20);
    // Half as often as a message is treated wrongly.
    let way = if turn.coin() { turn.way() } else { 0 };
    if (1..=6).contains(&way) {
        turn.page.blame();
    }
    match way {
        1 => {
            let late = turn.within(150);
            turn.send(late, right.into_bytes());
        }
        2 => {}
        3 => {
            let late = turn.within(150);
            turn.close(late);
        }
        4 => turn.send(soon, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".as_slice()),
        5 => turn.send(soon, b"SSH-2.0-OpenSSH_9\r\n\r\n".as_slice()),
        6 => {
            turn.send(soon, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".as_slice());
            turn.close(soon);
        }
        _ => turn.send(Nanos::ZERO, right.into_bytes()),
    }
    conn.frames = Some(Frames::new(Role::Server));
    at + 4
}

fn respond(conn: &mut Conn, turn: &mut Turn<'_>, way: u8) {
    let (now, soon) = (Nanos::ZERO, turn.within(20));
    let complete = |turn: &mut Turn<'_>, after, bytes: &'static [u8], outcome| {
        turn.send(after, bytes);
        turn.done(after, 0, outcome);
    };
    if !conn.has_pushed && turn.meets_hardship() {
        conn.has_pushed = true;
        turn.page.doubt();
        let numbers = turn.numbers();
        turn.send(now, numbers);
    }
    let pushes = matches!(way, 9 | 11);
    let way = if pushes && conn.has_pushed { 0 } else { way };
    conn.has_pushed |= pushes;
    match way {
        0 => complete(turn, now, ECHO, RIGHT),
        1 => {
            let late = turn.within(150);
            complete(turn, late, ECHO, RIGHT);
        }
        2 => {}
        3 => {
            let late = turn.within(300);
            turn.close(late);
        }
        4 => turn.send(soon, &ECHO[..4]),
        5 => {
            turn.send(soon, &ECHO[..4]);
            turn.close(soon);
        }
        6 => {
            turn.send(now, b"\x01\x02he\x89\x01x".as_slice());
            complete(turn, soon, b"\x80\x03llo", RIGHT);
        }
        7 => {
            complete(turn, now, ECHO, RIGHT);
            let later = turn.within(200);
            turn.close(later);
        }
        8 => complete(turn, soon, b"\x81\x05hullo", Outcome { is_right: false, ..RIGHT }),
        9 => {
            // The next message may be under way by then.
            turn.page.doubt();
            complete(turn, soon, b"\x81\x05hello\x81\x03new", RIGHT);
        }
        10 => {
            turn.page.doubt();
            complete(turn, soon, b"\x81\x85\0\0\0\0hello", RIGHT);
        }
        // Pushed before the reply.
        11 => {
            turn.page.doubt();
            complete(turn, soon, b"\x81\x03new\x81\x05hello", RIGHT);
        }
        12 => {
            complete(turn, now, ECHO, RIGHT);
            leave(conn, turn, now);
        }
        _ => leave(conn, turn, soon),
    }
}

/// Sends a close; the client replies, and closes unless the server does so at once.
fn leave(conn: &mut Conn, turn: &mut Turn<'_>, after: Nanos) {
    let code = CODES[turn.random.below(4) as usize];
    let mut frame = [0; 8];
    let length = write_close(&mut frame, Some(code), None).expect("room");
    turn.send(after, frame[..length].to_vec());
    if code <= 1001 {
        turn.plan(after, Step::Announce(Nanos::ZERO));
    } else {
        turn.plan(after, Step::Blame);
    }
    conn.is_closing = true;
    if turn.random.below(3) == 0 {
        turn.close(after);
    }
}

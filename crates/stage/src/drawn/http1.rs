//! HTTP/1.1, as the drawn server speaks it.

use units::Nanos;

use super::{
    books::Outcome,
    server::{Speaks, Step, Turn, layered::Ending},
};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const CLOSE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
const TIMED_OUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const RIGHT: Outcome = Outcome { status: Some(200), is_right: true, is_sure: true };

const fn wrong(status: u16) -> Outcome {
    Outcome { status: Some(status), is_right: false, is_sure: true }
}

/// The protocol: requests, with bodies or without.
pub(super) struct Http1;

/// A connection.
#[derive(Default)]
pub(super) struct Conn {
    /// The next request gets no response until the connection is closed.
    hangs: bool,
    /// Octets of the body still to come.
    left: usize,
    /// How the incomplete request will be treated; `None` if that is done.
    way: Option<u8>,
}

/// Ways to treat a request before its body has come; a request without a body is treated rightly instead.
const EARLY: std::ops::RangeInclusive<u8> = 21..=25;

impl Speaks for Http1 {
    type Conn = Conn;

    fn ways(&self) -> u8 {
        *EARLY.end()
    }

    fn begin(&mut self, _: &mut Turn<'_>) -> Conn {
        Conn::default()
    }

    fn read(&mut self, conn: &mut Conn, input: &[u8], turn: &mut Turn<'_>) -> usize {
        if conn.left > 0 {
            let n = conn.left.min(input.len());
            conn.left -= n;
            if conn.left == 0
                && let Some(way) = conn.way.take()
            {
                act(conn, turn, way, n);
            }
            return n;
        }
        let Some(at) = input.windows(4).position(|four| four == b"\r\n\r\n") else { return 0 };
        conn.left = length(&input[..at]);
        if conn.left > 0 {
            turn.page.upload();
        }
        let way = turn.way();
        match (conn.left, EARLY.contains(&way)) {
            (0, true) => act(conn, turn, 0, at + 4),
            (0, false) => act(conn, turn, way, at + 4),
            (_, true) => act_early(turn, way),
            (_, false) => conn.way = Some(way),
        }
        at + 4
    }
}

/// The content length in the head of a request.
fn length(head: &[u8]) -> usize {
    let head = str::from_utf8(head).expect("text");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    length.map_or(0, |length| length.parse().expect("a number"))
}

/// A request is complete; `bytes`: the size of its last part.
fn act(conn: &mut Conn, turn: &mut Turn<'_>, way: u8, bytes: usize) {
    turn.received(0, bytes);
    if conn.hangs {
        // Long after the request, at the announced end of the connection.
        let late = Nanos::from_secs(1) + turn.within(1_200);
        turn.close(late);
    } else if turn.meets_hardship() {
        // HAProxy, Apache and Node announce the close of an idle connection like this.
        complete(turn, Nanos::ZERO, OK, RIGHT);
        let later = turn.within(100);
        turn.plan(later, Step::TimeOut(TIMED_OUT));
    } else {
        respond(conn, turn, way);
    }
}

/// The head of a request has come, and its body is under way.
fn act_early(turn: &mut Turn<'_>, way: u8) {
    const TOO_LARGE: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
    const AND_CLOSE: &str =
        "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let soon = turn.within(20);
    turn.received(0, 0);
    match way {
        21 => complete(turn, Nanos::ZERO, OK, RIGHT),
        22 => complete(turn, soon, TOO_LARGE, wrong(413)),
        23 | 24 => {
            complete(turn, Nanos::ZERO, AND_CLOSE, wrong(413));
            turn.plan(Nanos::ZERO, Step::Announce(Nanos::ZERO));
            // Closing with part of the body unread causes a reset; otherwise the body is read until the client closes.
            if way == 23 {
                turn.close(Nanos::ZERO);
            }
        }
        _ => turn.close(soon),
    }
}

fn complete(turn: &mut Turn<'_>, after: Nanos, text: &'static str, outcome: Outcome) {
    turn.send(after, text.as_bytes());
    turn.done(after, 0, outcome);
}

fn respond(conn: &mut Conn, turn: &mut Turn<'_>, way: u8) {
    let (now, soon) = (Nanos::ZERO, turn.within(20));
    match way {
        0 => complete(turn, now, OK, RIGHT),
        1 => {
            let late = turn.within(150);
            complete(turn, late, OK, RIGHT);
        }
        2 => in_pieces(turn, OK.len(), true),
        // Never.
        3 => {}
        4 => {
            let late = turn.within(300);
            turn.close(late);
        }
        5 | 6 => {
            let until = 1 + turn.random.below(OK.len() as u64 - 2) as usize;
            in_pieces(turn, until, false);
            if way == 6 {
                let late = turn.within(150);
                turn.close(late);
            }
        }
        7 => complete(turn, soon, "HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno", wrong(503)),
        8 => complete(turn, soon, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell", wrong(200)),
        9 => {
            turn.page.doubt();
            turn.send(soon, b"GARBAGE\r\n\r\n".as_slice());
        }
        10 => {
            turn.send(now, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".as_slice());
            let late = turn.within(110);
            complete(turn, late, OK, RIGHT);
        }
        11 | 12 => {
            complete(turn, soon, CLOSE, RIGHT);
            turn.plan(soon, Step::Announce(Nanos::ZERO));
            // Or the close is left to the client.
            if way == 12 {
                turn.close(soon);
            }
        }
        13 => keep_alive(conn, turn),
        14 => turn.close(soon),
        15 => {
            complete(turn, now, OK, RIGHT);
            let later = turn.within(200);
            turn.close(later);
        }
        16 => {
            complete(turn, now, OK, RIGHT);
            turn.page.doubt();
            let later = turn.within(100);
            turn.send(later, TIMED_OUT);
            turn.plan(later, Step::Announce(Nanos::ZERO));
            turn.close(later);
        }
        17 => until_the_end(turn, soon),
        18 => complete(turn, soon, "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello", wrong(404)),
        19 => {
            let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
            complete(turn, soon, text, RIGHT);
        }
        // More than the content length.
        _ => {
            turn.page.doubt();
            complete(turn, soon, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world", RIGHT);
        }
    }
}

/// Sends the response up to `until`, in three parts.
fn in_pieces(turn: &mut Turn<'_>, until: usize, is_whole: bool) {
    let (first, second) = (until / 3, until / 3 * 2);
    let mut at = Nanos::ZERO;
    turn.send(at, &OK.as_bytes()[..first]);
    for part in [&OK[first..second], &OK[second..until]] {
        at = at + turn.within(if is_whole { 40 } else { 10 });
        turn.send(at, part.as_bytes());
    }
    if is_whole {
        turn.done(at, 0, RIGHT);
    } else {
        turn.plan(at, Step::Part(0));
    }
}

/// Announces the end of the connection for one or two seconds from now; it comes then, or at another time.
fn keep_alive(conn: &mut Conn, turn: &mut Turn<'_>) {
    let seconds = 1 + turn.random.below(2);
    let text = match seconds {
        1 => "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 5\r\n\r\nhello",
        _ => "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 5\r\n\r\nhello",
    };
    complete(turn, Nanos::ZERO, text, RIGHT);
    // Servers count whole seconds, so a second earlier is announced, too.
    turn.plan(Nanos::ZERO, Step::Announce(turn.now + Nanos::from_secs(seconds - 1)));
    let at = match turn.random.below(3) {
        0 => Nanos::from_secs(seconds),
        1 => turn.within(100),
        _ => {
            conn.hangs = turn.coin();
            return;
        }
    };
    let ending = turn.ending();
    turn.finish(at, ending);
}

/// The end of the connection ends the response (RFC 9112, section 6.3), unless it is a reset, or lacks close_notify.
fn until_the_end(turn: &mut Turn<'_>, after: Nanos) {
    turn.send(after, b"HTTP/1.1 200 OK\r\n\r\nhello".as_slice());
    let ending = turn.ending();
    match ending {
        Ending::Cut => turn.plan(after, Step::Forget(0)),
        _ => turn.done(after, 0, RIGHT),
    }
    turn.plan(after, Step::Announce(Nanos::ZERO));
    turn.finish(after, ending);
}

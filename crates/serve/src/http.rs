//! The HTTP reference server: `/`, `/?length=N`, `/delay?for=5s&length=N`, `/ws/echo`, `/stats`.

use std::sync::Arc;

use net::{Cx, Gone, Io, Key, Program};
use units::{Nanos, Spans};
use wire::{
    http1::{self, CONTINUE, Event, Request, Response},
    websocket::{self as ws, Frames, Role},
};

use crate::{
    counters::{Counters, Stats},
    gate::Gate,
    knobs::{Due, Knobs, Stalls, Watch},
    threads::Serves,
    websocket,
};

/// Longest answer: the source texts' servers clamp `length` to 1..10240.
const LONGEST: u64 = 10_240;
const HEAD_ROOM: usize = 256;
/// Close frames written in one turn of a server that stops.
const GOODBYES_A_TURN: usize = 1024;
/// The close code of a server that stops.
const GOING_AWAY: u16 = 1001;
/// Longest `/delay`.
const LONGEST_DELAY: Nanos = Nanos::from_secs(24 * 3600);

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello World!";

/// What a request will be answered with once all of it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Hello,
    /// So many characters.
    Text(u16),
    Stats,
    /// The echo from here on; the upgrade has been answered.
    Echo,
    /// Only as a WebSocket.
    UpgradeRequired,
    /// Nothing but a status.
    Empty(u16),
}

/// What a connection speaks.
#[derive(Clone, Copy)]
enum Wire {
    Http(http1::Server),
    WebSocket(Frames),
}

/// The idle record of a connection.
#[derive(Clone, Copy)]
struct Conn {
    wire: Wire,
    answer: Answer,
    flags: u8,
    /// `/delay`: milliseconds to wait before the answer.
    delay_ms: u32,
}

const _: () = assert!(size_of::<Conn>() <= 40, "the idle record is what a million connections cost");

const KEEPS_ALIVE: u8 = 1;
const HTTP10: u8 = 2;
const HEAD: u8 = 4;
/// The answer waits for its time; input is left alone.
const WAITING: u8 = 8;
/// Will be closed when what was sent has left.
const FINISHING: u8 = 16;

impl Conn {
    const NEW: Conn =
        Conn { wire: Wire::Http(http1::Server::new()), answer: Answer::Hello, flags: 0, delay_ms: 0 };

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// One shard of the server.
pub struct Http {
    conns: Vec<Conn>,
    stats: Stats,
    gate: Gate,
    watch: Watch,
    stalls: Stalls,
    /// Answers that wait for their time.
    waiting: u64,
    /// While stopping: WebSockets below this index have been told that we go.
    told: usize,
    text: Box<[u8]>,
}

impl Http {
    /// Shard number `shard`, which publishes to `counters`.
    pub fn new(counters: Arc<Counters>, shard: u32, connections: u32, knobs: &Knobs) -> Http {
        let phrase = b"throng holds a million connections and says what each one costs. ";
        Http {
            gate: Gate::new(counters, shard, knobs),
            watch: Watch::new(knobs),
            stalls: Stalls::new(knobs.stalls_of_million),
            conns: Vec::with_capacity(connections as usize),
            stats: Stats::default(),
            waiting: 0,
            told: 0,
            text: phrase.iter().copied().cycle().take(LONGEST as usize).collect(),
        }
    }

    fn conn(&mut self, k: Key) -> &mut Conn {
        &mut self.conns[k.index as usize]
    }

    /// Reads until an answer is due; at most one send a call, so that a slow reader's answers stay in order.
    fn read<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let Wire::Http(wire) = &mut self.conn(k).wire else { return used };
            match wire.handle_bytes(&input[used..]) {
                Err(_) => {
                    self.stats.errors += 1;
                    let conn = self.conn(k);
                    (conn.answer, conn.flags) = (Answer::Empty(400), 0);
                    self.answer(cx, k);
                    return input.len();
                }
                Ok((0, None)) => return used,
                Ok((n, None | Some(Event::Data(_) | Event::Interim(_)))) => used += n,
                Ok((n, Some(Event::Head(request)))) => {
                    used += n;
                    decide(self.conn(k), &request);
                    self.accept_upgrade(cx, k, &request);
                    if request.expects_continue && used == input.len() {
                        self.stats.bytes_out += CONTINUE.len() as u64;
                        cx.send_static(k, CONTINUE);
                        return used;
                    }
                }
                Ok((n, Some(Event::End))) => {
                    used += n;
                    self.asked(cx, k);
                    if used < input.len() && cx.is_open(k) {
                        cx.call_again(k);
                    }
                    return used;
                }
            }
        }
    }

    /// A request is complete.
    fn asked<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Conn { delay_ms, answer, .. } = *self.conn(k);
        if answer == Answer::Echo {
            self.conn(k).wire = Wire::WebSocket(Frames::new(Role::Server));
            return;
        }
        if self.stalls.next() {
            return;
        }
        if delay_ms == 0 {
            return self.answer(cx, k);
        }
        self.conn(k).flags |= WAITING;
        self.waiting += 1;
        self.watch.owes(cx, k, cx.now() + Nanos::from_millis(u64::from(delay_ms)));
    }

    /// The key lives no longer than the head, so that the upgrade is answered with it; frames are read once the
    /// request is complete.
    fn accept_upgrade<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, request: &Request<'_>) {
        let (Answer::Echo, Some(offer)) = (self.conn(k).answer, request.websocket) else { return };
        let mut sent = 0;
        cx.send(k, HEAD_ROOM, |out| {
            sent = ws::write_accept(out, offer.key).expect("there is room for a head of ours");
            sent
        });
        self.stats.requests += 1;
        self.stats.bytes_out += sent as u64;
    }

    /// Echoes what came on a WebSocket; returns how much of it was used.
    fn echo<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let Wire::WebSocket(frames) = &mut self.conns[k.index as usize].wire else {
            unreachable!("only a WebSocket echoes")
        };
        let mut echoed = websocket::Echoed::default();
        let stalls = &mut self.stalls;
        cx.send(k, input.len() + websocket::ROOM, |out| {
            echoed = websocket::echo(frames, input, out);
            // What stalls is taken and never echoed.
            if echoed.answered > 0 && stalls.next() {
                (echoed.answered, echoed.written) = (0, 0);
            }
            echoed.written
        });
        self.stats.requests += echoed.answered;
        self.stats.bytes_out += echoed.written as u64;
        self.stats.errors += u64::from(echoed.breached);
        if echoed.ends {
            self.conn(k).flags |= FINISHING;
            cx.finish(k);
        }
        echoed.used
    }

    /// Tells a part of the WebSockets that we go away (RFC 6455 section 7.4.1).
    fn say_goodbye<I: Io>(&mut self, cx: &mut Cx<I>) {
        let until = self.conns.len().min(self.told + GOODBYES_A_TURN);
        for index in self.told..until {
            let Some(k) = cx.at(index as u32).filter(|k| cx.is_open(*k)) else { continue };
            let conn = self.conns[index];
            if matches!(conn.wire, Wire::WebSocket(_)) && !conn.is(FINISHING) && !cx.is_clogged(k) {
                cx.send(k, ws::MAX_HEADER + ws::MAX_CONTROL, |out| {
                    ws::write_close(out, Some(GOING_AWAY), None).expect("there is room for a close")
                });
            }
        }
        self.told = until;
    }

    /// A connection has gone, or is about to be closed.
    fn leave(&mut self, k: Key) {
        self.waiting -= u64::from(self.conn(k).is(WAITING));
        self.gate.left(&mut self.stats);
    }

    fn answer_due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.conn(k).flags &= !WAITING;
        self.waiting -= 1;
        self.answer(cx, k);
        cx.call_again(k);
    }

    fn answer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let conn = *self.conn(k);
        self.stats.requests += 1;
        if conn.answer == Answer::Hello && conn.flags == KEEPS_ALIVE {
            self.stats.bytes_out += HELLO.len() as u64;
            return cx.send_static(k, HELLO);
        }
        let stats_text;
        let (status, content_type, body): (u16, _, &[u8]) = match conn.answer {
            Answer::Hello => (200, "text/plain", b"Hello World!"),
            Answer::Text(length) => (200, "text/plain", &self.text[..usize::from(length)]),
            Answer::Stats => {
                stats_text = self.gate.read(&self.stats).to_json();
                (200, "application/json", stats_text.as_bytes())
            }
            Answer::Empty(status) => (status, "", b""),
            Answer::UpgradeRequired => {
                self.stats.bytes_out += websocket::UPGRADE_REQUIRED.len() as u64;
                cx.send_static(k, websocket::UPGRADE_REQUIRED);
                self.conn(k).flags |= FINISHING;
                return cx.finish(k);
            }
            Answer::Echo => unreachable!("answered with its head"),
        };
        let head = Response {
            status,
            content_type,
            content_length: body.len() as u64,
            keeps_alive: conn.is(KEEPS_ALIVE),
            http10: conn.is(HTTP10),
        };
        let body = if conn.is(HEAD) { b"" } else { body };
        let mut sent = 0;
        cx.send(k, HEAD_ROOM + body.len(), |out| {
            let head_len = http1::write_response(out, &head).expect("there is room for a head of ours");
            out[head_len..head_len + body.len()].copy_from_slice(body);
            sent = head_len + body.len();
            sent
        });
        self.stats.bytes_out += sent as u64;
        if !conn.is(KEEPS_ALIVE) {
            self.conn(k).flags |= FINISHING;
            cx.finish(k);
        }
    }
}

/// What a request will be answered with.
fn decide(conn: &mut Conn, request: &Request<'_>) {
    let flag = |on: bool, flag: u8| if on { flag } else { 0 };
    conn.flags =
        flag(request.keeps_alive, KEEPS_ALIVE) | flag(request.http10, HTTP10) | flag(request.head, HEAD);
    conn.delay_ms = 0;
    let path = request.target.split('?').next().unwrap_or_default();
    conn.answer = match path {
        "/" => text(request.target),
        "/stats" => Answer::Stats,
        "/ws/echo" => match request.websocket {
            Some(offer) if offer.is_valid() => Answer::Echo,
            Some(offer) if offer.version == 13 => Answer::Empty(400),
            _ => Answer::UpgradeRequired,
        },
        "/delay" => match delay_ms(request.target) {
            Some(ms) => {
                conn.delay_ms = ms;
                text(request.target)
            }
            None => Answer::Empty(400),
        },
        _ => Answer::Empty(404),
    };
}

fn text(target: &str) -> Answer {
    match http1::query(target, "length").map(str::parse::<u64>) {
        None => Answer::Hello,
        Some(Ok(n)) => Answer::Text(n.clamp(1, LONGEST) as u16),
        Some(Err(_)) => Answer::Empty(400),
    }
}

/// `for=5s`; without it, no delay. None where it is no time.
fn delay_ms(target: &str) -> Option<u32> {
    let Some(text) = http1::query(target, "for") else { return Some(0) };
    let Spans { min, max } = Spans::parse(text).ok()?;
    (min == max).then(|| min.min(LONGEST_DELAY).millis() as u32)
}

impl Serves for Http {
    fn is_finished<I: Io>(&self, cx: &Cx<I>) -> bool {
        self.gate.is_stopping() && self.waiting == 0 && self.told == self.conns.len() && cx.clogged() == 0
    }
}

impl Program for Http {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if !self.gate.opened(cx, k, &mut self.stats) {
            return;
        }
        if k.index as usize >= self.conns.len() {
            self.conns.resize(k.index as usize + 1, Conn::NEW);
        }
        self.conns[k.index as usize] = Conn::NEW;
        self.watch.opened(cx, k);
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        match self.watch.due(cx, k) {
            Due::Nothing => {}
            Due::Answer => self.answer_due(cx, k),
            Due::Close(how) => {
                self.leave(k);
                cx.close(k, how);
            }
        }
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        self.watch.heard(cx, k);
        let conn = *self.conn(k);
        if conn.is(FINISHING) {
            return input.len();
        }
        if conn.is(WAITING) || cx.is_clogged(k) {
            return 0;
        }
        let used = match conn.wire {
            Wire::Http(_) => self.read(cx, k, input),
            Wire::WebSocket(_) => self.echo(cx, k, input),
        };
        self.stats.bytes_in += used as u64;
        used
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        if cx.is_open(k) {
            return self.leave(k);
        }
        self.gate.failed(cx, k, why, &mut self.stats);
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let next = self.gate.pace(cx, &self.stats);
        if self.gate.is_stopping() && self.told < self.conns.len() {
            self.say_goodbye(cx);
            return cx.now();
        }
        next
    }
}

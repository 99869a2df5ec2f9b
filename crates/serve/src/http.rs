//! The HTTP reference server: `/`, `/?length=N`, `/delay?for=5s&length=N`, `/stats`.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use net::{Close, Cx, Gone, Io, Key, Program};
use units::{Nanos, Spans};
use wire::http1::{self, Ask, CONTINUE, Request, Response};

use crate::counters::{Counters, Stats};

/// Accepts waiting for a peer at once, in each shard.
const ACCEPTS: u32 = 256;
/// After an accept failed for want of memory or files.
const REST_AFTER_FAILURE: Nanos = Nanos::from_millis(100);
/// A stopped or paused server is looked after this often.
const LOOK_AT_ORDERS: Nanos = Nanos::from_millis(100);
/// Longest answer: the source texts' servers clamp `length` to 1..10240.
const LONGEST: u64 = 10_240;
const HEAD_ROOM: usize = 256;
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
    /// Nothing but a status.
    Empty(u16),
}

/// The idle record of a connection.
#[derive(Clone, Copy)]
struct Conn {
    wire: http1::Server,
    answer: Answer,
    flags: u8,
    /// `/delay`: milliseconds to wait before the answer.
    delay_ms: u32,
}

const _: () = assert!(size_of::<Conn>() <= 32, "the idle record is what a million connections cost");

const KEEPS_ALIVE: u8 = 1;
const HTTP10: u8 = 2;
const HEAD: u8 = 4;
/// The answer waits for its time; input is left alone.
const WAITING: u8 = 8;
/// Will be closed when what was sent has left.
const FINISHING: u8 = 16;

impl Conn {
    const NEW: Conn = Conn { wire: http1::Server::new(), answer: Answer::Hello, flags: 0, delay_ms: 0 };

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// One shard of the server.
pub struct Http {
    counters: Arc<Counters>,
    shard: usize,
    conns: Vec<Conn>,
    stats: Stats,
    /// Accepts that wait for a peer.
    accepting: u32,
    rests_until: Nanos,
    /// Answers that wait for their time.
    waiting: u64,
    stopping: bool,
    text: Box<[u8]>,
}

impl Http {
    /// Shard number `shard`, which publishes to `counters`.
    pub fn new(counters: Arc<Counters>, shard: u32, connections: u32) -> Http {
        let phrase = b"throng holds a million connections and says what each one costs. ";
        Http {
            counters,
            shard: shard as usize,
            conns: Vec::with_capacity(connections as usize),
            stats: Stats::default(),
            accepting: 0,
            rests_until: Nanos::ZERO,
            waiting: 0,
            stopping: false,
            text: phrase.iter().copied().cycle().take(LONGEST as usize).collect(),
        }
    }

    /// Whether the shard was told to stop and owes nothing any more.
    pub fn is_finished<I: Io>(&self, cx: &Cx<I>) -> bool {
        self.stopping && self.waiting == 0 && cx.clogged() == 0
    }

    fn conn(&mut self, k: Key) -> &mut Conn {
        &mut self.conns[k.index as usize]
    }

    fn accept<I: Io>(&mut self, cx: &mut Cx<I>) {
        let paused = self.counters.pause.load(Relaxed) || cx.now() < self.rests_until;
        if !paused && !self.stopping {
            while self.accepting < ACCEPTS && cx.accept() {
                self.accepting += 1;
            }
        }
    }

    fn count_closed(&mut self) {
        self.stats.open -= 1;
        self.stats.closed += 1;
    }

    /// Reads until an answer is due; at most one send a call, so that a slow reader's answers stay in order.
    fn read<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let asked = self.conn(k).wire.handle_bytes(&input[used..]);
            match asked {
                Err(_) => {
                    self.stats.errors += 1;
                    let conn = self.conn(k);
                    (conn.answer, conn.flags) = (Answer::Empty(400), 0);
                    self.answer(cx, k);
                    return input.len();
                }
                Ok((0, None)) => return used,
                Ok((n, None)) => used += n,
                Ok((n, Some(Ask::Body(_)))) => used += n,
                Ok((n, Some(Ask::Head(request)))) => {
                    used += n;
                    decide(self.conn(k), &request);
                    if request.expects_continue && used == input.len() {
                        self.stats.bytes_out += CONTINUE.len() as u64;
                        cx.send_static(k, CONTINUE);
                        return used;
                    }
                }
                Ok((n, Some(Ask::End))) => {
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
        let Conn { delay_ms, .. } = *self.conn(k);
        if delay_ms == 0 {
            return self.answer(cx, k);
        }
        self.conn(k).flags |= WAITING;
        self.waiting += 1;
        cx.wake_at(k, cx.now() + Nanos::from_millis(u64::from(delay_ms)));
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
                self.counters.publish(self.shard, &self.stats);
                stats_text = self.counters.read().to_json();
                (200, "application/json", stats_text.as_bytes())
            }
            Answer::Empty(status) => (status, "", b""),
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
            // The shard closes it without a word, most often in this very turn.
            self.count_closed();
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

impl Program for Http {
    fn opened<I: Io>(&mut self, _cx: &mut Cx<I>, k: Key) {
        if k.index as usize >= self.conns.len() {
            self.conns.resize(k.index as usize + 1, Conn::NEW);
        }
        self.conns[k.index as usize] = Conn::NEW;
        self.accepting -= 1;
        self.stats.accepted += 1;
        self.stats.open += 1;
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.conn(k).flags &= !WAITING;
        self.waiting -= 1;
        self.answer(cx, k);
        cx.call_again(k);
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let conn = self.conn(k);
        if conn.is(FINISHING) {
            return input.len();
        }
        if conn.is(WAITING) || cx.is_clogged(k) {
            return 0;
        }
        let used = self.read(cx, k, input);
        self.stats.bytes_in += used as u64;
        used
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        if cx.is_open(k) {
            let conn = *self.conn(k);
            if conn.is(WAITING) {
                self.waiting -= 1;
            }
            if !conn.is(FINISHING) {
                self.count_closed();
            }
            return;
        }
        self.accepting -= 1;
        if !self.stopping && why != Gone::Reset {
            self.stats.errors += 1;
            self.counters.tell_failure(why);
            self.rests_until = cx.now() + REST_AFTER_FAILURE;
        }
        cx.close(k, Close::Graceful);
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        if !self.stopping && self.counters.stop.load(Relaxed) {
            self.stopping = true;
            cx.unlisten();
        }
        self.accept(cx);
        self.counters.publish(self.shard, &self.stats);
        cx.now() + LOOK_AT_ORDERS
    }
}

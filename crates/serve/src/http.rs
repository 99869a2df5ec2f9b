//! The HTTP reference server: `/`, `/?length=N`, `/delay?for=5s&length=N`, `/ws/echo`, `/stats`.

use std::sync::Arc;

use net::{Cx, Io, Key};
use units::{Nanos, Spans};
use wire::{
    http1::{self, CONTINUE, Event, Request, Response},
    websocket::{self as ws, Frames, Role},
};

use crate::{
    counters::Counters,
    knobs::Knobs,
    shard::{Handler, ServerShard},
    websocket,
};

/// Longest response: the source texts' servers clamp `length` to 1..10240.
const LONGEST: u64 = 10_240;
const HEAD_ROOM: usize = 256;
/// Close frames written in one turn of a server that stops.
const GOODBYES_A_TURN: usize = 1024;
/// The close code of a server that stops.
const GOING_AWAY: u16 = 1001;
/// Longest `/delay`.
const LONGEST_DELAY: Nanos = Nanos::from_secs(24 * 3600);

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello World!";

/// The response to a request, once all of it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Hello,
    /// This many characters.
    Text(u16),
    Stats,
    /// The echo from here on; the upgrade has been accepted.
    Echo,
    /// Only as a WebSocket.
    UpgradeRequired,
    /// Nothing but a status.
    Empty(u16),
}

/// The protocol of a connection.
#[derive(Clone, Copy)]
enum Wire {
    Http(http1::Server),
    WebSocket(Frames),
}

/// The idle record of a connection.
#[derive(Clone, Copy)]
pub struct Conn {
    wire: Wire,
    body: Body,
    flags: u8,
    /// `/delay`: milliseconds to wait before the response.
    delay_ms: u32,
}

const _: () = assert!(size_of::<Conn>() <= 40, "the idle record is what a million connections cost");

const KEEPS_ALIVE: u8 = 1;
const HTTP10: u8 = 2;
const HEAD: u8 = 4;
/// The response waits for its time; input is left alone.
const WAITING: u8 = 8;
/// Will be closed when what was sent has left.
const FINISHING: u8 = 16;

impl Conn {
    const NEW: Conn =
        Conn { wire: Wire::Http(http1::Server::new()), body: Body::Hello, flags: 0, delay_ms: 0 };

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The service: HTTP, and the WebSocket echo.
pub struct Http {
    /// While stopping: WebSockets below this index have been sent a close.
    closed_below: usize,
    text: Box<[u8]>,
}

impl Http {
    /// Shard number `shard` of the server, which publishes to `counters`; memory for `connections` is reserved.
    pub fn shard(counters: Arc<Counters>, shard: u32, connections: u32, knobs: &Knobs) -> ServerShard<Http> {
        let phrase = b"throng holds a million connections and says what each one costs. ";
        let text = phrase.iter().copied().cycle().take(LONGEST as usize).collect();
        let mut shard = ServerShard::new(Http { closed_below: 0, text }, counters, shard, knobs);
        shard.conns.reserve_exact(connections as usize);
        shard
    }
}

impl ServerShard<Http> {
    /// Reads until a response is due; at most one send a call, so that a slow reader's responses stay in order.
    fn read<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let Wire::Http(wire) = &mut self.conn(k).wire else { return used };
            match wire.handle_bytes(&input[used..]) {
                Err(_) => {
                    self.stats.errors += 1;
                    let conn = self.conn(k);
                    (conn.body, conn.flags) = (Body::Empty(400), 0);
                    self.respond(cx, k);
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
                    self.handle_request(cx, k);
                    if used < input.len() && cx.is_open(k) {
                        cx.call_again(k);
                    }
                    return used;
                }
            }
        }
    }

    /// A request is complete.
    fn handle_request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Conn { delay_ms, body, .. } = *self.conn(k);
        if body == Body::Echo {
            self.conn(k).wire = Wire::WebSocket(Frames::new(Role::Server));
            return;
        }
        if self.stalls.next() {
            return;
        }
        if delay_ms == 0 {
            return self.respond(cx, k);
        }
        self.conn(k).flags |= WAITING;
        self.respond_after(cx, k, Nanos::from_millis(u64::from(delay_ms)));
    }

    /// The key lives no longer than the head, so that the upgrade is accepted with it; frames are read once the
    /// request is complete.
    fn accept_upgrade<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, request: &Request<'_>) {
        let (Body::Echo, Some(offer)) = (self.conn(k).body, request.websocket) else { return };
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

    fn respond<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let conn = *self.conn(k);
        self.stats.requests += 1;
        if conn.body == Body::Hello && conn.flags == KEEPS_ALIVE {
            self.stats.bytes_out += HELLO.len() as u64;
            return cx.send_static(k, HELLO);
        }
        let stats_text;
        let (status, content_type, body): (u16, _, &[u8]) = match conn.body {
            Body::Hello => (200, "text/plain", b"Hello World!"),
            Body::Text(length) => (200, "text/plain", &self.handler.text[..usize::from(length)]),
            Body::Stats => {
                stats_text = self.read_counters().to_json();
                (200, "application/json", stats_text.as_bytes())
            }
            Body::Empty(status) => (status, "", b""),
            Body::UpgradeRequired => {
                self.stats.bytes_out += websocket::UPGRADE_REQUIRED.len() as u64;
                cx.send_static(k, websocket::UPGRADE_REQUIRED);
                self.conn(k).flags |= FINISHING;
                return cx.finish(k);
            }
            Body::Echo => unreachable!("accepted with its head"),
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

/// The response to a request.
fn decide(conn: &mut Conn, request: &Request<'_>) {
    let flag = |on: bool, flag: u8| if on { flag } else { 0 };
    conn.flags =
        flag(request.keeps_alive, KEEPS_ALIVE) | flag(request.http10, HTTP10) | flag(request.head, HEAD);
    conn.delay_ms = 0;
    let path = request.target.split('?').next().unwrap_or_default();
    conn.body = match path {
        "/" => text(request.target),
        "/stats" => Body::Stats,
        "/ws/echo" => match request.websocket {
            Some(offer) if offer.is_valid() => Body::Echo,
            Some(offer) if offer.version == 13 => Body::Empty(400),
            _ => Body::UpgradeRequired,
        },
        "/delay" => match delay_ms(request.target) {
            Some(ms) => {
                conn.delay_ms = ms;
                text(request.target)
            }
            None => Body::Empty(400),
        },
        _ => Body::Empty(404),
    };
}

fn text(target: &str) -> Body {
    match http1::query(target, "length").map(str::parse::<u64>) {
        None => Body::Hello,
        Some(Ok(n)) => Body::Text(n.clamp(1, LONGEST) as u16),
        Some(Err(_)) => Body::Empty(400),
    }
}

/// `for=5s`; without it, no delay. None where it is no time.
fn delay_ms(target: &str) -> Option<u32> {
    let Some(text) = http1::query(target, "for") else { return Some(0) };
    let Spans { min, max } = Spans::parse(text).ok()?;
    (min == max).then(|| min.min(LONGEST_DELAY).millis() as u32)
}

impl Handler for Http {
    type Conn = Conn;
    const NEW: Conn = Conn::NEW;

    fn is_waiting(conn: &Conn) -> bool {
        conn.is(WAITING)
    }

    fn handle_bytes<I: Io>(shard: &mut ServerShard<Http>, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let conn = *shard.conn(k);
        if conn.is(FINISHING) {
            return input.len();
        }
        if conn.is(WAITING) || cx.is_write_blocked(k) {
            return 0;
        }
        let used = match conn.wire {
            Wire::Http(_) => shard.read(cx, k, input),
            Wire::WebSocket(_) => shard.echo(cx, k, input),
        };
        shard.stats.bytes_in += used as u64;
        used
    }

    fn respond<I: Io>(shard: &mut ServerShard<Http>, cx: &mut Cx<I>, k: Key) {
        shard.conn(k).flags &= !WAITING;
        shard.respond(cx, k);
        cx.call_again(k);
    }

    /// Sends WebSockets the close of a server that goes away (RFC 6455 section 7.4.1).
    fn say_goodbye<I: Io>(shard: &mut ServerShard<Http>, cx: &mut Cx<I>) -> bool {
        let from = shard.handler.closed_below;
        let until = shard.conns.len().min(from + GOODBYES_A_TURN);
        for index in from..until {
            let Some(k) = cx.at(index as u32).filter(|k| cx.is_open(*k)) else { continue };
            let conn = shard.conns[index];
            if matches!(conn.wire, Wire::WebSocket(_)) && !conn.is(FINISHING) && !cx.is_write_blocked(k) {
                cx.send(k, ws::MAX_HEADER + ws::MAX_CONTROL, |out| {
                    ws::write_close(out, Some(GOING_AWAY), None).expect("there is room for a close")
                });
            }
        }
        shard.handler.closed_below = until;
        until == shard.conns.len()
    }
}

//! The HTTP reference server: `/`, `/?length=N`, `/delay?for=5s&length=N`, `/ws/echo`, `/ws/push`, `/stats`. HTTP/1 is here,
//! HTTP/2 in [`http2`](crate::http2).

use std::sync::Arc;

use net::{Cx, Io, Key};
use units::Nanos;
use wire::{
    http1::{self, CONTINUE, Event, Request, Response},
    http2 as h2,
    websocket::{self as ws, Frames, Role},
};

use crate::{
    counters::Counters,
    http2::{self, Sessions},
    knobs::Knobs,
    push,
    routes::{self, Body, LONGEST, Upgrade},
    shard::{Handler, ServerShard},
    websocket,
};

const HEAD_ROOM: usize = 256;
/// Maximum number of close frames sent in one turn when the server stops.
const GOODBYES_A_TURN: usize = 1024;
/// The close code of a server that stops.
const GOING_AWAY: u16 = 1001;

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello World!";

/// The protocol of a connection.
#[derive(Clone, Copy)]
enum Wire {
    /// Too little input to distinguish HTTP/1 from HTTP/2.
    Fresh,
    Http(http1::Server),
    WebSocket(Frames),
    /// HTTP/2: the index of its session.
    Http2(u32),
}

/// The idle record of a connection.
#[derive(Clone, Copy)]
pub struct Conn {
    wire: Wire,
    body: Body,
    flags: u8,
    /// `/delay`: milliseconds before the response. `/ws/push`: milliseconds between messages.
    delay_ms: u32,
}

const _: () = assert!(size_of::<Conn>() <= 40, "the idle record is what a million connections cost");

const KEEPS_ALIVE: u8 = 1;
const HTTP10: u8 = 2;
const HEAD: u8 = 4;
/// The response is waiting for its time; no input is read.
const WAITING: u8 = 8;
/// Closing once all output has left.
const FINISHING: u8 = 16;
/// The next message of `/ws/push` is waiting for its time; input is read.
const PUSHING: u8 = 32;

impl Conn {
    const NEW: Conn = Conn { wire: Wire::Fresh, body: Body::Hello, flags: 0, delay_ms: 0 };

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The service: HTTP, the WebSocket echo, and pushed messages.
pub struct Http {
    /// While stopping: WebSockets with an index below this have been sent a close.
    closed_below: usize,
    text: Box<[u8]>,
    sessions: Option<Box<Sessions>>,
    /// The date at time zero of the clock, as time since 1970.
    date: Nanos,
}

impl Http {
    /// Shard number `shard` of the server, which publishes to `counters`; memory for `connections` is reserved.
    pub fn shard(counters: Arc<Counters>, shard: u32, connections: u32, knobs: &Knobs) -> ServerShard<Http> {
        let phrase = b"throng holds a million connections and says what each one costs. ";
        let text = phrase.iter().copied().cycle().take(LONGEST as usize).collect();
        let mut shard = ServerShard::new(
            Http { closed_below: 0, text, sessions: None, date: Nanos::ZERO },
            counters,
            shard,
            knobs,
        );
        shard.conns.reserve_exact(connections as usize);
        shard
    }
}

impl ServerShard<Http> {
    /// Sets the date at which the clock started: `/ws/push` sends it.
    #[must_use]
    pub fn starting(mut self, date: Nanos) -> ServerShard<Http> {
        self.handler.date = date;
        self
    }

    /// The first bytes decide between HTTP/1 and HTTP/2.
    fn begin<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        match h2::starts(input) {
            None => 0,
            Some(false) => {
                self.conn(k).wire = Wire::Http(http1::Server::new());
                self.read(cx, k, input)
            }
            Some(true) => {
                let session = http2::begin(self, cx, k);
                self.conn(k).wire = Wire::Http2(session);
                http2::read(self, cx, (k, session), input)
            }
        }
    }

    /// Reads until a response is due. Sends at most once per call, so that responses to a slow reader stay in order.
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
                        self.out.send_static(cx, k, CONTINUE);
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
        if matches!(body, Body::Echo | Body::Push(_)) {
            self.conn(k).wire = Wire::WebSocket(Frames::new(Role::Server));
            if matches!(body, Body::Push(_)) {
                self.push_next(cx, k);
            }
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

    /// Accepts an upgrade as soon as the head is read, since the key is not stored; frames are read once the request is complete.
    fn accept_upgrade<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, request: &Request<'_>) {
        let (Body::Echo | Body::Push(_), Some(offer)) = (self.conn(k).body, request.websocket) else {
            return;
        };
        self.out.send(cx, k, HEAD_ROOM, |out| {
            ws::write_accept(out, offer.key).expect("there is room for a head of ours")
        });
        self.stats.requests += 1;
    }

    /// Echoes input of a WebSocket; returns the number of bytes used.
    fn echo<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let Wire::WebSocket(frames) = &mut self.conns[k.index as usize].wire else {
            unreachable!("only a WebSocket echoes")
        };
        let mut echoed = websocket::Echoed::default();
        let stalls = &mut self.stalls;
        self.out.send(cx, k, input.len() + websocket::ROOM, |out| {
            echoed = websocket::echo(frames, input, out);
            // A stalled message is read and never echoed.
            if echoed.answered > 0 && stalls.next() {
                (echoed.answered, echoed.written) = (0, 0);
            }
            echoed.written
        });
        self.stats.requests += echoed.answered;
        self.stats.errors += u64::from(echoed.breached);
        if echoed.ends {
            self.conn(k).flags |= FINISHING;
            self.out.finish(cx, k);
        }
        echoed.used
    }

    /// Sets the timer for the next message of `/ws/push`: at the next multiple of its interval since 1970, at the same time on
    /// all connections.
    fn push_next<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if self.is_stopping() {
            return;
        }
        let every = Nanos::from_millis(u64::from(self.conn(k).delay_ms));
        self.conn(k).flags |= PUSHING;
        let wait = push::until_next(self.handler.date + cx.now(), every);
        self.respond_after(cx, k, wait);
    }

    /// Sends the message of `/ws/push` that is due, unless the peer does not read.
    fn push<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Conn { delay_ms, body, flags, .. } = *self.conn(k);
        let Body::Push(length) = body else { unreachable!("only it pushes") };
        if flags & FINISHING != 0 {
            return;
        }
        if !cx.is_write_blocked(k) {
            let every = Nanos::from_millis(u64::from(delay_ms));
            let message = push::Message { date: self.handler.date + cx.now(), every, length };
            self.out.send(cx, k, message.room(), |out| message.write(out));
        }
        self.push_next(cx, k);
    }

    fn respond<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let conn = *self.conn(k);
        self.stats.requests += 1;
        if conn.body == Body::Hello && conn.flags == KEEPS_ALIVE {
            return self.out.send_static(cx, k, HELLO);
        }
        let stats_text;
        let (status, content_type, body): (u16, _, &[u8]) = match conn.body {
            Body::Hello => (200, "text/plain", routes::HELLO),
            Body::Text(length) => (200, "text/plain", &self.handler.text[..usize::from(length)]),
            Body::Stats => {
                stats_text = self.read_counters().to_json();
                (200, "application/json", stats_text.as_bytes())
            }
            Body::Empty(status) => (status, "", b""),
            Body::UpgradeRequired => {
                self.out.send_static(cx, k, websocket::UPGRADE_REQUIRED);
                self.conn(k).flags |= FINISHING;
                return self.out.finish(cx, k);
            }
            Body::Echo | Body::Push(_) => unreachable!("accepted with its head"),
        };
        let head = Response {
            status,
            content_type,
            content_length: body.len() as u64,
            keeps_alive: conn.is(KEEPS_ALIVE),
            http10: conn.is(HTTP10),
        };
        let body = if conn.is(HEAD) { b"" } else { body };
        self.out.send(cx, k, HEAD_ROOM + body.len(), |out| {
            let head_len = http1::write_response(out, &head).expect("there is room for a head of ours");
            out[head_len..head_len + body.len()].copy_from_slice(body);
            head_len + body.len()
        });
        if !conn.is(KEEPS_ALIVE) {
            self.conn(k).flags |= FINISHING;
            self.out.finish(cx, k);
        }
    }
}

/// Decides on the response to a request.
fn decide(conn: &mut Conn, request: &Request<'_>) {
    let flag = |on: bool, flag: u8| if on { flag } else { 0 };
    conn.flags =
        flag(request.keeps_alive, KEEPS_ALIVE) | flag(request.http10, HTTP10) | flag(request.head, HEAD);
    let upgrade = match request.websocket {
        Some(offer) if offer.is_valid() => Upgrade::Valid,
        Some(offer) if offer.version == 13 => Upgrade::Invalid,
        _ => Upgrade::No,
    };
    (conn.body, conn.delay_ms) = routes::route(request.target, upgrade);
}

impl http2::Serve for Http {
    fn sessions(&mut self) -> &mut Option<Box<Sessions>> {
        &mut self.sessions
    }

    fn text(&self) -> &[u8] {
        &self.text
    }

    fn flag(conn: &mut Conn, state: http2::State, on: bool) {
        let flag = match state {
            http2::State::Waiting => WAITING,
            http2::State::Finishing => FINISHING,
        };
        conn.flags = conn.flags & !flag | if on { flag } else { 0 };
    }
}

impl Handler for Http {
    type Conn = Conn;
    const NEW: Conn = Conn::NEW;

    fn is_waiting(conn: &Conn) -> bool {
        conn.is(WAITING) || conn.is(PUSHING)
    }

    fn is_held(conn: &Conn) -> bool {
        conn.is(WAITING) && !matches!(conn.wire, Wire::Http2(_))
    }

    fn handle_bytes<I: Io>(shard: &mut ServerShard<Http>, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let conn = *shard.conn(k);
        if conn.is(FINISHING) {
            return input.len();
        }
        if Http::is_held(&conn) || cx.is_write_blocked(k) {
            return 0;
        }
        match conn.wire {
            Wire::Fresh => shard.begin(cx, k, input),
            Wire::Http(_) => shard.read(cx, k, input),
            Wire::Http2(session) => http2::read(shard, cx, (k, session), input),
            Wire::WebSocket(_) => shard.echo(cx, k, input),
        }
    }

    fn respond<I: Io>(shard: &mut ServerShard<Http>, cx: &mut Cx<I>, k: Key) {
        if shard.conn(k).is(PUSHING) {
            shard.conn(k).flags &= !PUSHING;
            return shard.push(cx, k);
        }
        shard.conn(k).flags &= !WAITING;
        if let Wire::Http2(session) = shard.conn(k).wire {
            return http2::respond(shard, cx, (k, session));
        }
        shard.respond(cx, k);
        cx.call_again(k);
    }

    fn left(shard: &mut ServerShard<Http>, k: Key) {
        if let Wire::Http2(session) = shard.conn(k).wire {
            shard.handler.sessions.as_mut().expect("it has a session").end(session);
        }
    }

    /// Sends a close to WebSockets (1001, RFC 6455 section 7.4.1) and a GOAWAY to HTTP/2 connections.
    fn say_goodbye<I: Io>(shard: &mut ServerShard<Http>, cx: &mut Cx<I>) -> bool {
        let from = shard.handler.closed_below;
        let until = shard.conns.len().min(from + GOODBYES_A_TURN);
        for index in from..until {
            let Some(k) = cx.at(index as u32).filter(|k| cx.is_open(*k)) else { continue };
            let conn = shard.conns[index];
            if let Wire::Http2(session) = conn.wire {
                http2::say_goodbye(shard, cx, (k, session));
            }
            if matches!(conn.wire, Wire::WebSocket(_)) && !conn.is(FINISHING) && !cx.is_write_blocked(k) {
                shard.out.send(cx, k, ws::MAX_HEADER + ws::MAX_CONTROL, |out| {
                    ws::write_close(out, Some(GOING_AWAY), None).expect("there is room for a close")
                });
            }
        }
        shard.handler.closed_below = until;
        until == shard.conns.len()
    }
}

//! HTTP/2 with prior knowledge: the same routes as HTTP/1, with concurrent requests on a connection, the WebSocket echo on a
//! stream (RFC 8441), and gRPC calls.
//!
//! A complete request whose response fits into the windows is responded to immediately and leaves no state. A request that must
//! wait (for its body, its time, or a window) has an [`Exchange`].

mod exchange;
mod grpc;
mod respond;
mod sessions;

use net::{Cx, Io, Key};
use wire::http2::{
    self as h2, Code, Connection, Context, Data, Event, Request, Role, SERVER_PREFACE, SETTINGS_ACK, Stream,
    Table,
};

use crate::{
    routes::{self, Body, Upgrade},
    shard::{Handler, ServerShard},
};
use exchange::{Echo, Exchange};
use grpc::Call;
pub(crate) use respond::respond;
pub(crate) use sessions::Sessions;

/// Maximum output of one call, in bytes; beyond it, further input waits until the output has left.
const ENOUGH: u64 = 256 * 1024;
/// Room for a control frame of the server.
const FRAME: usize = 32;
/// Room for the head of a response, or for the frame headers of a body.
const HEAD_ROOM: usize = 256;

/// State to be noted in the record of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A response is waiting for its time.
    Waiting,
    /// Closing once all output has left.
    Finishing,
}

/// A service with HTTP/2.
pub(crate) trait Serve: Handler {
    /// `None` before the first HTTP/2 connection.
    fn sessions(&mut self) -> &mut Option<Box<Sessions>>;

    /// The text whose prefixes are the bodies of responses.
    fn text(&self) -> &[u8];

    fn flag(conn: &mut Self::Conn, state: State, on: bool);
}

/// A connection and its session.
type Place = (Key, u32);

/// The client speaks HTTP/2: sends the preface and returns the index of the new session.
pub(crate) fn begin<H: Serve, I: Io>(shard: &mut ServerShard<H>, cx: &mut Cx<I>, k: Key) -> u32 {
    send(shard, cx, k, SERVER_PREFACE.len(), |out| {
        out.copy_from_slice(SERVER_PREFACE);
        Some(SERVER_PREFACE.len())
    });
    shard.handler.sessions().get_or_insert_default().begin(Connection::new(Role::Server))
}

/// Reads frames, and responds to complete requests. Returns the number of bytes used.
pub(crate) fn read<H: Serve, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    place: Place,
    input: &[u8],
) -> usize {
    let mut sessions = take(shard);
    let sent = shard.out.sent;
    let mut used = 0;
    loop {
        if shard.out.sent - sent > ENOUGH {
            cx.call_again(place.0);
            break;
        }
        match step(shard, cx, place, &mut sessions, &input[used..]) {
            Ok(None) => break,
            Ok(Some(n)) => used += n,
            Err(code) => {
                shard.stats.errors += 1;
                goaway(shard, cx, place, &mut sessions, code);
                H::flag(shard.conn(place.0), State::Finishing, true);
                shard.out.finish(cx, place.0);
                used = input.len();
                break;
            }
        }
    }
    *shard.handler.sessions() = Some(sessions);
    used
}

/// Reads up to the next event and handles it: returns the number of bytes used; `None` if nothing happened.
fn step<H: Serve, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    place: Place,
    sessions: &mut Sessions,
    input: &[u8],
) -> Result<Option<usize>, Code> {
    let (k, session) = place;
    let id = sessions.at(session).machine.reads(input);
    let at = sessions.find(session, id);
    let second = (cx.now().0 / 1_000_000_000) as u32;
    let Sessions { list, exchanges, scratch, .. } = sessions;
    let its = &mut list[session as usize];
    let stream = at.map(|at| &mut exchanges[at as usize].stream);
    let context = Context { scratch, table: its.table.as_deref_mut(), second, expected: &[], fields: None };
    let (n, event) = its.machine.handle_bytes(input, stream, context)?;
    let Some(event) = event else {
        return if n == 0 { Ok(None) } else { Ok(Some(n)) };
    };
    match event {
        Event::Opened | Event::Settings => {
            send(shard, cx, k, FRAME, |out| {
                out[..SETTINGS_ACK.len()].copy_from_slice(SETTINGS_ACK);
                Some(SETTINGS_ACK.len())
            });
            respond::advance_all(shard, cx, place, sessions);
        }
        Event::SettingsAcked => its.table = None,
        Event::TableNeeded => its.table = Some(Box::new(Table::new())),
        Event::Ping(payload) => send(shard, cx, k, FRAME, |out| h2::write_pong(out, payload)),
        Event::StreamError(stream, code) => {
            shard.stats.errors += 1;
            send(shard, cx, k, FRAME, |out| h2::write_reset(out, stream, code));
            sessions.remove(session, at);
        }
        Event::Reset(_) => sessions.remove(session, at),
        Event::Request(request, stream) => {
            let exchange = decide(&request, stream);
            // A CONNECT that opens nothing is refused at once: its client waits for that and does not end the stream first.
            let is_refused = request.method == "CONNECT" && exchange.body != Body::Echo;
            let (ends, continues) = (request.ends || is_refused, request.expects_continue);
            accept(shard, cx, place, sessions, exchange, (ends, continues));
        }
        Event::Data(data) => {
            let at = at.expect("a body belongs to a request");
            take_data(shard, &mut exchanges[at as usize], &data);
            respond::advance(shard, cx, place, sessions, at);
        }
        Event::Trailers(_) => {
            let at = at.expect("trailers belong to a request");
            exchanges[at as usize].complete();
            respond::advance(shard, cx, place, sessions, at);
        }
        Event::Window(0) => respond::advance_all(shard, cx, place, sessions),
        Event::Window(_) => {
            if let Some(at) = at {
                respond::advance(shard, cx, place, sessions, at);
            }
        }
        Event::Pong(_) | Event::Goaway { .. } | Event::Interim(_) | Event::Head(_) => {}
    }
    if let Some(credit) = sessions.at(session).machine.take_credit() {
        send(shard, cx, k, FRAME, |out| h2::write_window_update(out, 0, credit));
    }
    Ok(Some(n))
}

/// Reads a piece of a request's body.
fn take_data<H: Serve>(shard: &mut ServerShard<H>, exchange: &mut Exchange, data: &Data<'_>) {
    if let Some(call) = &mut exchange.call {
        call.read(data.bytes);
    }
    if let Some(echo) = &mut exchange.echo {
        let before = echo.out.len();
        let echoed = echo.read(data.bytes);
        shard.stats.errors += u64::from(echoed.breached);
        // A stalled message is read and never echoed.
        if echoed.answered > 0 && shard.stalls.next() {
            echo.out.truncate(before);
        } else {
            shard.stats.requests += echoed.answered;
        }
    }
    if data.ends {
        exchange.complete();
    }
}

/// Takes out the sessions of a shard, to be put back.
fn take<H: Serve>(shard: &mut ServerShard<H>) -> Box<Sessions> {
    shard.handler.sessions().take().expect("a connection with HTTP/2 has one of them")
}

/// The exchange that responds to this request.
fn decide(request: &Request<'_>, stream: Stream) -> Exchange {
    let upgrade = match request.protocol {
        Some("websocket") => Upgrade::Valid,
        _ => Upgrade::No,
    };
    let (body, delay_ms) = match (request.method, upgrade) {
        ("CONNECT", Upgrade::No) => (Body::Empty(501), 0),
        _ => match routes::route(request.path, upgrade) {
            // Pushed messages need a WebSocket with its own connection.
            (Body::Push(_), _) => (Body::Empty(501), 0),
            // There is no WebSocket here, and a 200 would open one.
            (body, _) if request.method == "CONNECT" && !matches!(body, Body::Echo | Body::Empty(_)) => {
                (Body::Empty(404), 0)
            }
            routed => routed,
        },
    };
    let mut exchange = Exchange::new(stream, body, delay_ms, request.method == "HEAD");
    if request.is_grpc {
        exchange.delay_ms = 0;
        exchange.call = Some(Box::new(Call::new(request.path)));
    }
    exchange
}

/// Handles a request whose head has come. `ends`: it is complete; `continues`: the client awaits a 100 before the body.
fn accept<H: Serve, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    place: Place,
    sessions: &mut Sessions,
    mut exchange: Exchange,
    (ends, continues): (bool, bool),
) {
    let (k, session) = place;
    let machine = &mut sessions.at(session).machine;
    if exchange.body == Body::Echo && exchange.call.is_none() {
        shard.stats.requests += 1;
        exchange.echo = Some(Box::new(Echo::new()));
        send(shard, cx, k, FRAME, |out| {
            machine.write_headers(out, &mut exchange.stream, &[respond::OK], false)
        });
        exchange.begun = true;
    } else if continues {
        send(shard, cx, k, FRAME, |out| {
            machine.write_headers(out, &mut exchange.stream, respond::CONTINUE, false)
        });
    }
    if ends {
        exchange.complete();
    }
    if ends && exchange.delay_ms == 0 && exchange.echo.is_none() {
        respond::start(shard, cx, place, sessions, &mut exchange);
        if !exchange.stream.is_closed() {
            sessions.add(session, exchange);
        }
        return;
    }
    let at = sessions.add(session, exchange);
    if ends {
        respond::advance(shard, cx, place, sessions, at);
    }
}

/// The server stops: announces that on a connection.
pub(crate) fn say_goodbye<H: Serve, I: Io>(shard: &mut ServerShard<H>, cx: &mut Cx<I>, place: Place) {
    if !cx.is_write_blocked(place.0) {
        let mut sessions = take(shard);
        goaway(shard, cx, place, &mut sessions, Code::NO_ERROR);
        if sessions.end_streams(place.1, cx.now()) {
            shard.respond_at(cx, place.0, cx.now());
        }
        *shard.handler.sessions() = Some(sessions);
    }
}

fn goaway<H: Serve, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    (k, session): Place,
    sessions: &mut Sessions,
    code: Code,
) {
    let machine = &mut sessions.at(session).machine;
    send(shard, cx, k, FRAME, |out| machine.goaway(out, code));
}

/// Sends what `write` writes into `room` bytes, which are enough.
fn send<H: Handler, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    k: Key,
    room: usize,
    write: impl FnOnce(&mut [u8]) -> Option<usize>,
) {
    shard.out.send(cx, k, room, |out| write(out).expect("there is room for a frame of ours"));
}

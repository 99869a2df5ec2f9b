//! Responses: sent immediately, after a delay, and as far as the windows allow.

use net::{Cx, Io};
use units::Nanos;
use wire::grpc::status;
use wire::http2::{self as h2, Response, write_response_fields};

use super::{Exchange, FRAME, HEAD_ROOM, Place, Serve, Sessions, State, exchange::NONE, send, take};
use crate::{
    routes::{Body, HELLO},
    shard::{Handler, ServerShard},
};

/// The encoded fields of a 200 without a body.
pub(super) const OK: u8 = 0x88;
/// The encoded fields of the interim response 100.
pub(super) const CONTINUE: &[u8] = b"\x08\x03100";
/// The encoded fields of the response with [`HELLO`].
const HELLO_HEAD: &[u8] = b"\x88\x0f\x10\x87\x49\x7c\xa5\x8a\xe8\x19\xaa\x0f\x0d\x0212";
/// How long a stream pauses while its client reads nothing: otherwise messages would pile up.
const BLOCKED: Nanos = Nanos::from_millis(100);

/// A request is complete: responds, or waits for the time of the response.
pub(super) fn start<H: Serve, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    place: Place,
    sessions: &mut Sessions,
    exchange: &mut Exchange,
) {
    if shard.stalls.next() {
        exchange.begun = true;
        return;
    }
    if exchange.delay_ms > 0 {
        exchange.due = cx.now() + Nanos::from_millis(exchange.delay_ms.into());
    } else {
        write(shard, cx, place, sessions, exchange);
    }
    if exchange.due == Nanos::NEVER {
        return;
    }
    let next = next_due(sessions, place.1);
    if !H::is_waiting(shard.conn(place.0)) {
        H::flag(shard.conn(place.0), State::Waiting, true);
        shard.respond_after(cx, place.0, exchange.due.since(cx.now()));
    } else if exchange.due < next {
        shard.respond_at(cx, place.0, exchange.due);
    }
}

/// When the first of the delayed responses is due; never, if there is none.
fn next_due(sessions: &mut Sessions, session: u32) -> Nanos {
    let (mut at, mut next) = (sessions.at(session).first, Nanos::NEVER);
    while at != NONE {
        let exchange = &sessions.exchanges[at as usize];
        (at, next) = (exchange.next, next.min(exchange.due));
    }
    next
}

/// A delayed response is due.
pub(crate) fn respond<H: Serve, I: Io>(shard: &mut ServerShard<H>, cx: &mut Cx<I>, place: Place) {
    let mut sessions = take(shard);
    let mut at = sessions.at(place.1).first;
    while at != NONE {
        let exchange = &mut sessions.exchanges[at as usize];
        let (this, is_due) = (at, exchange.due <= cx.now());
        at = exchange.next;
        if is_due {
            exchange.due = Nanos::NEVER;
            with(&mut sessions, this, |sessions, exchange| write(shard, cx, place, sessions, exchange));
            done(&mut sessions, place.1, this);
        }
    }
    let next = next_due(&mut sessions, place.1);
    if next != Nanos::NEVER {
        H::flag(shard.conn(place.0), State::Waiting, true);
        shard.respond_after(cx, place.0, next.since(cx.now()));
    }
    *shard.handler.sessions() = Some(sessions);
}

/// Continues an exchange after more input or a window update.
pub(super) fn advance<H: Serve, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    place: Place,
    sessions: &mut Sessions,
    at: u32,
) {
    with(sessions, at, |sessions, exchange| {
        let is_waiting = exchange.due != Nanos::NEVER;
        if exchange.is_complete && !exchange.begun && !is_waiting {
            start(shard, cx, place, sessions, exchange);
        } else if exchange.echo.is_some() {
            write_echo(shard, cx, place, sessions, exchange);
        } else if !exchange.pending.is_empty() {
            write_pending(shard, cx, place, sessions, exchange);
        }
        let machine = &mut sessions.at(place.1).machine;
        let is_echoed = exchange.echo.as_ref().is_none_or(|echo| echo.out.is_empty());
        if is_echoed && let Some(credit) = machine.take_stream_credit(&mut exchange.stream) {
            let id = exchange.stream.id();
            send(shard, cx, place.0, FRAME, |out| h2::write_window_update(out, id, credit));
        }
    });
    done(sessions, place.1, at);
}

/// Continues all exchanges of a connection.
pub(super) fn advance_all<H: Serve, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    place: Place,
    sessions: &mut Sessions,
) {
    let mut at = sessions.at(place.1).first;
    while at != NONE {
        let this = at;
        at = sessions.exchanges[at as usize].next;
        advance(shard, cx, place, sessions, this);
    }
}

/// Calls `f` with an exchange that is taken out of its sessions meanwhile.
fn with(sessions: &mut Sessions, at: u32, f: impl FnOnce(&mut Sessions, &mut Exchange)) {
    let place = &mut sessions.exchanges[at as usize];
    let stream = place.stream;
    let empty = Exchange { next: place.next, ..Exchange::new(stream, Body::Hello, 0, false) };
    let mut exchange = std::mem::replace(place, empty);
    f(sessions, &mut exchange);
    sessions.exchanges[at as usize] = exchange;
}

/// Removes an exchange whose stream is closed.
fn done(sessions: &mut Sessions, session: u32, at: u32) {
    if sessions.exchanges[at as usize].stream.is_closed() {
        sessions.remove(session, Some(at));
    }
}

/// Writes a response as far as the windows allow.
pub(super) fn write<H: Serve, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    place: Place,
    sessions: &mut Sessions,
    exchange: &mut Exchange,
) {
    if exchange.call.is_some() {
        return write_call(shard, cx, place, sessions, exchange);
    }
    shard.stats.requests += 1;
    exchange.begun = true;
    let stats_text;
    let (status, content_type, body): (u16, _, &[u8]) = match exchange.body {
        Body::Hello | Body::Echo | Body::Push(_) => (200, "text/plain", HELLO),
        Body::Text(length) => (200, "text/plain", &shard.handler.text()[..usize::from(length)]),
        Body::Stats => {
            stats_text = shard.read_counters().to_json();
            (200, "application/json", stats_text.as_bytes())
        }
        // HTTP/2 has no Upgrade field (RFC 9110 section 7.8), so there is no 426.
        Body::UpgradeRequired => (405, "", b""),
        Body::Empty(status) => (status, "", b""),
    };
    let mut head = [0; HEAD_ROOM];
    let block = if exchange.body == Body::Hello {
        HELLO_HEAD
    } else {
        let response = Response { status, content_type, content_length: Some(body.len() as u64) };
        let n = write_response_fields(&mut head, &response).expect("there is room for a head of ours");
        &head[..n]
    };
    let body = if exchange.is_head { b"" } else { body };
    let (machine, stream) = (&mut sessions.at(place.1).machine, &mut exchange.stream);
    shard.out.send(cx, place.0, 2 * HEAD_ROOM + body.len(), |out| {
        let mut sent = machine
            .write_headers(out, stream, block, body.is_empty())
            .expect("there is room for a head of ours");
        if !body.is_empty() {
            let (written, taken) = machine.write_data(&mut out[sent..], stream, body, true);
            sent += written;
            exchange.pending = body[taken..].to_vec();
        }
        sent
    });
}

/// Writes more of a body or of a gRPC message, as far as the windows allow, and the status after the last message.
fn write_pending<H: Handler, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    place: Place,
    sessions: &mut Sessions,
    exchange: &mut Exchange,
) {
    let machine = &mut sessions.at(place.1).machine;
    let Exchange { stream, pending, call, .. } = exchange;
    if stream.is_sent() {
        return;
    }
    shard.out.send(cx, place.0, 2 * HEAD_ROOM + pending.len(), |out| {
        let (mut written, taken) = match pending.is_empty() {
            true => (0, 0),
            false => machine.write_data(out, stream, pending, call.is_none()),
        };
        pending.drain(..taken);
        if let Some(call) = call.as_ref().filter(|call| pending.is_empty() && call.left == 0) {
            let mut block = [0; HEAD_ROOM];
            let n = call.write_status(&mut block);
            let trailers = machine.write_headers(&mut out[written..], stream, &block[..n], true);
            written += trailers.expect("there is room for the trailers");
        }
        written
    });
}

/// Writes the echo so far, as far as the windows allow.
fn write_echo<H: Handler, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    place: Place,
    sessions: &mut Sessions,
    exchange: &mut Exchange,
) {
    let machine = &mut sessions.at(place.1).machine;
    let Exchange { stream, echo: Some(echo), .. } = exchange else { return };
    if stream.is_sent() || (echo.out.is_empty() && !echo.ends) {
        return;
    }
    // A frame header per 16 KiB; both are bounded by the stream's window.
    send(shard, cx, place.0, HEAD_ROOM + echo.out.len(), |out| {
        let (written, taken) = machine.write_data(out, stream, &echo.out, echo.ends);
        echo.out.drain(..taken);
        Some(written)
    });
}

/// Begins the response to a gRPC call, or sends its next message.
fn write_call<H: Serve, I: Io>(
    shard: &mut ServerShard<H>,
    cx: &mut Cx<I>,
    place: Place,
    sessions: &mut Sessions,
    exchange: &mut Exchange,
) {
    let Some(call) = &mut exchange.call else { return };
    let machine = &mut sessions.at(place.1).machine;
    if !exchange.begun {
        exchange.begun = true;
        shard.stats.requests += 1;
        let (block, fails) = call.begin();
        shard.out.send(cx, place.0, HEAD_ROOM + block.len(), |out| {
            machine.write_headers(out, &mut exchange.stream, &block, fails).expect("there is room for a head")
        });
        if fails {
            return;
        }
    }
    if call.left > 0 && machine.is_leaving() {
        // The server stops: the stream ends here.
        (call.left, call.status) = (0, status::UNAVAILABLE);
    }
    if call.left > 0 && (!exchange.pending.is_empty() || cx.is_write_blocked(place.0)) {
        exchange.due = cx.now() + BLOCKED;
        return;
    }
    if call.left > 0 {
        exchange.pending = call.next_message();
        if call.left > 0 {
            exchange.due = cx.now() + call.interval;
        }
    }
    write_pending(shard, cx, place, sessions, exchange);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_written_down() {
        let written = |response| {
            let mut out = [0; 64];
            let n = write_response_fields(&mut out, &response).expect("it fits");
            out[..n].to_vec()
        };
        let hello =
            Response { status: 200, content_type: "text/plain", content_length: Some(HELLO.len() as u64) };
        assert_eq!(written(hello), HELLO_HEAD);
        assert_eq!(written(Response { status: 100, content_type: "", content_length: None }), CONTINUE);
        assert_eq!(written(Response { status: 200, content_type: "", content_length: None }), [OK]);
    }
}

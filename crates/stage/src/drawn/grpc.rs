//! gRPC calls, as the drawn server responds to them (`grpc/doc/PROTOCOL-HTTP2.md`).

use units::Nanos;

use super::{
    books::Outcome,
    http2::{Conn, Http2, INTERFERENCES, Part, begin, interfere, one_by_one, parts},
    server::{Step, Turn},
};

/// The status of a successful call.
pub(super) const OK: u16 = 0;
/// The status that other runs expect.
pub(super) const NOT_FOUND: u16 = 5;

const HEAD: Part<'_> = Part::Head(200, &[("content-type", "application/grpc")]);
const MESSAGE: Part<'_> = Part::Data(b"\0\0\0\0\x02hi");
const TRAILERS: [&[(&str, &str)]; 4] =
    [&[("grpc-status", "0")], &[("grpc-status", "2")], &[("grpc-status", "5")], &[("grpc-status", "14")]];
/// The statuses of these trailers.
const STATUSES: [u16; 4] = [OK, 2, NOT_FOUND, 14];

/// The protocol for calls that are expected to end with `OK`, or with `NOT_FOUND`.
pub(super) fn grpc(expected: u16) -> Http2 {
    const WAYS: u8 = 15 + INTERFERENCES;
    match expected {
        OK => Http2::with(respond::<OK>, refuse, WAYS),
        _ => Http2::with(respond::<NOT_FOUND>, refuse, WAYS),
    }
}

/// Refuses a call with `RESOURCE_EXHAUSTED`.
fn refuse(conn: &mut Conn, id: u32, turn: &mut Turn<'_>) {
    let head = Part::Head(200, &[("content-type", "application/grpc"), ("grpc-status", "8")]);
    let frames = parts(conn, id, &[head]).concat();
    whole::<OK>(id, turn, Nanos::ZERO, frames, 8);
}

/// Ends a call with one of the [`STATUSES`].
fn complete<const RIGHT: u16>(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, after: Nanos, nth: usize) {
    let frames = parts(conn, id, &[HEAD, MESSAGE, Part::Trailers(TRAILERS[nth])]).concat();
    whole::<RIGHT>(id, turn, after, frames, STATUSES[nth]);
}

/// Sends these frames as the whole response.
fn whole<const RIGHT: u16>(id: u32, turn: &mut Turn<'_>, after: Nanos, frames: Vec<u8>, status: u16) {
    turn.plan(after, Step::Frame(id, frames));
    turn.done(after, id, Outcome { status: Some(status), is_right: status == RIGHT, is_sure: true });
}

fn rightly<const RIGHT: u16>(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, after: Nanos) {
    complete::<RIGHT>(conn, id, turn, after, if RIGHT == OK { 0 } else { 2 });
}

/// Sends something that is not a gRPC response: the client cancels the call.
fn none(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, after: Nanos, all: &[Part<'_>]) {
    let frames = parts(conn, id, all).concat();
    turn.plan(after, Step::Frame(id, frames));
    turn.plan(after, Step::Forget(id));
}

fn respond<const RIGHT: u16>(conn: &mut Conn, id: u32, turn: &mut Turn<'_>, way: u8) {
    let (now, soon) = (Nanos::ZERO, turn.within(20));
    let good = Part::Trailers(TRAILERS[0]);
    match way {
        0 => rightly::<RIGHT>(conn, id, turn, now),
        1 => {
            let late = turn.within(150);
            rightly::<RIGHT>(conn, id, turn, late);
        }
        2 => {
            let nth = turn.random.below(4) as usize;
            complete::<RIGHT>(conn, id, turn, soon, nth);
        }
        // Without messages, the status is in the head.
        3 => {
            let status = turn.random.between(1, 20) as u16;
            let text = status.to_string();
            let head = Part::Head(200, &[("content-type", "application/grpc"), ("grpc-status", &text)]);
            let frames = parts(conn, id, &[head]).concat();
            // Undefined statuses count as UNKNOWN.
            whole::<RIGHT>(id, turn, soon, frames, if status > 16 { 2 } else { status });
        }
        4 | 5 => {
            let frames = parts(conn, id, &[HEAD, MESSAGE, Part::Trailers(TRAILERS[2])]);
            if way == 4 {
                begin(id, turn, frames);
            } else {
                let at = one_by_one(id, turn, frames);
                whole::<RIGHT>(id, turn, at, Vec::new(), NOT_FOUND);
            }
        }
        6 => none(conn, id, turn, soon, &[HEAD, MESSAGE, Part::Trailers(&[("grpc-message", "none")])]),
        7 => none(conn, id, turn, soon, &[HEAD, MESSAGE]),
        8 => none(conn, id, turn, soon, &[HEAD]),
        9 => none(conn, id, turn, soon, &[HEAD, good]),
        10 => none(conn, id, turn, soon, &[HEAD, MESSAGE, MESSAGE, good]),
        11 => none(conn, id, turn, soon, &[HEAD, Part::Data(b"\0\0\0\0\x09hi"), good]),
        12 => none(conn, id, turn, soon, &[HEAD, Part::Data(b"\x01\0\0\0\x02hi"), good]),
        13 => {
            let html = Part::Head(200, &[("content-type", "text/html")]);
            none(conn, id, turn, soon, &[html, Part::Data(b"<html>")]);
        }
        // An HTTP status without a gRPC status.
        14 => {
            let frames = parts(conn, id, &[Part::Head(503, &[]), Part::Data(b"no")]).concat();
            whole::<RIGHT>(id, turn, soon, frames, 503);
        }
        15 => {
            let frames = parts(conn, id, &[Part::Head(404, &[]), Part::Trailers(TRAILERS[3])]).concat();
            whole::<RIGHT>(id, turn, soon, frames, 14);
        }
        _ => interfere(conn, id, turn, way - 16, rightly::<RIGHT>),
    }
}

//! Responses to gRPC calls, valid and invalid, whole and octet by octet.

use plan::Expectation;
use samples::Stage;
use wire::http2::{Context, Method, Response, SERVER_PREFACE, Scratch, write_field, write_response_fields};

use super::*;
use crate::protocol::{
    Awaited, Session, Speaks,
    http2::{Http2, UnderWay},
};
use units::Nanos;

const END: u8 = 1;

/// A frame on the first stream.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &1u32.to_be_bytes(), payload].concat()
}

fn headers(status: Option<u16>, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    headers_of("application/grpc", status, flags, fields)
}

fn headers_of(
    content_type: &'static str,
    status: Option<u16>,
    flags: u8,
    fields: &[(&str, &str)],
) -> Vec<u8> {
    let mut block = vec![0; 256];
    let mut n = status.map_or(0, |status| {
        let response = Response { status, content_type, content_length: None };
        write_response_fields(&mut block, &response).unwrap()
    });
    for (name, value) in fields {
        n += write_field(&mut block[n..], name, value.as_bytes()).unwrap();
    }
    // END_HEADERS
    frame(1, flags | 4, &block[..n])
}

fn data(flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(0, flags, bytes)
}

fn trailers(status: &str) -> Vec<u8> {
    headers(None, END, &[("grpc-status", status)])
}

/// A session with one call under way, in exchange 0.
fn calling(call: Call) -> Session {
    let mut state = Http2::new(1).session();
    let (mut scratch, mut used) = (Scratch::new(), 0);
    while used < SERVER_PREFACE.len() {
        let context = Context { scratch: &mut scratch, table: None, second: 0, expected: &[], fields: None };
        let (n, _) = state.connection.handle_bytes(&SERVER_PREFACE[used..], None, context).unwrap();
        used += n;
        if n == 0 {
            break;
        }
    }
    assert!(state.connection.is_open());
    let (_, stream) = state.connection.write_request(&mut [0; 64], b"\x83", true, Method::Other).unwrap();
    state.under_way.push(UnderWay::of(0, stream, Some(call)));
    Session::Http2(state)
}

/// The outcome of a call: its messages, their bytes, and its status or its fault; or what is wrong with a complete response.
fn outcome(call: Call, pieces: &[&[u8]], check: &Check) -> String {
    let (mut session, mut exchange) = (calling(call), Exchange::new(Nanos::ZERO, Nanos::ZERO));
    let (mut rest, mut messages, mut end) = (Vec::new(), 0, None);
    for piece in pieces {
        rest.extend_from_slice(piece);
        loop {
            let awaiting = (session.reads(0) == 0).then_some((&mut exchange, Awaited::Response(check)));
            let progress = session.handle_bytes(&rest, awaiting);
            let used = match progress {
                Ok(Progress::More(n)) => {
                    rest.drain(..n);
                    break;
                }
                Ok(Progress::Messages(n, came)) => {
                    messages += came;
                    n
                }
                Ok(Progress::Responded(n)) => {
                    end = Some(match Awaited::Response(check).wrong(&exchange, session.response().head) {
                        None => session.response().head.unwrap().status.to_string(),
                        Some(kind) => kind.name().to_owned(),
                    });
                    n
                }
                Ok(Progress::Failed(n, failure)) => {
                    let fault = failure.at(Stage::Exchange).name();
                    end = Some(fault.replace("target exchange", "fault"));
                    n
                }
                Ok(
                    Progress::Reply(n, _) | Progress::Turned(n) | Progress::Began(n) | Progress::Opened(n),
                ) => n,
                other => panic!("{other:?}"),
            };
            rest.drain(..used);
        }
    }
    format!(
        "{messages} messages, {} bytes: {}",
        exchange.content,
        end.unwrap_or_else(|| "goes on".to_owned())
    )
}

/// Checks the outcome with whole frames, and octet by octet.
fn check_expecting(status: u16, call: Call, frames: &[Vec<u8>], expected: &str) {
    let expectation = Expectation { status: Some(status), ..Expectation::default() };
    let check = Check::new(&expectation);
    let input = frames.concat();
    assert_eq!(outcome(call, &[&input], &check), expected, "{frames:?}");
    let octets: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(outcome(call, &octets, &check), expected, "octet by octet: {frames:?}");
}

fn check(call: Call, frames: &[Vec<u8>], expected: &str) {
    check_expecting(0, call, frames, expected);
}

const HI: &[u8] = b"\0\0\0\0\x02hi";

fn ok() -> Vec<u8> {
    headers(Some(200), 0, &[])
}

#[test]
fn a_unary_call_has_one_message_and_a_status() {
    check(Call::Unary, &[ok(), data(0, HI), trailers("0")], "1 messages, 2 bytes: 0");
    check(Call::Unary, &[ok(), data(0, b"\0\0\0\0\0"), trailers("0")], "1 messages, 0 bytes: 0");
    check(Call::Unary, &[ok(), data(0, HI)], "1 messages, 2 bytes: goes on");
    check(
        Call::Unary,
        &[ok(), data(0, &HI[..4]), data(0, &HI[4..]), trailers("0")],
        "1 messages, 2 bytes: 0",
    );
    check(
        Call::Unary,
        &[ok(), trailers("0")],
        "0 messages, 0 bytes: fault bad-answer (response of gRPC without a message)",
    );
    check(
        Call::Unary,
        &[ok(), data(0, HI), data(0, HI), trailers("0")],
        "1 messages, 4 bytes: fault bad-answer (more than one message of gRPC)",
    );
}

#[test]
fn a_streaming_call_has_any_number_of_messages() {
    check(Call::Streaming, &[ok(), trailers("0")], "0 messages, 0 bytes: 0");
    check(Call::Streaming, &[ok(), data(0, &[HI, HI].concat()), data(0, HI)], "3 messages, 6 bytes: goes on");
    check(Call::Streaming, &[ok(), data(0, HI), data(0, HI), trailers("0")], "2 messages, 4 bytes: 0");
    check_expecting(14, Call::Streaming, &[ok(), data(0, HI), trailers("14")], "1 messages, 2 bytes: 14");
}

#[test]
fn the_status_is_that_of_trailers_or_of_a_head_alone() {
    let alone = |status| headers(Some(200), END, &[("grpc-status", status)]);
    check(Call::Unary, &[alone("12")], "0 messages, 0 bytes: wrong-status");
    check_expecting(12, Call::Unary, &[alone("12")], "0 messages, 0 bytes: 12");
    check(Call::Streaming, &[alone("0")], "0 messages, 0 bytes: 0");
    // Undefined statuses count as UNKNOWN.
    check_expecting(2, Call::Unary, &[alone("17")], "0 messages, 0 bytes: 2");
    check_expecting(2, Call::Unary, &[alone("4294967295")], "0 messages, 0 bytes: 2");
}

#[test]
fn a_response_without_a_status_is_none() {
    check(Call::Unary, &[ok(), data(END, HI)], "0 messages, 2 bytes: fault bad-answer (no grpc-status)");
    check(
        Call::Unary,
        &[ok(), data(0, HI), headers(None, END, &[("a", "b")])],
        "1 messages, 2 bytes: fault bad-answer (no grpc-status)",
    );
    check(
        Call::Unary,
        &[headers(Some(200), END, &[])],
        "0 messages, 0 bytes: fault bad-answer (no grpc-status)",
    );
}

#[test]
fn what_is_not_of_grpc_is_given_up() {
    let of = |content_type| headers_of(content_type, Some(200), 0, &[]);
    for other in ["application/grpc-web", "application/grpc-web+proto", "application/grpcs", "text/html"] {
        let expected = "0 messages, 0 bytes: fault bad-answer (content that is not application/grpc)";
        check(Call::Unary, &[of(other)], expected);
    }
    for own in ["application/grpc+proto", "application/grpc;charset=utf-8", "application/grpc"] {
        check(Call::Unary, &[of(own), data(0, HI), trailers("0")], "1 messages, 2 bytes: 0");
    }
}

#[test]
fn messages_that_are_cut_or_not_as_announced_are_faults() {
    check(Call::Unary, &[ok(), data(0, &HI[..6]), trailers("0")], "0 messages, 1 bytes: fault truncated");
    check(Call::Unary, &[ok(), data(0, &HI[..3]), trailers("0")], "0 messages, 0 bytes: fault truncated");
    check(Call::Streaming, &[ok(), data(0, HI), data(END, &HI[..6])], "1 messages, 3 bytes: fault truncated");
    // A compressed message, although no encoding was announced.
    const COMPRESSED: &str = "0 messages, 0 bytes: fault bad-answer (malformed message of gRPC)";
    check(Call::Unary, &[ok(), data(0, b"\x01\0\0\0\0")], COMPRESSED);
    let encoded = headers(Some(200), 0, &[("grpc-encoding", "gzip")]);
    check(Call::Unary, &[encoded, data(0, b"\x01\0\0\0\0"), trailers("0")], "1 messages, 0 bytes: 0");
    let identity = headers(Some(200), 0, &[("grpc-encoding", "identity")]);
    check(Call::Unary, &[identity, data(0, b"\x01\0\0\0\0")], COMPRESSED);
}

#[test]
fn a_message_longer_than_announced_is_a_fault() {
    let longer = [HI, b"gh"].concat();
    let expectation = Expectation { status: Some(0), ..Expectation::default() };
    let check = Check::new(&expectation);
    let input = [ok(), data(0, &longer), trailers("0")].concat();
    let whole = outcome(Call::Streaming, &[&input], &check);
    assert!(whole.ends_with(": fault bad-answer (malformed message of gRPC)"), "{whole}");
}

#[test]
fn a_status_of_http_is_kept_and_has_its_meaning() {
    let busy = |flags| headers(Some(503), flags, &[]);
    check(Call::Unary, &[busy(END)], "0 messages, 0 bytes: wrong-status");
    check_expecting(14, Call::Unary, &[busy(END)], "0 messages, 0 bytes: 503");
    check_expecting(14, Call::Unary, &[busy(0), data(END, b"<html>")], "0 messages, 0 bytes: 503");
    check_expecting(12, Call::Unary, &[headers(Some(404), END, &[])], "0 messages, 0 bytes: 404");
    check_expecting(2, Call::Unary, &[headers(Some(500), END, &[])], "0 messages, 0 bytes: 500");
    // A gRPC status takes precedence over that of HTTP.
    let both = headers(Some(503), END, &[("grpc-status", "8")]);
    check_expecting(8, Call::Unary, &[both], "0 messages, 0 bytes: 8");
}

#[test]
fn unknown_is_expected_of_no_other_status() {
    for status in ["0", "1", "5", "14", "16"] {
        let alone = headers(Some(200), END, &[("grpc-status", status)]);
        check_expecting(2, Call::Streaming, &[alone], "0 messages, 0 bytes: wrong-status");
    }
    check_expecting(2, Call::Streaming, &[headers(Some(503), END, &[])], "0 messages, 0 bytes: wrong-status");
    check_expecting(2, Call::Streaming, &[ok(), trailers("2")], "0 messages, 0 bytes: 2");
}

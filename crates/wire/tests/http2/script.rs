//! Builders for frames, and checks that read them as a whole and byte by byte.

use fuzz::http2::{BEGIN, Responds, client, frame, server};
use wire::http2::{Method, write_field};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const WHOLE: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const PRIO: u8 = 0x20;

/// HEADERS in a single frame.
pub(crate) fn headers(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, flags | WHOLE, stream, &block(fields))
}

/// A GET of `/` that ends the stream.
pub(crate) fn get(stream: u32) -> Vec<u8> {
    headers(stream, END, GET)
}

pub(crate) const GET: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "h")];

/// The head of a POST of `/`, whose body follows.
pub(crate) fn post(stream: u32) -> Vec<u8> {
    headers(stream, 0, &[(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "h")])
}

pub(crate) fn data(stream: u32, flags: u8, bytes: &str) -> Vec<u8> {
    frame(DATA, flags, stream, bytes.as_bytes())
}

pub(crate) fn window(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

pub(crate) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub(crate) fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entry = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &entries.iter().map(entry).collect::<Vec<_>>().concat())
}

/// The encoded block of these fields.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = vec![0; 70_000];
    let mut at = 0;
    for (name, value) in fields {
        at += write_field(&mut out[at..], name, value.as_bytes()).expect("there is room");
    }
    out.truncate(at);
    out
}

/// Checks what a server reads after the client's preface, without sending responses.
pub(crate) fn check_server(frames: &[Vec<u8>], expected: &str) {
    check(&[BEGIN, &frames.concat()].concat(), expected, |pieces| server(pieces, Responds::Never));
}

/// Checks what a server reads that responds with 200 to each complete request.
pub(crate) fn check_responding(frames: &[Vec<u8>], expected: &str) {
    check(&[BEGIN, &frames.concat()].concat(), expected, |pieces| server(pieces, Responds::AtOnce));
}

/// Checks what a client reads after the server's SETTINGS; it has sent requests with these methods.
pub(crate) fn check_client(methods: &[Method], frames: &[Vec<u8>], expected: &str) {
    check(&[&BEGIN[24..], &frames.concat()].concat(), expected, |pieces| client(pieces, methods, &[]));
}

/// Checks the trace of `input`, without the `opened` at its start, as a whole and in pieces.
pub(crate) fn check(input: &[u8], expected: &str, trace: impl Fn(&[&[u8]]) -> String) {
    let said = |pieces: &[&[u8]]| {
        let said = trace(pieces);
        said.strip_prefix("opened").map_or(said.clone(), |said| said.trim_start_matches(" | ").to_owned())
    };
    assert_eq!(said(&[input]), expected, "whole: {}", head(input));
    // Byte by byte takes quadratic time, so the few long rows are read in larger pieces.
    let size = if input.len() < 1000 { 1 } else { 997 };
    let pieces: Vec<_> = input.chunks(size).collect();
    assert_eq!(said(&pieces), expected, "in pieces of {size}: {}", head(input));
}

fn head(input: &[u8]) -> String {
    input[..input.len().min(300)].escape_ascii().to_string()
}

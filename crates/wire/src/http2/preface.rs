//! The connection prefaces of both sides (RFC 9113, section 3.4).

use super::frame::{self, HEADER, Header};
use super::settings::{self, ENTRY, INITIAL_WINDOW};
use super::{
    CLIENT_STREAM_WINDOW, CLIENT_WINDOW, MAX_LIST, MAX_STREAMS, SERVER_STREAM_WINDOW, SERVER_WINDOW,
};

/// The start of a client's preface.
pub(super) const MAGIC: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const WINDOW_UPDATE: usize = HEADER + 4;

const CLIENT_SETTINGS: [(u16, u32); 4] = [
    (settings::HEADER_TABLE_SIZE, 0),
    (settings::ENABLE_PUSH, 0),
    (settings::INITIAL_WINDOW_SIZE, CLIENT_STREAM_WINDOW),
    (settings::MAX_HEADER_LIST_SIZE, MAX_LIST as u32),
];

const SERVER_SETTINGS: [(u16, u32); 5] = [
    (settings::HEADER_TABLE_SIZE, 0),
    (settings::MAX_CONCURRENT_STREAMS, MAX_STREAMS),
    (settings::INITIAL_WINDOW_SIZE, SERVER_STREAM_WINDOW),
    (settings::MAX_HEADER_LIST_SIZE, MAX_LIST as u32),
    (settings::ENABLE_CONNECT_PROTOCOL, 1),
];

const CLIENT_LEN: usize = MAGIC.len() + HEADER + CLIENT_SETTINGS.len() * ENTRY + WINDOW_UPDATE;
const SERVER_LEN: usize = HEADER + SERVER_SETTINGS.len() * ENTRY + WINDOW_UPDATE;

/// The client's preface: the magic text, SETTINGS, and a WINDOW_UPDATE for the connection.
pub const CLIENT_PREFACE: &[u8] = &preface::<CLIENT_LEN>(MAGIC, &CLIENT_SETTINGS, CLIENT_WINDOW);

/// The server's preface: SETTINGS, and a WINDOW_UPDATE for the connection.
pub const SERVER_PREFACE: &[u8] = &preface::<SERVER_LEN>(&[], &SERVER_SETTINGS, SERVER_WINDOW);

/// Whether these bytes begin an HTTP/2 connection with prior knowledge; `None` while there are too few.
pub fn starts(input: &[u8]) -> Option<bool> {
    let n = input.len().min(MAGIC.len());
    match input[..n] == MAGIC[..n] {
        true if n < MAGIC.len() => None,
        is_magic => Some(is_magic),
    }
}

const fn preface<const N: usize>(magic: &[u8], settings: &[(u16, u32)], window: u32) -> [u8; N] {
    let mut out = [0; N];
    let mut at = append(&mut out, 0, magic);
    let len = (settings.len() * ENTRY) as u32;
    at = append(&mut out, at, &Header { len, kind: frame::SETTINGS, flags: 0, stream: 0 }.bytes());
    let mut nth = 0;
    while nth < settings.len() {
        at = append(&mut out, at, &settings[nth].0.to_be_bytes());
        at = append(&mut out, at, &settings[nth].1.to_be_bytes());
        nth += 1;
    }
    at = append(&mut out, at, &Header { len: 4, kind: frame::WINDOW_UPDATE, flags: 0, stream: 0 }.bytes());
    at = append(&mut out, at, &(window - INITIAL_WINDOW).to_be_bytes());
    assert!(at == N);
    out
}

const fn append(out: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    let mut nth = 0;
    while nth < bytes.len() {
        out[at + nth] = bytes[nth];
        nth += 1;
    }
    at + nth
}

//! The frame header, and the frames that are written as a whole (RFC 9113, sections 4.1 and 6).

use super::Code;
use crate::out::Out;

/// Length of a frame header, in bytes.
pub(super) const HEADER: usize = 9;

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const PRIORITY: u8 = 0x2;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PUSH_PROMISE: u8 = 0x5;
pub(super) const PING: u8 = 0x6;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;

/// Flag of DATA and HEADERS: the sender sends no more on the stream.
pub(super) const END_STREAM: u8 = 0x1;
/// Flag of SETTINGS and PING.
pub(super) const ACK: u8 = 0x1;
/// Flag of HEADERS and CONTINUATION.
pub(super) const END_HEADERS: u8 = 0x4;
/// Flag of DATA and HEADERS.
pub(super) const PADDED: u8 = 0x8;
/// Flag of HEADERS.
pub(super) const WITH_PRIORITY: u8 = 0x20;

/// The bits of a stream number; the bit above them is reserved.
const STREAM: u32 = 0x7FFF_FFFF;

/// A frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Length of the payload, less than 2^24.
    pub(super) len: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// The stream number; 0 for the connection.
    pub(super) stream: u32,
}

impl Header {
    /// Reads the header at the start of `input`; `None` while it is incomplete.
    pub(super) fn read(input: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, s, t, u, v] = *input.first_chunk::<HEADER>()?;
        Some(Self {
            len: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes([s, t, u, v]) & STREAM,
        })
    }

    pub(super) const fn bytes(self) -> [u8; HEADER] {
        let ([_, a, b, c], [s, t, u, v]) = (self.len.to_be_bytes(), self.stream.to_be_bytes());
        [a, b, c, self.kind, self.flags, s, t, u, v]
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The first four bytes as a number; the caller has checked the length.
pub(super) fn number(payload: &[u8]) -> u32 {
    u32::from_be_bytes(*payload.first_chunk().expect("the length was checked"))
}

/// The first four bytes as a stream number or a window increment, without the reserved bit.
pub(super) fn number31(payload: &[u8]) -> u32 {
    number(payload) & STREAM
}

/// The acknowledgement of the peer's SETTINGS (section 6.5.3).
pub const SETTINGS_ACK: &[u8] = &Header { len: 0, kind: SETTINGS, flags: ACK, stream: 0 }.bytes();

/// Writes a PING (section 6.7): returns the number of bytes, `None` if it does not fit.
pub fn write_ping(out: &mut [u8], payload: [u8; 8]) -> Option<usize> {
    put(out, Header { len: 8, kind: PING, flags: 0, stream: 0 }, &payload)
}

/// Writes the reply to a PING: returns the number of bytes, `None` if it does not fit.
pub fn write_pong(out: &mut [u8], payload: [u8; 8]) -> Option<usize> {
    put(out, Header { len: 8, kind: PING, flags: ACK, stream: 0 }, &payload)
}

/// Writes a WINDOW_UPDATE (section 6.9), for the connection if `stream` is 0: returns the number of bytes, `None` if it does not fit.
pub fn write_window_update(out: &mut [u8], stream: u32, increment: u32) -> Option<usize> {
    debug_assert!((1..1 << 31).contains(&increment), "write_window_update: {increment}");
    put(out, Header { len: 4, kind: WINDOW_UPDATE, flags: 0, stream }, &increment.to_be_bytes())
}

/// Writes a RST_STREAM (section 6.4): returns the number of bytes, `None` if it does not fit.
pub fn write_reset(out: &mut [u8], stream: u32, code: Code) -> Option<usize> {
    put(out, Header { len: 4, kind: RST_STREAM, flags: 0, stream }, &code.0.to_be_bytes())
}

/// Writes a GOAWAY (section 6.8) without debug data: returns the number of bytes, `None` if it does not fit. `last`: the highest stream
/// that was or may be processed.
pub fn write_goaway(out: &mut [u8], last: u32, code: Code) -> Option<usize> {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&last.to_be_bytes());
    payload[4..].copy_from_slice(&code.0.to_be_bytes());
    put(out, Header { len: 8, kind: GOAWAY, flags: 0, stream: 0 }, &payload)
}

fn put(out: &mut [u8], header: Header, payload: &[u8]) -> Option<usize> {
    let mut out = Out::new(out);
    out.put(&header.bytes())?;
    out.put(payload)?;
    Some(out.len())
}

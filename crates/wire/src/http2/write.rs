//! Blocks of fields to send, written into the caller's buffer.

use super::hpack::{begin_indexed, put_field, put_indexed, put_number, put_plain};
use crate::out::Out;

/// What a request's block begins with. Empty ones are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFields<'a> {
    /// The method, any token.
    pub method: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The host, with its port where that is not the scheme's.
    pub authority: &'a str,
    /// The path with its query.
    pub path: &'a str,
    /// The protocol of an extended CONNECT (RFC 8441): `websocket`.
    pub protocol: &'a str,
}

/// The contents of a response's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code, 100 to 999.
    pub status: u16,
    /// The media type; no such field if empty.
    pub content_type: &'static str,
    /// The body's length in bytes, where it is known.
    pub content_length: Option<u64>,
}

/// Writes what a request's block begins with into `out`: the bytes written, `None` where they do not fit. Further fields,
/// with [`write_field`](super::write_field), may follow.
///
/// The arguments are written unchanged: the caller must check that they have no space and no line end.
pub fn write_request_fields(out: &mut [u8], fields: &RequestFields<'_>) -> Option<usize> {
    let mut out = Out::new(out);
    let fields = [
        (":method", fields.method),
        (":protocol", fields.protocol),
        (":scheme", fields.scheme),
        (":authority", fields.authority),
        (":path", fields.path),
    ];
    for (name, value) in fields {
        if !value.is_empty() {
            put_field(&mut out, name.as_bytes(), value.as_bytes())?;
        }
    }
    Some(out.len())
}

/// Writes the field `:path` into `out`: the bytes written, `None` where it does not fit. For paths that differ from request to
/// request: plain, because Huffman's code would cost more time than it saves bytes. It follows the other pseudo-headers of
/// [`write_request_fields`], whose path is empty then.
pub fn write_path(out: &mut [u8], path: &str) -> Option<usize> {
    let mut out = Out::new(out);
    begin_indexed(&mut out, PATH)?;
    put_plain(&mut out, path.as_bytes())?;
    Some(out.len())
}

/// Writes the block of a response into `out`: the bytes written, `None` where it does not fit. Further fields, with
/// [`write_field`](super::write_field), may follow.
///
/// # Panics
/// If the status is not three digits.
pub fn write_response_fields(out: &mut [u8], response: &Response) -> Option<usize> {
    let status = response.status;
    assert!((100..1000).contains(&status), "write_response_fields: status {status}");
    let mut out = Out::new(out);
    match STATUSES.iter().position(|known| *known == status) {
        Some(nth) => put_indexed(&mut out, STATUS + nth)?,
        None => {
            begin_indexed(&mut out, STATUS)?;
            put_number(&mut out, status.into())?;
        }
    }
    if !response.content_type.is_empty() {
        put_field(&mut out, b"content-type", response.content_type.as_bytes())?;
    }
    if let Some(length) = response.content_length {
        put_content_length(&mut out, length)?;
    }
    Some(out.len())
}

/// Writes the field `content-length` into `out`: the bytes written, `None` where it does not fit.
pub fn write_content_length(out: &mut [u8], length: u64) -> Option<usize> {
    let mut out = Out::new(out);
    put_content_length(&mut out, length)?;
    Some(out.len())
}

fn put_content_length(out: &mut Out<'_>, length: u64) -> Option<()> {
    begin_indexed(out, CONTENT_LENGTH)?;
    put_number(out, length)
}

/// Those of the static table, from the index [`STATUS`] on.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
const PATH: usize = 4;
const STATUS: usize = 8;
const CONTENT_LENGTH: usize = 28;

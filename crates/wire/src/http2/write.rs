//! Writes field blocks into the caller's buffer.

use super::hpack::{begin_indexed, put_field, put_indexed, put_number, put_plain};
use crate::out::Out;

/// The pseudo-headers of a request. Empty ones are omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFields<'a> {
    /// The method, any token.
    pub method: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The host, with the port if it is not the scheme's default.
    pub authority: &'a str,
    /// The path with its query.
    pub path: &'a str,
    /// The protocol of an extended CONNECT (RFC 8441): `websocket`.
    pub protocol: &'a str,
}

/// The contents of a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code, 100 to 999.
    pub status: u16,
    /// The media type; empty: no `content-type`.
    pub content_type: &'static str,
    /// Length of the body in bytes, if it is known.
    pub content_length: Option<u64>,
}

/// Writes the pseudo-headers of a request into `out`: returns the number of bytes, `None` if they do not fit. Further fields may follow,
/// with [`write_field`](super::write_field).
///
/// The arguments are written unchanged: the caller must check that they contain no space and no line end.
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

/// Writes the field `:path` into `out`: returns the number of bytes, `None` if it does not fit. For paths that differ per request: without
/// the Huffman code, which would cost more time than it saves. It must follow the pseudo-headers of [`write_request_fields`], whose path
/// must be empty.
pub fn write_path(out: &mut [u8], path: &str) -> Option<usize> {
    let mut out = Out::new(out);
    begin_indexed(&mut out, PATH)?;
    put_plain(&mut out, path.as_bytes())?;
    Some(out.len())
}

/// Writes the field block of a response into `out`: returns the number of bytes, `None` if it does not fit. Further fields may follow, with
/// [`write_field`](super::write_field).
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

/// Writes the field `content-length` into `out`: returns the number of bytes, `None` if it does not fit.
pub fn write_content_length(out: &mut [u8], length: u64) -> Option<usize> {
    let mut out = Out::new(out);
    put_content_length(&mut out, length)?;
    Some(out.len())
}

fn put_content_length(out: &mut Out<'_>, length: u64) -> Option<()> {
    begin_indexed(out, CONTENT_LENGTH)?;
    put_number(out, length)
}

/// The statuses in the static table, from index [`STATUS`] on.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
const PATH: usize = 4;
const STATUS: usize = 8;
const CONTENT_LENGTH: usize = 28;

//! The handshake: the upgrade from HTTP to WebSocket (RFC 6455, section 4).

use crate::Breach;
use crate::http1::{MAX_HEAD, begin_request, head};
use crate::out::Out;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use httparse::Header;
use sha1::{Digest as _, Sha1};

/// The text that a server appends to the key, so that other servers do not respond correctly by accident (section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The client's nonce: base64 of 16 bytes (section 4.1, item 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key([u8; 24]);

impl Key {
    /// The key for 16 random bytes.
    pub fn new(nonce: u128) -> Self {
        Self(base64(&nonce.to_be_bytes()))
    }

    /// The key as it is sent.
    pub fn as_bytes(&self) -> &[u8; 24] {
        &self.0
    }
}

/// The accept value for a key: base64 of the SHA-1 of key and GUID (section 4.2.2, item 5).
pub fn accept_key(key: &[u8]) -> [u8; 28] {
    let digest: [u8; 20] = Sha1::new().chain_update(key).chain_update(GUID).finalize().into();
    base64(&digest)
}

/// Base64 of bytes that encode to exactly `N` characters.
fn base64<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let n = STANDARD.encode_slice(bytes, &mut out).expect("the lengths are fixed");
    assert_eq!(n, N, "base64: {} bytes", bytes.len());
    out
}

/// Client: writes the complete upgrade request into `out`: returns the number of bytes, `None` if it does not fit.
///
/// `fields`: additional fields, as complete lines with line ends, or empty. The arguments are written unchanged: the caller must check that
/// they contain no space and no line end, and no field that is written here.
pub fn write_upgrade(out: &mut [u8], target: &str, host: &str, fields: &str, key: &Key) -> Option<usize> {
    let mut out = Out::new(out);
    begin_request(&mut out, "GET", target, host)?;
    out.put(b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ")?;
    out.put(key.as_bytes())?;
    out.put(b"\r\nSec-WebSocket-Version: 13\r\n")?;
    out.put(fields.as_bytes())?;
    out.put(b"\r\n")?;
    Some(out.len())
}

/// Server: writes the complete 101 response for this key into `out`: returns the number of bytes, `None` if it does not fit.
pub fn write_accept(out: &mut [u8], key: &[u8]) -> Option<usize> {
    let mut out = Out::new(out);
    out.put(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")?;
    out.put(b"Sec-WebSocket-Accept: ")?;
    out.put(&accept_key(key))?;
    out.put(b"\r\n\r\n")?;
    Some(out.len())
}

/// The server's response to an upgrade request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Accepted: frames follow.
    Accepted,
    /// Refused with this final status, 200 to 999; the body of an HTTP response follows.
    Refused(u16),
}

/// Client: reads the response to the request with this `key`; `offered` is the value of its Sec-WebSocket-Protocol field. Returns the
/// length in bytes, and the response; `None` while it is incomplete. With interim responses before it, it may have [`MAX_HEAD`] bytes.
///
/// # Errors
/// The [`Breach`] of the server: the response is not HTTP, or a 101 that violates section 4.1.
pub fn read_response(input: &[u8], key: &Key, offered: &str) -> Result<Option<(usize, Response)>, Breach> {
    let mut at = 0;
    while at < input.len().min(MAX_HEAD) {
        let read = head::response(input, at, |head| {
            let response = match head.status {
                101 if head.http10 => return Err(Breach::BadHandshake),
                101 => upgraded(head.headers, key, offered).map(|()| Some(Response::Accepted))?,
                100..200 => None,
                status => Some(Response::Refused(status)),
            };
            Ok((head.n, response))
        })?;
        let Some((n, response)) = read.transpose()? else { return Ok(None) };
        at += n;
        if let Some(response) = response {
            return Ok(Some((at, response)));
        }
    }
    if at == MAX_HEAD { Err(Breach::HeadTooLong) } else { Ok(None) }
}

/// Checks the fields of a 101 response (section 4.1, items 2 to 6 of its second list).
fn upgraded(fields: &[Header<'_>], key: &Key, offered: &str) -> Result<(), Breach> {
    let mut seen = Seen::default();
    let accept = accept_key(key.as_bytes());
    for field in fields {
        let value = field.value.trim_ascii();
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("upgrade") {
            seen.upgrade += 1;
            seen.wrong |= !value.eq_ignore_ascii_case(b"websocket");
        } else if is("connection") {
            seen.connection |= head::items(value).any(|item| item.eq_ignore_ascii_case(b"upgrade"));
        } else if is("sec-websocket-accept") {
            seen.accept += 1;
            seen.wrong |= value != accept;
        } else if is("sec-websocket-protocol") {
            seen.protocol += 1;
            seen.unasked |= !is_offered(offered, value);
        } else if is("sec-websocket-extensions") {
            // None were requested.
            seen.unasked = true;
        }
    }
    match seen.connection && seen.upgrade == 1 && seen.accept == 1 && seen.protocol <= 1 && !seen.wrong {
        false => Err(Breach::BadHandshake),
        true if seen.unasked => Err(Breach::NotOffered),
        true => Ok(()),
    }
}

/// Client: whether a server may choose this sub-protocol from the `offered` ones, which are separated by commas (section 4.1, item 6 of its
/// second list). It may also choose none.
pub fn is_offered(offered: &str, chosen: &[u8]) -> bool {
    // Sub-protocols are case-sensitive (section 11.5).
    !chosen.is_empty() && head::items(offered.as_bytes()).any(|item| item == chosen)
}

/// The relevant fields of a 101 response that were found.
#[derive(Default)]
struct Seen {
    upgrade: u32,
    connection: bool,
    accept: u32,
    protocol: u32,
    wrong: bool,
    /// Whether there is something that was not offered.
    unasked: bool,
}

//! Interprets field blocks by the rules of RFC 9113, section 8, for requests, responses and trailers.

use std::{
    cell::{Cell, RefCell},
    str,
};

use super::hpack::{Field, Fields, Stop};
use crate::{grpc, http1::head::decimal};

/// The parsed head of a final response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The status code, 200 to 999.
    pub status: u16,
    /// Length of its frames in bytes, as received.
    pub head_bytes: u32,
    /// Length of the body in bytes, 0 for a HEAD request; `None` if it is not known in advance.
    pub length: Option<u64>,
    /// Whether nothing follows, neither a body nor trailers.
    pub ends: bool,
    /// Whether the head has all expected fields.
    pub has_expected: bool,
    /// The sub-protocol of a WebSocket (RFC 6455, section 4.2.2), if there is one and its field was expected.
    pub protocol: Option<&'a [u8]>,
    /// The target of a redirect (status 300 to 399), as sent; empty without a `location` field.
    pub location: &'a [u8],
    /// The gRPC status, which a response without messages has in its head.
    pub grpc: Grpc<'a>,
}

/// Trailers: the fields after a body, which end the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailers<'a> {
    /// The result of a gRPC call.
    pub grpc: Grpc<'a>,
}

/// The result of a gRPC call, in trailers or in a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grpc<'a> {
    /// `grpc-status`; `None` if it is missing or not a number.
    pub status: Option<u32>,
    /// `grpc-message` as sent (not percent-decoded); empty if it is missing.
    pub message: &'a [u8],
    /// Whether `grpc-encoding` names an encoding, so that messages may be compressed.
    pub has_encoding: bool,
    /// Whether `content-type` is that of gRPC. Only if that field was expected, or a dynamic table stores fields.
    pub is_typed: bool,
}

/// The parsed head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method as sent; any token.
    pub method: &'a str,
    /// `:scheme`; empty for CONNECT without a protocol.
    pub scheme: &'a str,
    /// `:authority`, otherwise `Host`; empty if both are missing.
    pub authority: &'a str,
    /// The path with its query, or `*`; empty for CONNECT without a protocol.
    pub path: &'a str,
    /// The protocol of an extended CONNECT (RFC 8441), such as `websocket`.
    pub protocol: Option<&'a str>,
    /// `Content-Length`; 0 if nothing follows.
    pub length: Option<u64>,
    /// Whether nothing follows, neither a body nor trailers.
    pub ends: bool,
    /// Whether the client waits for a 100 response before it sends the body.
    pub expects_continue: bool,
    /// Whether it is a gRPC call, by its content type.
    pub is_grpc: bool,
}

/// Receives fields from a head.
pub trait TakesFields: std::fmt::Debug {
    /// Whether fields with this name are wanted.
    fn wants(&self, name: &[u8]) -> bool;
    /// Receives such a field.
    fn take(&mut self, name: &[u8], value: &[u8]);
}

/// The contents of a response's field block.
pub(super) struct ResponseFields<'a> {
    pub(super) status: u16,
    pub(super) length: Option<u64>,
    pub(super) has_expected: bool,
    pub(super) protocol: Option<&'a [u8]>,
    pub(super) location: &'a [u8],
    pub(super) grpc: Grpc<'a>,
}

/// Maximum number of fields that a response can be searched for.
pub const MAX_EXPECTED: usize = 64;

/// Reads a response; `None` if it is malformed (section 8.1.1).
pub(super) fn response<'a>(
    fields: Fields<'a, '_>,
    expected: &[(String, String)],
    takes: Option<&mut dyn TakesFields>,
) -> Result<Option<ResponseFields<'a>>, Stop> {
    // A `RefCell`, because the closures below borrow it while fields are passed to it.
    let takes = RefCell::new(takes);
    let is_taken = |field: &[u8]| takes.borrow().as_ref().is_some_and(|takes| takes.wants(field));
    let is_expected = |field: &[u8]| {
        expected.iter().any(|(name, _)| field.eq_ignore_ascii_case(name.as_bytes())) || is_taken(field)
    };
    let is_redirect = Cell::new(false);
    let wants = |field: &[u8]| {
        let is_location = || is_redirect.get() && field == b"location";
        field[0] == b':' || field == b"content-length" || is_expected(field) || is_location()
    };
    let mut fields = fields.only(&wants);
    assert!(expected.len() <= MAX_EXPECTED, "response: {} expected fields", expected.len());
    let (mut rules, mut found) = (Rules::default(), 0u64);
    let mut response = ResponseFields {
        status: 0,
        length: None,
        has_expected: false,
        protocol: None,
        location: &[],
        grpc: Grpc::default(),
    };
    while let Some(field) = fields.next()? {
        if field.name.first() == Some(&b':') {
            let is_status = field.name == b":status" && response.status == 0 && !rules.has_regular;
            match status(field.value).filter(|_| is_status) {
                Some(status) => {
                    response.status = status;
                    is_redirect.set((300..400).contains(&status));
                }
                None => rules.is_broken = true,
            }
            continue;
        }
        rules.regular(&field);
        match field.name {
            b"content-length" => rules.content_length(&mut response.length, field.value),
            b"sec-websocket-protocol" => response.protocol = Some(field.value),
            b"location" => response.location = field.value,
            _ => response.grpc.read(&field),
        }
        if is_taken(field.name) {
            takes.borrow_mut().iter_mut().for_each(|takes| takes.take(field.name, field.value));
        }
        for (nth, (name, text)) in expected.iter().enumerate() {
            let is_found =
                field.name.eq_ignore_ascii_case(name.as_bytes()) && contains(field.value, text.as_bytes());
            found |= u64::from(is_found) << nth;
        }
    }
    response.has_expected = found.count_ones() as usize == expected.len();
    Ok(Some(response).filter(|response| response.status != 0 && !rules.is_broken))
}

/// Reads trailers; `None` if they are malformed.
pub(super) fn trailers<'a>(mut fields: Fields<'a, '_>) -> Result<Option<Trailers<'a>>, Stop> {
    let (mut rules, mut grpc) = (Rules::default(), Grpc::default());
    while let Some(field) = fields.next()? {
        rules.is_broken |= field.name.first() == Some(&b':');
        rules.regular(&field);
        grpc.read(&field);
    }
    Ok((!rules.is_broken).then_some(Trailers { grpc }))
}

/// Reads a request; `None` if it is malformed.
pub(super) fn request<'a>(mut fields: Fields<'a, '_>, ends: bool) -> Result<Option<Request<'a>>, Stop> {
    let mut rules = Rules::default();
    let (mut method, mut scheme, mut path, mut authority, mut protocol) = (None, None, None, None, None);
    let (mut host, mut length, mut expects_continue, mut is_grpc) = (None, None, false, false);
    while let Some(field) = fields.next()? {
        if field.name.first() == Some(&b':') {
            let place = match field.name {
                b":method" => &mut method,
                b":scheme" => &mut scheme,
                b":path" => &mut path,
                b":authority" => &mut authority,
                b":protocol" => &mut protocol,
                _ => {
                    rules.is_broken = true;
                    continue;
                }
            };
            rules.is_broken |= place.is_some() || rules.has_regular;
            *place = Some(rules.visible(field.value));
            continue;
        }
        rules.regular(&field);
        match field.name {
            b"content-length" => rules.content_length(&mut length, field.value),
            b"host" => host = Some(rules.visible(field.value)),
            b"content-type" => is_grpc = grpc::is_type(field.value),
            b"expect" => expects_continue = field.value.eq_ignore_ascii_case(b"100-continue"),
            _ => {}
        }
    }
    let is_tunnel = method == Some("CONNECT");
    // RFC 9113, sections 8.3.1 and 8.5; RFC 8441, section 4.
    let is_complete = match (is_tunnel, protocol) {
        (true, None) => authority.is_some() && scheme.is_none() && path.is_none(),
        (true, Some(_)) => authority.is_some() && scheme.is_some() && is_path(method, path),
        (false, None) => scheme.is_some() && is_path(method, path),
        (false, Some(_)) => false,
    };
    rules.is_broken |= ends && length.is_some_and(|length| length > 0);
    let Some(method) = method.filter(|method| is_complete && is_token(method)) else { return Ok(None) };
    let request = Request {
        method,
        scheme: scheme.unwrap_or_default(),
        authority: authority.or(host).unwrap_or_default(),
        path: path.unwrap_or_default(),
        protocol,
        length: if ends { Some(0) } else { length },
        ends,
        expects_continue: expects_continue && !ends,
        is_grpc,
    };
    Ok((!rules.is_broken).then_some(request))
}

/// Whether a path is valid: it begins with a slash, except for the `*` of OPTIONS (RFC 9113, section 8.3.1).
fn is_path(method: Option<&str>, path: Option<&str>) -> bool {
    path.is_some_and(|path| path.starts_with('/') || (path == "*" && method == Some("OPTIONS")))
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Parses a status of three digits; 101 is invalid, because it exists only in HTTP/1.1 (section 8.6).
fn status(value: &[u8]) -> Option<u16> {
    let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = *value else { return None };
    let status = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
    (status != 101).then_some(status)
}

fn contains(value: &[u8], text: &[u8]) -> bool {
    text.is_empty() || value.windows(text.len()).any(|part| part == text)
}

impl<'a> Grpc<'a> {
    fn read(&mut self, field: &Field<'a>) {
        match field.name {
            b"grpc-status" => self.status = decimal(field.value).and_then(|n| u32::try_from(n).ok()),
            b"grpc-message" => self.message = field.value,
            b"grpc-encoding" => self.has_encoding = field.value != b"identity",
            b"content-type" => self.is_typed = grpc::is_type(field.value),
            _ => {}
        }
    }
}

/// The rules for all field blocks (sections 8.2 and 8.3).
#[derive(Default)]
struct Rules {
    /// Whether a regular field has occurred, after which pseudo-headers are not allowed.
    has_regular: bool,
    is_broken: bool,
}

impl Rules {
    fn regular(&mut self, field: &Field<'_>) {
        self.has_regular = true;
        let is_name = field.is_static || is_name(field.name);
        self.is_broken |= !is_name || !is_value(field.value) || is_of_connection(field);
    }

    /// Reads a length; equal repetitions count as one (RFC 9110, section 8.6).
    fn content_length(&mut self, length: &mut Option<u64>, value: &[u8]) {
        match decimal(value) {
            Some(n) if length.is_none_or(|before| before == n) => *length = Some(n),
            _ => self.is_broken = true,
        }
    }

    /// The value of a pseudo-header, which must not contain blanks.
    fn visible<'a>(&mut self, value: &'a [u8]) -> &'a str {
        let text = str::from_utf8(value).ok();
        let text = text.filter(|text| !text.is_empty() && text.bytes().all(|b| b > b' ' && b != 0x7F));
        self.is_broken |= text.is_none();
        text.unwrap_or_default()
    }
}

/// Whether a field name is valid: no upper case, control, blank or colon, and only ASCII (section 8.2.1).
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|b| matches!(b, 0x21..0x7F) && !matches!(b, b'A'..=b'Z' | b':'))
}

/// Whether a field value is valid: no line end or zero anywhere, and no blank at either end (section 8.2.1).
fn is_value(value: &[u8]) -> bool {
    let is_blank = |b: Option<&u8>| matches!(b, Some(b' ' | b'\t'));
    !is_blank(value.first())
        && !is_blank(value.last())
        && !value.iter().fold(false, |found, b| found | matches!(b, 0 | b'\r' | b'\n'))
}

/// Whether a field is specific to an HTTP/1 connection and therefore forbidden (section 8.2.2).
fn is_of_connection(field: &Field<'_>) -> bool {
    match field.name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => true,
        b"te" => !field.value.eq_ignore_ascii_case(b"trailers"),
        _ => false,
    }
}

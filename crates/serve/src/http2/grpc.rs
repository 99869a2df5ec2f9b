//! The gRPC service of `crates/serve/echo.proto`, on HTTP/2 streams.

use units::Nanos;
use wire::grpc::{self, Messages, PREFIX, status};
use wire::http2::{Response, write_field, write_response_fields};

use super::HEAD_ROOM;

/// Maximum length of a request message, in octets.
const LONGEST: usize = 64 * 1024;
/// The status of a longer one (`RESOURCE_EXHAUSTED`).
const TOO_LONG: u16 = 8;
/// Minimum interval of messages.
const LEAST_INTERVAL: Nanos = Nanos::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Say,
    Watch,
    Fail,
    Unknown,
}

/// A gRPC call.
#[derive(Debug)]
pub(crate) struct Call {
    method: Method,
    messages: Messages,
    /// The request message while it arrives; later the message to send.
    message: Vec<u8>,
    /// Number of complete messages in the request.
    came: u32,
    pub(super) status: u16,
    reason: String,
    /// Number of messages still to send.
    pub(super) left: u64,
    pub(super) interval: Nanos,
}

impl Call {
    pub(super) fn new(path: &str) -> Call {
        let method = match path {
            "/throng.Echo/Say" => Method::Say,
            "/throng.Echo/Watch" => Method::Watch,
            "/throng.Echo/Fail" => Method::Fail,
            _ => Method::Unknown,
        };
        Call {
            method,
            messages: Messages::default(),
            message: Vec::new(),
            came: 0,
            status: if method == Method::Unknown { status::UNIMPLEMENTED } else { status::OK },
            reason: String::new(),
            left: 0,
            interval: Nanos::ZERO,
        }
    }

    /// Reads a piece of the request's body.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while self.status == status::OK {
            let Ok((n, piece)) = self.messages.handle_bytes(&bytes[at..]) else {
                return self.fail(status::INTERNAL, "not a message");
            };
            at += n;
            let Some(piece) = piece else { return };
            if self.came > 0 || self.message.len() + piece.bytes.len() > LONGEST {
                let is_second = self.came > 0;
                let why = if is_second { "more than one message" } else { "a message of more than 64 KiB" };
                return self.fail(if is_second { status::INTERNAL } else { TOO_LONG }, why);
            }
            self.message.extend_from_slice(piece.bytes);
            self.came += u32::from(piece.ends);
        }
    }

    fn fail(&mut self, status: u16, why: &str) {
        (self.status, self.reason) = (status, why.to_owned());
        self.message = Vec::new();
    }

    /// The request is complete: decides on the response.
    fn decide(&mut self) {
        if self.status != status::OK {
            return;
        }
        if self.came != 1 || !self.messages.is_between_messages() {
            return self.fail(status::INTERNAL, "no complete message");
        }
        let read = match self.method {
            Method::Say => {
                self.left = 1;
                return;
            }
            _ => Fields::read(&self.message),
        };
        let Some(fields) = read else { return self.fail(status::INVALID_ARGUMENT, "not protobuf") };
        let text = fields.text.to_vec();
        if self.method == Method::Fail {
            let reason = String::from_utf8_lossy(&text).into_owned();
            let code = u16::try_from(fields.numbers[0]).ok().filter(|code| *code <= status::LAST);
            // `Fail` never succeeds.
            let code = code.filter(|code| *code != status::OK).unwrap_or(status::UNKNOWN);
            return self.fail(code, &reason);
        }
        let [count, interval] = fields.numbers;
        self.left = if count == 0 { u64::MAX } else { count };
        self.interval = Nanos::from_millis(interval.min(u32::MAX.into())).max(LEAST_INTERVAL);
        self.message.clear();
        if !text.is_empty() {
            // Field 1, a string.
            self.message.push(0x0A);
            put_varint(text.len() as u64, &mut self.message);
            self.message.extend(text);
        }
    }

    /// Begins the response: the fields of its head, and whether that is the whole response, because the call fails.
    pub(super) fn begin(&mut self) -> (Vec<u8>, bool) {
        self.decide();
        let fails = self.status != status::OK;
        let reason = escaped(&self.reason);
        let mut block = vec![0; HEAD_ROOM + reason.len() + 32];
        let response = Response { status: 200, content_type: "application/grpc", content_length: None };
        let mut n = write_response_fields(&mut block, &response).expect("there is room for a head of ours");
        if fails {
            n += self.write_status(&mut block[n..]);
        }
        if !reason.is_empty() {
            n += write_field(&mut block[n..], "grpc-message", reason.as_bytes())
                .expect("there is room for it");
        }
        block.truncate(n);
        (block, fails)
    }

    /// The next message to send, with its prefix.
    pub(super) fn next_message(&mut self) -> Vec<u8> {
        self.left -= 1;
        let mut bytes = vec![0; PREFIX];
        grpc::write_prefix(&mut bytes, self.message.len() as u32).expect("there is room for it");
        bytes.extend(&self.message);
        bytes
    }

    /// Writes the field with the status; returns its length.
    pub(super) fn write_status(&self, out: &mut [u8]) -> usize {
        let field = write_field(out, "grpc-status", self.status.to_string().as_bytes());
        field.expect("there is room for a field")
    }
}

/// The fields of a message of this service: the numbers of fields 1 and 2, and the text of the last string field.
#[derive(Default)]
struct Fields<'a> {
    numbers: [u64; 2],
    text: &'a [u8],
}

impl<'a> Fields<'a> {
    fn read(mut input: &'a [u8]) -> Option<Fields<'a>> {
        let mut fields = Fields::default();
        while !input.is_empty() {
            let tag = varint(&mut input)?;
            match tag & 7 {
                0 => {
                    let value = varint(&mut input)?;
                    let place = (tag >> 3).checked_sub(1).and_then(|at| usize::try_from(at).ok());
                    if let Some(number) = place.and_then(|at| fields.numbers.get_mut(at)) {
                        *number = value;
                    }
                }
                1 => input = input.get(8..)?,
                2 => {
                    let length = usize::try_from(varint(&mut input)?).ok()?;
                    (fields.text, input) = input.split_at_checked(length)?;
                }
                5 => input = input.get(4..)?,
                _ => return None,
            }
        }
        Some(fields)
    }
}

/// Reads a varint of protobuf: seven bits per byte, the lowest first.
fn varint(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = input.split_first()?;
        *input = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Encodes a status message: UTF-8, percent-encoded except for printable ASCII (`grpc/doc/PROTOCOL-HTTP2.md`).
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'%' => "%25".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    // Field values have no blank at either end.
    text.trim().bytes().take(256).map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_field_by_field() {
        let check = |input: &[u8], expected: Option<([u64; 2], &[u8])>| {
            let read = Fields::read(input).map(|fields| (fields.numbers, fields.text));
            assert_eq!(read, expected, "{input:?}");
        };
        check(b"", Some(([0, 0], b"")));
        check(b"\x08\x05\x10\xAC\x02\x1A\x02hi", Some(([5, 300], b"hi")));
        // Unknown fields: 64 and 32 bits, and a varint.
        check(b"\x21abcdefgh\x2Dabcd\x30\x01\x08\x07", Some(([7, 0], b"")));
        check(b"\x08", None);
        check(b"\x1A\x03hi", None);
        check(b"\x0B", None);
        check(&[&[0x08][..], &[0xFF; 10]].concat(), None);
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for number in [0, 1, 127, 128, 300, u64::MAX] {
            let mut out = Vec::new();
            put_varint(number, &mut out);
            assert_eq!(varint(&mut &out[..]), Some(number));
        }
    }

    #[test]
    fn reasons_have_only_printable_characters() {
        assert_eq!(escaped(" 100 % über\n"), "100 %25 %C3%BCber");
    }

    #[test]
    fn a_request_is_one_complete_message() {
        let check = |body: &[&[u8]], expected: u16| {
            let mut call = Call::new("/throng.Echo/Say");
            body.iter().for_each(|part| call.read(part));
            call.decide();
            assert_eq!(call.status, expected, "{body:?}");
        };
        check(&[b"\0\0\0\0\x02hi"], 0);
        check(&[b"\0\0\0", b"\0\x02h", b"i"], 0);
        check(&[], status::INTERNAL);
        check(&[b"\0\0\0\0\x03hi"], status::INTERNAL);
        check(&[b"\x01\0\0\0\x02hi"], status::INTERNAL);
        check(&[b"\0\0\0\0\0\0\0\0\0\0"], status::INTERNAL);
        check(&[b"\0\0\x01\0\0", &[0; LONGEST]], 0);
        check(&[b"\0\0\x01\0\x01", &[0; LONGEST + 1]], TOO_LONG);
    }
}

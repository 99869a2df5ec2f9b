//! Takes one direction of a connection apart, for people who read it: what was sent as well as what was received.
//!
//! Unlike [`Connection`](super::Connection) it judges nothing and stores what it reads: it is for a transcript of one connection, not for
//! load. Bytes that cannot be a frame end it: the rest is returned as it is.

use super::frame::{self, HEADER, Header, number, number31};
use super::hpack::{Dynamic, Fields};
use super::preface::MAGIC;
use super::{Code, MAX_FRAME, MAX_LIST, Table};

/// Reads the frames of one direction in order.
#[derive(Clone, Debug, Default)]
pub struct Dissector {
    table: Table,
    /// Input that is not a complete frame yet.
    rest: Vec<u8>,
    /// A field block that is continued in the next frame: its stream, its bytes, and whether it ends the stream.
    block: Option<(u32, Vec<u8>, bool)>,
    is_lost: bool,
}

/// A frame, or a field block of several frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The fields of a head or of trailers, pseudo-headers first.
    Fields {
        /// Number of the stream.
        stream: u32,
        /// Names and values, decoded.
        fields: Vec<(String, String)>,
        /// Whether the sender ends the stream with it.
        ends: bool,
    },
    /// A piece of a body.
    Data {
        /// Number of the stream.
        stream: u32,
        /// Its bytes, without padding.
        bytes: Vec<u8>,
        /// Whether the sender ends the stream with it.
        ends: bool,
    },
    /// Another frame, in words: `RST_STREAM 3 CANCEL`.
    Control(String),
    /// Bytes that are not HTTP/2; nothing can be read after them.
    Unreadable(Vec<u8>),
}

impl Dissector {
    /// A reader at the beginning of a connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes; calls `take` for each part that they complete.
    pub fn read(&mut self, bytes: &[u8], mut take: impl FnMut(Part)) {
        self.rest.extend_from_slice(bytes);
        if MAGIC.starts_with(&self.rest) && self.rest.len() < MAGIC.len() {
            return;
        }
        if self.rest.starts_with(MAGIC) {
            self.rest.drain(..MAGIC.len());
        }
        while let Some(header) = Header::read(&self.rest).filter(|_| !self.is_lost) {
            let length = header.len as usize;
            if length > MAX_FRAME {
                self.is_lost = true;
                break;
            }
            if self.rest.len() < HEADER + length {
                return;
            }
            let frame: Vec<u8> = self.rest.drain(..HEADER + length).collect();
            match self.part(header, &frame[HEADER..]) {
                Some(part) => part.into_iter().for_each(&mut take),
                None => {
                    self.is_lost = true;
                    self.rest.splice(..0, frame);
                    break;
                }
            }
        }
        if self.is_lost && !self.rest.is_empty() {
            take(Part::Unreadable(std::mem::take(&mut self.rest)));
        }
    }

    /// What a frame says; nothing while a block is incomplete. `None`: it is malformed.
    fn part(&mut self, header: Header, payload: &[u8]) -> Option<Option<Part>> {
        let (stream, ends) = (header.stream, header.has(frame::END_STREAM));
        match header.kind {
            frame::HEADERS => {
                let mut block = unpadded(header, payload)?;
                if header.has(frame::WITH_PRIORITY) {
                    block = block.get(5..)?;
                }
                self.block = Some((stream, block.to_vec(), ends));
                self.fields(header)
            }
            frame::CONTINUATION => {
                let (_, block, _) = self.block.as_mut().filter(|(of, ..)| *of == stream)?;
                block.extend_from_slice(payload);
                self.fields(header)
            }
            frame::DATA => {
                let bytes = unpadded(header, payload)?.to_vec();
                Some(Some(Part::Data { stream, bytes, ends }))
            }
            _ => Some(Some(Part::Control(control(header, payload)?))),
        }
    }

    /// The fields of the block, once its last frame has come.
    fn fields(&mut self, header: Header) -> Option<Option<Part>> {
        if !header.has(frame::END_HEADERS) {
            return Some(None);
        }
        let (stream, block, ends) = self.block.take()?;
        let mut text = vec![0; MAX_LIST];
        let mut reader = Fields::new(&block, &mut text, Dynamic::Table(&mut self.table));
        let mut fields = Vec::new();
        while let Some(field) = reader.next().ok()? {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            fields.push((text(field.name), text(field.value)));
        }
        Some(Some(Part::Fields { stream, fields, ends }))
    }
}

/// The payload of DATA or HEADERS without its padding (section 6.1).
fn unpadded(header: Header, payload: &[u8]) -> Option<&[u8]> {
    if !header.has(frame::PADDED) {
        return Some(payload);
    }
    let (padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(*padding))?)
}

/// Names of the settings (section 6.5.2; RFC 8441, section 3), by number less one.
const SETTINGS: [&str; 8] = [
    "HEADER_TABLE_SIZE",
    "ENABLE_PUSH",
    "MAX_CONCURRENT_STREAMS",
    "INITIAL_WINDOW_SIZE",
    "MAX_FRAME_SIZE",
    "MAX_HEADER_LIST_SIZE",
    "",
    "ENABLE_CONNECT_PROTOCOL",
];

/// A control frame in words.
fn control(header: Header, payload: &[u8]) -> Option<String> {
    let stream = header.stream;
    let is_ack = header.has(frame::ACK);
    Some(match header.kind {
        frame::SETTINGS if is_ack => "SETTINGS ACK".to_owned(),
        frame::SETTINGS => {
            let of = |setting: &[u8]| {
                let id = u16::from_be_bytes([setting[0], setting[1]]);
                let name = usize::from(id).checked_sub(1).and_then(|nth| SETTINGS.get(nth));
                let value = number(&setting[2..]);
                match name.filter(|name| !name.is_empty()) {
                    Some(name) => format!(" {name}={value}"),
                    None => format!(" {id:#x}={value}"),
                }
            };
            format!("SETTINGS{}", payload.chunks_exact(6).map(of).collect::<String>())
        }
        frame::PING if is_ack => "PING ACK".to_owned(),
        frame::PING => "PING".to_owned(),
        frame::RST_STREAM => format!("RST_STREAM {stream} {}", Code(number(payload.get(..4)?))),
        frame::WINDOW_UPDATE => format!("WINDOW_UPDATE {stream} +{}", number31(payload.get(..4)?)),
        frame::GOAWAY => {
            let (numbers, debug) = payload.split_at_checked(8)?;
            let debug = String::from_utf8_lossy(debug);
            let debug = if debug.is_empty() { String::new() } else { format!(" {debug:?}") };
            format!("GOAWAY {} {}{debug}", number31(numbers), Code(number(&numbers[4..])))
        }
        frame::PRIORITY => format!("PRIORITY {stream}"),
        frame::PUSH_PROMISE => format!("PUSH_PROMISE {stream}"),
        kind => format!("frame of type {kind:#x}, {} bytes", payload.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::{
        CLIENT_PREFACE, RequestFields, write_field, write_goaway, write_request_fields, write_reset,
    };

    fn block(fields: &RequestFields<'_>) -> Vec<u8> {
        let mut block = vec![0; 256];
        let mut end = write_request_fields(&mut block, fields).unwrap();
        end += write_field(&mut block[end..], "x-id", b"7").unwrap();
        block.truncate(end);
        block
    }

    fn framed(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let header = Header { len: payload.len() as u32, kind, flags, stream };
        [&header.bytes()[..], payload].concat()
    }

    /// All parts of `bytes`, read in pieces of `size`.
    fn parts(bytes: &[u8], size: usize) -> Vec<Part> {
        let (mut dissector, mut parts) = (Dissector::new(), Vec::new());
        bytes.chunks(size).for_each(|piece| dissector.read(piece, |part| parts.push(part)));
        parts
    }

    fn get() -> Vec<u8> {
        block(&RequestFields { method: "GET", scheme: "http", authority: "h", path: "/a", protocol: "" })
    }

    #[test]
    fn a_request_is_read_however_it_is_cut() {
        let block = get();
        let (first, second) = block.split_at(3);
        let mut bytes = CLIENT_PREFACE.to_vec();
        bytes.extend(framed(frame::HEADERS, frame::END_STREAM, 1, first));
        bytes.extend(framed(frame::CONTINUATION, frame::END_HEADERS, 1, second));
        bytes.extend(framed(frame::DATA, frame::PADDED, 1, b"\x02hello\0\0"));
        let whole = parts(&bytes, bytes.len());
        for size in [1, 2, 9, 13] {
            assert_eq!(parts(&bytes, size), whole, "in pieces of {size}");
        }
        let [.., Part::Fields { stream: 1, fields, ends: true }, Part::Data { bytes, ends: false, .. }] =
            &whole[..]
        else {
            panic!("{whole:?}")
        };
        let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(fields, [":method=GET", ":scheme=http", ":authority=h", ":path=/a", "x-id=7"]);
        assert_eq!(bytes, b"hello");
        assert!(
            matches!(&whole[0], Part::Control(words) if words.starts_with("SETTINGS HEADER_TABLE_SIZE=0"))
        );
    }

    #[test]
    fn control_frames_are_put_into_words() {
        let mut out = [0; 64];
        let mut of = |write: &dyn Fn(&mut [u8]) -> Option<usize>| {
            let length = write(&mut out).unwrap();
            let parts = parts(&out[..length], 64);
            let [Part::Control(words)] = &parts[..] else { panic!("{parts:?}") };
            words.clone()
        };
        assert_eq!(of(&|out| write_reset(out, 3, Code::CANCEL)), "RST_STREAM 3 CANCEL");
        assert_eq!(of(&|out| write_goaway(out, 5, Code::NO_ERROR)), "GOAWAY 5 NO_ERROR");
        assert_eq!(of(&|out| super::super::write_window_update(out, 0, 9)), "WINDOW_UPDATE 0 +9");
        assert_eq!(of(&|out| super::super::write_ping(out, [0; 8])), "PING");
        let settings = framed(frame::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100, 0, 99, 0, 0, 0, 1]);
        assert_eq!(
            parts(&settings, 64),
            [Part::Control("SETTINGS MAX_CONCURRENT_STREAMS=100 0x63=1".to_owned())]
        );
    }

    #[test]
    fn what_is_not_http2_is_returned_as_it_is() {
        let page = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        assert_eq!(parts(page, 100), [Part::Unreadable(page.to_vec())]);
        let short = framed(frame::RST_STREAM, 0, 1, b"12");
        assert_eq!(parts(&short, 100), [Part::Unreadable(short.clone())]);
    }
}

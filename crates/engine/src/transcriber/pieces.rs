//! Takes one direction of a connection apart into pieces that people read: heads, content, messages.

use samples::transcript::{Content, Piece};
use wire::{
    http1,
    http2::{Dissector, Part},
    websocket::{Event, Frames, Role},
};

/// How one direction is read.
#[derive(Debug)]
pub(crate) enum Pieces {
    /// Requests of HTTP/1.1: the head so far; `None` once it is complete, in the content.
    Requests(Option<Vec<u8>>),
    /// Responses of HTTP/1.1.
    Responses(Box<http1::Client>),
    /// WebSocket after its upgrade: the message so far.
    Messages(Frames, Content),
    Http2(Box<Dissector>),
    /// Bytes without a format.
    Raw,
}

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

impl Pieces {
    /// The next request of HTTP/1.1.
    pub(crate) fn request() -> Pieces {
        Pieces::Requests(Some(Vec::new()))
    }

    /// The response to a request of HTTP/1.1; `is_head`: its method is HEAD.
    pub(crate) fn response(is_head: bool) -> Pieces {
        let mut client = http1::Client::new();
        client.order(is_head);
        Pieces::Responses(Box::new(client))
    }

    /// The messages that an end with this role reads.
    pub(crate) fn messages(reader: Role) -> Pieces {
        Pieces::Messages(Frames::new(reader), Content::default())
    }

    pub(crate) fn http2() -> Pieces {
        Pieces::Http2(Box::default())
    }

    /// Reads the next bytes; calls `take` for each piece. Bytes that are not of the format are content.
    pub(crate) fn read(&mut self, bytes: &[u8], mut take: impl FnMut(Piece)) {
        match self {
            Pieces::Requests(Some(head)) => {
                head.extend_from_slice(bytes);
                let Some(end) = head.windows(4).position(|four| four == END_OF_HEAD) else { return };
                let content = head.split_off(end + END_OF_HEAD.len());
                take(Piece::Head(lines(head)));
                *self = Pieces::Requests(None);
                take_content(&content, &mut take);
            }
            Pieces::Requests(None) | Pieces::Raw => take_content(bytes, &mut take),
            Pieces::Responses(client) => {
                let mut used = 0;
                loop {
                    match client.handle_bytes(&bytes[used..], &[]) {
                        Ok((0, None)) => return,
                        Err(_) => return take_content(&bytes[used..], &mut take),
                        Ok((n, event)) => {
                            match event {
                                Some(http1::Event::Head(_) | http1::Event::Interim(_)) => {
                                    take(Piece::Head(lines(&bytes[used..used + n])));
                                }
                                Some(http1::Event::Data(data)) => take_content(data, &mut take),
                                Some(http1::Event::End) | None => {}
                            }
                            used += n;
                        }
                    }
                }
            }
            Pieces::Messages(frames, content) => read_messages(frames, content, bytes, &mut take),
            Pieces::Http2(dissector) => dissector.read(bytes, |part| match part {
                Part::Fields { fields, .. } => take(Piece::Head(head_of(&fields))),
                Part::Data { bytes, .. } | Part::Unreadable(bytes) => take_content(&bytes, &mut take),
                Part::Control(words) => take(Piece::Control(words)),
            }),
        }
    }
}

fn take_content(bytes: &[u8], take: &mut impl FnMut(Piece)) {
    if !bytes.is_empty() {
        let mut content = Content::default();
        content.push(bytes, Content::KEPT);
        take(Piece::Content(content));
    }
}

fn read_messages(frames: &mut Frames, content: &mut Content, bytes: &[u8], take: &mut impl FnMut(Piece)) {
    let mut used = 0;
    loop {
        let (n, event) = match frames.handle_bytes(&bytes[used..], u64::MAX) {
            Ok((0, None)) => return,
            Ok(read) => read,
            Err(_) => return take_content(&bytes[used..], take),
        };
        used += n;
        match event {
            Some(Event::Data(data)) => {
                let mut part = vec![0; data.payload.len()];
                data.payload.copy_to(&mut part);
                content.push(&part, Content::KEPT);
                if data.ends {
                    take(Piece::Message { is_text: data.text, content: std::mem::take(content) });
                }
            }
            Some(Event::Ping(payload)) => take(Piece::Control(of_payload("ping", payload.bytes().collect()))),
            Some(Event::Pong(payload)) => take(Piece::Control(of_payload("pong", payload.bytes().collect()))),
            Some(Event::Closing(closing)) => {
                let code = closing.code.map_or("close".to_owned(), |code| format!("close {code}"));
                take(Piece::Control(of_payload(&code, closing.reason.bytes().collect())));
            }
            None => {}
        }
    }
}

/// A control frame with its payload, which is text or not.
fn of_payload(name: &str, payload: Vec<u8>) -> String {
    match String::from_utf8(payload) {
        Ok(text) if text.is_empty() => name.to_owned(),
        Ok(text) => format!("{name} {text:?}"),
        Err(bytes) => format!("{name}, {} bytes", bytes.as_bytes().len()),
    }
}

/// A head of HTTP/1.1 as lines, without its empty line.
fn lines(head: &[u8]) -> String {
    String::from_utf8_lossy(head).replace("\r\n", "\n").trim_end_matches('\n').to_owned()
}

/// The fields of HTTP/2 as the lines that HTTP/1.1 has for them; trailers have no first line.
fn head_of(fields: &[(String, String)]) -> String {
    let of = |name: &str| fields.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
    let first = match (of(":method"), of(":status")) {
        (Some(method), _) => Some(format!("{method} {} HTTP/2", of(":path").unwrap_or_default())),
        (None, Some(status)) => Some(format!("HTTP/2 {status}")),
        (None, None) => None,
    };
    let authority = of(":authority").map(|host| format!("host: {host}"));
    let protocol = of(":protocol").map(|protocol| format!(":protocol: {protocol}"));
    let others = fields.iter().filter(|(name, _)| !name.starts_with(':'));
    let others = others.map(|(name, value)| format!("{name}: {value}"));
    first.into_iter().chain(authority).chain(protocol).chain(others).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut pieces: Pieces, bytes: &[u8], size: usize) -> Vec<Piece> {
        let mut all: Vec<Piece> = Vec::new();
        for part in bytes.chunks(size) {
            pieces.read(part, |piece| match (all.last_mut(), piece) {
                (Some(Piece::Content(content)), Piece::Content(more)) => {
                    content.push(&more.bytes, Content::KEPT)
                }
                (_, piece) => all.push(piece),
            });
        }
        all
    }

    fn content(text: &str) -> Content {
        Content { bytes: text.into(), length: text.len() as u64, decoded: None }
    }

    #[test]
    fn a_request_is_a_head_and_content_however_it_is_cut() {
        let sent = b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
        let head = "POST /a HTTP/1.1\nHost: h\nContent-Length: 2".to_owned();
        for size in [1, 7, 1_000] {
            let expected = [Piece::Head(head.clone()), Piece::Content(content("hi"))];
            assert_eq!(read(Pieces::request(), sent, size), expected);
        }
    }

    #[test]
    fn content_has_no_framing_and_what_is_no_response_is_content() {
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n";
        let head = Piece::Head("HTTP/1.1 200 OK\nTransfer-Encoding: chunked".to_owned());
        assert_eq!(read(Pieces::response(false), chunked, 1_000), [head, Piece::Content(content("hi!"))]);
        assert_eq!(read(Pieces::response(false), b"nonsense", 1_000), [Piece::Content(content("nonsense"))]);
        let to_head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        let expected = Piece::Head("HTTP/1.1 200 OK\nContent-Length: 9".to_owned());
        assert_eq!(read(Pieces::response(true), to_head, 1_000), [expected]);
    }

    #[test]
    fn messages_are_unmasked_and_control_frames_are_words() {
        let mut sent = vec![0; 64];
        let mask = Some([1, 2, 3, 4]);
        let opcode = wire::websocket::Opcode::Text;
        let mut end = wire::websocket::write_frame(&mut sent, opcode, true, mask, b"hello").unwrap();
        end += wire::websocket::write_close(&mut sent[end..], Some(1000), mask).unwrap();
        let message = Piece::Message { is_text: true, content: content("hello") };
        let expected = [message, Piece::Control("close 1000".to_owned())];
        assert_eq!(read(Pieces::messages(Role::Server), &sent[..end], 1_000), expected);
    }

    #[test]
    fn fields_of_http2_are_lines_as_in_http1() {
        let fields = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let request = fields(&[
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "h"),
            (":path", "/a"),
            ("x", "1"),
        ]);
        assert_eq!(head_of(&request), "GET /a HTTP/2\nhost: h\nx: 1");
        assert_eq!(head_of(&fields(&[(":status", "200"), ("a", "b")])), "HTTP/2 200\na: b");
        assert_eq!(head_of(&fields(&[("grpc-status", "0")])), "grpc-status: 0");
    }
}

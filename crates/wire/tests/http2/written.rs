//! Written frames: their bytes, that they fit exactly, and that windows are respected.

use crate::script::{CONTINUATION, END, GET, HEADERS, SETTINGS, WHOLE, block, headers, settings, window};
use fuzz::http2::{BEGIN, Responds, client, frame, server};
use wire::http2::{
    CLIENT_PREFACE, CLIENT_STREAM_WINDOW, CLIENT_WINDOW, Code, Connection, Context, Event, INITIAL_STREAMS,
    MAX_LIST, MAX_STREAMS, Method, RequestFields, Response, Role, SERVER_PREFACE, SERVER_STREAM_WINDOW,
    SERVER_WINDOW, SETTINGS_ACK, Scratch, Stream, starts, write_field, write_goaway, write_path, write_ping,
    write_pong, write_request_fields, write_reset, write_response_fields, write_window_update,
};

/// Checks that `write` writes these bytes if they fit, and nothing if there is one byte less.
fn check(write: impl Fn(&mut [u8]) -> Option<usize>, expected: &[u8]) {
    let mut out = vec![0xAA; expected.len()];
    assert_eq!(write(&mut out), Some(expected.len()));
    assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
    assert_eq!(write(&mut out[1..]), None, "a byte is missing");
}

#[test]
fn frames() {
    check(|out| write_ping(out, *b"12345678"), &frame(6, 0, 0, b"12345678"));
    check(|out| write_pong(out, *b"12345678"), &frame(6, 1, 0, b"12345678"));
    check(|out| write_reset(out, 5, Code::CANCEL), &frame(3, 0, 5, b"\0\0\0\x08"));
    check(|out| write_window_update(out, 5, 0x7FFF_FFFF), &frame(8, 0, 5, b"\x7F\xFF\xFF\xFF"));
    check(|out| write_goaway(out, 5, Code(0xB)), &frame(7, 0, 0, b"\0\0\0\x05\0\0\0\x0B"));
    assert_eq!(SETTINGS_ACK, frame(SETTINGS, 1, 0, b""));
}

#[test]
fn prefaces() {
    let list = MAX_LIST as u32;
    let ours = [(1, 0), (2, 0), (4, CLIENT_STREAM_WINDOW), (6, list)];
    let text = &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..];
    assert_eq!(CLIENT_PREFACE, [text, &settings(&ours), &window(0, CLIENT_WINDOW - 65_535)].concat());
    let its = [(1, 0), (3, MAX_STREAMS), (4, SERVER_STREAM_WINDOW), (6, list), (8, 1)];
    assert_eq!(SERVER_PREFACE, [settings(&its), window(0, SERVER_WINDOW - 65_535)].concat());
    // Each preface is accepted by the other role.
    assert_eq!(server(&[CLIENT_PREFACE], Responds::Never), "opened | window 0");
    assert_eq!(client(&[SERVER_PREFACE], &[], &[]), "opened | window 0");
    for n in 0..24 {
        assert_eq!(starts(&text[..n]), None);
    }
    assert_eq!((starts(text), starts(CLIENT_PREFACE)), (Some(true), Some(true)));
    for other in [&b"GET / HTTP/1.1"[..], b"POST", b"PRI * HTTP/1.1", b"\x16\x03\x01"] {
        assert_eq!(starts(other), Some(false));
    }
}

#[test]
fn request_fields() {
    let get = RequestFields { method: "GET", scheme: "http", authority: "h", path: "/", protocol: "" };
    check(|out| write_request_fields(out, &get), b"\x82\x86\x01\x01h\x84");
    let post = RequestFields { method: "POST", scheme: "https", path: "/a?b", ..get };
    check(|out| write_request_fields(out, &post), b"\x83\x87\x01\x01h\x04\x04/a?b");
    let other = RequestFields { method: "PURGE", ..get };
    check(|out| write_request_fields(out, &other), b"\x02\x05PURGE\x86\x01\x01h\x84");
    let websocket = RequestFields { method: "CONNECT", protocol: "websocket", ..get };
    let mut out = [0; 64];
    let n = write_request_fields(&mut out, &websocket).expect("it fits");
    assert_eq!(
        server(&[BEGIN, &frame(1, 4, 1, &out[..n])], Responds::Never),
        "opened | 1: CONNECT http://h/ length=? protocol=websocket"
    );
    check(|out| write_path(out, "/index.html?a=b"), b"\x04\x0f/index.html?a=b");
    let long = [&b"\x04\x7f\x49"[..], &[b'/'; 200]].concat();
    check(|out| write_path(out, &"/".repeat(200)), &long);
    // The Huffman code if it is shorter (RFC 7541, appendix C.4.1), and lengths beyond the prefix.
    check(
        |out| write_field(out, ":authority", b"www.example.com"),
        b"\x01\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
    );
    check(|out| write_field(out, "user-agent", b"~~"), b"\x0f\x2b\x02~~");
    let long = [&b"\x0f\x2b\x7f\xad\x01"[..], &[b'~'; 300]].concat();
    check(|out| write_field(out, "user-agent", &[b'~'; 300]), &long);
}

#[test]
fn response_fields() {
    let ok = Response { status: 200, content_type: "", content_length: None };
    check(|out| write_response_fields(out, &ok), b"\x88");
    for (status, byte) in [(204, 0x89), (206, 0x8A), (304, 0x8B), (400, 0x8C), (404, 0x8D), (500, 0x8E)] {
        check(|out| write_response_fields(out, &Response { status, ..ok }), &[byte]);
    }
    check(|out| write_response_fields(out, &Response { status: 503, ..ok }), b"\x08\x03503");
    let length = Response { content_length: Some(u64::MAX), ..ok };
    check(|out| write_response_fields(out, &length), b"\x88\x0f\x0d\x1418446744073709551615");
    let typed = Response { content_type: "text/plain", content_length: Some(12), ..ok };
    let mut out = [0; 64];
    let n = write_response_fields(&mut out, &typed).expect("it fits");
    let stream = [&BEGIN[24..], &frame(1, 4, 1, &out[..n])].concat();
    let expected = [("content-type".to_owned(), "text/plain".to_owned())];
    assert_eq!(client(&[&stream], &[Method::Other], &expected), "opened | 1: 200 length=12");
}

/// A machine and a stream.
struct Pair {
    machine: Connection,
    stream: Stream,
}

impl Pair {
    /// A client that has received these frames of its server.
    fn client(frames: &[u8], ends: bool) -> Self {
        let mut machine = Connection::new(Role::Client);
        let (_, stream) =
            machine.write_request(&mut [0; 64], &[0x82], ends, Method::Other).expect("there is room");
        let mut pair = Self { machine, stream };
        pair.read(&[&BEGIN[24..], frames].concat());
        pair
    }

    fn read(&mut self, input: &[u8]) {
        let (mut at, mut scratch) = (0, Scratch::new());
        loop {
            let context =
                Context { scratch: &mut scratch, table: None, second: 0, expected: &[], fields: None };
            let stream = Some(&mut self.stream);
            match self.machine.handle_bytes(&input[at..], stream, context).expect("no error") {
                (0, None) => return,
                (n, Some(Event::StreamError(..))) => panic!("a stream error behind {n} bytes"),
                (n, _) => at += n,
            }
        }
    }

    /// Writes a body of `bytes` bytes, with room for more; returns how many were accepted.
    fn write(&mut self, bytes: usize, ends: bool) -> usize {
        let mut out = vec![0; 1 << 20];
        let bytes = vec![b'x'; bytes];
        let (written, taken) = self.machine.write_data(&mut out, &mut self.stream, &bytes, ends);
        let (mut at, mut carried) = (0, 0);
        while at < written {
            let [a, b, c, 0, flags, _, _, _, 1] = out[at..at + 9] else { panic!("no DATA of stream 1") };
            let len = u32::from_be_bytes([0, a, b, c]) as usize;
            (at, carried) = (at + 9 + len, carried + len);
            assert_eq!(flags, u8::from(ends && carried == bytes.len()), "the last frame ends the stream");
            assert!(len <= 16_384 || self.machine.window(&self.stream) > 0);
        }
        assert_eq!((at, carried), (written, taken));
        taken
    }
}

#[test]
fn bodies_keep_to_the_windows() {
    // The window of the connection.
    let mut pair = Pair::client(&settings(&[(4, 1 << 20)]), false);
    assert_eq!(pair.write(60_000, false), 60_000);
    assert_eq!(pair.write(60_000, true), 5535);
    assert_eq!((pair.write(60_000, true), pair.stream.is_sent()), (0, false));
    pair.read(&window(0, 10));
    assert_eq!(pair.write(60_000, true), 10);
    // The window of the stream, then neither.
    let mut pair = Pair::client(&[settings(&[(4, 100)]), window(0, 1 << 20)].concat(), false);
    assert_eq!(pair.write(60, false), 60);
    assert_eq!(pair.write(60, false), 40);
    pair.read(&window(1, 5));
    assert_eq!(pair.write(60, false), 5);
    // A negative window must be refilled first (section 6.9.2).
    pair.read(&settings(&[(4, 20)]));
    assert_eq!(pair.write(60, false), 0);
    pair.read(&window(1, 80));
    assert_eq!(pair.write(60, false), 0);
    pair.read(&window(1, 1));
    assert_eq!(pair.write(60, false), 1);
    pair.read(&settings(&[(4, 22)]));
    assert_eq!(pair.write(60, false), 2);
    // An end needs no window.
    assert_eq!((pair.write(0, true), pair.stream.is_sent()), (0, true));
}

#[test]
fn frames_keep_to_the_peers_limit() {
    let mut pair = Pair::client(&settings(&[(4, 1 << 20), (5, 20_000)]), false);
    let mut out = vec![0; 50_000];
    let (written, taken) = pair.machine.write_data(&mut out, &mut pair.stream, &[b'x'; 30_000], true);
    assert_eq!((written, taken), (30_018, 30_000));
    assert_eq!(out[..9], *b"\0\x4E\x20\0\0\0\0\0\x01");
    assert_eq!(out[20_009..20_018], *b"\0\x27\x10\0\x01\0\0\0\x01");
}

#[test]
fn places_and_ends() {
    let mut client = Connection::new(Role::Client);
    let mut out = [0; 64];
    for nth in 0..INITIAL_STREAMS {
        assert!(client.has_place(), "{nth}");
        client.write_request(&mut out, &[0x82], true, Method::Other).expect("it fits");
    }
    assert!(!client.has_place() && client.open_streams() == INITIAL_STREAMS);
    let mut pair = Pair::client(&settings(&[(3, 1)]), true);
    assert!(!pair.machine.has_place() && !pair.machine.is_leaving());
    assert_eq!(pair.machine.cancel(&mut out, &mut pair.stream, Code::CANCEL), Some(13));
    assert_eq!(out[..13], frame(3, 0, 1, b"\0\0\0\x08"));
    assert!(pair.machine.has_place() && pair.stream.is_closed());
    assert_eq!(pair.machine.cancel(&mut out, &mut pair.stream, Code::CANCEL), Some(0));
    pair.read(&frame(7, 0, 0, b"\0\0\0\x01\0\0\0\0"));
    assert!(!pair.machine.has_place() && pair.machine.is_leaving());
    // A request that does not fit opens no stream.
    let mut pair = Pair::client(&settings(&[(8, 1)]), true);
    assert!(pair.machine.takes_connect());
    assert_eq!(pair.machine.write_request(&mut out[..9], &[0x82], true, Method::Other), None);
    let (_, stream) = pair.machine.write_request(&mut out, &[0x82], true, Method::Other).expect("it fits");
    assert_eq!((stream.id(), pair.machine.open_streams()), (3, 2));
}

/// After the peer has lowered the table's limit, the next block announces the new size (RFC 7541, section 4.2).
#[test]
fn a_smaller_table_is_confirmed() {
    for (size, first) in [(0, &b"\x20\x82"[..]), (4095, b"\x20\x82"), (4096, b"\x82"), (9999, b"\x82")] {
        let mut pair = Pair::client(&settings(&[(1, size)]), true);
        let mut out = [0; 64];
        for (block, id) in [(first, 3), (b"\x82", 5)] {
            let (n, _) = pair.machine.write_request(&mut out, &[0x82], true, Method::Other).expect("it fits");
            assert_eq!(out[..n], frame(1, 5, id, block), "{size}");
        }
    }
}

/// A block that does not fit in a frame continues in CONTINUATIONs; only the last frame ends the block (RFC 9113, section 6.10).
#[test]
fn a_long_block_is_continued() {
    for (size, length, frames) in [
        (4096, 16_384, &[16_384][..]),
        (4096, 16_385, &[16_384, 1]),
        (0, 16_384, &[16_384, 1]),
        (0, 40_000, &[16_384, 16_384, 7_233]),
    ] {
        let mut pair = Pair::client(&settings(&[(1, size)]), true);
        let (block, mut out) = (vec![0x82; length], vec![0; 50_000]);
        let sent = if size == 0 { [&b"\x20"[..], &block].concat() } else { block.clone() };
        let (mut expected, mut at) = (Vec::new(), 0);
        for (nth, size) in frames.iter().enumerate() {
            let last = if nth + 1 == frames.len() { WHOLE } else { 0 };
            let (kind, flags) = if nth == 0 { (HEADERS, END | last) } else { (CONTINUATION, last) };
            expected.extend(frame(kind, flags, 3, &sent[at..at + size]));
            at += size;
        }
        assert_eq!(at, sent.len());
        let room = expected.len() - 1;
        assert_eq!(pair.machine.write_request(&mut out[..room], &block, true, Method::Other), None);
        let (n, _) = pair.machine.write_request(&mut out, &block, true, Method::Other).expect("it fits");
        assert!(out[..n] == expected, "{length}, {size}");
    }
    // A server accepts it.
    let long = "~".repeat(20_000);
    let fields = [GET, &[("x", &long)]].concat();
    let mut machine = Connection::new(Role::Client);
    let mut out = vec![0; 50_000];
    let (n, _) = machine.write_request(&mut out, &block(&fields), true, Method::Other).expect("it fits");
    let short = server(&[CLIENT_PREFACE, &headers(1, END, GET)], Responds::Never);
    assert!(n > 20_000 && short.contains("GET"), "{n} {short}");
    assert_eq!(server(&[CLIENT_PREFACE, &out[..n]], Responds::Never), short);
}

#[test]
fn a_server_that_leaves_refuses() {
    let mut server = Connection::new(Role::Server);
    let (mut scratch, mut out) = (Scratch::new(), [0; 64]);
    let mut read = |server: &mut Connection, input: &[u8]| {
        let (mut at, mut last) = (0, None);
        loop {
            let context =
                Context { scratch: &mut scratch, table: None, second: 0, expected: &[], fields: None };
            match server.handle_bytes(&input[at..], None, context).expect("no error") {
                (0, None) => return last,
                (n, event) => {
                    last = event.map(|event| match event {
                        Event::StreamError(stream, code) => (stream, code),
                        _ => (0, Code::NO_ERROR),
                    });
                    at += n;
                }
            }
        }
    };
    assert_eq!(read(&mut server, &[BEGIN, &headers(3, 1, GET)].concat()), Some((0, Code::NO_ERROR)));
    assert_eq!(server.goaway(&mut out, Code::NO_ERROR), Some(17));
    assert_eq!(out[..17], frame(7, 0, 0, b"\0\0\0\x03\0\0\0\0"));
    assert_eq!(read(&mut server, &headers(5, 1, GET)), Some((5, Code::REFUSED_STREAM)));
    assert_eq!(server.open_streams(), 1);
    assert_eq!(block(GET), b"\x82\x86\x84\x01\x01h");
}

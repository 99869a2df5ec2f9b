//! How a server reads requests, by the sections of RFC 9113.

use crate::script::*;
use fuzz::http2::{BEGIN, Responds, frame, server};

const GOT: &str = "1: GET http://h/ length=0 ends";

#[test]
fn s3_4_preface() {
    let whole = |input: &[u8], expected: &str| {
        check(input, expected, |pieces| server(pieces, Responds::Never));
    };
    whole(b"", "");
    whole(BEGIN, "");
    whole(&BEGIN[..23], "rest 23");
    whole(&BEGIN[..24], "");
    whole(&BEGIN[..30], "rest 6");
    whole(b"GET / HTTP/1.1\r\n", "error PROTOCOL_ERROR");
    whole(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", "error PROTOCOL_ERROR");
    // The first frame must be SETTINGS, and not an acknowledgement.
    whole(&[&BEGIN[..24], &frame(PING, 0, 0, &[0; 8])].concat(), "error PROTOCOL_ERROR");
    whole(&[&BEGIN[..24], &frame(SETTINGS, ACK, 0, &[])].concat(), "error PROTOCOL_ERROR");
}

#[test]
fn s4_1_frames() {
    // Unknown frame types are ignored, and so are unknown flags and the reserved bit.
    check_server(&[frame(0x77, 0xFF, 9, b"unknown"), get(1)], GOT);
    check_server(&[frame(HEADERS, !(PADDED | PRIO), 0x8000_0001, &block(GET))], GOT);
    // A frame must not be longer than the limit (section 4.2).
    check_server(&[frame(0x77, 0, 0, &vec![0; 16_384]), get(1)], GOT);
    check_server(&[frame(0x77, 0, 0, &vec![0; 16_385])], "error FRAME_SIZE_ERROR");
    check_server(&[frame(PING, 0, 0, &vec![0; 16_385])], "error FRAME_SIZE_ERROR");
}

#[test]
fn s5_1_states() {
    // Idle.
    check_server(&[data(1, 0, "x")], "error PROTOCOL_ERROR");
    check_server(&[reset(1, 8)], "error PROTOCOL_ERROR");
    check_server(&[window(1, 5)], "error PROTOCOL_ERROR");
    check_server(&[frame(CONTINUATION, WHOLE, 1, &block(GET))], "error PROTOCOL_ERROR");
    // Half closed (remote).
    let half = format!("{GOT} | 1: error STREAM_CLOSED");
    check_server(&[get(1), data(1, 0, "x")], &half);
    check_server(&[get(1), get(1)], &half);
    check_server(&[get(1), window(1, 5)], &format!("{GOT} | window 1"));
    // Closed by both ends.
    check_responding(&[get(1), data(1, END, "late")], &format!("{GOT} | 1: error STREAM_CLOSED"));
    check_responding(&[get(1), get(1)], &format!("{GOT} | error STREAM_CLOSED"));
    check_responding(
        &[get(1), window(1, 5), reset(1, 8), get(3)],
        &format!("{GOT} | {}", GOT.replace('1', "3")),
    );
    // Closed by the peer's reset: reported once, then ignored.
    let after = format!("{GOT} | 1: reset CANCEL | 1: error STREAM_CLOSED");
    check_server(&[get(1), reset(1, 8), data(1, 0, "x"), data(1, END, "y"), get(1)], &after);
    // Closed by this end's reset: frames in transit are ignored.
    let broken = data(1, END, "more than none");
    let lengthy = headers(1, 0, &[GET, &[("content-length", "3")]].concat());
    check_server(
        &[lengthy, broken, data(1, END, "late"), headers(1, END, &[("a", "b")]), get(3)],
        &format!("1: GET http://h/ length=3 | 1: error PROTOCOL_ERROR | {}", GOT.replace('1', "3")),
    );
}

#[test]
fn s5_1_1_numbers() {
    check_server(&[get(2)], "error PROTOCOL_ERROR");
    check_server(&[get(0)], "error PROTOCOL_ERROR");
    check_server(&[data(2, 0, "x")], "error PROTOCOL_ERROR");
    // A higher number closes those that were skipped.
    check_responding(&[get(5), get(3)], &format!("{} | error STREAM_CLOSED", GOT.replace('1', "5")));
    let last = 0x7FFF_FFFF;
    check_server(&[get(last), get(1)], &format!("{last}: GET http://h/ length=0 ends | error STREAM_CLOSED"));
}

#[test]
fn s6_1_data() {
    let posted = "1: POST http://h/ length=?";
    check_server(
        &[post(1), data(1, 0, "hel"), data(1, END, "lo")],
        &format!("{posted} | 1: body hello | 1: end"),
    );
    check_server(&[post(1), data(1, END, "")], &format!("{posted} | 1: end"));
    check_server(&[post(1), data(1, 0, ""), data(1, 0, "x")], &format!("{posted} | 1: body x"));
    let padded = |flags, bytes: &[u8]| frame(DATA, flags | PADDED, 1, bytes);
    check_server(&[post(1), padded(END, b"\x03hello\0\0\0")], &format!("{posted} | 1: body hello | 1: end"));
    check_server(&[post(1), padded(END, b"\x03\0\0\0")], &format!("{posted} | 1: end"));
    check_server(
        &[post(1), padded(0, b"\0hello"), data(1, END, "")],
        &format!("{posted} | 1: body hello | 1: end"),
    );
    check_server(&[post(1), padded(0, b"\x06hello")], &format!("{posted} | error PROTOCOL_ERROR"));
    check_server(&[post(1), padded(0, b"")], &format!("{posted} | error FRAME_SIZE_ERROR"));
    check_server(&[data(0, 0, "x")], "error PROTOCOL_ERROR");
}

#[test]
fn s6_2_headers() {
    let block = block(GET);
    let with = |flags, bytes: &[u8]| frame(HEADERS, flags | END | WHOLE, 1, bytes);
    check_server(&[with(PADDED, &[b"\x02", &block[..], b"\0\0"].concat())], GOT);
    check_server(&[with(PRIO, &[b"\0\0\0\x03\x10", &block[..]].concat())], GOT);
    check_server(&[with(PRIO | PADDED, &[b"\x01\0\0\0\x03\x10", &block[..], b"\0"].concat())], GOT);
    check_server(&[with(PADDED, &[b"\xFF", &block[..]].concat())], "error PROTOCOL_ERROR");
    check_server(&[with(PADDED, b"")], "error FRAME_SIZE_ERROR");
    check_server(&[with(PRIO, b"\0\0\0\x03")], "error FRAME_SIZE_ERROR");
    // RFC 7540, section 5.3.1.
    check_server(&[with(PRIO, &[b"\0\0\0\x01\x10", &block[..]].concat())], "1: error PROTOCOL_ERROR");
}

#[test]
fn s6_3_priority() {
    check_server(&[frame(PRIORITY, 0, 1, b"\0\0\0\x03\x10"), get(1)], GOT);
    check_server(&[get(1), frame(PRIORITY, 0, 1, b"\0\0\0\x03\x10")], GOT);
    check_server(&[frame(PRIORITY, 0, 0, b"\0\0\0\x03\x10")], "error PROTOCOL_ERROR");
    check_server(&[frame(PRIORITY, 0, 1, b"\0\0\0\x03")], "error FRAME_SIZE_ERROR");
    let circular = format!("{GOT} | 1: error PROTOCOL_ERROR");
    check_server(&[get(1), frame(PRIORITY, 0, 1, b"\0\0\0\x01\x10")], &circular);
}

#[test]
fn s6_4_resets() {
    check_server(&[get(1), reset(1, 8)], &format!("{GOT} | 1: reset CANCEL"));
    check_server(&[get(1), reset(1, 0x1234)], &format!("{GOT} | 1: reset 0x1234"));
    check_server(&[reset(0, 8)], "error PROTOCOL_ERROR");
    check_server(&[get(1), frame(RST_STREAM, 0, 1, b"\0\0\x08")], &format!("{GOT} | error FRAME_SIZE_ERROR"));
}

#[test]
fn s6_5_settings() {
    check_server(&[settings(&[]), frame(SETTINGS, ACK, 0, &[])], "settings | acked");
    check_server(&[settings(&[(0x99, 5), (2, 0), (2, 1), (6, 0), (8, 1), (8, 1)])], "settings");
    let broken = [
        (frame(SETTINGS, 0, 1, &[]), "PROTOCOL_ERROR"),
        (frame(SETTINGS, ACK, 0, b"\0\x01\0\0\0\0"), "FRAME_SIZE_ERROR"),
        (frame(SETTINGS, 0, 0, b"\0\x01\0\0\0"), "FRAME_SIZE_ERROR"),
        (settings(&[(2, 2)]), "PROTOCOL_ERROR"),
        (settings(&[(4, 1 << 31)]), "FLOW_CONTROL_ERROR"),
        (settings(&[(5, 16_383)]), "PROTOCOL_ERROR"),
        (settings(&[(5, 1 << 24)]), "PROTOCOL_ERROR"),
        (settings(&[(8, 2)]), "PROTOCOL_ERROR"),
        (settings(&[(8, 1), (8, 0)]), "PROTOCOL_ERROR"),
    ];
    for (frame, code) in broken {
        check_server(&[frame], &format!("error {code}"));
    }
    check_server(&[settings(&[(4, (1 << 31) - 1), (5, 16_384), (5, (1 << 24) - 1)])], "settings");
    // Acknowledged twice.
    check_server(&[frame(SETTINGS, ACK, 0, &[]), frame(SETTINGS, ACK, 0, &[])], "acked");
}

#[test]
fn s6_6_pushes() {
    check_server(&[frame(PUSH_PROMISE, WHOLE, 1, b"\0\0\0\x02")], "error PROTOCOL_ERROR");
}

#[test]
fn s6_7_pings() {
    check_server(
        &[frame(PING, 0, 0, b"12345678"), frame(PING, ACK, 0, b"abcdefgh")],
        "ping 12345678 | pong abcdefgh",
    );
    check_server(&[frame(PING, 0, 1, b"12345678")], "error PROTOCOL_ERROR");
    check_server(&[frame(PING, 0, 0, b"1234567")], "error FRAME_SIZE_ERROR");
}

#[test]
fn s6_8_goaway() {
    let goaway = |last: u32, code: u32, debug: &[u8]| {
        frame(GOAWAY, 0, 0, &[&last.to_be_bytes()[..], &code.to_be_bytes(), debug].concat())
    };
    check_server(&[goaway(0, 0, b""), get(1)], &format!("goaway 0 NO_ERROR | {GOT}"));
    check_server(&[goaway(7, 11, b"debug data"), get(1)], &format!("goaway 7 ENHANCE_YOUR_CALM | {GOT}"));
    // The number may only be lowered.
    let twice = [goaway(0x7FFF_FFFF, 0, b""), goaway(3, 0, b""), goaway(5, 0, b"")];
    check_server(&twice, "goaway 2147483647 NO_ERROR | goaway 3 NO_ERROR | goaway 3 NO_ERROR");
    check_server(&[frame(GOAWAY, 0, 1, &[0; 8])], "error PROTOCOL_ERROR");
    check_server(&[frame(GOAWAY, 0, 0, &[0; 7])], "error FRAME_SIZE_ERROR");
}

#[test]
fn s6_9_windows() {
    check_server(&[window(0, 5), get(1), window(1, 5)], &format!("window 0 | {GOT} | window 1"));
    check_server(&[window(0, 0)], "error PROTOCOL_ERROR");
    check_server(&[get(1), window(1, 0)], &format!("{GOT} | 1: error PROTOCOL_ERROR"));
    check_server(&[frame(WINDOW_UPDATE, 0, 0, b"\0\0\x01")], "error FRAME_SIZE_ERROR");
    let most = 0x7FFF_FFFF - 65_535;
    check_server(&[window(0, most), window(0, 1)], "window 0 | error FLOW_CONTROL_ERROR");
    let beyond = format!("{GOT} | window 1 | 1: error FLOW_CONTROL_ERROR");
    check_server(&[get(1), window(1, most), window(1, 1)], &beyond);
}

#[test]
fn s6_10_continuations() {
    let block = block(GET);
    let (a, b) = block.split_at(3);
    let first = || frame(HEADERS, END, 1, a);
    check_server(&[first(), frame(CONTINUATION, WHOLE, 1, b)], GOT);
    check_server(&[first(), frame(CONTINUATION, 0, 1, b), frame(CONTINUATION, WHOLE, 1, b"")], GOT);
    check_server(&[first(), frame(CONTINUATION, 0, 1, b)], &format!("rest {}", 18 + block.len()));
    check_server(&[first(), frame(CONTINUATION, WHOLE, 3, b)], "error PROTOCOL_ERROR");
    check_server(&[first(), frame(PING, 0, 0, &[0; 8])], "error PROTOCOL_ERROR");
    check_server(&[first(), frame(0x77, 0, 0, b"")], "error PROTOCOL_ERROR");
    // Padding and priority belong to the first frame.
    let padded = frame(HEADERS, END | PADDED | PRIO, 1, &[b"\x02\0\0\0\x05\0", a, b"\0\0"].concat());
    check_server(&[padded, frame(CONTINUATION, WHOLE | PADDED | PRIO, 1, b)], GOT);
}

#[test]
fn s8_1_messages() {
    let posted = "1: POST http://h/ length=?";
    let trailers = |flags| headers(1, flags, &[("grpc-status", "0"), ("a", "b")]);
    check_server(
        &[post(1), data(1, 0, "x"), trailers(END)],
        &format!("{posted} | 1: body x | 1: trailers grpc=0 "),
    );
    check_server(
        &[post(1), trailers(END), get(3)],
        &format!("{posted} | 1: trailers grpc=0  | {}", GOT.replace('1', "3")),
    );
    // Trailers must end the stream, and must not have pseudo-headers.
    check_server(&[post(1), trailers(0)], &format!("{posted} | 1: error PROTOCOL_ERROR"));
    check_server(
        &[post(1), headers(1, END, &[(":path", "/")])],
        &format!("{posted} | 1: error PROTOCOL_ERROR"),
    );
    let length = |n: &'static str| headers(1, 0, &[GET, &[("content-length", n)]].concat());
    let three = "1: GET http://h/ length=3";
    check_server(
        &[length("3"), data(1, 0, "ab"), data(1, END, "c")],
        &format!("{three} | 1: body abc | 1: end"),
    );
    check_server(
        &[length("3"), data(1, 0, "abc"), data(1, END, "")],
        &format!("{three} | 1: body abc | 1: end"),
    );
    check_server(
        &[length("3"), data(1, 0, "abc"), trailers(END)],
        &format!("{three} | 1: body abc | 1: trailers grpc=0 "),
    );
    check_server(&[length("3"), data(1, 0, "abcd")], &format!("{three} | 1: error PROTOCOL_ERROR"));
    check_server(&[length("3"), data(1, END, "ab")], &format!("{three} | 1: error PROTOCOL_ERROR"));
    check_server(
        &[length("3"), data(1, 0, "ab"), trailers(END)],
        &format!("{three} | 1: body ab | 1: error PROTOCOL_ERROR"),
    );
    check_server(&[length("x")], "1: error PROTOCOL_ERROR");
    let twice = |b| headers(1, 0, &[GET, &[("content-length", "3"), ("content-length", b)]].concat());
    check_server(&[twice("3")], three);
    check_server(&[twice("4")], "1: error PROTOCOL_ERROR");
}

/// Checks a request with these fields before and after the pseudo-headers of a GET.
fn with(before: &[(&str, &str)], after: &[(&str, &str)], expected: &str) {
    check_server(&[headers(1, END, &[before, GET, after].concat())], expected);
}

#[test]
fn s8_2_fields() {
    let broken = "1: error PROTOCOL_ERROR";
    with(&[], &[("a", "b"), ("x-!#$%&'*+.^_`|~9", "\t"), ("b", "\u{e9} \t~"), ("c", "")], broken);
    with(&[], &[("a", "b"), ("x-!#$%&'*+.^_`|~9", "x"), ("b", "\u{e9} \t~"), ("c", "")], GOT);
    for name in ["A", "a b", "a\0", "", "a:", "\u{e9}", "a\x7f", "a\n"] {
        with(&[], &[(name, "x")], broken);
    }
    for value in [" a", "a ", "a\t", "\ta", "a\nb", "a\rb", "a\0"] {
        with(&[], &[("a", value)], broken);
    }
    for name in ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"] {
        with(&[], &[(name, "x")], broken);
    }
    with(&[], &[("te", "trailers")], GOT);
    with(&[], &[("te", "gzip")], broken);
}

#[test]
fn s8_3_pseudo_headers() {
    let broken = "1: error PROTOCOL_ERROR";
    with(&[("a", "b")], &[], broken);
    with(&[], &[(":path", "/")], broken);
    with(&[], &[(":unknown", "x")], broken);
    with(&[], &[(":status", "200")], broken);
    with(&[("host", "g")], &[], broken);
    with(&[], &[("host", "g")], GOT);
    let without = |name: &str| GET.iter().copied().filter(|(n, _)| *n != name).collect::<Vec<_>>();
    for name in [":method", ":scheme", ":path"] {
        check_server(&[headers(1, END, &without(name))], broken);
    }
    check_server(&[headers(1, END, &without(":authority"))], "1: GET http:/// length=0 ends");
    let host = [&without(":authority")[..], &[("host", "g")]].concat();
    check_server(&[headers(1, END, &host)], "1: GET http://g/ length=0 ends");
    let instead = |name: &'static str, value: &'static str| {
        let fields = GET.iter().map(|(n, v)| if *n == name { (name, value) } else { (*n, *v) });
        headers(1, END, &fields.collect::<Vec<_>>())
    };
    for path in ["", "a", "*", "/ b", "/\u{7f}"] {
        check_server(&[instead(":path", path)], broken);
    }
    check_server(&[instead(":path", "/a?b=\u{e9}")], "1: GET http://h/a?b=\u{e9} length=0 ends");
    check_server(&[instead(":method", "G ET")], broken);
    check_server(&[instead(":method", "")], broken);
    let options = [(":method", "OPTIONS"), (":scheme", "http"), (":path", "*"), (":authority", "h")];
    check_server(&[headers(1, END, &options)], "1: OPTIONS http://h* length=0 ends");
    let expects = [GET, &[("expect", "100-Continue")]].concat();
    check_server(&[headers(1, 0, &expects)], "1: GET http://h/ length=? continue");
    check_server(&[headers(1, END, &expects)], GOT);
}

#[test]
fn s8_5_connect() {
    let connect = |fields: &[(&str, &str)]| headers(1, 0, &[&[(":method", "CONNECT")], fields].concat());
    let broken = "1: error PROTOCOL_ERROR";
    check_server(&[connect(&[(":authority", "h:1")])], "1: CONNECT ://h:1 length=?");
    check_server(&[connect(&[])], broken);
    check_server(&[connect(&[(":authority", "h:1"), (":path", "/")])], broken);
    check_server(&[connect(&[(":authority", "h:1"), (":scheme", "http")])], broken);
    // RFC 8441, section 4.
    let websocket = [(":protocol", "websocket"), (":scheme", "http"), (":path", "/ws"), (":authority", "h")];
    let accepted = "1: CONNECT http://h/ws length=? protocol=websocket";
    check_server(&[connect(&websocket), data(1, 0, "frame")], &format!("{accepted} | 1: body frame"));
    for nth in 1..4 {
        let mut fields = websocket.to_vec();
        fields.remove(nth);
        check_server(&[connect(&fields)], broken);
    }
    with(&[], &[], GOT);
    with(&[(":protocol", "websocket")], &[], broken);
}

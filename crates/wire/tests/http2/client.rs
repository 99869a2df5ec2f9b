//! How a client reads responses, by the sections of RFC 9113.

use crate::script::*;
use fuzz::http2::{client, frame};
use wire::http2::Method::{self, Connect, Head, Other};

/// Checks the frames of a server after its SETTINGS, in response to one GET.
fn check_get(frames: &[Vec<u8>], expected: &str) {
    check_client(&[Other], frames, expected);
}

fn ok(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    headers(stream, flags, &[&[(":status", "200")], fields].concat())
}

#[test]
fn s8_1_responses() {
    check_get(&[ok(1, END, &[])], "1: 200 length=0 ends");
    check_get(&[ok(1, 0, &[]), data(1, END, "hello")], "1: 200 length=? | 1: body hello | 1: end");
    check_get(&[ok(1, 0, &[]), data(1, END, "")], "1: 200 length=? | 1: end");
    let five = [("content-length", "5")];
    check_get(&[ok(1, 0, &five), data(1, END, "hello")], "1: 200 length=5 | 1: body hello | 1: end");
    check_get(&[ok(1, 0, &five), data(1, END, "hell")], "1: 200 length=5 | 1: error PROTOCOL_ERROR");
    check_get(&[ok(1, 0, &five), data(1, 0, "hello!")], "1: 200 length=5 | 1: error PROTOCOL_ERROR");
    check_get(&[ok(1, END, &five)], "1: error PROTOCOL_ERROR");
    check_get(&[data(1, 0, "x")], "1: error PROTOCOL_ERROR");
    // Interim responses come before the final one, and do not end the stream.
    let interim = |status, flags| headers(1, flags, &[(":status", status), ("link", "x")]);
    check_get(
        &[interim("103", 0), interim("100", 0), ok(1, END, &[])],
        "1: interim 103 | 1: interim 100 | 1: 200 length=0 ends",
    );
    check_get(&[interim("103", END)], "1: error PROTOCOL_ERROR");
    check_get(&[interim("101", 0)], "1: error PROTOCOL_ERROR");
}

#[test]
fn s8_1_messages_without_a_body() {
    let five = [("content-length", "5")];
    let check =
        |method: Method, frames: &[Vec<u8>], expected: &str| check_client(&[method], frames, expected);
    check(Head, &[ok(1, END, &five)], "1: 200 length=0 ends");
    check(Head, &[ok(1, 0, &five), data(1, END, "")], "1: 200 length=0 | 1: end");
    check(Head, &[ok(1, 0, &five), data(1, 0, "x")], "1: 200 length=0 | 1: error PROTOCOL_ERROR");
    let status = |status| headers(1, END, &[(":status", status), ("content-length", "5")]);
    check(Other, &[status("304")], "1: 304 length=0 ends");
    check(Other, &[status("204")], "1: 204 length=0 ends");
    check(Other, &[status("404")], "1: error PROTOCOL_ERROR");
    // A tunnel's data has no length (section 8.5).
    check(Connect, &[ok(1, 0, &five), data(1, 0, "much more")], "1: 200 length=? | 1: body much more");
    let refused = headers(1, 0, &[(":status", "404"), ("content-length", "5")]);
    check(Connect, &[refused, data(1, END, "hello")], "1: 404 length=5 | 1: body hello | 1: end");
}

#[test]
fn s8_3_2_pseudo_headers() {
    let broken = "1: error PROTOCOL_ERROR";
    check_get(&[headers(1, END, &[("a", "b")])], broken);
    check_get(&[headers(1, END, &[])], broken);
    check_get(&[headers(1, END, &[("a", "b"), (":status", "200")])], broken);
    check_get(&[ok(1, END, &[(":status", "200")])], broken);
    check_get(&[ok(1, END, &[(":path", "/")])], broken);
    for status in ["", "20", "2000", "2o0", "099", "0200"] {
        check_get(&[headers(1, END, &[(":status", status)])], broken);
    }
    check_get(&[headers(1, END, &[(":status", "999")])], "1: 999 length=0 ends");
    check_get(&[ok(1, END, &[("Server", "x")])], broken);
    check_get(&[ok(1, END, &[("connection", "close")])], broken);
}

#[test]
fn grpc_results() {
    let results = [("grpc-status", "5"), ("grpc-message", "not%20found")];
    check_get(
        &[ok(1, 0, &[]), data(1, 0, "x"), headers(1, END, &results)],
        "1: 200 length=? | 1: body x | 1: trailers grpc=5 not%20found",
    );
    check_get(&[ok(1, END, &results)], "1: 200 length=0 ends grpc=5 not%20found");
    check_get(&[ok(1, END, &[("grpc-status", "five")])], "1: 200 length=0 ends");
    check_get(&[ok(1, END, &[("grpc-status", "4294967296")])], "1: 200 length=0 ends");
    check_get(&[ok(1, 0, &[]), headers(1, 0, &results)], "1: 200 length=? | 1: error PROTOCOL_ERROR");
}

#[test]
fn streams_side_by_side() {
    check_client(
        &[Other, Head, Other],
        &[
            ok(5, 0, &[]),
            ok(1, 0, &[]),
            data(5, 0, "five"),
            data(1, END, "one"),
            ok(3, END, &[]),
            data(5, END, "!"),
        ],
        "5: 200 length=? | 1: 200 length=? | 5: body five | 1: body one | 1: end | 3: 200 length=0 ends | \
         5: body ! | 5: end",
    );
}

#[test]
fn s5_1_states() {
    check_get(&[ok(3, END, &[])], "error PROTOCOL_ERROR");
    check_get(&[data(3, 0, "x")], "error PROTOCOL_ERROR");
    check_get(&[ok(2, END, &[])], "error PROTOCOL_ERROR");
    check_get(&[window(3, 1)], "error PROTOCOL_ERROR");
    check_get(&[reset(1, 7)], "1: reset REFUSED_STREAM");
    check_get(&[reset(1, 0), data(1, 0, "x")], "1: reset NO_ERROR | 1: error STREAM_CLOSED");
    check_get(&[ok(1, END, &[]), window(1, 9), reset(1, 0)], "1: 200 length=0 ends");
    check_get(&[frame(PUSH_PROMISE, WHOLE, 1, b"\0\0\0\x02\x82")], "error PROTOCOL_ERROR");
    check_get(&[settings(&[(2, 1)])], "error PROTOCOL_ERROR");
}

#[test]
fn expected_fields() {
    let expected = |fields: &[(&str, &str)], expected: &[(&str, &str)]| {
        let stream = [frame(SETTINGS, 0, 0, b""), ok(1, END, fields)].concat();
        let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        !client(&[&stream], &[Other], &expected).ends_with("lacks")
    };
    let fields = [("server", "nginx"), ("via", "a"), ("via", "b")];
    assert!(expected(&fields, &[]));
    assert!(expected(
        &fields,
        &[("Server", "ngi"), ("SERVER", "inx"), ("via", "b"), ("via", "a"), ("via", "")]
    ));
    assert!(!expected(&fields, &[("server", "Nginx")]));
    assert!(!expected(&fields, &[("server", "nginx"), ("x", "")]));
    assert!(!expected(&[], &[("server", "")]));
}

/// The bytes of nginx 1.22: first a change of the table's size, then literals with indexing.
#[test]
fn as_nginx_sends_it() {
    let frames: [&[u8]; 6] = [
        b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x04\0\x01\0\0\0\x05\0\xff\xff\xff",
        b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0",
        b"\0\0\0\x04\x01\0\0\0\0",
        b"\0\0\x31\x01\x04\0\0\0\x01\
          \x20\x88\x76\x89\xaa\x63\x55\xe5\x80\xae\x21\x2e\x1f\x61\x96\xd0\x7a\xbe\x94\x13\
          \x2a\x69\x3f\x75\x04\x01\x38\xa0\x5a\xb8\x01\x5c\x69\xe5\x31\x68\xdf\x5f\x87\x49\
          \x7c\xa5\x8a\xe8\x19\xaa\x5c\x01\x35",
        b"\0\0\x05\0\x01\0\0\0\x01hello",
        b"\0\0\x04\x03\0\0\0\0\x03\0\0\0\x07",
    ];
    let expected = |value: &str| [("Server".to_owned(), value.to_owned())];
    let said = |value| client(&[&frames.concat()], &[Other, Other], &expected(value));
    let whole =
        "opened | window 0 | acked | 1: 200 length=5 | 1: body hello | 1: end | 3: reset REFUSED_STREAM";
    assert_eq!(said("nginx/1.22.1"), whole);
    assert_eq!(said("apache"), whole.replace("length=5", "length=5 lacks"));
}

/// h2o 2.2 acknowledges a table size of 0, but continues to use its table.
#[test]
fn a_table_is_read_until_the_server_says_that_it_is_gone() {
    let said = |begin: &[u8]| {
        let stores = frame(HEADERS, WHOLE | END, 1, &[begin, b"\x88\x40\x01x\x01y"].concat());
        let refers = frame(HEADERS, WHOLE | END, 3, b"\x88\xbe");
        let stream = [frame(SETTINGS, 0, 0, b""), frame(SETTINGS, ACK, 0, b""), stores, refers].concat();
        client(&[&stream], &[Other, Other], &[("x".to_owned(), "y".to_owned())])
    };
    assert_eq!(said(b""), "opened | acked | 1: 200 length=0 ends | 3: 200 length=0 ends");
    assert_eq!(said(b"\x20"), "opened | acked | 1: 200 length=0 ends | error COMPRESSION_ERROR");
}

//! How a server reads requests, by RFC section. Each row is read as a whole and byte by byte, with the same result.

use fuzz::http1::server;
use wire::http1::{MAX_FIELDS, MAX_HEAD};

fn check(input: &str, expected: &str) {
    assert_eq!(server(&[input.as_bytes()]), expected, "whole: {input:?}");
    // Byte by byte takes quadratic time, so the few long rows are read in pieces of 1,000 bytes.
    let size = if input.len() < 1000 { 1 } else { 1000 };
    let pieces: Vec<_> = input.as_bytes().chunks(size).collect();
    assert_eq!(server(&pieces), expected, "in pieces of {size}: {input:?}");
}

/// A request line, followed by a `Host` and the end of the head.
fn ask(line: &str) -> String {
    format!("{line}\r\nHost: h\r\n\r\n")
}

/// A POST with `fields` (each with its line end), followed by `behind`.
fn post(fields: &str, behind: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n{behind}")
}

#[test]
fn rfc9112_2_2_empty_lines_before_a_request() {
    check("", "");
    check("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / keeps | end");
    check(
        &format!("{}\r\n{}\r\n", ask("GET /a HTTP/1.1"), ask("GET /b HTTP/1.1")),
        "GET /a keeps | end | GET /b keeps | end",
    );
    check("\r\n", "");
    check("\r\n\r", "rest 1");
    check("\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", "breach bad-head");
    check("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "breach bad-head");
    check(&"\r\n".repeat(20_000), "");
}

#[test]
fn rfc9112_3_request_lines() {
    check(&ask("GET / HTTP/1.1"), "GET / keeps | end");
    check("GET / HTTP/1.1\nHost: h\n\n", "GET / keeps | end");
    check(&ask("HEAD / HTTP/1.1"), "HEAD / keeps head | end");
    check(&ask("head / HTTP/1.1"), "head / keeps | end");
    check(&ask("M-SEARCH / HTTP/1.1"), "M-SEARCH / keeps | end");
    check(&ask("x!#$%&'*+.^_`|~9 / HTTP/1.1"), "x!#$%&'*+.^_`|~9 / keeps | end");
    check(&ask("G@T / HTTP/1.1"), "breach bad-head");
    check(&ask("GET  / HTTP/1.1"), "breach bad-head");
    check(&ask("GET /a b HTTP/1.1"), "breach bad-version");
    check(&ask("GET / HTTP/1.1 "), "breach bad-head");
    check(&ask("GET / HTTP/1.2"), "breach bad-version");
    check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "breach bad-version");
    check("\u{16}\u{3}\u{1}\u{2}", "breach bad-head");
    check("GET /\r\n", "breach bad-head");
    check("GET / HT", "rest 8");
}

#[test]
fn rfc9112_3_2_targets() {
    check(&ask("GET /a/b?length=5&x=%20 HTTP/1.1"), "GET /a/b?length=5&x=%20 keeps | end");
    check(&ask("GET http://h:80/?a=1 HTTP/1.1"), "GET http://h:80/?a=1 keeps | end");
    check(&ask("OPTIONS * HTTP/1.1"), "OPTIONS * keeps | end");
    check(&ask("CONNECT h:443 HTTP/1.1"), "CONNECT h:443 keeps | end");
    check(&ask("GET /ä HTTP/1.1"), "GET /ä keeps | end");
    check(&ask("GET /\0 HTTP/1.1"), "breach bad-head");
}

#[test]
fn rfc9112_3_2_hosts() {
    check("GET / HTTP/1.1\r\nhost:h:80\r\n\r\n", "GET / keeps | end");
    check("GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / keeps | end");
    check("GET / HTTP/1.1\r\n\r\n", "breach bad-head");
    check("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "breach bad-head");
    check("GET / HTTP/1.0\r\n\r\n", "GET / closes http10 | end");
    check("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "breach bad-head");
}

#[test]
fn heads_have_a_limit() {
    let head = |target: usize| ask(&format!("GET /{} HTTP/1.1", "a".repeat(target)));
    let fits = MAX_HEAD - head(0).len();
    check(&head(fits), &format!("GET /{} keeps | end", "a".repeat(fits)));
    check(&head(fits + 1), "breach head-too-long");
    // Empty lines before a head are not part of it.
    check(&format!("\r\n{}", head(fits)), &format!("GET /{} keeps | end", "a".repeat(fits)));
    let fields = |n| post(&"A: b\r\n".repeat(n), "");
    check(&fields(MAX_FIELDS - 1), "POST / keeps | end");
    check(&fields(MAX_FIELDS), "breach head-too-long");
}

#[test]
fn rfc9112_6_bodies() {
    let next = ask("GET /next HTTP/1.1");
    let ok = |fields: &str, body: &str, said: &str| {
        let expected = format!("POST / keeps{said} | end | GET /next keeps | end");
        check(&post(fields, &format!("{body}{next}")), &expected);
    };
    ok("", "", "");
    ok("Content-Length: 0\r\n", "", "");
    ok("Content-Length: 5\r\n", "hello", " | body hello");
    ok("Content-Length: 5, 5\r\nContent-Length: 5\r\n", "hello", " | body hello");
    ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n", " | body hello");
    ok("transfer-encoding:\tChunked \r\n", "5;a=b\r\nhello\r\n0\r\nSum: 1\r\n\r\n", " | body hello");
    check(&post("Content-Length: 6\r\n", "hello"), "POST / keeps | body hello");
    check(
        &post("Transfer-Encoding: chunked\r\n", "5\r\nhello!"),
        "POST / keeps | body hello | breach bad-chunk",
    );
}

#[test]
fn rfc9112_6_1_ambiguous_framing_is_refused() {
    for fields in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked;a=b\r\n",
        "Transfer-Encoding:\r\n",
        "Content-Length: 1, 2\r\n",
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length:\r\n",
        "Content-Length: 1 2\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: 0x1\r\n",
        "Content-Length: 18446744073709551616\r\n",
    ] {
        check(&post(fields, "0\r\n\r\n"), "breach bad-length");
    }
    check("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "breach bad-length");
    // Another server might interpret a field name with a space as the length.
    check(&post("Content-Length : 1\r\n", "x"), "breach bad-head");
    check(&post("A: b\r\n Content-Length: 1\r\n", "x"), "breach bad-head");
}

#[test]
fn rfc9112_9_3_persistence() {
    let next = "GET /next HTTP/1.1\r\nHost: h\r\n\r\n";
    let rest = next.len();
    check(&post("Connection: Close\r\n", next), &format!("POST / closes | end | rest {rest}"));
    check(
        &post("Connection: foo, close\r\nContent-Length: 1\r\n", "xmore"),
        "POST / closes | body x | end | rest 4",
    );
    check(&format!("GET / HTTP/1.0\r\n\r\n{next}"), &format!("GET / closes http10 | end | rest {rest}"));
    check(
        &format!("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n{next}"),
        "GET / keeps http10 | end | GET /next keeps | end",
    );
    // Bytes after the last request are neither read nor limited nor checked.
    let flood = "x".repeat(20_000);
    check(&post("Connection: close\r\n", &flood), "POST / closes | end | rest 20000");
}

#[test]
fn rfc9112_9_3_2_pipelining() {
    let three: String = ["/a", "/b", "/c"].map(|t| ask(&format!("GET {t} HTTP/1.1"))).concat();
    check(&three, "GET /a keeps | end | GET /b keeps | end | GET /c keeps | end");
}

#[test]
fn rfc9110_10_1_1_expectations() {
    let length = "Content-Length: 1\r\n";
    let expect = |value: &str| post(&format!("Expect: {value}\r\n{length}"), "x");
    check(&expect("100-continue"), "POST / keeps continue | body x | end");
    check(&expect("100-Continue"), "POST / keeps continue | body x | end");
    check(&expect("200-ok"), "POST / keeps | body x | end");
    check(
        &format!("POST / HTTP/1.0\r\nExpect: 100-continue\r\n{length}\r\nx"),
        "POST / closes http10 | body x | end",
    );
}

#[test]
fn rfc6455_4_2_1_offers_to_speak_websocket() {
    let offer =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let get = |fields: &str| format!("GET / HTTP/1.1\r\nHost: h\r\n{offer}{fields}\r\n");
    check(&get("Sec-WebSocket-Version: 13\r\n"), "GET / keeps websocket | end");
    check(&get("Sec-WebSocket-Version: 8\r\n"), "GET / keeps websocket? | end");
    // The machine parses the following bytes as HTTP: a caller that accepts the offer must replace it.
    let behind = format!("{}\u{1}\u{0}", get("Sec-WebSocket-Version: 13\r\n"));
    check(&behind, "GET / keeps websocket | end | breach bad-head");
}

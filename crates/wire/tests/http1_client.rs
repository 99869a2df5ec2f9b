//! How a client reads responses, by RFC section. Each row is read as a whole and byte by byte, with the same result.

use fuzz::http1::client;
use wire::http1::{Client, Event, MAX_CHUNK_LINE, MAX_FIELDS, MAX_HEAD};

/// Checks `input` after GET requests; the connection stays open.
fn check(input: &str, expected: &str) {
    tell(input, |_| false, false, expected);
}

/// Checks `input` after GET requests, followed by the end of the stream.
fn check_closed(input: &str, expected: &str) {
    tell(input, |_| false, true, expected);
}

/// Checks `input` if the first request was a HEAD.
fn check_head(input: &str, expected: &str) {
    tell(input, |nth| nth == 0, false, expected);
}

fn tell(input: &str, heads: fn(u32) -> bool, closes: bool, expected: &str) {
    assert_eq!(client(&[input.as_bytes()], heads, closes), expected, "whole: {input:?}");
    // Byte by byte takes quadratic time, so the few long rows are read in pieces of 1,000 bytes.
    let size = if input.len() < 1000 { 1 } else { 1000 };
    let pieces: Vec<_> = input.as_bytes().chunks(size).collect();
    assert_eq!(client(&pieces, heads, closes), expected, "in pieces of {size}: {input:?}");
}

/// A chunked response: a head, then `body` unchanged.
fn chunked(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

#[test]
fn rfc9112_4_status_lines() {
    check("", "");
    check("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200 length=0 keeps | end");
    check("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "200 length=0 keeps | end");
    check("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 length=0 keeps | end");
    check("HTTP/1.1 299 Schön\r\nContent-Length: 0\r\n\r\n", "299 length=0 keeps | end");
    check("HTTP/1.1 999 ?\r\nContent-Length: 0\r\n\r\n", "999 length=0 keeps | end");
    check("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "200 length=2 keeps | body ok | end");
    check("HTTP/1.1 099 Low\r\n\r\n", "breach bad-head");
    check("HTTP/1.1 20 OK\r\n\r\n", "breach bad-head");
    check("HTTP/1.1 2000 OK\r\n\r\n", "breach bad-head");
    check("\r\nHTTP/1.1 200 OK\r\n\r\n", "breach bad-head");
    check("HTTP/2.0 200 OK\r\n\r\n", "breach bad-version");
    check("HTTP/1.2 200 OK\r\n\r\n", "breach bad-version");
    check("SSH-2.0-OpenSSH_9.2\r\n", "breach bad-version");
    check("HTTP/1.1 200 O", "rest 14");
}

#[test]
fn rfc9112_5_fields() {
    check("HTTP/1.1 200 OK\r\ncontent-LENGTH:\t 0 \r\n\r\n", "200 length=0 keeps | end");
    check("HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", "breach bad-head");
    check("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "breach bad-head");
    check("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", "breach bad-head");
}

/// For a reader of the value, a continuation is a blank; if the value must not contain one, it is malformed as before.
#[test]
fn rfc9112_5_2_folded_fields_are_unfolded() {
    check("HTTP/1.1 204 No\r\nA: b\r\n  c\r\n\r\n", "204 length=0 keeps | end");
    check("HTTP/1.1 204 No\nA: b\n  c\n\n", "204 length=0 keeps | end");
    check("HTTP/1.1 200 OK\r\nContent-Length:\r\n\t2\r\n\r\n\r\n", "200 length=2 keeps | body \\r\\n | end");
    check("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n", "breach bad-length");
    let fields = "X-A: one,\r\n two\r\n\tthree\r\nX-B: four\r\n\r\n five: six\r\n";
    let mut seen = Vec::new();
    wire::http1::each_field(format!("HTTP/1.1 200 OK\r\n{fields}").as_bytes(), |name, value| {
        seen.push([name, value].map(|text| String::from_utf8_lossy(text).into_owned()));
    });
    assert_eq!(seen, [["X-A", "one,   two  \tthree"], ["X-B", "four"]]);
    check("HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "breach bad-head");
}

#[test]
fn heads_have_a_limit() {
    let head = |value| format!("HTTP/1.1 204 No Content\r\nA: {}\r\n\r\n", "x".repeat(value));
    let fits = MAX_HEAD - head(0).len();
    check(&head(fits), "204 length=0 keeps | end");
    check(&head(fits + 1), "breach head-too-long");
    check(&format!("HTTP/1.1 200 {}", "x".repeat(fits + 100)), "breach head-too-long");
    let fields = |n| format!("HTTP/1.1 204 No Content\r\n{}\r\n", "A: b\r\n".repeat(n));
    check(&fields(MAX_FIELDS), "204 length=0 keeps | end");
    check(&fields(MAX_FIELDS + 1), "breach head-too-long");
}

#[test]
fn rfc9112_6_2_content_length() {
    let reply = |length: &str| format!("HTTP/1.1 200 OK\r\n{length}\r\n\r\nhello");
    check(&reply("Content-Length: 5"), "200 length=5 keeps | body hello | end");
    check(&reply("Content-Length: 005"), "200 length=5 keeps | body hello | end");
    check(&reply("Content-Length: 5, 5"), "200 length=5 keeps | body hello | end");
    check(&reply("Content-Length: 5\r\nContent-Length: 05"), "200 length=5 keeps | body hello | end");
    check(&reply("Content-Length: 6"), "200 length=6 keeps | body hello");
    check(
        &reply("Content-Length: 18446744073709551615"),
        "200 length=18446744073709551615 keeps | body hello",
    );
    for bad in [
        "",
        "+5",
        "-5",
        "5 5",
        "5,6",
        "5,",
        ",5",
        "0x5",
        "5.0",
        "18446744073709551616",
        "99999999999999999999",
        "٥",
    ] {
        check(&reply(&format!("Content-Length: {bad}")), "breach bad-length");
    }
    check(&reply("Content-Length: 5\r\nContent-Length: 6"), "breach bad-length");
}

#[test]
fn rfc9112_6_3_no_body() {
    check("HTTP/1.1 204 No Content\r\n\r\n", "204 length=0 keeps | end");
    check("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", "204 length=0 keeps | end");
    check("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "304 length=0 keeps | end");
    check("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", "304 length=0 keeps | end");
    check_head("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", "200 length=0 keeps | end");
    check_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "200 length=0 keeps | end");
    check_head("HTTP/1.1 200 OK\r\n\r\n", "200 length=0 keeps | end");
    let second = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    check_head(
        &format!("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{second}"),
        "200 length=0 keeps | end | 200 length=2 keeps | body ok | end",
    );
}

#[test]
fn rfc9112_6_3_until_the_close() {
    let reply = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nall of it";
    check(reply, "200 length=? closes | body all of it");
    check_closed(reply, "200 length=? closes | body all of it | end");
    check_closed("HTTP/1.1 200 OK\r\n\r\n", "200 length=? closes | end");
    check_closed(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\nabc",
        "200 length=? closes | body abc | end",
    );
    check_closed("HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\nabc", "200 length=? closes | body abc | end");
    check_closed(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nabc",
        "200 length=? closes | body abc | end",
    );
}

#[test]
fn rfc9112_6_1_transfer_encoding() {
    let reply = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n1\r\nx\r\n0\r\n\r\n");
    check(&reply("Transfer-Encoding: chunked"), "200 length=? keeps | body x | end");
    check(&reply("Transfer-Encoding: CHUNKED"), "200 length=? keeps | body x | end");
    check(&reply("Transfer-Encoding: gzip, chunked"), "200 length=? keeps | body x | end");
    check(
        &reply("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked"),
        "200 length=? keeps | body x | end",
    );
    // With a length in addition, or in HTTP/1.0, chunking applies, but the connection is closed after this response.
    check(&reply("Content-Length: 3\r\nTransfer-Encoding: chunked"), "200 length=? closes | body x | end");
    check(
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "200 length=? closes | end",
    );
    check(&reply("Transfer-Encoding: chunked, chunked"), "breach bad-length");
    check(&reply("Transfer-Encoding: chunked, gzip"), "breach bad-length");
    check(&reply("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), "breach bad-length");
    check(&reply("Transfer-Encoding: chunked\r\nContent-Length: x"), "breach bad-length");
}

#[test]
fn rfc9112_7_1_chunks() {
    let ok = |body: &str, said: &str| check(&chunked(body), &format!("200 length=? keeps{said}"));
    ok("0\r\n\r\n", " | end");
    ok("5\r\nhello\r\n0\r\n\r\n", " | body hello | end");
    ok("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", " | body hello | end");
    ok("a\r\n0123456789\r\nA\r\n0123456789\r\n00\r\n\r\n", " | body 01234567890123456789 | end");
    ok("0000000000000005\r\nhello\r\n0\r\n\r\n", " | body hello | end");
    ok("00000000000000000005\r\nhello\r\n0\r\n\r\n", " | body hello | end");
    ok("5;a;b=c;d=\"e;f\"\r\nhello\r\n0;z\r\n\r\n", " | body hello | end");
    ok("5 ;a\r\nhello\r\n0 \t\r\n\r\n", " | body hello | end");
    ok("ffffffffffffffff\r\nhello", " | body hello");
    ok("5\r\nhel", " | body hel");
    ok("5\r\nhello\r", " | body hello | rest 1");
    ok("5\r\nhello\r\n1", " | body hello | rest 1");
    let chunk_line = |n: usize| format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(n));
    ok(&chunk_line(MAX_CHUNK_LINE - 4), " | body x | end");
    ok(&chunk_line(MAX_CHUNK_LINE - 3), " | breach bad-chunk");
    ok(&"0".repeat(MAX_CHUNK_LINE - 1), " | rest 1023");
    ok(&"0".repeat(MAX_CHUNK_LINE), " | breach bad-chunk");
}

#[test]
fn rfc9112_7_1_broken_chunks() {
    for line in
        ["", " 5", ";a", "-5", "+5", "0x5", "5 5", "g", "10000000000000001", "5\r", "5;\0", "5;a\rb", "5\n"]
    {
        check(&chunked(&format!("{line}\r\nhello\r\n0\r\n\r\n")), "200 length=? keeps | breach bad-chunk");
    }
    for start in [" ", ";", "x"] {
        check(&chunked(start), "200 length=? keeps | breach bad-chunk");
    }
    check(&chunked("5\nhello\n0\n\n"), "200 length=? keeps | breach bad-chunk");
    for end in ["\n", "\r\r", "x", "!\r\n"] {
        check(
            &chunked(&format!("5\r\nhello{end}0\r\n\r\n")),
            "200 length=? keeps | body hello | breach bad-chunk",
        );
    }
}

#[test]
fn rfc9112_7_1_2_trailers() {
    let ok = |trailers: &str, said: &str| {
        check(&chunked(&format!("1\r\nx\r\n0\r\n{trailers}")), &format!("200 length=? keeps | body x{said}"));
    };
    ok("A: b\r\n\r\n", " | end");
    ok("A:\r\nB-c_d:\te\u{f6}\r\nContent-Length: 7\r\n\r\n", " | end");
    ok("A: b\r\n", "");
    ok("A: b", " | rest 4");
    for bad in ["A\r\n", ": b\r\n", "A : b\r\n", " A: b\r\n", "A: b\n", "A: \0\r\n", "A: b\rc\r\n", "\n"] {
        ok(&format!("{bad}\r\n"), " | breach bad-chunk");
    }
    // The limit applies to the section, including its empty line.
    let lines = |n: usize| format!("{}\r\n", "A: bcd\r\n".repeat(n));
    ok(&lines(MAX_HEAD / 8 - 1), " | end");
    ok(&lines(MAX_HEAD / 8), " | breach head-too-long");
    ok(&format!("A: {}", "b".repeat(MAX_HEAD)), " | breach head-too-long");
}

#[test]
fn rfc9112_8_truncated() {
    check_closed("", "breach truncated");
    check_closed("HTTP/1.1 200 O", "breach truncated");
    check_closed("HTTP/1.1 100 Continue\r\n\r\n", "interim 100 | breach truncated");
    check_closed(
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
        "200 length=6 keeps | body hello | breach truncated",
    );
    check_closed(&chunked("5\r\nhello\r\n"), "200 length=? keeps | body hello | breach truncated");
    check_closed(&chunked("0\r\n"), "200 length=? keeps | breach truncated");
    check_closed(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "200 length=0 closes | end | closed",
    );
}

#[test]
fn rfc9112_9_3_persistence() {
    let reply =
        |version: &str, fields: &str| format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
    let keeps = "200 length=0 keeps | end";
    let closes = "200 length=0 closes | end";
    check(&reply("1.1", ""), keeps);
    check(&reply("1.1", "Connection: keep-alive\r\n"), keeps);
    check(&reply("1.1", "Connection: closed, upgrade\r\n"), keeps);
    check(&reply("1.1", "Connection: close\r\n"), closes);
    check(&reply("1.1", "connection:CLOSE\r\n"), closes);
    check(&reply("1.1", "Connection: foo , Close\r\n"), closes);
    check(&reply("1.1", "Connection: foo\r\nConnection: close\r\n"), closes);
    check(&reply("1.1", "Connection: keep-alive, close\r\n"), closes);
    check(&reply("1.0", ""), closes);
    check(&reply("1.0", "Connection: foo, Keep-Alive\r\n"), keeps);
    check(&reply("1.0", "Connection: keep-alive, close\r\n"), closes);
}

#[test]
fn keep_alive_timeouts() {
    let reply = |value: &str| format!("HTTP/1.1 204 No Content\r\nKeep-Alive: {value}\r\n\r\n");
    let timeout = |value: &str, said: &str| check(&reply(value), &format!("204 length=0 keeps{said} | end"));
    timeout("timeout=5", " timeout=5");
    timeout("timeout=5, max=100", " timeout=5");
    timeout("max=100,Timeout = 65", " timeout=65");
    timeout("timeout=\"7\"", " timeout=7");
    timeout("timeout=0", " timeout=0");
    timeout("timeout=5\r\nKeep-Alive: timeout=6", " timeout=5");
    timeout("max=100", "");
    timeout("", "");
    timeout("timeout", "");
    timeout("timeout=", "");
    timeout("timeout=5s", "");
    timeout("timeouts=5", "");
    timeout("timeout=4294967296", "");
    timeout("ümlautö=5", "");
}

#[test]
fn rfc9110_15_2_interim_replies() {
    let last = "HTTP/1.1 204 No Content\r\n\r\n";
    check(
        &format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{last}"),
        "interim 100 | interim 103 | 204 length=0 keeps | end",
    );
    check(
        &format!("HTTP/1.1 102 Processing\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{last}"),
        "interim 102 | 204 length=0 keeps | end",
    );
    check("HTTP/1.1 199 ?\r\n\r\n", "interim 199");
}

#[test]
fn rfc9110_15_2_2_switching_protocols() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    check(switch, "101 length=0 closes | end");
    check(&format!("{switch}HTTP/1.1"), "101 length=0 closes | end | rest 8");
    check_closed(&format!("{switch}\u{1}"), "101 length=0 closes | end | closed | rest 1");
}

#[test]
fn rfc9112_9_2_unsolicited_bytes() {
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok!",
        "200 length=2 closes | body ok | end | breach unexpected-bytes",
    );
    let mut idle = Client::new();
    assert_eq!(idle.handle_bytes(b"", &[]), Ok((0, None)));
    assert_eq!(idle.handle_bytes(b"\r\n", &[]), Err(wire::Breach::UnexpectedBytes));
}

#[test]
fn an_idle_connection_ends_without_a_breach() {
    let mut machine = Client::new();
    assert!(machine.is_idle() && machine.keeps_alive());
    assert_eq!(machine.handle_end(), Ok(None));
    assert!(machine.is_idle() && !machine.keeps_alive());
}

#[test]
fn an_end_that_was_not_taken_is_reported_at_the_close() {
    let mut machine = Client::new();
    machine.order(false);
    let reply = b"HTTP/1.1 204 No Content\r\n\r\n";
    let (n, head) = machine.handle_bytes(reply, &[]).expect("well formed");
    assert!(n == reply.len() && matches!(head, Some(Event::Head(_))));
    assert!(!machine.is_idle());
    assert_eq!(machine.handle_end(), Ok(Some(Event::End)));
    assert!(machine.is_idle() && !machine.keeps_alive());
}

#[test]
#[should_panic(expected = "one request at a time")]
fn a_second_order_is_our_bug() {
    let mut machine = Client::new();
    machine.order(false);
    machine.order(false);
}

#[test]
fn expected_fields_are_searched_for_in_the_head() {
    let check = |expected: &[(&str, &str)], has: bool| {
        let expected: Vec<_> =
            expected.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        let mut machine = Client::new();
        machine.order(false);
        let response =
            b"HTTP/1.1 200 OK\r\nVary: A\r\nVary: Accept, Origin\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n";
        let (_, event) = machine.handle_bytes(response, &expected).expect("well formed");
        let Some(Event::Head(head)) = event else { panic!("no head: {event:?}") };
        assert_eq!(head.has_expected, has, "{expected:?}");
    };
    check(&[], true);
    check(&[("vary", "Origin"), ("content-length", "")], true);
    check(&[("x-empty", "")], true);
    check(&[("vary", "origin")], false);
    check(&[("vary", "Origin"), ("etag", "")], false);
}

//! The handshake from both ends (RFC 6455, section 4). Responses are read as a whole and byte by byte.

use fuzz::websocket::{key, response};
use wire::http1::{Event, MAX_HEAD, Server};
use wire::websocket::{Key, Response, accept_key, read_response, write_accept, write_upgrade};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

#[test]
fn rfc6455_1_3_the_example() {
    assert_eq!(accept_key(KEY.as_bytes()), *ACCEPT.as_bytes().first_chunk::<28>().expect("28 characters"));
    assert_eq!(key().as_bytes(), KEY.as_bytes());
    assert_eq!(Key::new(0).as_bytes(), b"AAAAAAAAAAAAAAAAAAAAAA==");
    assert_eq!(Key::new(1).as_bytes(), b"AAAAAAAAAAAAAAAAAAAAAQ==");
    assert_eq!(Key::new(u128::MAX).as_bytes(), b"/////////////////////w==");
}

fn written(write: impl Fn(&mut [u8]) -> Option<usize>, expected: &str) {
    let mut out = [0; 512];
    let n = write(&mut out).expect("it fits");
    assert_eq!(str::from_utf8(&out[..n]), Ok(expected));
    assert_eq!(write(&mut out[..n]), Some(n));
    for short in 0..n {
        assert_eq!(write(&mut out[..short]), None);
    }
}

#[test]
fn rfc6455_4_1_a_request_as_text() {
    written(
        |out| write_upgrade(out, "/ws/echo", "127.0.0.1:8000", "Origin: http://h\r\n", &key()),
        &format!(
            "GET /ws/echo HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\nOrigin: http://h\r\n\r\n"
        ),
    );
}

#[test]
fn rfc6455_4_2_2_a_response_as_text() {
    written(
        |out| write_accept(out, KEY.as_bytes()),
        &format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
        ),
    );
}

/// Request, offer, response: each end accepts what the other wrote, for any key.
#[test]
fn both_ends_agree() {
    for nonce in [0, 1, u128::MAX, 0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF] {
        let key = Key::new(nonce);
        let (mut request, mut reply) = ([0; 512], [0; 512]);
        let n = write_upgrade(&mut request, "/", "h", "", &key).expect("it fits");
        let mut server = Server::new();
        let Ok((_, Some(Event::Head(head)))) = server.handle_bytes(&request[..n]) else { panic!("no head") };
        let offer = head.websocket.expect("an offer");
        assert!(offer.is_valid() && offer.key == key.as_bytes() && offer.version == 13, "{offer:?}");
        // The machine continues as after any other request.
        assert_eq!(server.handle_bytes(b""), Ok((0, Some(Event::End))));
        let n = write_accept(&mut reply, offer.key).expect("it fits");
        assert_eq!(read_response(&reply[..n], &key, ""), Ok(Some((n, Response::Accepted))));
        let other = read_response(&reply[..n], &Key::new(nonce ^ 2), "");
        assert_eq!(other, Err(wire::Breach::BadHandshake), "another key's response");
    }
}

/// Checks the offer in a request with this first line and these fields: `KEY VERSION valid`, or `none`.
fn offered(line: &str, fields: &[&str], expected: &str) {
    let fields = fields.iter().map(|field| format!("{field}\r\n")).collect::<String>();
    let request = format!("{line}\r\nHost: h\r\n{fields}\r\n");
    let Ok((_, Some(Event::Head(head)))) = Server::new().handle_bytes(request.as_bytes()) else {
        panic!("no head: {request}");
    };
    let said = head.websocket.map_or("none".to_owned(), |offer| {
        let valid = if offer.is_valid() { " valid" } else { "" };
        format!("{} {}{valid}", offer.key.escape_ascii(), offer.version)
    });
    assert_eq!(said, expected, "{request}");
}

const GET: &str = "GET /ws/echo HTTP/1.1";
const OFFER: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
];

/// The four fields, with the nth replaced.
fn but(nth: usize, field: &str) -> [&str; 4] {
    let mut fields = OFFER;
    fields[nth] = field;
    fields
}

#[test]
fn rfc6455_4_2_1_offers() {
    let valid = format!("{KEY} 13 valid");
    offered(GET, &OFFER, &valid);
    offered(GET, &but(0, "connection: keep-alive, UPGRADE"), &valid);
    offered(GET, &but(0, "Connection: keep-alive\r\nConnection: upgrade"), &valid);
    offered(GET, &but(1, "upgrade: h2c, WebSocket"), &valid);
    offered(GET, &but(2, "sec-websocket-key:\tdGhlIHNhbXBsZSBub25jZQ== "), &valid);
    offered(GET, &but(3, "SEC-WEBSOCKET-VERSION:13"), &valid);
    let extra = [&OFFER[..], &["Sec-WebSocket-Extensions: permessage-deflate", "Origin: http://h"]].concat();
    offered(GET, &extra, &valid);
    for nth in 0..3 {
        offered(GET, &but(nth, "A: b"), "none");
    }
    offered(GET, &but(0, "Connection: Upgraded"), "none");
    offered(GET, &but(1, "Upgrade: websockets"), "none");
    offered("POST /ws/echo HTTP/1.1", &OFFER, "none");
    offered("HEAD /ws/echo HTTP/1.1", &OFFER, "none");
    offered("GET /ws/echo HTTP/1.0", &OFFER, "none");
}

#[test]
fn rfc6455_4_2_2_offers_to_be_refused() {
    for (version, expected) in
        [("8", 8), ("0", 0), ("", 0), ("13x", 0), ("-13", 0), ("65535", 65535), ("65536", 0), ("13, 8", 0)]
    {
        let field = format!("Sec-WebSocket-Version: {version}");
        offered(GET, &but(3, &field), &format!("{KEY} {expected}"));
    }
    offered(GET, &but(3, "A: b"), &format!("{KEY} 0"));
    offered(GET, &but(3, "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Version: 13"), &format!("{KEY} 0"));
    for key in [
        "",
        "dGhlIHNhbXBsZSBub25jZQ=",
        "dGhlIHNhbXBsZSBub25jZQ",
        "dGhlIHNhbXBsZSBub25jZQ==A",
        "dGhlIHNhbXBsZSBub25jZQQQ",
        "dGhlIHNhbXBsZSBub25jZQA=",
        "dGhlIHNhbXBsZSBub25j====",
        "dGhlIHNhbXBsZSBub25j",
        "dGhl HNhbXBsZSBub25jZQ==",
        "dGhl_HNhbXBsZSBub25jZQ==",
    ] {
        let field = format!("Sec-WebSocket-Key: {key}");
        offered(GET, &but(2, &field), &format!("{key} 13"));
    }
    let twice = format!("Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Key: {KEY}");
    offered(GET, &but(2, &twice), " 13");
}

fn check(input: &str, expected: &str) {
    assert_eq!(response(&[input.as_bytes()]), expected, "whole: {input:?}");
    let size = if input.len() < 1000 { 1 } else { 1000 };
    let pieces: Vec<_> = input.as_bytes().chunks(size).collect();
    assert_eq!(response(&pieces), expected, "in pieces of {size}: {input:?}");
}

/// A 101 response with these fields.
fn switching(fields: &[&str]) -> String {
    format!("HTTP/1.1 101 Switching Protocols\r\n{}\r\n\r\n", fields.join("\r\n"))
}

const FIELDS: [&str; 3] =
    ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="];

#[test]
fn rfc6455_4_1_responses_that_upgrade() {
    let good = switching(&FIELDS);
    check(&good, "accepted");
    check(&format!("{good}\u{1}\u{5}"), "accepted | rest 2");
    check(&good[..good.len() - 1], "open");
    check("", "open");
    check(&switching(&["UPGRADE:\tWebSocket ", "connection: keep-alive, upgrade", FIELDS[2]]), "accepted");
    check(&switching(&[FIELDS[0], "Connection: keep-alive", "A: b", FIELDS[1], FIELDS[2]]), "accepted");
    for chosen in ["superchat", " v2 "] {
        let field = format!("Sec-WebSocket-Protocol:{chosen}");
        check(&switching(&[&FIELDS[..], &[&field]].concat()), "accepted");
    }
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    check(&format!("{interim}{good}x"), "accepted | rest 1");
    check(interim, "open");
}

#[test]
fn rfc6455_4_1_responses_that_do_not() {
    for nth in 0..3 {
        let mut fields = FIELDS;
        fields[nth] = "A: b";
        check(&switching(&fields), "breach bad-handshake");
    }
    for (nth, field) in [
        (0, "Upgrade: websockets"),
        (0, "Upgrade: websocket, h2c"),
        (0, "Upgrade: websocket\r\nUpgrade: websocket"),
        (1, "Connection: Upgrades"),
        (2, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOO="),
        (2, "Sec-WebSocket-Accept: S3PPLMBITXAQ9KYGZZHZRBK+XOO="),
        (2, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo"),
        (2, "Sec-WebSocket-Accept: dGhlIHNhbXBsZSBub25jZQ=="),
        (2, "Sec-WebSocket-Accept:"),
    ] {
        let mut fields = FIELDS;
        fields[nth] = field;
        check(&switching(&fields), "breach bad-handshake");
    }
    let more = |field: &str| switching(&[&FIELDS[..], &[field]].concat());
    for field in [FIELDS[2], "Sec-WebSocket-Protocol: v2\r\nSec-WebSocket-Protocol: v2"] {
        check(&more(field), "breach bad-handshake");
    }
    for field in [
        "Sec-WebSocket-Protocol: chat",
        "Sec-WebSocket-Protocol: V2",
        "Sec-WebSocket-Protocol: superchat, v2",
        "Sec-WebSocket-Protocol:",
        "Sec-WebSocket-Extensions: permessage-deflate",
    ] {
        check(&more(field), "breach not-offered");
    }
    check(&switching(&FIELDS).replace("HTTP/1.1", "HTTP/1.0"), "breach bad-handshake");
}

#[test]
fn responses_that_refuse_or_are_none() {
    check("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "refused 404 | rest 2");
    check("HTTP/1.0 200 OK\r\n\r\n", "refused 200");
    check("HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13\r\n\r\n", "refused 426");
    check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 \r\n\r\n", "refused 503");
    check("HTTP/1.1 099 Low\r\n\r\n", "breach bad-head");
    check("\r\nHTTP/1.1 101 Switching Protocols\r\n\r\n", "breach bad-head");
    check("HTTP/1.1 100 Continue\r\n\r\n\nHTTP/1.1 200 OK\r\n\r\n", "breach bad-head");
    check("HTTP/2.0 101 Switching Protocols\r\n\r\n", "breach bad-version");
    check("\u{1}\u{5}Hello", "breach bad-version");
}

#[test]
fn responses_have_a_limit() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let padded = |len: usize| {
        let good = switching(&FIELDS);
        let fill = len - good.len() - "A: \r\n".len();
        good.replace("\r\n\r\n", &format!("\r\nA: {}\r\n\r\n", "x".repeat(fill)))
    };
    check(&padded(MAX_HEAD), "accepted");
    check(&padded(MAX_HEAD + 1), "breach head-too-long");
    check(&format!("{interim}{}", padded(MAX_HEAD - interim.len())), "accepted");
    check(&format!("{interim}{}", padded(MAX_HEAD - interim.len() + 1)), "breach head-too-long");
    // Interim responses that leave no room for a final one, and endless ones, are rejected.
    let last =
        format!("HTTP/1.1 100 Continue\r\nA: {}\r\n\r\n", "x".repeat(MAX_HEAD - 2 * interim.len() - 5));
    check(&format!("{interim}{last}"), "breach head-too-long");
    check(&interim.repeat(1000), "breach head-too-long");
}

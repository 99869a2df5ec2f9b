//! How frames are read, by RFC section. Each row is read as a whole and byte by byte, with the same result.

use fuzz::websocket::{frames, masked};
use wire::Breach;
use wire::websocket::{Data, Event, Frames, Role};

const MOST: u64 = 1 << 20;

fn check(role: Role, most: u64, input: &[u8], expected: &str) {
    let shown = &input[..input.len().min(100)].escape_ascii();
    assert_eq!(frames(role, most, &[input]), expected, "{role:?}, whole: {shown}");
    let bytes: Vec<_> = input.chunks(1).collect();
    assert_eq!(frames(role, most, &bytes), expected, "{role:?}, byte by byte: {shown}");
}

/// Checks a server's frames, as a client reads them.
fn client(input: &[u8], expected: &str) {
    check(Role::Client, MOST, input, expected);
}

/// Checks a client's frames, given unmasked, as a server reads them.
fn server(input: &[u8], expected: &str) {
    check(Role::Server, MOST, &masked(input.to_vec()), expected);
}

#[test]
fn rfc6455_5_7_examples() {
    let hello = b"\x81\x85\x37\xFA\x21\x3D\x7F\x9F\x4D\x51\x58";
    client(b"\x81\x05\x48\x65\x6C\x6C\x6F", "text Hello");
    check(Role::Server, MOST, hello, "text Hello");
    client(b"\x01\x03\x48\x65\x6C\x80\x02\x6C\x6F", "text Hello");
    client(b"\x89\x05\x48\x65\x6C\x6C\x6F", "ping Hello");
    check(Role::Server, MOST, b"\x8A\x85\x37\xFA\x21\x3D\x7F\x9F\x4D\x51\x58", "pong Hello");
    let long = |header: &[u8], len: usize| {
        client(&[header, &vec![b'x'; len]].concat(), &format!("binary {}", "x".repeat(len)));
    };
    long(b"\x82\x7E\x01\x00", 256);
    long(b"\x82\x7F\x00\x00\x00\x00\x00\x01\x00\x00", 65536);
}

#[test]
fn rfc6455_5_1_masks_by_role() {
    client(b"\x81\x80\x01\x02\x03\x04", "breach bad-frame");
    client(b"\x81\x00", "text");
    server(b"\x81\x00", "breach bad-frame");
    server(b"\x81\x80\x01\x02\x03\x04", "text");
    server(b"\x89\x00", "breach bad-frame");
    // A mask of zeros is valid.
    server(b"\x81\x82\0\0\0\0ok", "text ok");
}

#[test]
fn rfc6455_5_2_first_bytes_that_are_none() {
    for first in 0..=0xFFu8 {
        let (reserved, opcode, ends) = (first & 0x70 != 0, first & 0x0F, first & 0x80 != 0);
        let expected = match (reserved, opcode, ends) {
            (false, 1 | 2, _) | (false, 8..=10, true) => "rest 1",
            _ => "breach bad-frame",
        };
        // Rejected before the second byte arrives.
        client(&[first], expected);
        server(&[first], expected);
    }
}

#[test]
fn rfc6455_5_2_lengths_are_as_short_as_can_be() {
    client(b"\x82\x7E\x00\x7D", "breach bad-frame");
    client(b"\x82\x7E\x00\x7E", "begun binary");
    client(b"\x82\x7F\x00\x00\x00\x00\x00\x00\xFF\xFF", "breach bad-frame");
    client(b"\x82\x7F\x00\x00\x00\x00\x00\x01\x00\x00", "begun binary");
    client(b"\x82\x7F\x80\x00\x00\x00\x00\x01\x00\x00", "breach bad-frame");
    server(b"\x82\xFE\x00\x7D", "breach bad-frame");
    let most = u64::MAX;
    check(Role::Client, most, b"\x82\x7F\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFFab", "begun binary ab");
    check(Role::Client, most, b"\x82\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFab", "breach bad-frame");
    for header in [&b"\x82\x7E\x01"[..], b"\x82\x7F\0\0\0\0\0\x01\0", b"\x82"] {
        client(header, &format!("rest {}", header.len()));
    }
    for header in [&b"\x82\x82\x01\x02\x03"[..], b"\x82\xFE\x01\x00", b"\x82\xFF\0\0\0\0\0\x01\0\0\x01"] {
        server(header, &format!("rest {}", header.len()));
    }
}

#[test]
fn rfc6455_5_4_fragments() {
    client(b"\x01\x00\x00\x00\x80\x00", "text");
    client(b"\x02\x01a\x00\x01b\x80\x01c\x81\x01d", "binary abc | text d");
    client(b"\x02\x01a\x89\x01p\x8A\x00\x80\x01c", "ping p | pong | binary ac");
    server(b"\x01\x81\x01\x02\x03\x04a\x80\x81\x05\x06\x07\x08b", "text ab");
    client(b"\x02\x01a", "begun binary a");
    client(b"\x80\x00", "breach bad-frame");
    client(b"\x81\x01a\x00", "text a | breach bad-frame");
    client(b"\x01\x01a\x82", "breach bad-frame");
    client(b"\x01\x01a\x01", "breach bad-frame");
}

#[test]
fn rfc6455_5_5_control_frames() {
    client(&[b"\x89\x7D", &[b'x'; 125][..]].concat(), &format!("ping {}", "x".repeat(125)));
    // Consumed only when complete, and rejected at their second byte.
    client(&[b"\x89\x7D", &[b'x'; 124][..]].concat(), "rest 126");
    server(&[b"\x8A\xFD\x01\x02\x03\x04", &[b'x'; 124][..]].concat(), "rest 130");
    client(b"\x89\x7E", "breach bad-frame");
    client(b"\x8A\x7F", "breach bad-frame");
    server(b"\x88\xFE", "breach bad-frame");
}

#[test]
fn rfc6455_5_5_1_closes() {
    client(b"\x88\x00", "close");
    client(b"\x88\x02\x03\xE8", "close 1000");
    server(b"\x88\x85\x01\x02\x03\x04\x0F\xA0bye", "close 4000 bye");
    client(b"\x88\x01\x03", "breach bad-close");
    client(b"\x88\x04\x03\xE8\xC3\xA4", "close 1000 \\xc3\\xa4");
    client(b"\x88\x03\x03\xE8\xC3", "breach bad-utf8");
    client(b"\x88\x04\x03\xE8\xC3\x28", "breach bad-utf8");
    client(b"\x88\x04\x03\xEC\xC3\x28", "breach bad-close");
    // Everything after a close is ignored, and an incomplete message is discarded.
    client(b"\x88\x02\x03\xE8\x81\x01a\xFF\xFF\x88", "close 1000");
    client(b"\x01\x01a\x88\x00\x80\x01b", "close");
}

#[test]
fn rfc6455_7_4_close_codes() {
    for code in 0..=u16::MAX {
        let [high, low] = code.to_be_bytes();
        let valid = match code {
            1004..=1006 | 1015 => false,
            1000..=1014 | 3000..=4999 => true,
            _ => false,
        };
        let expected = if valid { format!("close {code}") } else { "breach bad-close".to_owned() };
        assert_eq!(frames(Role::Client, MOST, &[&[0x88, 2, high, low]]), expected);
    }
}

#[test]
fn rfc6455_8_1_text() {
    // A character split over two frames, and one that is never completed.
    client(b"\x01\x02\xE2\x82\x80\x01\xAC", "text \\xe2\\x82\\xac");
    client(b"\x81\x02\xE2\x82", "breach bad-utf8");
    client(b"\x01\x02\xE2\x82\x80\x00", "breach bad-utf8");
    client(b"\x01\x02\xE2\x82\x89\x01\xFF\x80\x01\xAC", "ping \\xff | text \\xe2\\x82\\xac");
    client(b"\x82\x02\xE2\x82", "binary \\xe2\\x82");
    // The next message starts with a new state.
    client(b"\x01\x01a\x80\x01b\x82\x01\xFF\x81\x01c", "text ab | binary \\xff | text c");
}

/// Masked text is unmasked in blocks: a character may cross the end of a block, and a wrong byte may be anywhere.
#[test]
fn long_text_with_characters_anywhere() {
    for front in 240..270usize {
        let good = [&vec![b'a'; front], "😀€ä".as_bytes(), &[b'z'; 300]].concat();
        let mut bad = good.clone();
        bad[front + 3] = b'a';
        for (payload, expected) in
            [(&good, format!("text {}", good.escape_ascii())), (&bad, "breach bad-utf8".into())]
        {
            let len = (payload.len() as u16).to_be_bytes();
            let stream = [&[0x81, 0xFE], &len[..], b"\x11\x22\x33\x44", payload].concat();
            assert_eq!(frames(Role::Server, MOST, &[&masked(stream)]), expected, "{front}");
        }
    }
}

#[test]
fn rfc6455_10_4_messages_have_a_limit() {
    let check = |most, input: &[u8], expected| check(Role::Client, most, input, expected);
    check(5, b"\x81\x05Hello", "text Hello");
    check(4, b"\x81\x05", "breach message-too-long");
    check(5, b"\x01\x03Hel\x80\x02lo\x81\x05Hello", "text Hello | text Hello");
    check(5, b"\x01\x03Hel\x80\x03", "breach message-too-long");
    check(5, b"\x01\x03Hel\x89\x04ping\x80\x02lo", "ping ping | text Hello");
    check(0, b"\x89\x01p\x81\x00\x82\x01", "ping p | text | breach message-too-long");
    let huge = b"\x01\x01a\x00\x7F\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
    check(1 << 62, huge, "breach message-too-long");
    // The header is checked first.
    check(0, b"\x81\x85", "breach bad-frame");
}

/// A message is reported as soon as its header has arrived, and its bytes as they arrive.
#[test]
fn pieces_come_as_they_arrive() {
    let mut machine = Frames::new(Role::Server);
    let mut read = |input: &[u8]| match machine.handle_bytes(input, MOST) {
        Ok((n, Some(Event::Data(Data { payload, text, begins, ends })))) => {
            let bytes: Vec<u8> = payload.bytes().collect();
            (n, Some((bytes, text, begins, ends)), machine.is_between_messages())
        }
        Ok((n, None)) => (n, None, machine.is_between_messages()),
        other => panic!("no data: {other:?}"),
    };
    assert_eq!(read(b""), (0, None, true));
    assert_eq!(read(b"\x01\x83\x01\x02\x03"), (0, None, true));
    assert_eq!(read(b"\x01\x83\x01\x02\x03\x04"), (6, Some((vec![], true, true, false)), false));
    assert_eq!(read(b"`"), (1, Some((b"a".to_vec(), true, false, false)), false));
    assert_eq!(read(b""), (0, None, false));
    assert_eq!(read(b"``\x00"), (2, Some((b"bc".to_vec(), true, false, false)), false));
    assert_eq!(read(b"\x00\x80\x01\x02\x03\x04\x80"), (6, None, false));
    assert_eq!(read(b"\x80\x81\x01\x02\x03\x04"), (6, None, false));
    assert_eq!(read(b"e"), (1, Some((b"d".to_vec(), true, false, true)), true));
    assert_eq!(read(b"\x82\x80\x01\x02\x03\x04"), (6, Some((vec![], false, true, true)), true));
}

#[test]
fn rfc6455_7_4_1_each_breach_has_a_close_code() {
    for breach in Breach::ALL {
        let expected = match breach.to_string().as_str() {
            "bad-utf8" => 1007,
            "message-too-long" => 1009,
            _ => 1002,
        };
        assert_eq!(breach.close_code(), expected, "{breach}");
    }
}

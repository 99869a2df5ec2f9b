//! Generated streams, valid and broken: each gives the same events wherever it is split.

use crate::script::{config, cut, places, role, script};
use fuzz::websocket::{frames, masked, response};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::websocket::{Frames, Role, mask};

/// Arbitrary bytes, biased towards frames and halves of frames. Masked frames are given unmasked.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let words: [&[u8]; 26] = [
        b"\x81\x05Hello",
        b"\x01\x03Hel",
        b"\x80\x02lo",
        b"\x00\x02\xE2\x82",
        b"\x80\x01\xAC",
        b"\x01\x00",
        b"\x00\x00",
        b"\x80\x00",
        b"\x82\x7E\x00\x7Eabc",
        b"\x82\x7F\x00\x00\x00\x00\x00\x01\x00\x00",
        b"\x89\x04ping",
        b"\x8A\x00",
        b"\x88\x00",
        b"\x88\x02\x03\xE8",
        b"\x88\x05\x0F\xA0bye",
        b"\x81\x85\x37\xFA\x21\x3DHello",
        b"\x01\x83\x01\x02\x03\x04\xE2\x82\xAC",
        b"\x80\x81\0\0\0\0x",
        b"\x80\x80\x37\xFA\x21\x3D",
        b"\x89\x81\x01\x02\x03\x04x",
        b"\x8A\x80\x01\x02\x03\x04",
        b"\x88\x82\x01\x02\x03\x04\x03\xE8",
        b"\x81\xFE",
        b"\xE2\x82\xAC",
        b"\xF0\x9F",
        b"\xED\xA0",
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(<[u8]>::to_vec);
    vec(prop_oneof![9 => word, 1 => vec(any::<u8>(), 1..4)], 0..12).prop_map(|parts| parts.concat())
}

/// The same for responses to an upgrade request.
fn responses() -> impl Strategy<Value = Vec<u8>> {
    let words: [&[u8]; 14] = [
        b"HTTP/1.1 101 Switching Protocols\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n",
        b"HTTP/1.1 404 Not Found\r\n",
        b"Upgrade: websocket\r\n",
        b"Connection: keep-alive, Upgrade\r\n",
        b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
        b"Sec-WebSocket-Accept: AAAALMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
        b"Sec-WebSocket-Protocol: chat\r\n",
        b"\r\n",
        b"\r\n",
        b"\r",
        b"\x81\x05Hello",
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(<[u8]>::to_vec);
    vec(prop_oneof![19 => word, 1 => vec(any::<u8>(), 1..4)], 0..10).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn frames_are_read_as_written(
        script in script(),
        role in role(),
        seed in any::<u32>(),
        places in places(),
    ) {
        let stream = script.written(role, seed);
        let most = script.longest as u64;
        prop_assert_eq!(&frames(role, most, &[&stream]), &script.said);
        prop_assert_eq!(&frames(role, most, &cut(&stream, &places)), &script.said);
        if most > 0 {
            let said = frames(role, most - 1, &cut(&stream, &places));
            prop_assert!(said.ends_with("breach message-too-long"), "{}", said);
        }
    }

    /// One or a few wrong bytes, anywhere in a valid stream.
    #[test]
    fn a_broken_stream_gives_the_same_events_however_it_is_split(
        script in script(),
        role in role(),
        seed in any::<u32>(),
        changes in vec((any::<usize>(), any::<u8>()), 1..4),
        places in places(),
    ) {
        let mut stream = script.written(role, seed);
        for (at, byte) in changes {
            // Most of what can be wrong is at the beginning, before a long payload.
            let end = stream.len().min(400);
            if let Some(place) = stream.get_mut(at % end.max(1)) {
                *place = byte;
            }
        }
        let most = script.longest as u64;
        prop_assert_eq!(frames(role, most, &cut(&stream, &places)), frames(role, most, &[&stream]));
    }

    #[test]
    fn noise_means_the_same_however_it_is_cut(
        stream in noise(),
        role in role(),
        most in prop_oneof![0..20u64, Just(u64::MAX)],
        places in places(),
    ) {
        let stream = if role == Role::Server { masked(stream) } else { stream };
        let whole = frames(role, most, &[&stream]);
        prop_assert_eq!(&frames(role, most, &cut(&stream, &places)), &whole);
        let bytes: Vec<_> = stream.chunks(1).collect();
        prop_assert_eq!(&frames(role, most, &bytes), &whole);
    }

    #[test]
    fn a_response_means_the_same_however_it_is_cut(stream in responses(), places in places()) {
        prop_assert_eq!(response(&cut(&stream, &places)), response(&[&stream]));
    }

    /// The standard library determines which prefix of a text is valid; the machine must fail at the next byte.
    #[test]
    fn text_fails_at_the_first_byte_that_cannot_be_right(
        front in vec(any::<char>(), 0..90).prop_map(String::from_iter),
        bytes in vec(prop_oneof![any::<u8>(), 0x80..0xC0u8, 0xE0..=0xFFu8], 0..8),
        role in role(),
        key in any::<[u8; 4]>(),
        places in places(),
    ) {
        let text = [front.as_bytes(), &bytes].concat();
        let (good, bad) = match str::from_utf8(&text) {
            Ok(_) => (text.len(), None),
            Err(error) if error.error_len().is_none() => (text.len(), None),
            // The longest prefix of the invalid sequence that could still be completed; the byte after it is the wrong one.
            Err(error) => {
                let start = error.valid_up_to();
                let may_go_on = |end: &usize| {
                    str::from_utf8(&text[start..*end]).is_ok_and(|_| true)
                        || str::from_utf8(&text[start..*end]).is_err_and(|e| e.error_len().is_none())
                };
                let good = (start..=text.len()).take_while(may_go_on).last().expect("nothing may go on");
                (good, Some(good))
            }
        };
        let mut header = vec![0x01, 0x7E, 0xFF, 0xFF];
        let mut payload = text.clone();
        if role == Role::Server {
            header[1] |= 0x80;
            header.extend(key);
            mask(&mut payload, key);
        }
        let mut machine = Frames::new(role);
        prop_assert!(machine.handle_bytes(&header, u64::MAX).is_ok());
        for piece in cut(&payload[..good], &places) {
            prop_assert_eq!(machine.handle_bytes(piece, u64::MAX).map(|(n, _)| n), Ok(piece.len()));
        }
        if let Some(bad) = bad {
            let failed = machine.handle_bytes(&payload[bad..=bad], u64::MAX);
            prop_assert_eq!(failed.map(|_| ()), Err(wire::Breach::BadUtf8));
        }
    }

    #[test]
    fn a_mask_lies_over_every_byte(mut bytes in vec(any::<u8>(), 0..200), key in any::<[u8; 4]>()) {
        let expected: Vec<u8> = bytes.iter().enumerate().map(|(i, byte)| byte ^ key[i % 4]).collect();
        mask(&mut bytes, key);
        prop_assert_eq!(bytes, expected);
    }
}

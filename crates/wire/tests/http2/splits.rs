//! Generated streams: each has the same meaning however it is split, and whatever is written is read back.

use crate::script::*;
use fuzz::http2::{BEGIN, Responds, client, frame, server};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::http2::Method;

/// A message: the pieces of its body with their padding, and whether it has trailers.
type Message = (Vec<(String, u8)>, bool);

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let pieces = vec(("[a-z]{1,40}", 0..5u8), 0..4);
    vec((pieces, any::<bool>()), 1..5)
}

/// Appends the frames of a message after its head, and its trace.
fn body(id: u32, (pieces, has_trailers): &Message, stream: &mut Vec<u8>, said: &mut Vec<String>) {
    let text: String = pieces.iter().map(|(piece, _)| piece.as_str()).collect();
    for (piece, padding) in pieces {
        let padded = [&[*padding], piece.as_bytes(), &vec![0; usize::from(*padding)]].concat();
        match padding {
            0 => stream.extend(data(id, 0, piece)),
            _ => stream.extend(frame(DATA, PADDED, id, &padded)),
        }
    }
    if !text.is_empty() {
        said.push(format!("{id}: body {text}"));
    }
    if *has_trailers {
        stream.extend(headers(id, END, &[("grpc-status", "7"), ("grpc-message", "no")]));
        said.push(format!("{id}: trailers grpc=7 no"));
    } else {
        stream.extend(data(id, END, ""));
        said.push(format!("{id}: end"));
    }
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    let frames = vec![
        get(1),
        get(3),
        post(1),
        post(5),
        headers(1, 0, &[(":status", "200")]),
        headers(3, END, &[(":status", "304"), ("server", "nginx")]),
        headers(1, 0, &[(":status", "100")]),
        headers(1, END, &[("grpc-status", "0")]),
        data(1, 0, "hello"),
        data(1, END, "bye"),
        data(3, END, ""),
        frame(DATA, PADDED, 1, b"\x02hello\0\0"),
        frame(HEADERS, 0, 1, &[0x82]),
        frame(CONTINUATION, WHOLE, 1, &block(&GET[1..])),
        frame(HEADERS, END | WHOLE, 5, b"\x82\x86\x84\x41\x01h\x40\x01a\x01b\xBE"),
        frame(HEADERS, END | WHOLE, 7, b"\x20\x82\x86\x84\xBE"),
        window(0, 70_000),
        window(1, 70_000),
        reset(1, 8),
        reset(3, 7),
        settings(&[(4, 0)]),
        settings(&[(1, 0), (3, 1), (4, 1 << 20)]),
        frame(SETTINGS, ACK, 0, b""),
        frame(PING, 0, 0, b"12345678"),
        frame(GOAWAY, 0, 0, b"\0\0\0\x01\0\0\0\0debug"),
        frame(PRIORITY, 0, 1, b"\0\0\0\x03\0"),
        frame(0x77, 0, 1, b"unknown"),
    ];
    let frame = prop::sample::select(frames);
    vec(prop_oneof![19 => frame, 1 => vec(any::<u8>(), 1..12)], 0..14).prop_map(|parts| parts.concat())
}

fn cut<'a>(stream: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = places.iter().map(|p| p % (stream.len() + 1)).collect();
    places.extend([0, stream.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect()
}

fn places() -> impl Strategy<Value = Vec<usize>> {
    vec(any::<usize>(), 0..12)
}

fn responds() -> impl Strategy<Value = Responds> {
    prop_oneof![Just(Responds::Never), Just(Responds::AtOnce), (0..200_000usize).prop_map(Responds::Body)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_are_read_as_written(messages in messages(), places in places()) {
        let (mut stream, mut said) = (BEGIN.to_vec(), vec!["opened".to_owned()]);
        for (nth, message) in (0..).zip(&messages) {
            let id = 2 * nth + 1;
            stream.extend(post(id));
            said.push(format!("{id}: POST http://h/ length=?"));
            body(id, message, &mut stream, &mut said);
        }
        prop_assert_eq!(server(&[&stream], Responds::Never), said.join(" | "));
        prop_assert_eq!(server(&cut(&stream, &places), Responds::Never), said.join(" | "));
    }

    #[test]
    fn responses_are_read_as_written(messages in messages(), places in places(), interims in 0..3u8) {
        let (mut stream, mut said) = (BEGIN[24..].to_vec(), vec!["opened".to_owned()]);
        for (nth, message) in (0..).zip(&messages) {
            let id = 2 * nth + 1;
            for _ in 0..interims {
                stream.extend(headers(id, 0, &[(":status", "103")]));
                said.push(format!("{id}: interim 103"));
            }
            stream.extend(headers(id, 0, &[(":status", "418")]));
            said.push(format!("{id}: 418 length=?"));
            body(id, message, &mut stream, &mut said);
        }
        let methods = vec![Method::Other; messages.len()];
        prop_assert_eq!(client(&[&stream], &methods, &[]), said.join(" | "));
        prop_assert_eq!(client(&cut(&stream, &places), &methods, &[]), said.join(" | "));
    }

    #[test]
    fn noise_means_the_same_however_it_is_cut(stream in noise(), places in places(), responds in responds()) {
        let input = [BEGIN, &stream].concat();
        prop_assert_eq!(server(&cut(&input, &places), responds), server(&[&input], responds));
        let (input, methods) = ([&BEGIN[24..], &stream].concat(), [Method::Other, Method::Head, Method::Connect]);
        prop_assert_eq!(client(&cut(&input, &places), &methods, &[]), client(&[&input], &methods, &[]));
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..300), places in places()) {
        server(&cut(&bytes, &places), Responds::AtOnce);
        client(&cut(&bytes, &places), &[Method::Other], &[]);
    }
}

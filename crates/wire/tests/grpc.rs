//! gRPC messages, complete and cut at any position.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::Breach;
use wire::grpc::{self, Messages, PREFIX};

/// What is read from these pieces of a body: the complete messages, and the bytes of an incomplete one; or the breach.
fn read(pieces: &[&[u8]], may_be_compressed: bool) -> Result<(Vec<Vec<u8>>, Vec<u8>), Breach> {
    let (mut messages, mut part) = (Vec::new(), Vec::new());
    let mut machine = Messages::new(may_be_compressed);
    for piece in pieces {
        let mut used = 0;
        loop {
            let (n, event) = machine.handle_bytes(&piece[used..])?;
            used += n;
            match event {
                None if n == 0 => break,
                None => {}
                Some(piece) => {
                    part.extend_from_slice(piece.bytes);
                    if piece.ends {
                        assert!(machine.is_between_messages());
                        messages.push(std::mem::take(&mut part));
                    }
                }
            }
        }
        assert_eq!(used, piece.len(), "all of a body is consumed as it comes");
    }
    Ok((messages, part))
}

fn written(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for message in messages {
        let mut prefix = [0; PREFIX];
        assert_eq!(grpc::write_prefix(&mut prefix, message.len() as u32), Some(PREFIX));
        out.extend([&prefix[..], message].concat());
    }
    out
}

#[test]
fn messages_are_told_from_their_prefixes() {
    let check = |input: &[u8], expected: Result<(&[&[u8]], &[u8]), Breach>| {
        let own = |(messages, part): (&[&[u8]], &[u8])| {
            (messages.iter().map(|message| message.to_vec()).collect::<Vec<_>>(), part.to_vec())
        };
        assert_eq!(read(&[input], false), expected.map(own), "{input:?}");
    };
    check(b"", Ok((&[], b"")));
    check(b"\0\0\0\0\0", Ok((&[b""], b"")));
    check(b"\0\0\0\0\x02hi", Ok((&[b"hi"], b"")));
    check(b"\0\0\0\0\x02hi\0\0\0\0\0\0\0\0\0\x01!", Ok((&[b"hi", b"", b"!"], b"")));
    check(b"\0\0\0\x01\0a", Ok((&[], b"a")));
    check(b"\x01\0\0\0\x02hi", Err(Breach::BadPrefix));
    check(b"\x02\0\0\0\x02hi", Err(Breach::BadPrefix));
    // The bytes after a message of the announced length are a prefix.
    check(b"\0\0\0\0\x02high", Err(Breach::BadPrefix));
    check(b"Hello World!", Err(Breach::BadPrefix));
}

#[test]
fn compressed_messages_need_an_encoding() {
    let compressed = b"\x01\0\0\0\x02hi";
    assert_eq!(read(&[compressed], true), Ok((vec![b"hi".to_vec()], vec![])));
    assert_eq!(read(&[b"\x02\0\0\0\0"], true), Err(Breach::BadPrefix));
}

#[test]
fn a_prefix_that_does_not_fit_is_not_written() {
    assert_eq!(grpc::write_prefix(&mut [0; PREFIX - 1], 1), None);
    let mut out = [9; PREFIX + 1];
    assert_eq!(grpc::write_prefix(&mut out, 0x0102_0304), Some(PREFIX));
    assert_eq!(out, [0, 1, 2, 3, 4, 9]);
}

#[test]
fn statuses_of_http_have_the_meanings_of_the_mapping() {
    for (http, expected) in [
        (400, 13),
        (401, 16),
        (403, 7),
        (404, 12),
        (429, 14),
        (502, 14),
        (503, 14),
        (504, 14),
        (500, 2),
        (204, 2),
        (302, 2),
    ] {
        assert_eq!(grpc::status_of_http(http), expected, "{http}");
    }
}

proptest! {
    #[test]
    fn messages_are_the_same_wherever_they_are_cut(
        messages in vec(vec(any::<u8>(), 0..300), 0..6),
        places in vec(any::<prop::sample::Index>(), 0..8),
        truncated in any::<prop::sample::Index>(),
    ) {
        let stream = written(&messages);
        prop_assert_eq!(read(&[&stream], false), Ok((messages, vec![])));
        let mut places: Vec<usize> = places.iter().map(|at| at.index(stream.len() + 1)).collect();
        places.sort_unstable();
        let bounds: Vec<usize> = [&[0], &places[..], &[stream.len()]].concat();
        let pieces: Vec<&[u8]> = bounds.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&pieces, false), read(&[&stream], false));
        let octets: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(read(&octets, false), read(&[&stream], false));
        let cut = &stream[..truncated.index(stream.len() + 1)];
        prop_assert_eq!(read(&cut.chunks(1).collect::<Vec<_>>(), false), read(&[cut], false));
    }

    #[test]
    fn any_bytes_are_read_the_same_wherever_they_are_cut(input in vec(0u8..3, 0..64), at in any::<prop::sample::Index>()) {
        let (head, tail) = input.split_at(at.index(input.len() + 1));
        prop_assert_eq!(read(&[head, tail], true), read(&[&input], true));
    }
}

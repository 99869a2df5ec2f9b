//! Hostile peers: each limit can be reached, and is enforced beyond it.

use crate::script::*;
use fuzz::http2::{BEGIN, Responds, client, frame, server};
use wire::http2::{
    CLIENT_STREAM_WINDOW, Code, Connection, Context, Event, MAX_BLOCK, MAX_CONTINUATIONS, MAX_CONTROLS,
    MAX_FRAME, MAX_LIST, MAX_RESETS, MAX_STREAMS, Role, SERVER_STREAM_WINDOW, Scratch,
};

const CALM: &str = "error ENHANCE_YOUR_CALM";

/// The last event of a server that responds at once.
fn last(frames: &[Vec<u8>]) -> String {
    let said = server(&[BEGIN, &frames.concat()], Responds::AtOnce);
    said.rsplit(" | ").next().unwrap_or_default().to_owned()
}

#[test]
fn control_frames_in_a_second() {
    // The SETTINGS of the preface count as well.
    let most = usize::from(MAX_CONTROLS) - 1;
    let floods = [
        frame(PING, 0, 0, &[0; 8]),
        frame(PING, ACK, 0, &[0; 8]),
        settings(&[]),
        frame(PRIORITY, 0, 9, b"\0\0\0\x03\0"),
        frame(0x77, 0, 0, b""),
    ];
    for flood in &floods {
        assert_ne!(last(&vec![flood.clone(); most]), CALM, "{}", flood.escape_ascii());
        assert_eq!(last(&vec![flood.clone(); most + 1]), CALM, "{}", flood.escape_ascii());
    }
    let empty = |n| [vec![post(1)], vec![data(1, 0, ""); n]].concat();
    assert_eq!(last(&empty(most)), "1: POST http://h/ length=?");
    assert_eq!(last(&empty(most + 1)), CALM);
    // A client has no limit: servers may send many PINGs to measure the connection (gRPC does, for each of its windows).
    for frame in floods {
        assert!(!client(&[&BEGIN[24..], &frame.repeat(3 * most)], &[], &[]).ends_with(CALM));
    }
    // WINDOW_UPDATEs are not limited.
    assert_eq!(last(&vec![window(0, 1); 3 * most]), "window 0");
}

#[test]
fn the_next_second_begins_anew() {
    let mut machine = Connection::new(Role::Server);
    let mut scratch = Scratch::new();
    let mut read = |second, input: &[u8]| {
        let mut at = 0;
        loop {
            let context = Context { scratch: &mut scratch, table: None, second, expected: &[], fields: None };
            match machine.handle_bytes(&input[at..], None, context) {
                Ok((0, None)) => return Ok(()),
                Ok((n, _)) => at += n,
                Err(code) => return Err(code),
            }
        }
    };
    let most = frame(PING, 0, 0, &[0; 8]).repeat(usize::from(MAX_CONTROLS));
    assert_eq!(read(65_535, BEGIN), Ok(()));
    assert_eq!(read(65_536, &most), Ok(()));
    assert_eq!(read(65_537, &most), Ok(()));
    assert_eq!(read(65_537, &frame(PING, 0, 0, &[0; 8])), Err(Code::ENHANCE_YOUR_CALM));
}

#[test]
fn rapid_resets() {
    let most = usize::from(MAX_RESETS);
    let opened_and_reset = |n: usize| {
        let pairs = (0..n as u32).flat_map(|nth| [get(2 * nth + 1), reset(2 * nth + 1, 8)]);
        server(&[BEGIN, &pairs.collect::<Vec<_>>().concat()], Responds::Never)
    };
    assert!(opened_and_reset(most).ends_with(": reset CANCEL"));
    assert!(opened_and_reset(most + 1).ends_with(CALM));
    // Resets count even after the response was sent.
    let responded = (0..=most as u32).flat_map(|nth| [get(2 * nth + 1), reset(2 * nth + 1, 8)]);
    assert_eq!(last(&responded.collect::<Vec<_>>()), CALM);
    // And so do resets that the client provokes.
    let provoked = (0..=most as u32).flat_map(|nth| [get(2 * nth + 1), window(2 * nth + 1, 0)]);
    assert!(server(&[BEGIN, &provoked.collect::<Vec<_>>().concat()], Responds::Never).ends_with(CALM));
    let malformed = (0..=most as u32).map(|nth| headers(2 * nth + 1, END, &[("a", "b")]));
    assert_eq!(last(&malformed.collect::<Vec<_>>()), CALM);
}

#[test]
fn streams_at_one_time() {
    let gets: Vec<_> = (0..MAX_STREAMS + 1).map(|nth| get(2 * nth + 1)).collect();
    let said = server(&[BEGIN, &gets.concat()], Responds::Never);
    assert!(said.ends_with("513: error REFUSED_STREAM") && said.contains(" | 511: GET "), "{said}");
    // A stream that has ended makes room.
    let room = [&gets[..256], &[reset(5, 8), gets[256].clone()]].concat();
    assert!(server(&[BEGIN, &room.concat()], Responds::Never).ends_with("513: GET http://h/ length=0 ends"));
}

#[test]
fn blocks_without_end() {
    let block = block(GET);
    let empty = |n| {
        let parts = vec![frame(CONTINUATION, 0, 1, b""); n];
        [&[frame(HEADERS, END, 1, &block)], &parts[..], &[frame(CONTINUATION, WHOLE, 1, b"")]].concat()
    };
    assert_eq!(last(&empty(MAX_CONTINUATIONS - 1)), "1: GET http://h/ length=0 ends");
    assert_eq!(last(&empty(MAX_CONTINUATIONS)), CALM);
    // A block of the maximum length, filled with changes of the table's size, of one byte each, which have no meaning.
    let fits = MAX_BLOCK - block.len();
    for (length, expected) in [(fits, "1: GET http://h/ length=0 ends"), (fits + 1, CALM)] {
        let block = [&vec![0x20; length], &block[..]].concat();
        let (first, rest) = block.split_at(100);
        let (second, third) = rest.split_at(MAX_FRAME);
        let frames = [
            frame(HEADERS, END, 1, first),
            frame(CONTINUATION, 0, 1, second),
            frame(CONTINUATION, WHOLE, 1, third),
        ];
        assert_eq!(last(&frames), expected, "{length}");
    }
    assert_eq!(last(&[frame(HEADERS, END | WHOLE, 1, &vec![0; MAX_FRAME + 1])]), "error FRAME_SIZE_ERROR");
}

#[test]
fn bombs_of_fields() {
    // A field of 4,064 bytes is stored once and then referenced by one byte each.
    let mut bomb = block(GET);
    bomb.extend_from_slice(b"\x40\x01a\x7F\xC0\x1E");
    bomb.extend_from_slice(&[b'x'; 4063 - 32]);
    let size: usize = GET.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
    let fits = (MAX_LIST - size) / 4064 - 1;
    for (references, expected) in [(fits, "1: GET http://h/ length=0 ends"), (fits + 1, CALM)] {
        let block = [&bomb[..], &vec![0xBE; references]].concat();
        assert_eq!(last(&[frame(HEADERS, END | WHOLE, 1, &block)]), expected, "{references}");
    }
    // A list of the announced maximum fits, in any encoding.
    let list = |length: usize| {
        let mut block = block(GET);
        let value = length - size - 33 - 127;
        block.extend_from_slice(&[
            0,
            1,
            b'a',
            0x7F,
            value as u8 | 0x80,
            (value >> 7) as u8 | 0x80,
            (value >> 14) as u8,
        ]);
        block.extend_from_slice(&vec![b'x'; value + 127]);
        let (first, second) = block.split_at(MAX_FRAME);
        last(&[frame(HEADERS, END, 1, first), frame(CONTINUATION, WHOLE, 1, second)])
    };
    assert_eq!(list(MAX_LIST), "1: GET http://h/ length=0 ends");
    assert_eq!(list(MAX_LIST + 1), CALM);
    // Also in the Huffman code, with 5 bits per byte.
    let dense =
        frame(HEADERS, END | WHOLE, 1, &[&block(GET)[..], b"\0\x01a\xFF\x80\x7E", &[0; 16_255]].concat());
    assert_eq!(last(&[dense]), "1: GET http://h/ length=0 ends");
}

#[test]
fn windows_are_ours_to_give() {
    // The driver updates windows at each half, so only frames without a break could exceed one: here the machine is used directly.
    let overflow = |role, window: u32, opening: &[u8], head: Vec<u8>| {
        let mut machine = Connection::new(role);
        let (mut scratch, mut stream) = (Scratch::new(), None);
        if role == Role::Client {
            let (_, opened) = machine
                .write_request(&mut [0; 64], &[0x82], true, wire::http2::Method::Other)
                .expect("there is room");
            stream = Some(opened);
        }
        let mut total = 0u32;
        let mut frames = [opening, &head].concat();
        loop {
            let mut at = 0;
            loop {
                let context =
                    Context { scratch: &mut scratch, table: None, second: 0, expected: &[], fields: None };
                match machine.handle_bytes(&frames[at..], stream.as_mut(), context) {
                    Ok((0, None)) => break,
                    Ok((n, Some(Event::Request(_, opened)))) => (stream, at) = (Some(opened), at + n),
                    Ok((_, Some(Event::StreamError(1, Code::FLOW_CONTROL_ERROR)))) => return total,
                    Ok((n, _)) => at += n,
                    Err(code) => panic!("{code} after {total} of {window}"),
                }
            }
            frames = data(1, 0, &"x".repeat(5));
            total += 5;
        }
    };
    let posted = overflow(Role::Server, SERVER_STREAM_WINDOW, BEGIN, post(1));
    assert_eq!(posted, SERVER_STREAM_WINDOW + 5 - SERVER_STREAM_WINDOW % 5);
    let got =
        overflow(Role::Client, CLIENT_STREAM_WINDOW, &BEGIN[24..], headers(1, 0, &[(":status", "200")]));
    assert_eq!(got, CLIENT_STREAM_WINDOW + 5 - CLIENT_STREAM_WINDOW % 5);
}

#[test]
fn credit_is_given_in_halves() {
    let mut machine = Connection::new(Role::Server);
    let (mut scratch, mut stream) = (Scratch::new(), None);
    let (mut given, mut of_stream) = (Vec::new(), Vec::new());
    let body = [data(1, 0, &"x".repeat(10_000)), frame(DATA, PADDED, 1, &[5, b'y', 0, 0, 0, 0, 0])];
    for frames in std::iter::once([BEGIN, &post(1)].concat()).chain(std::iter::repeat_n(body.concat(), 850)) {
        let mut at = 0;
        loop {
            let context =
                Context { scratch: &mut scratch, table: None, second: 0, expected: &[], fields: None };
            match machine.handle_bytes(&frames[at..], stream.as_mut(), context).expect("within the windows") {
                (0, None) => break,
                (n, Some(Event::Request(_, opened))) => (stream, at) = (Some(opened), at + n),
                (n, _) => at += n,
            }
            given.extend(machine.take_credit());
            of_stream.extend(stream.as_mut().and_then(|stream| machine.take_stream_credit(stream)));
        }
    }
    // Padding counts: 10,007 bytes per round.
    let half = (MAX_STREAMS * SERVER_STREAM_WINDOW) / 2;
    assert_eq!(given, [half.div_ceil(10_007) * 10_007 - 7]);
    assert_eq!(of_stream.len(), 850 / 4 + usize::from(850 % 4 == 3));
    assert!(of_stream.iter().all(|credit| (32_767..=50_035).contains(credit)), "{of_stream:?}");
}

//! Tests of WebSockets over HTTP/2: opening, messages in pieces of any size, and the end of a session.

use super::*;
use crate::{
    check::Check,
    protocol::{Awaited, Progress},
    pushes::Pushed,
};
use samples::{Kind, Rule};
use units::Nanos;
use wire::http2::{self, Code, SERVER_PREFACE, SETTINGS_ACK, write_goaway, write_ping, write_reset};

/// A frame header.
fn header(length: usize, kind: u8, flags: u8, stream: u32) -> Vec<u8> {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    [&[a, b, c, kind, flags], &stream.to_be_bytes()[..]].concat()
}

fn head(stream: u32, block: &[u8], flags: u8) -> Vec<u8> {
    [header(block.len(), 1, 4 | flags, stream), block.to_vec()].concat()
}

/// DATA frames of `size` bytes each.
fn data(stream: u32, bytes: &[u8], size: usize) -> Vec<u8> {
    bytes.chunks(size).flat_map(|part| [header(part.len(), 0, 0, stream), part.to_vec()].concat()).collect()
}

const OK: &[u8] = &[0x88];
const END_STREAM: u8 = 1;

/// What a server sends to open two WebSockets.
fn opening() -> Vec<u8> {
    [SERVER_PREFACE.to_vec(), head(1, OK, 0), head(3, OK, 0)].concat()
}

fn state() -> State {
    let fields = [("sec-websocket-protocol".to_owned(), Text::fixed("a, b"))];
    let connect = Connect {
        path: Text::fixed("/echo"),
        hosts: vec!["h".to_owned()],
        scheme: "http",
        fields: Text::of_fields(&fields),
        has_cookies: false,
        offered: Offered::by(&fields),
        streams: 2,
    };
    let mut state = *connect.session(&mut Random::new(1));
    let lines = "sec-websocket-protocol: a, b\r\n";
    let requests = (0..2).map(|_| connect.request(0, "/echo", lines, b"")).collect();
    state.rare = Some(Box::new(Rare { requests, offered: Some(connect.offered), ..Rare::default() }));
    state
}

/// What came, in this order; output with the bytes sent.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Opened,
    /// For the exchange with this index.
    Responded(u32),
    Withdrawn(u32),
    Pushed,
    Sent(Vec<u8>),
    Ending,
    /// With this status.
    Refused(u16),
    Wrong(Kind),
    Broke(Rule),
}

/// Reads `input` in pieces of `size`, while each exchange in `waiting` awaits an echo of `ping`.
fn over(state: &mut State, input: &[u8], size: usize, mut waiting: Vec<(u32, Exchange)>) -> Vec<Came> {
    let (mut came, mut rest) = (Vec::new(), Vec::new());
    let check = Check::echo();
    for piece in input.chunks(size) {
        rest.extend_from_slice(piece);
        let mut at = 0;
        loop {
            let reads = state.reads;
            let exchange =
                waiting.iter_mut().find(|(index, _)| *index == reads).map(|(_, exchange)| exchange);
            let awaiting = exchange.map(|exchange| (exchange, Awaited::Message(&check, b"ping")));
            match super::read::handle_bytes(state, &rest[at..], awaiting, None, &mut Pushed::default().of(0))
            {
                Ok(Progress::More(n)) => {
                    at += n;
                    break;
                }
                Ok(Progress::Turned(n)) => at += n,
                Ok(Progress::Opened(n)) => (at, _) = (at + n, came.push(Came::Opened)),
                Ok(Progress::Responded(n)) => (at, _) = (at + n, came.push(Came::Responded(reads))),
                Ok(Progress::Withdrawn(n)) => (at, _) = (at + n, came.push(Came::Withdrawn(reads))),
                Ok(Progress::Pushed(n)) => (at, _) = (at + n, came.push(Came::Pushed)),
                Ok(Progress::Ending(..)) => {
                    came.push(Came::Ending);
                    return came;
                }
                Ok(Progress::Refused(status)) => {
                    came.push(Came::Refused(status));
                    return came;
                }
                Ok(other) => panic!("not of this protocol: {other:?}"),
                Err(failure) => {
                    came.push(failure.detail.rule().map_or(Came::Wrong(failure.kind), Came::Broke));
                    return came;
                }
            }
            // A session that ends sends its closing message with what it has.
            let sent = if state.ends { Vec::new() } else { state.queue().take() };
            came.extend((!sent.is_empty()).then_some(Came::Sent(sent)));
            state.drop_rare();
        }
        rest.drain(..at);
    }
    came
}

/// An exchange that awaits an echo on the WebSocket at `place`.
fn awaits(state: &mut State, place: usize, index: u32) -> (u32, Exchange) {
    let mut exchange = Exchange::new(Nanos::ZERO, Nanos::ZERO);
    exchange.await_message(true);
    state.tunnels[place].exchange = index;
    (index, exchange)
}

fn opened() -> State {
    let mut state = state();
    let came = over(&mut state, &opening(), usize::MAX, Vec::new());
    assert_eq!(came.last(), Some(&Came::Opened), "{came:?}");
    state
}

#[test]
fn both_are_asked_for_and_the_session_is_open_with_the_last() {
    let mut state = state();
    let came = over(&mut state, &opening(), usize::MAX, Vec::new());
    let [Came::Sent(sent), Came::Opened] = &came[..] else { panic!("{came:?}") };
    let heads = sent.windows(5).filter(|bytes| bytes[3..] == [1, 4]).count();
    assert_eq!((sent.starts_with(SETTINGS_ACK), heads, state.open), (true, 2, 2));
    assert!(sent.windows(9).any(|text| text == b"websocket") || sent.len() > 60, "{sent:?}");
}

#[test]
fn a_server_may_allow_streams_later() {
    // SETTINGS with this MAX_CONCURRENT_STREAMS, and extended CONNECT (RFC 8441).
    let settings = |most: u8| {
        let entries = [[0, 8, 0, 0, 0, 1], [0, 3, 0, 0, 0, most]].concat();
        [header(entries.len(), 4, 0, 0), entries].concat()
    };
    let mut state = state();
    let none = over(&mut state, &settings(0), usize::MAX, Vec::new());
    assert_eq!(none, [Came::Sent(SETTINGS_ACK.to_vec())]);
    let input = [settings(2), head(1, OK, 0), head(3, OK, 0)].concat();
    let came = over(&mut state, &input, usize::MAX, Vec::new());
    let [Came::Sent(sent), Came::Opened] = &came[..] else { panic!("{came:?}") };
    let heads = sent.windows(5).filter(|bytes| bytes[3..] == [1, 4]).count();
    assert_eq!((sent.starts_with(SETTINGS_ACK), heads, state.open), (true, 2, 2));
}

#[test]
fn messages_come_whole_wherever_frames_and_reads_are_cut() {
    let one = b"\x81\x04news\x89\x03abc\x81\x04ping";
    let other = b"\x01\x02pi\x89\x00\x80\x02ng\x82\x7e\x00\x80";
    let long = [&other[..], &[7; 128]].concat();
    for size in 1..40 {
        for read in [1, 2, 7, 13, 1000] {
            let mut state = opened();
            let waiting = vec![awaits(&mut state, 0, 10), awaits(&mut state, 1, 20)];
            // The first message is taken for the echo, even a wrong one, and completes the exchange.
            let input = [data(1, one, size), data(3, &long, size)].concat();
            let came = over(&mut state, &input, read, waiting);
            let sent = came.iter().filter(|came| matches!(came, Came::Sent(_))).count();
            let others: Vec<_> = came.into_iter().filter(|came| !matches!(came, Came::Sent(_))).collect();
            let expected = [Came::Responded(10), Came::Pushed, Came::Responded(20), Came::Pushed];
            assert_eq!((others, sent), (expected.into(), 2), "frames of {size}, reads of {read}");
            assert!(state.tunnels.iter().all(|it| it.partial.is_none()), "nothing is kept");
        }
    }
}

#[test]
fn a_pong_has_the_payload_of_its_ping_and_its_stream() {
    let mut state = opened();
    let came = over(&mut state, &data(3, b"\x89\x03abc", 100), 1000, Vec::new());
    let [Came::Sent(sent)] = &came[..] else { panic!("{came:?}") };
    assert_eq!((&sent[..9], &sent[9..11]), (&header(9, 0, 0, 3)[..], &[0x8a, 0x83][..]));
    let plain: Vec<u8> = sent[15..].iter().zip(&sent[11..15]).map(|(byte, mask)| byte ^ mask).collect();
    assert_eq!(plain, b"abc");
}

/// Checks how a session ends that reads this, with a message under way on each WebSocket.
fn check_end(input: &[u8], expected: &[Came]) {
    let mut state = opened();
    let waiting = vec![awaits(&mut state, 0, 10), awaits(&mut state, 1, 20)];
    assert_eq!(over(&mut state, input, 1000, waiting), expected, "{input:?}");
}

#[test]
fn the_end_of_one_is_the_end_of_all() {
    let frame = |write: &dyn Fn(&mut [u8]) -> Option<usize>| {
        let mut out = [0; 32];
        let n = write(&mut out).unwrap();
        out[..n].to_vec()
    };
    let announced = [Came::Withdrawn(10), Came::Ending];
    check_end(&data(1, b"\x88\x02\x03\xe8", 100), &announced);
    check_end(&data(3, b"\x88\x02\x03\xe8", 1), &announced);
    check_end(&frame(&|out| write_goaway(out, 3, Code::NO_ERROR)), &announced);
    check_end(&header(0, 0, END_STREAM, 1), &[Came::Wrong(Kind::Closed)]);
    check_end(&head(1, &[], END_STREAM), &[Came::Wrong(Kind::Closed)]);
    check_end(&frame(&|out| write_reset(out, 3, Code::CANCEL)), &[Came::Wrong(Kind::Reset)]);
    check_end(&data(1, b"\x83\x00", 100), &[Came::Broke(Rule::WebSocketFrame)]);
    check_end(
        &frame(&|out| write_ping(out, [7; 8])),
        &[Came::Sent(frame(&|out| http2::write_pong(out, [7; 8])))],
    );
}

/// Checks how opening fails if the server sends this after its SETTINGS.
fn check_opening(input: &[u8], expected: Came) {
    let mut state = state();
    let came = over(&mut state, input, 1000, Vec::new());
    assert_eq!(came.last(), Some(&expected), "{input:?}");
}

#[test]
fn a_refusal_has_its_kind() {
    let after = |bytes: Vec<u8>| [SERVER_PREFACE.to_vec(), bytes].concat();
    let mut reset = [0; 16];
    let n = write_reset(&mut reset, 1, Code::REFUSED_STREAM).unwrap();
    check_opening(&after(reset[..n].to_vec()), Came::Wrong(Kind::Refused));
    let n = write_reset(&mut reset, 1, Code::PROTOCOL_ERROR).unwrap();
    check_opening(&after(reset[..n].to_vec()), Came::Wrong(Kind::Reset));
    // 404, and a 200 that ends its stream at once.
    check_opening(&after(head(1, &[0x8d], 0)), Came::Refused(404));
    check_opening(&after(head(1, OK, END_STREAM)), Came::Wrong(Kind::Closed));
    let n = write_goaway(&mut reset, 0, Code::NO_ERROR);
    assert_eq!(n, None, "it has 17 bytes");
    let mut goaway = [0; 32];
    let n = write_goaway(&mut goaway, 0, Code::NO_ERROR).unwrap();
    check_opening(&after([head(1, OK, 0), goaway[..n].to_vec()].concat()), Came::Wrong(Kind::Closed));
    // SETTINGS without extended CONNECT, and no HTTP/2 at all.
    check_opening(&header(0, 4, 0, 0), Came::Wrong(Kind::NothingInCommon));
    check_opening(b"HTTP/1.1 400 Bad Request\r\n\r\n", Came::Wrong(Kind::NothingInCommon));
    check_opening(b"SSH-2.0-OpenSSH\r\n", Came::Broke(Rule::Http2Frame));
}

/// RFC 6455 section 4.1, item 6: a server chooses one of the offered sub-protocols, or none.
#[test]
fn only_an_offered_sub_protocol_is_accepted() {
    // RFC 7541 section 6.2.2: a literal without indexing.
    let chooses = |protocol: &str| {
        let name = "sec-websocket-protocol";
        let field =
            [&[0, name.len() as u8], name.as_bytes(), &[protocol.len() as u8], protocol.as_bytes()].concat();
        head(1, &[OK, &field].concat(), 0)
    };
    let after = |bytes: Vec<u8>| [SERVER_PREFACE.to_vec(), bytes, head(3, OK, 0)].concat();
    check_opening(&after(chooses("b")), Came::Opened);
    for wrong in ["c", "B", "a, b", ""] {
        check_opening(&after(chooses(wrong)), Came::Broke(Rule::SubProtocol));
    }
}

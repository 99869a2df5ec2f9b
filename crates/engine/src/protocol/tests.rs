//! Tests of the protocols: responses and messages in pieces, and what each protocol allows.

use super::*;
use crate::{check::Check, protocol::Speaks, request::Message};
use plan::{Environment, Flags, Text};
use proptest::prelude::*;
use samples::Rule;
use units::{Nanos, Random};

/// An open WebSocket.
pub(crate) fn websocket() -> Session {
    Session::WebSocket(websocket::State::open())
}

fn http1() -> Session {
    Session::Http1(http1::State::new())
}

fn new_exchange() -> Exchange {
    Exchange::new(Nanos::ZERO, Nanos::ZERO)
}

/// Progress without its borrow.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    More(usize),
    Opened(usize),
    /// Input before the response: an interim one.
    Turned(usize),
    Responded(usize),
    Pushed(usize),
    /// A pong in reply.
    Pong(usize),
    /// The upgrade was refused with this status.
    Refused(u16),
    /// A close in reply, with this code.
    Ending(Option<u16>),
    Left,
    Wrong(Kind),
    Broke(Rule),
}

fn came(read: Result<Progress<'_>, Failure>) -> Came {
    match read {
        Ok(Progress::More(n)) => Came::More(n),
        Ok(Progress::Opened(n)) => Came::Opened(n),
        Ok(Progress::Turned(n)) => Came::Turned(n),
        Ok(Progress::Responded(n)) => Came::Responded(n),
        Ok(Progress::Pushed(n)) => Came::Pushed(n),
        Ok(Progress::Reply(n, Reply::WebSocket(websocket::Reply::Pong(_)))) => Came::Pong(n),
        Ok(Progress::Ending(Reply::WebSocket(websocket::Reply::Close(code)), _)) => Came::Ending(code),
        Ok(Progress::Refused(status)) => Came::Refused(status),
        Ok(Progress::Left) => Came::Left,
        Ok(other) => panic!("not of these protocols: {other:?}"),
        Err(failure) => failure.detail.rule().map_or(Came::Wrong(failure.kind), Came::Broke),
    }
}

/// Checks the progress made by `pieces`, one after another, while the response to a GET is awaited.
fn check_http1(pieces: &[&[u8]], expected: Came, status: Option<u16>) {
    let (mut state, check) = (http1::State::new(), Check::default());
    state.order(false);
    let (mut session, mut exchange) = (Session::Http1(state), new_exchange());
    let mut last = None;
    for piece in pieces {
        let awaited = Awaited::Response(&check);
        last = Some(came(session.handle_bytes(piece, Some((&mut exchange, awaited)))));
    }
    assert_eq!(last, Some(expected), "{pieces:?}");
    assert_eq!(session.response().head.map(|head| head.status), status, "{pieces:?}");
}

#[test]
fn a_response_of_http1_is_one_and_no_more() {
    let whole = b"HTTP/1.1 204 No Content\r\n\r\n";
    check_http1(&[whole], Came::Responded(whole.len()), Some(204));
    check_http1(&[b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"], Came::More(40), Some(200));
    check_http1(&[b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", b"c"], Came::Responded(1), Some(200));
    check_http1(&[b"HTTP/1.1 204 No Content\r\n\r\nX"], Came::Broke(Rule::Surplus), Some(204));
    check_http1(&[b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK"], Came::Broke(Rule::Surplus), Some(204));
    // The next input may be a 408 that closes the idle connection, or the beginning of one.
    check_http1(&[b"HTTP/1.1 204 No Content\r\n\r\nH"], Came::Responded(27), Some(204));
    check_http1(&[b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 408 Request"], Came::Responded(27), Some(204));
    check_http1(&[b"HTTP/1.1 2"], Came::More(0), None);
    check_http1(&[b"SSH-2.0-OpenSSH\r\n"], Came::Broke(Rule::Version), None);
    // An alert, and nginx's page.
    check_http1(&[b"\x15\x03\x01\x00\x02\x02\x46"], Came::Wrong(Kind::TlsExpected), None);
    let page = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 56\r\n\r\nThe plain HTTP request was sent to HTTPS port, and so on";
    check_http1(&[page], Came::Wrong(Kind::TlsExpected), Some(400));
}

#[test]
fn the_head_announces_how_long_the_connection_is_kept() {
    // (fields, seconds, kept)
    for (fields, keep_alive_s, keeps_alive) in [
        ("", None, true),
        ("Keep-Alive: timeout=5\r\n", Some(5), true),
        ("Keep-Alive: timeout=99999\r\n", Some(65_534), true),
        ("Connection: close\r\n", None, false),
    ] {
        let (mut state, check) = (http1::State::new(), Check::default());
        state.order(false);
        let (mut session, mut exchange) = (Session::Http1(state), new_exchange());
        let input = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
        let read = session.handle_bytes(input.as_bytes(), Some((&mut exchange, Awaited::Response(&check))));
        assert_eq!(came(read), Came::Responded(input.len()), "{fields}");
        let bytes = input.len() as u16;
        let head = Head { status: 200, bytes, keep_alive_s };
        assert_eq!(session.response(), Response { head: Some(head), keeps_alive }, "{fields}");
    }
}

#[test]
fn the_end_of_the_connection_may_be_that_of_the_response() {
    for (input, expected) in [
        (&b"HTTP/1.1 200 OK\r\n\r\nuntil the end"[..], Ok(true)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", Err(Kind::Truncated)),
        (b"", Err(Kind::Truncated)),
    ] {
        let (mut state, check) = (http1::State::new(), Check::default());
        state.order(false);
        let (mut session, mut exchange) = (Session::Http1(state), new_exchange());
        let read = session.handle_bytes(input, Some((&mut exchange, Awaited::Response(&check))));
        assert_eq!(came(read), Came::More(input.len()));
        assert_eq!(session.handle_end(), expected, "{input:?}");
    }
    assert_eq!(
        [websocket(), Session::none()].map(|mut session| session.handle_end()),
        [Ok(false), Ok(false)]
    );
}

#[test]
fn unsolicited_input() {
    assert_eq!(came(http1().handle_bytes(b"HTTP/1.1 200 OK\r\n\r\n", None)), Came::Broke(Rule::Unrequested));
    // A server that gives up waiting for a request may say so.
    for (input, expected) in [
        (&b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n"[..], Came::Left),
        (b"HTTP/1.0 408 Request Time-out\r\n\r\n<html>", Came::Left),
        (b"HTTP/1.1 40", Came::More(0)),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", Came::Broke(Rule::Unrequested)),
        (b"HTTP/1.1 4080\r\n\r\n", Came::Broke(Rule::Unrequested)),
    ] {
        assert_eq!(came(http1().handle_bytes(input, None)), expected, "{input:?}");
    }
    assert_eq!(came(Session::none().handle_bytes(b"news", None)), Came::More(4));
    // A message, a ping, a close with a code, as they come.
    let mut session = websocket();
    assert_eq!(came(session.handle_bytes(b"\x81\x04news", None)), Came::Pushed(6));
    assert_eq!(came(session.handle_bytes(b"\x89\x01?", None)), Came::Pong(3));
    assert_eq!(came(session.handle_bytes(b"\x88\x02\x03\xe8", None)), Came::Ending(Some(1000)));
    assert_eq!(came(websocket().handle_bytes(b"\x83\x00", None)), Came::Broke(Rule::WebSocketFrame));
}

#[test]
fn an_upgrade_that_is_refused() {
    for (input, expected) in [
        (&b"HTTP/1.1 101 Sw"[..], Came::More(0)),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", Came::Refused(404)),
        (b"\x15\x03\x01\x00\x02\x02\x46", Came::Wrong(Kind::TlsExpected)),
        (
            b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
            Came::Wrong(Kind::TlsExpected),
        ),
    ] {
        let mut session = {
            let offered = websocket::Offered::by(&[]);
            Session::WebSocket(websocket::State::Upgrading(Random::new(1).bits(), offered))
        };
        assert_eq!(came(session.handle_bytes(input, None)), expected, "{input:?}");
        assert!(session.is_between_messages());
    }
}

/// Checks the progress made by input on a connection that has sent this text, and awaits its echo, or any reply.
fn check_tcp(echo: bool, input: &[u8], expected: Came, differs: bool) {
    let check = if echo { Check::echo() } else { Check::default() };
    let mut exchange = new_exchange();
    let awaited = Awaited::Message(&check, b"hello");
    let read = came(Session::none().handle_bytes(input, Some((&mut exchange, awaited))));
    assert_eq!((read, exchange.differs), (expected, differs), "{input:?}");
}

#[test]
fn bytes_of_tcp_are_counted() {
    check_tcp(true, b"hello", Came::Responded(5), false);
    check_tcp(true, b"hel", Came::More(3), false);
    check_tcp(true, b"hallo", Came::Responded(5), true);
    // Without framing, surplus data cannot be distinguished from the next echo; if any reply is right, all input is the reply.
    check_tcp(true, b"hello!", Came::Broke(Rule::LongerThanSent), false);
    check_tcp(false, b"hello!", Came::Responded(6), false);
    check_tcp(true, b"\x15\x03\x01\x00\x02\x02\x46", Came::Wrong(Kind::TlsExpected), false);
}

#[test]
fn a_pong_within_an_unsolicited_message_has_no_content() {
    let (mut session, mut exchange) = (websocket(), new_exchange());
    // The first of two frames of a message: text, not final, three bytes.
    assert_eq!(came(session.handle_bytes(b"\x01\x03abc", None)), Came::More(5));
    assert!(!session.is_between_messages());
    exchange.expected = 7;
    exchange.await_message(session.is_between_messages());
    let pong = session.handle_bytes(b"\x8a\x08\0\0\0\0\0\0\0\x07", Some((&mut exchange, Awaited::Pong)));
    assert_eq!(came(pong), Came::Responded(10));
    assert_eq!((exchange.content(), Awaited::Pong.wrong(&exchange, None)), (0, None));
}

#[test]
fn the_remainder_of_an_earlier_message_is_no_reply() {
    let (mut session, mut exchange, check) = (websocket(), new_exchange(), Check::echo());
    assert_eq!(came(session.handle_bytes(b"\x01\x03abc", None)), Came::More(5));
    exchange.await_message(session.is_between_messages());
    let awaited = Awaited::Message(&check, b"hi");
    let rest = session.handle_bytes(b"\x80\x02hi", Some((&mut exchange, awaited)));
    assert_eq!(came(rest), Came::Pushed(4));
    let echo = session.handle_bytes(b"\x81\x02hi\x81\x02ho", Some((&mut exchange, awaited)));
    assert_eq!(came(echo), Came::Responded(4));
    assert_eq!((exchange.content(), awaited.wrong(&exchange, None)), (2, None));
}

#[test]
fn faults_of_a_complete_response() {
    let head = |status| Some(Head { status, bytes: 40, keep_alive_s: None });
    let any = Check::default();
    let teapot = Check::new(&plan::Expectation { status: Some(418), ..Default::default() });
    for (check, head, expected) in [
        (&any, head(200), None),
        (&any, head(299), None),
        (&any, head(300), Some(Kind::WrongStatus)),
        (&any, None, None),
        (&teapot, head(418), None),
        (&teapot, head(200), Some(Kind::WrongStatus)),
    ] {
        assert_eq!(Awaited::Response(check).wrong(&new_exchange(), head), expected, "{check:?} {head:?}");
    }
    let short = Exchange { expected: 3, content: 2, ..new_exchange() };
    assert_eq!(Awaited::Response(&any).wrong(&short, head(200)), Some(Kind::WrongLength));
    let lacking = Exchange { differs: true, ..short };
    assert_eq!(Awaited::Response(&any).wrong(&lacking, head(200)), Some(Kind::WrongHeader));
}

#[test]
fn protocols_differ_in_these_properties() {
    let resolve = |_: &str| Err("nothing is looked up".to_owned());
    let around = Environment { cores: 1, seed: 1, resolve: &resolve };
    let ping = Message::new(&plan::Body::Text(Text::default()), Check::echo());
    assert!(ping.is_ping());
    // (target, server may speak first, known by the dial alone, and with a request after it, may send again)
    for (url, expected) in [
        ("http://127.0.0.1:1", [false, true, false, true]),
        ("ws://127.0.0.1:1", [true, false, false, false]),
        ("tcp://127.0.0.1:1", [false, true, true, false]),
    ] {
        let plan = plan::from_flags(&Flags::new(url), &around).expect("a plan without mistakes");
        let protocol = Protocol::new(&plan.populations[0]);
        let Properties {
            server_may_speak, is_known_by_dial: [alone, before_a_request], may_send_again, ..
        } = protocol.properties();
        let actual = [server_may_speak, alone, before_a_request, may_send_again];
        assert_eq!(actual, expected, "{url}");
        assert!(protocol.session().is_between_messages() && protocol.session().response().keeps_alive);
    }
}

/// The events while `input` comes in pieces, cut at these places; after each response the next one is awaited.
fn happens(mut session: Session, awaited: Awaited, input: &[u8], cuts: &[usize]) -> Vec<String> {
    let mut exchange = new_exchange();
    exchange.await_message(true);
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % input.len()).chain([input.len()]).collect();
    places.sort_unstable();
    let (mut events, mut from, mut used) = (Vec::new(), 0, 0);
    for until in places {
        // Unused bytes come again, as in the loop.
        from += std::mem::take(&mut used);
        loop {
            match came(session.handle_bytes(&input[from + used..until], Some((&mut exchange, awaited)))) {
                Came::More(n) => {
                    used += n;
                    break;
                }
                Came::Responded(n) => {
                    used += n;
                    let content = exchange.content();
                    events.push(format!(
                        "{content} bytes, {:?}",
                        awaited.wrong(&exchange, session.response().head)
                    ));
                    exchange.await_message(session.is_between_messages());
                }
                Came::Turned(n) => used += n,
                Came::Pushed(n) => {
                    used += n;
                    events.push("pushed".to_owned());
                }
                Came::Pong(n) => {
                    used += n;
                    events.push("pong".to_owned());
                }
                end => {
                    events.push(format!("{end:?}"));
                    return events;
                }
            }
        }
    }
    events
}

proptest! {
    #[test]
    fn events_do_not_depend_on_where_input_is_split(cuts in proptest::collection::vec(any::<usize>(), 0..12)) {
        let echo = Check::echo();
        // An unsolicited message, a ping, the echo, a wrong echo in two frames with a ping in between, and a close.
        let frames = b"\x81\x04news\x89\x01?\x81\x02hi\x01\x01h\x89\0\x80\x01o\x88\x02\x03\xe8";
        let awaited = Awaited::Message(&echo, b"hi");
        // The first message is taken for the echo, and is a wrong one.
        let expected = ["4 bytes, Some(WrongEcho)", "pong", "2 bytes, None", "pong", "2 bytes, Some(WrongEcho)", "Ending(Some(1000))"];
        prop_assert_eq!(happens(websocket(), awaited, frames, &cuts), expected);
        let unasked = happens(websocket(), Awaited::Pong, frames, &cuts);
        prop_assert_eq!(unasked, ["pushed", "pong", "pushed", "pong", "pushed", "Ending(Some(1000))"]);
        let check = Check::default();
        let response = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let mut state = http1::State::new();
        state.order(false);
        let happened = happens(Session::Http1(state), Awaited::Response(&check), response, &cuts);
        prop_assert_eq!(happened, ["5 bytes, None"]);
    }
}

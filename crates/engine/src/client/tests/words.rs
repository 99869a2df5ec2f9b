//! Error texts of a server are sampled, whatever carries them.

use net::Io;
use samples::{Detail, Kind, Stage};
use wire::http2::{SERVER_PREFACE, SETTINGS_ACK};

use super::{Instead, MS, Output, Serve, accepts, plan, run};

/// A server that sends this after the first input on each connection, and nothing else.
struct Says(Vec<u8>);

impl Serve for Says {
    type Conn = bool;

    fn read<I: Io>(&mut self, has_said: &mut bool, input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        if !std::mem::replace(has_said, true) {
            out.send(&self.0);
        }
        input.len()
    }
}

/// A server that sends this after the first input on each connection, and closes it.
struct Leaves(Vec<u8>);

impl Serve for Leaves {
    type Conn = ();

    fn read<I: Io>(&mut self, _: &mut (), input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        out.send(&self.0);
        out.close();
        input.len()
    }
}

/// A server that accepts a WebSocket and closes it with this code and reason.
struct Closes(u16, &'static [u8]);

impl Serve for Closes {
    type Conn = bool;

    fn read<I: Io>(&mut self, has_said: &mut bool, input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        if !std::mem::replace(has_said, true) {
            let payload = [&self.0.to_be_bytes()[..], self.1].concat();
            out.send(&[&accepts(input)[..], &[0x88, payload.len() as u8], &payload].concat());
        }
        input.len()
    }
}

/// The first sample of this fault, after a short run against a server.
fn sampled(
    target: &str,
    keys: &str,
    mut server: impl Serve,
    (stage, kind): (Stage, Kind),
) -> (String, Detail) {
    let text = format!(
        "target = \"{target}\"\ntimeout = \"300ms\"\nreconnect = \"never\"\n[[population]]\nname = \"a\"\nconnections = 2\n{keys}"
    );
    let outcome = run(&plan(&text), None, MS(1_000), Instead::default(), &mut server);
    let mut of_kind = outcome.tick.faults.iter().filter(|(own, _)| (own.stage, own.kind) == (stage, kind));
    let detail = of_kind.next().map(|(fault, _)| fault.detail);
    let found =
        outcome.tick.error_samples.iter().find(|own| (own.fault().stage, own.fault().kind) == (stage, kind));
    let bytes = found.unwrap_or_else(|| panic!("{target}: {:?}", outcome.faults())).bytes();
    (String::from_utf8_lossy(bytes).into_owned(), detail.expect("it is counted"))
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// An HTTP/2 server that sends these frames.
fn http2(frames: &[u8]) -> Says {
    Says([SERVER_PREFACE, SETTINGS_ACK, frames].concat())
}

/// Fields in HPACK without a table: `:status`, then literals.
fn fields(status: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
    let mut block = [vec![0x08], text(status)].concat();
    for (name, value) in more {
        // As servers write it, with the name from the static table.
        let name = if *name == "location" { vec![0x0f, 46 - 15] } else { [vec![0], text(name)].concat() };
        block.extend([name, text(value)].concat());
    }
    // END_STREAM and END_HEADERS, on the first stream.
    frame(1, 5, 1, &block)
}

const HTTP: &str = "http://127.0.0.1:80/";
const REQUEST: &str = "[[population.step]]\nrequest = \"/a/b\"\n";

#[test]
fn bytes_of_another_protocol() {
    let begins = |target: &str, keys: &str, says: &str, of: (Stage, Kind)| {
        assert_eq!(sampled(target, keys, Says(says.into()), of).0, says, "{target} {keys}");
    };
    begins(HTTP, "", "220 mail ESMTP\r\n", (Stage::Exchange, Kind::BadAnswer));
    // Too short for a frame or an echo, and nothing follows.
    begins(HTTP, "http2 = true\n", "-ERR\r\n", (Stage::Handshake, Kind::Timeout));
    let echo = "[[population.step]]\nsend = \"hello, this is a longer message than the reply to it\"\nexpect = { echo = true }\n";
    begins(
        "tcp://127.0.0.1:80",
        echo,
        "-NOAUTH Authentication required.\r\n",
        (Stage::Exchange, Kind::Timeout),
    );
}

#[test]
fn words_of_http2() {
    let of =
        |target: &str, keys: &str, frames: &[u8], of: (Stage, Kind)| sampled(target, keys, http2(frames), of);
    let moved = fields("302", &[("location", "http://other/")]);
    let wrong = (Stage::Exchange, Kind::WrongStatus);
    assert_eq!(
        of(HTTP, "http2 = true\n", &moved, wrong),
        ("location: http://other/".to_owned(), Detail::NONE)
    );
    let error =
        [("content-type", "application/grpc"), ("grpc-status", "5"), ("grpc-message", "no %C3%BCser%")];
    let call = fields("200", &error);
    let (text, _) = of("grpc://127.0.0.1:80/a.B/C", "", &call, wrong);
    assert_eq!(text, "grpc-message: no üser%");
    let goaway =
        |last, code, words: &[u8]| frame(7, 0, 0, &[&[0, 0, 0, last, 0, 0, 0, code][..], words].concat());
    let pings = goaway(0, 11, b"too_many_pings");
    let (text, detail) = of(HTTP, "http2 = true\n", &pings, (Stage::Hold, Kind::Closed));
    assert_eq!((text.as_str(), detail), ("too_many_pings", Detail::of_goaway(11)));
    // No error, but a response was due.
    let idle = goaway(1, 0, b"idle_timeout");
    let leaves = Leaves([SERVER_PREFACE, SETTINGS_ACK, &idle].concat());
    let (text, _) = sampled(HTTP, "http2 = true\n", leaves, (Stage::Exchange, Kind::Closed));
    assert_eq!(text, "idle_timeout");
}

#[test]
fn the_reason_of_a_close() {
    let steps = "[[population.step]]\nwait = \"1m\"\n";
    let closes = Closes(1011, "no backend: é".as_bytes());
    let (text, detail) = sampled("ws://127.0.0.1:80/", steps, closes, (Stage::Hold, Kind::Closed));
    assert_eq!((text.as_str(), detail), ("no backend: é", Detail::of_close(Some(1011))));
}

#[test]
fn why_a_redirect_is_not_followed() {
    let step = format!("{REQUEST}redirects = 2\n");
    for (location, expected) in [
        ("http://127.0.0.1:81/", Detail::OTHER_ORIGIN),
        ("http://[", Detail::NO_LOCATION),
        // The next response on the same connection never comes.
        ("", Detail::NO_LOCATION),
    ] {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        let (text, detail) =
            sampled(HTTP, &step, Says(head.clone().into()), (Stage::Exchange, Kind::WrongStatus));
        assert_eq!((text, detail), (head, expected));
    }
    let (_, detail) = sampled(HTTP, &step, Circle, (Stage::Exchange, Kind::WrongStatus));
    assert_eq!(detail, Detail::TOO_MANY_REDIRECTS);
}

/// A POST is redirected to a GET that gets no response: an unfinished chain of redirects does not affect the next request.
#[test]
fn a_row_of_redirects_ends_with_its_exchange() {
    for keys in ["reconnect = \"10ms..20ms\"\n", "timeout = \"20ms\"\nreconnect = \"10ms..20ms\"\n"] {
        let step = "[[population.step]]\nrequest = \"POST /from\"\nbody = \"x\"\nredirects = 1\n";
        let text =
            format!("target = \"{HTTP}\"\n[[population]]\nname = \"a\"\nconnections = 2\n{keys}{step}");
        let outcome =
            run(&plan(&text), None, MS(500), Instead::default(), &mut CutShort { hangs: keys.len() > 30 });
        let c = &outcome.tick.counts;
        assert!(c.sent > 10 && c.answered == 0, "{c:?}");
        let kinds: Vec<Kind> = outcome.tick.faults.iter().map(|(fault, _)| fault.kind).collect();
        assert!(!kinds.contains(&Kind::WrongStatus), "{kinds:?}");
    }
}

/// Redirects each POST; closes, or hangs, instead of responding to a GET.
struct CutShort {
    hangs: bool,
}

impl Serve for CutShort {
    type Conn = ();

    fn read<I: Io>(&mut self, _: &mut (), input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        if input.starts_with(b"POST /from ") {
            out.send(b"HTTP/1.1 303 \r\nLocation: /to\r\nContent-Length: 0\r\n\r\n");
        } else if !self.hangs {
            out.close();
        }
        input.len()
    }
}

/// Redirects every request to the same path.
struct Circle;

impl Serve for Circle {
    type Conn = ();

    fn read<I: Io>(&mut self, _: &mut (), input: &mut [u8], out: &mut Output<'_, I>) -> usize {
        out.send(b"HTTP/1.1 307 Again\r\nLocation: b\r\nContent-Length: 0\r\n\r\n");
        input.len()
    }
}

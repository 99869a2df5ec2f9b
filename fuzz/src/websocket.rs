//! The WebSocket reader driven as a connection's loop drives it, with its invariants checked, and printed as
//! text.
//!
//! A trace reads like `text hello | ping x | close 1000 bye`: payloads plain and escaped, messages in one
//! piece. Last comes `breach NAME` (what was begun is void), or `begun text hel` where a message goes on, and
//! `rest N` where N bytes are left unconsumed.

use wire::Breach;
use wire::websocket::{
    Closing, Data, Event, Frames, Key, MAX_CONTROL, Payload, Response, Role, mask, read_response,
};

/// Feeds `pieces` to a reader in this role that takes messages of `most` bytes.
pub fn frames(role: Role, most: u64, pieces: &[&[u8]]) -> String {
    let mut machine = Frames::new(role);
    let mut trace = Trace::default();
    let mut rest = Vec::new();
    for piece in pieces {
        rest.extend_from_slice(piece);
        let mut at = 0;
        loop {
            let input = &rest[at..];
            let (n, event) = match machine.handle_bytes(input, most) {
                Ok((0, None)) => break,
                Ok(step) => step,
                Err(breach) => return trace.breach(breach),
            };
            let taken = input.get(..n).expect("no more is consumed than there is");
            if let Some(event) = event {
                trace.add(event, most, taken.len());
            }
            assert_eq!(
                machine.is_between_messages(),
                trace.message.is_none(),
                "between messages: {machine:?}"
            );
            at += n;
        }
        rest.drain(..at);
        // The longest thing that is only taken whole: a masked control frame of 125 bytes.
        assert!(rest.len() < 2 + 4 + MAX_CONTROL, "the rest is bounded: {}", rest.len());
        assert!(!trace.closed || rest.is_empty(), "behind a close all is consumed");
    }
    trace.rest(rest.len())
}

/// What a machine has said so far.
#[derive(Default)]
struct Trace {
    lines: Vec<String>,
    /// The message that has begun: whether it is text, and its bytes so far.
    message: Option<(bool, Vec<u8>)>,
    closed: bool,
}

impl Trace {
    /// `taken`: how many bytes the event was read from.
    fn add(&mut self, event: Event<'_>, most: u64, taken: usize) {
        assert!(!self.closed, "a close is the last event");
        match event {
            Event::Data(data) => self.piece(data, most, taken),
            Event::Ping(payload) => self.control("ping", payload, taken),
            Event::Pong(payload) => self.control("pong", payload, taken),
            Event::Closing(Closing { code, reason }) => {
                self.closed = true;
                self.message = None;
                let code = code.map(|code| format!(" {code}")).unwrap_or_default();
                assert!(str::from_utf8(&plain(reason)).is_ok(), "a reason is UTF-8: {reason:?}");
                self.control(&format!("close{code}"), reason, taken);
            }
        }
    }

    fn control(&mut self, what: &str, payload: Payload<'_>, taken: usize) {
        assert!(payload.len() <= MAX_CONTROL && payload.len() + 2 <= taken, "taken whole: {payload:?}");
        self.line(what, &plain(payload));
    }

    fn piece(&mut self, data: Data<'_>, most: u64, taken: usize) {
        assert!(data.payload.len() <= taken, "a payload lies in the input");
        assert!(!data.payload.is_empty() || data.begins || data.ends, "an empty piece begins or ends");
        assert_eq!(data.begins, self.message.is_none(), "a message begins once");
        let (text, bytes) = self.message.get_or_insert_with(|| (data.text, Vec::new()));
        assert_eq!(*text, data.text, "a message is of one kind");
        bytes.extend_from_slice(&plain(data.payload));
        assert!(bytes.len() as u64 <= most, "a message has {} bytes of {most}", bytes.len());
        if *text {
            let so_far = str::from_utf8(bytes);
            let may_go_on = so_far.map_or_else(|e| e.error_len().is_none() && !data.ends, |_| true);
            assert!(may_go_on, "text is UTF-8 so far: {}", bytes.escape_ascii());
        }
        if data.ends {
            let (text, bytes) = self.message.take().expect("it was just there");
            self.line(kind(text), &bytes);
        }
    }

    fn line(&mut self, what: &str, payload: &[u8]) {
        let blank = if payload.is_empty() { "" } else { " " };
        self.lines.push(format!("{what}{blank}{}", payload.escape_ascii()));
    }

    fn breach(mut self, breach: Breach) -> String {
        self.lines.push(format!("breach {breach}"));
        self.lines.join(" | ")
    }

    fn rest(mut self, bytes: usize) -> String {
        if let Some((text, bytes)) = self.message.take() {
            self.line(&format!("begun {}", kind(text)), &bytes);
        }
        if bytes > 0 {
            self.lines.push(format!("rest {bytes}"));
        }
        self.lines.join(" | ")
    }
}

fn kind(text: bool) -> &'static str {
    if text { "text" } else { "binary" }
}

/// The plain bytes, by all the ways there are to them.
fn plain(payload: Payload<'_>) -> Vec<u8> {
    let bytes: Vec<u8> = payload.bytes().collect();
    assert_eq!(bytes.len(), payload.len());
    let mut copy = vec![0xAA; payload.len() + 1];
    payload.copy_to(&mut copy);
    assert_eq!(copy.pop(), Some(0xAA), "nothing is written behind the payload");
    assert_eq!(copy, bytes);
    assert!(payload.matches(&bytes), "{payload:?}");
    if let Some(last) = copy.last_mut() {
        *last ^= 1;
        assert!(!payload.matches(&copy) && !payload.matches(&bytes[1..]), "{payload:?}");
    }
    bytes
}

/// The key that every response here is for: that of RFC 6455 section 1.3.
pub fn key() -> Key {
    let key = Key::new(u128::from_be_bytes(*b"the sample nonce"));
    assert_eq!(key.as_bytes(), b"dGhlIHNhbXBsZSBub25jZQ==");
    key
}

/// The sub-protocols that it offers.
const OFFERED: &str = "superchat, v2";

/// Feeds `pieces` to a client that has asked for an upgrade with [`key`]: `accepted`, `refused 404`, `breach
/// NAME` or `open` while the head is incomplete, and `rest N` for what lies behind it.
pub fn response(pieces: &[&[u8]]) -> String {
    let key = key();
    let stream = pieces.concat();
    let mut end = 0;
    for piece in pieces {
        end += piece.len();
        let (n, response) = match read_response(&stream[..end], &key, OFFERED) {
            Ok(None) => continue,
            Ok(Some(response)) => response,
            Err(breach) => return format!("breach {breach}"),
        };
        assert!(0 < n && n <= end, "a response lies in the input");
        assert_eq!(
            read_response(&stream[..n], &key, OFFERED),
            Ok(Some((n, response))),
            "what lies behind says nothing"
        );
        assert_eq!(
            read_response(&stream[..n - 1], &key, OFFERED),
            Ok(None),
            "a response has no byte too many"
        );
        let rest = if n < stream.len() { format!(" | rest {}", stream.len() - n) } else { String::new() };
        return match response {
            Response::Accepted => format!("accepted{rest}"),
            Response::Refused(status) => format!("refused {status}{rest}"),
        };
    }
    assert!(end < wire::http1::MAX_HEAD, "the rest is bounded: {end}");
    "open".to_owned()
}

/// `stream` with its masked frames really masked: plain text is easier to write, and for a fuzzer to find.
/// Each frame whose header is whole and says so is masked with its mask; what is no frame is left as it is.
pub fn masked(mut stream: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while let Some(&[_, second]) = stream.get(at..).and_then(<[u8]>::first_chunk) {
        let long = match second & 0x7F {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let Some(bytes) = stream.get(at + 2..at + 2 + long) else { break };
        let long_len = bytes.iter().fold(0u64, |len, byte| len << 8 | u64::from(*byte));
        let len = if long == 0 { u64::from(second & 0x7F) } else { long_len };
        at += 2 + long;
        let mut key = [0; 4];
        if second & 0x80 != 0 {
            let Some(bytes) = stream.get(at..).and_then(<[u8]>::first_chunk) else { break };
            key = *bytes;
            at += key.len();
        }
        let end = usize::try_from(len).map_or(stream.len(), |len| stream.len().min(at.saturating_add(len)));
        mask(&mut stream[at..end], key);
        at = end;
    }
    stream
}

//! A scripted server that records all input, and responds by its script: HTTP, WebSocket or bytes.

use net::{Close, Cx, Gone, Io, Key, Program};
use units::Nanos;
use wire::websocket::{Event, Frames, Role, accept_key};

/// Maximum number of pending accepts.
const ACCEPTS: u32 = 64;
/// Delay between two pieces of a response, so that each is a separate segment.
const APART: Nanos = Nanos::from_millis(1);

/// Distinguishes an upgrade from an earlier request.
const UPGRADE: &[u8] = b"Upgrade: websocket";

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http,
    WebSocket,
    /// Bytes: each segment is recorded separately.
    Bytes,
}

/// A request with its content, a message, or bytes. A closing handshake is recorded as `close 1000`.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// Index of the accepted connection.
    pub(crate) conn: usize,
    /// Index of the input on this connection.
    pub(crate) nth: usize,
    pub(crate) at: Nanos,
    pub(crate) text: String,
}

impl Received {
    /// The request's method and path.
    pub(crate) fn line(&self) -> &str {
        self.text.split(" HTTP/").next().expect("there is a first part")
    }
}

/// What the server sends or does in response, in order.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Bytes(Vec<u8>),
    End,
    Reset,
}

/// A response with this status, these fields and this content.
pub(crate) fn response(status: u16, fields: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Bytes(
        format!("HTTP/1.1 {status} Word\r\n{fields}Content-Length: {length}\r\n\r\n{body}").into_bytes(),
    )
}

/// A correct response.
pub(crate) fn ok() -> Vec<Reply> {
    vec![response(200, "", "hello")]
}

/// The response to an upgrade.
pub(crate) fn welcome(head: &str) -> Vec<u8> {
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key");
    let accept = accept_key(key.as_bytes());
    let accept = str::from_utf8(&accept).expect("base64");
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    )
    .into_bytes()
}

/// A text message in one frame.
pub(crate) fn frame(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("short");
    assert!(length < 126, "a short one");
    [&[0x81, length], text.as_bytes()].concat()
}

type Script = Box<dyn Fn(&Received) -> Vec<Reply>>;

struct Conn {
    number: usize,
    received: usize,
    frames: Option<Frames>,
    /// The incomplete message received so far.
    message: Vec<u8>,
    /// Output still to be sent, in reverse order.
    to_send: Vec<Reply>,
}

/// The server.
pub(crate) struct Listener {
    speaks: Speaks,
    script: Script,
    accepting: u32,
    conns: Vec<Conn>,
    /// When each connection was accepted.
    pub(crate) accepted_at: Vec<Nanos>,
    pub(crate) received: Vec<Received>,
}

impl Listener {
    pub(crate) fn new(speaks: Speaks, script: impl Fn(&Received) -> Vec<Reply> + 'static) -> Listener {
        let script = Box::new(script);
        Listener { speaks, script, accepting: 0, conns: vec![], accepted_at: vec![], received: vec![] }
    }

    /// What each connection received, in order.
    pub(crate) fn by_connection(&self) -> Vec<Vec<&Received>> {
        let mut all = vec![Vec::new(); self.accepted_at.len()];
        self.received.iter().for_each(|received| all[received.conn].push(received));
        all
    }

    /// Handles a complete request or message.
    fn receive<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, text: String) {
        let conn = &mut self.conns[k.index as usize];
        let received = Received { conn: conn.number, nth: conn.received, at: cx.now(), text };
        conn.received += 1;
        let mut replies = (self.script)(&received);
        self.received.push(received);
        replies.reverse();
        let was_silent = conn.to_send.is_empty();
        conn.to_send.splice(0..0, replies);
        if was_silent {
            self.send(cx, k);
        }
    }

    fn send<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let conn = &mut self.conns[k.index as usize];
        match conn.to_send.pop() {
            Some(Reply::Bytes(bytes)) => cx.send(k, bytes.len(), |out| {
                out[..bytes.len()].copy_from_slice(&bytes);
                bytes.len()
            }),
            Some(Reply::End) => return cx.finish(k),
            Some(Reply::Reset) => return cx.close(k, Close::Reset),
            None => {}
        }
        if !self.conns[k.index as usize].to_send.is_empty() {
            cx.wake_at(k, cx.now() + APART);
        }
    }

    fn hear_frames<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let conn = &mut self.conns[k.index as usize];
            let frames = conn.frames.as_mut().expect("upgraded");
            let (n, event) =
                frames.handle_bytes(&input[used..], 1 << 20).expect("a client that keeps to the RFC");
            used += n;
            match event {
                None if n == 0 => return used,
                Some(Event::Data(data)) => {
                    conn.message.extend(data.payload.bytes());
                    if data.ends {
                        let text = String::from_utf8(std::mem::take(&mut conn.message)).expect("text");
                        self.receive(cx, k, text);
                    }
                }
                Some(Event::Closing(closing)) => {
                    let text = format!("close {}", closing.code.unwrap_or_default());
                    let (number, nth) = (conn.number, conn.received);
                    self.received.push(Received { conn: number, nth, at: cx.now(), text });
                    cx.close(k, Close::Graceful);
                    return input.len();
                }
                _ => {}
            }
        }
    }
}

/// The length of the first complete request in the input.
fn whole_request(input: &[u8]) -> Option<usize> {
    let head = input.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = str::from_utf8(&input[..head]).expect("a head is text");
    let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.map_or(0, |length| length.parse().expect("a number"));
    (input.len() >= head + length).then_some(head + length)
}

impl Program for Listener {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.accepting -= 1;
        let at = k.index as usize;
        let conn = || Conn { number: 0, received: 0, frames: None, message: vec![], to_send: vec![] };
        self.conns.resize_with(self.conns.len().max(at + 1), conn);
        self.conns[at] = Conn { number: self.accepted_at.len(), ..conn() };
        self.accepted_at.push(cx.now());
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.send(cx, k);
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let is_upgraded = self.conns[k.index as usize].frames.is_some();
        if is_upgraded {
            return self.hear_frames(cx, k, input);
        }
        let used = match self.speaks {
            Speaks::Bytes => input.len(),
            Speaks::Http | Speaks::WebSocket => match whole_request(input) {
                Some(length) => length,
                None => return 0,
            },
        };
        if self.speaks != Speaks::Bytes {
            assert_eq!(used, input.len(), "one request at a time");
        }
        let is_upgrade = input.windows(UPGRADE.len()).any(|part| part == UPGRADE);
        if self.speaks == Speaks::WebSocket && is_upgrade {
            self.conns[k.index as usize].frames = Some(Frames::new(Role::Server));
        }
        self.receive(cx, k, String::from_utf8(input.to_vec()).expect("text"));
        used
    }

    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: Gone) {}

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while self.accepting < ACCEPTS {
            assert!(cx.accept(), "the server has a place for everyone");
            self.accepting += 1;
        }
        Nanos::NEVER
    }
}

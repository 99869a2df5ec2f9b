//! A dial or a request under way: what a connection needs only then.

use samples::Kind;
use units::Nanos;
use wire::{
    http1::{self, Reply},
    websocket::{self, Answer, Data, Event, Frames, Key, Payload},
};

use crate::protocol::Message;

/// Largest message that is taken from a server. Nothing of it is kept, so that this is no question of memory.
const LARGEST_MESSAGE: u64 = 1 << 30;
/// Stands in for the bytes received of a message that began before ours was sent: no part of an echo.
const NOT_OURS: u64 = u64::MAX;

/// One dial, and then one request and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// When the dial, and then the request, was due.
    pub(crate) due: Nanos,
    /// When it was started: the timeout counts from here.
    pub(crate) started: Nanos,
    pub(crate) wire: Wire,
    /// HTTP: length of the content that is expected; `u64::MAX` where none is. WebSocket: what the control ping says.
    pub(crate) expected: u64,
    /// Content received.
    pub(crate) content: u64,
    pub(crate) status: u16,
    /// HTTP: bytes of the answer's head, 64 KiB at most.
    pub(crate) head_bytes: u16,
    /// Something of the answer has come.
    pub(crate) begun: bool,
    /// The first dial and the first request of a connection belong to the ramp's window.
    pub(crate) first: bool,
    /// A request is due for this dial, and goes out when the connection stands.
    pub(crate) asks: bool,
    /// An echo is awaited; otherwise a message of the server's own is coming in.
    pub(crate) awaits: bool,
    /// The echo is not what was sent.
    pub(crate) differs: bool,
    pub(crate) keep_alive_timeout_s: Option<u32>,
}

const _: () = assert!(size_of::<Exchange>() <= 88, "each connection of a closed loop has one");

/// The machine that reads what comes in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire {
    Http(http1::Client),
    /// The answer to our upgrade is awaited; the key was made from this.
    Upgrade(u64),
    WebSocket(Frames),
    Tcp,
}

/// What input brought, each with the bytes that were used for it.
pub(crate) enum Progress<'a> {
    /// Nothing further: come again with more.
    More(usize),
    /// The server speaks WebSocket from here on.
    Upgraded(usize),
    /// The answer is complete.
    Answered(usize),
    /// The server wants to know whether we are there.
    Ping(usize, Payload<'a>),
    /// The server begins the closing handshake, with this code.
    Closing(Option<u16>),
}

impl Exchange {
    pub(crate) fn new(due: Nanos, started: Nanos, wire: Wire) -> Exchange {
        Exchange {
            due,
            started,
            wire,
            expected: u64::MAX,
            content: 0,
            status: 0,
            head_bytes: 0,
            begun: false,
            first: false,
            asks: false,
            awaits: false,
            differs: false,
            keep_alive_timeout_s: None,
        }
    }

    /// A message goes out, and its echo is awaited.
    pub(crate) fn await_echo(&mut self) {
        (self.awaits, self.differs) = (true, false);
        self.content = if self.is_between_messages() { 0 } else { NOT_OURS };
    }

    /// Bytes of content that the answer had; a pong between the pieces of the server's own message has none.
    pub(crate) fn content(&self) -> u64 {
        if self.content == NOT_OURS { 0 } else { self.content }
    }

    /// Whether nothing has begun to come in that is not complete.
    pub(crate) fn is_between_messages(&self) -> bool {
        match &self.wire {
            Wire::WebSocket(frames) => frames.is_between_messages(),
            _ => true,
        }
    }

    /// Reads on. `message`: what was sent, where an echo is awaited.
    pub(crate) fn handle_bytes<'a>(
        &mut self,
        input: &'a [u8],
        message: Option<&Message>,
    ) -> Result<Progress<'a>, Kind> {
        match self.wire {
            Wire::Http(_) => self.handle_reply(input),
            Wire::Upgrade(nonce) => upgraded(input, nonce),
            Wire::WebSocket(_) => self.handle_frames(input, message),
            Wire::Tcp => Ok(self.handle_stream(input, message)),
        }
    }

    fn handle_reply<'a>(&mut self, input: &'a [u8]) -> Result<Progress<'a>, Kind> {
        let Wire::Http(wire) = &mut self.wire else { unreachable!("told by the caller") };
        let mut used = 0;
        loop {
            match wire.handle_bytes(&input[used..]).map_err(|_| Kind::BadAnswer)? {
                (0, None) => return Ok(Progress::More(used)),
                (n, reply) => {
                    used += n;
                    match reply {
                        Some(Reply::Head(head)) => {
                            self.status = head.status;
                            self.head_bytes = u16::try_from(head.head_bytes).unwrap_or(u16::MAX);
                            self.keep_alive_timeout_s = head.keep_alive_timeout_s;
                        }
                        Some(Reply::Body(bytes)) => self.content += bytes.len() as u64,
                        Some(Reply::End) => return Ok(Progress::Answered(used)),
                        Some(Reply::Interim(_)) | None => {}
                    }
                }
            }
        }
    }

    fn handle_frames<'a>(
        &mut self,
        input: &'a [u8],
        message: Option<&Message>,
    ) -> Result<Progress<'a>, Kind> {
        let mut used = 0;
        loop {
            let Wire::WebSocket(frames) = &mut self.wire else { unreachable!("told by the caller") };
            let came = frames.handle_bytes(&input[used..], LARGEST_MESSAGE);
            let (n, event) = came.map_err(|_| Kind::BadAnswer)?;
            used += n;
            let answers = match (event, message) {
                (None, _) if n == 0 => return Ok(Progress::More(used)),
                (Some(Event::Ping(ping)), _) => return Ok(Progress::Ping(used, ping)),
                (Some(Event::Close(closing)), _) => return Ok(Progress::Closing(closing.code)),
                (Some(Event::Data(data)), Some(sent)) if self.awaits && !sent.is_ping() => {
                    self.is_echo(&data, sent)
                }
                (Some(Event::Pong(echo)), Some(sent)) if self.awaits && sent.is_ping() => {
                    echo.matches(&self.expected.to_be_bytes())
                }
                // What the server says of itself, an old pong, or framing only.
                _ => false,
            };
            if answers {
                return Ok(Progress::Answered(used));
            }
        }
    }

    /// Holds a piece of a message against what was sent; true when that message is complete, right or wrong.
    fn is_echo(&mut self, data: &Data<'_>, sent: &Message) -> bool {
        if data.begins {
            self.content = 0;
        }
        if self.content == NOT_OURS {
            return false;
        }
        let rest = sent.bytes.get(self.content as usize..).unwrap_or_default();
        self.differs |= !rest.get(..data.payload.len()).is_some_and(|part| data.payload.matches(part));
        self.content += data.payload.len() as u64;
        self.differs |= data.ends && self.content != sent.bytes.len() as u64;
        data.ends
    }

    /// Bytes without frames: as many as were sent are the echo.
    fn handle_stream<'a>(&mut self, input: &'a [u8], message: Option<&Message>) -> Progress<'a> {
        let Some(sent) = message.filter(|_| self.awaits) else { return Progress::More(input.len()) };
        let rest = &sent.bytes[self.content as usize..];
        let n = rest.len().min(input.len());
        self.differs |= rest[..n] != input[..n];
        self.content += n as u64;
        if n == rest.len() { Progress::Answered(n) } else { Progress::More(n) }
    }
}

/// The nonce of a WebSocket key is only to be new for each connection (RFC 6455 section 4.1).
pub(crate) fn key(nonce: u64) -> Key {
    Key::new(u128::from(nonce) << 64 | u128::from(!nonce))
}

fn upgraded<'a>(input: &'a [u8], nonce: u64) -> Result<Progress<'a>, Kind> {
    match websocket::read_answer(input, &key(nonce)) {
        Ok(None) => Ok(Progress::More(0)),
        Ok(Some((n, Answer::Upgraded))) => Ok(Progress::Upgraded(n)),
        Ok(Some((_, Answer::Refused(_)))) => Err(Kind::WrongStatus),
        Err(_) => Err(Kind::BadAnswer),
    }
}

/// The exchanges of one shard. Room for one a connection is reserved at the start, touched as it is needed.
pub(crate) struct Exchanges {
    all: Vec<Exchange>,
    free: Vec<u32>,
}

impl Exchanges {
    pub(crate) fn new(connections: u32) -> Exchanges {
        let n = connections as usize;
        Exchanges { all: Vec::with_capacity(n), free: Vec::with_capacity(n) }
    }

    pub(crate) fn begin(&mut self, exchange: Exchange) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.all[at as usize] = exchange;
                at
            }
            None => {
                self.all.push(exchange);
                (self.all.len() - 1) as u32
            }
        }
    }

    pub(crate) fn at(&mut self, at: u32) -> &mut Exchange {
        &mut self.all[at as usize]
    }

    pub(crate) fn end(&mut self, at: u32) -> Exchange {
        self.free.push(at);
        self.all[at as usize]
    }

    /// How many are under way.
    pub(crate) fn len(&self) -> u64 {
        (self.all.len() - self.free.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::websocket::Role;

    #[test]
    fn a_pong_amid_the_servers_own_message_brings_no_content() {
        let wire = Wire::WebSocket(Frames::new(Role::Client));
        let mut exchange = Exchange::new(Nanos::ZERO, Nanos::ZERO, wire);
        let ping = Message { bytes: b"" };
        // The first frame of a message in two: text, not final, three bytes.
        let begun = exchange.handle_bytes(b"\x01\x03abc", None);
        assert!(matches!(begun, Ok(Progress::More(5))));
        exchange.expected = 7;
        exchange.await_echo();
        let pong = exchange.handle_bytes(b"\x8a\x08\0\0\0\0\0\0\0\x07", Some(&ping));
        assert!(matches!(pong, Ok(Progress::Answered(10))));
        assert_eq!((exchange.content(), exchange.differs), (0, false));
    }
}

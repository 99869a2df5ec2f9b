//! A dial or a request under way: what a connection needs only then.

use samples::Kind;
use units::Nanos;
use wire::{
    http1::{self, Reply},
    websocket::{self, Answer, Data, Event, Frames, Key, Payload},
};

use crate::check::Check;

/// Largest message that is taken from a server. Nothing of it is kept, so that this is no question of memory.
const LARGEST_MESSAGE: u64 = 1 << 30;
/// Stands in for the bytes received of a message that began before ours was sent: no part of an answer.
const NOT_OURS: u64 = u64::MAX;

/// One dial, and then one request and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// When the dial, and then the request, was due.
    pub(crate) due: Nanos,
    /// When the dial was due, and then when the request was sent: connect time, and the timeout, count from here.
    pub(crate) started: Nanos,
    pub(crate) wire: Wire,
    /// Length of the content that is expected; `u64::MAX` where none is. Of a control ping: what it says.
    pub(crate) expected: u64,
    /// Content received.
    pub(crate) content: u64,
    /// The number of the message that was sent.
    pub(crate) nth: u32,
    /// `Keep-Alive: timeout=N`; `u32::MAX` where nothing is said.
    pub(crate) keep_alive: u32,
    pub(crate) status: u16,
    /// HTTP: bytes of the answer's head, 64 KiB at most.
    pub(crate) head_bytes: u16,
    /// How much of the text that is looked for matches.
    pub(crate) found: u16,
    /// Something of the answer has come.
    pub(crate) begun: bool,
    /// The first dial and the first request of a connection belong to the ramp's window.
    pub(crate) first: bool,
    /// A request is due for this dial, and goes out when the connection stands.
    pub(crate) asks: bool,
    /// The answer lacks a field.
    pub(crate) lacks: bool,
    /// The echo is not what was sent.
    pub(crate) differs: bool,
    /// Sent again, since it met an announced close.
    pub(crate) again: bool,
}

const _: () = assert!(size_of::<Exchange>() <= 88, "each connection of a closed loop has one");

/// The protocol machine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire {
    Http(http1::Client),
    /// The key's nonce.
    Upgrade(u64),
    WebSocket(Frames),
    Tcp,
}

/// What is awaited.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaited<'a> {
    /// The reply to an HTTP request.
    Reply(&'a Check),
    /// A message; with what was sent, where that is to come back.
    Message(&'a Check, &'a [u8]),
    /// The pong that answers a control ping.
    Pong,
    /// What comes is the server's own.
    Nothing,
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
            nth: 0,
            keep_alive: u32::MAX,
            status: 0,
            head_bytes: 0,
            found: 0,
            begun: false,
            first: false,
            asks: false,
            lacks: false,
            differs: false,
            again: false,
        }
    }

    /// A message is awaited from here on.
    pub(crate) fn await_message(&mut self) {
        (self.found, self.differs) = (0, false);
        self.content = if self.is_between_messages() { 0 } else { NOT_OURS };
    }

    /// Bytes of content that the answer had; a pong between the pieces of the server's own message has none.
    pub(crate) fn content(&self) -> u64 {
        if self.content == NOT_OURS { 0 } else { self.content }
    }

    /// For how long the server says that it keeps an idle connection.
    pub(crate) fn keep_alive_timeout_s(&self) -> Option<u32> {
        Some(self.keep_alive).filter(|s| *s != u32::MAX)
    }

    /// Whether nothing has begun to come in that is not complete.
    pub(crate) fn is_between_messages(&self) -> bool {
        match &self.wire {
            Wire::WebSocket(frames) => frames.is_between_messages(),
            _ => true,
        }
    }

    /// What is wrong with a whole answer.
    pub(crate) fn wrong(&self, awaited: Awaited) -> Option<Kind> {
        let check = match awaited {
            Awaited::Reply(check) | Awaited::Message(check, _) => check,
            Awaited::Pong | Awaited::Nothing => return None,
        };
        let right_status = match (&self.wire, check.status) {
            (Wire::Http(_), None) => (200..300).contains(&self.status),
            (_, Some(status)) => self.status == status,
            _ => true,
        };
        let right_length = self.expected == u64::MAX || self.expected == self.content;
        let right_body = check.body.as_ref().is_none_or(|needle| needle.is_found(self.found));
        let kinds = [
            (right_status, Kind::WrongStatus),
            (!self.lacks, Kind::WrongHeader),
            (!self.differs, Kind::WrongEcho),
            (right_length, Kind::WrongLength),
            (right_body, Kind::WrongBody),
        ];
        kinds.into_iter().find(|(right, _)| !right).map(|(_, kind)| kind)
    }

    /// Reads on.
    pub(crate) fn handle_bytes<'a>(
        &mut self,
        input: &'a [u8],
        awaited: Awaited,
    ) -> Result<Progress<'a>, Kind> {
        match (self.wire, awaited) {
            (Wire::Http(_), Awaited::Reply(check)) => self.handle_reply(input, check),
            (Wire::Http(_), _) => Err(Kind::BadAnswer),
            (Wire::Upgrade(nonce), _) => upgraded(input, nonce),
            (Wire::WebSocket(_), _) => self.handle_frames(input, awaited),
            (Wire::Tcp, Awaited::Message(check, sent)) => Ok(self.handle_stream(input, check, sent)),
            (Wire::Tcp, _) => Ok(Progress::More(input.len())),
        }
    }

    fn handle_reply<'a>(&mut self, input: &'a [u8], check: &Check) -> Result<Progress<'a>, Kind> {
        let Wire::Http(wire) = &mut self.wire else { unreachable!("told by the caller") };
        let mut used = 0;
        loop {
            match wire.handle_bytes(&input[used..]).map_err(|_| Kind::BadAnswer)? {
                (0, None) => return Ok(Progress::More(used)),
                (n, reply) => {
                    let head_at = used;
                    used += n;
                    match reply {
                        Some(Reply::Head(head)) => {
                            self.status = head.status;
                            self.head_bytes = u16::try_from(head.head_bytes).unwrap_or(u16::MAX);
                            self.keep_alive = head.keep_alive_timeout_s.unwrap_or(u32::MAX);
                            let lacks = |(name, text): &(String, String)| {
                                !http1::has_field(&input[head_at..used], name, text)
                            };
                            self.lacks = check.fields.iter().any(lacks);
                        }
                        Some(Reply::Body(bytes)) => {
                            self.content += bytes.len() as u64;
                            if let Some(needle) = &check.body {
                                self.found = needle.look(self.found, bytes.iter().copied());
                            }
                        }
                        Some(Reply::End) => return Ok(Progress::Answered(used)),
                        Some(Reply::Interim(_)) | None => {}
                    }
                }
            }
        }
    }

    fn handle_frames<'a>(&mut self, input: &'a [u8], awaited: Awaited) -> Result<Progress<'a>, Kind> {
        let mut used = 0;
        loop {
            let Wire::WebSocket(frames) = &mut self.wire else { unreachable!("told by the caller") };
            let came = frames.handle_bytes(&input[used..], LARGEST_MESSAGE);
            let (n, event) = came.map_err(|_| Kind::BadAnswer)?;
            used += n;
            let answers = match (event, awaited) {
                (None, _) if n == 0 => return Ok(Progress::More(used)),
                (Some(Event::Ping(ping)), _) => return Ok(Progress::Ping(used, ping)),
                (Some(Event::Close(closing)), _) => return Ok(Progress::Closing(closing.code)),
                (Some(Event::Data(data)), Awaited::Message(check, sent)) => self.take(&data, check, sent),
                (Some(Event::Pong(echo)), Awaited::Pong) => echo.matches(&self.expected.to_be_bytes()),
                // What the server says of itself, an old pong, or framing only.
                _ => false,
            };
            if answers {
                return Ok(Progress::Answered(used));
            }
        }
    }

    /// Looks at a piece of a message; true when that message is complete, right or wrong.
    fn take(&mut self, data: &Data<'_>, check: &Check, sent: &[u8]) -> bool {
        if data.begins {
            self.content = 0;
        }
        if self.content == NOT_OURS {
            return false;
        }
        if check.echo {
            let rest = sent.get(self.content as usize..).unwrap_or_default();
            let part = rest.get(..data.payload.len());
            self.differs |= !part.is_some_and(|part| data.payload.matches(part));
        }
        if let Some(needle) = &check.body {
            self.found = needle.look(self.found, data.payload.bytes());
        }
        self.content += data.payload.len() as u64;
        self.differs |= check.echo && data.ends && self.content != sent.len() as u64;
        data.ends
    }

    /// Bytes without frames: as many as were sent are the echo; else they are the answer as soon as they are as expected,
    /// where nothing is said as soon as there are any.
    fn handle_stream<'a>(&mut self, input: &'a [u8], check: &Check, sent: &[u8]) -> Progress<'a> {
        let wanted = match (check.echo, self.expected) {
            (true, _) => sent.len() as u64,
            (false, u64::MAX) => u64::MAX,
            (false, length) => length,
        };
        let n = usize::try_from(wanted - self.content).unwrap_or(usize::MAX).min(input.len());
        if check.echo {
            let at = self.content as usize;
            self.differs |= sent[at..at + n] != input[..n];
        }
        if let Some(needle) = &check.body {
            self.found = needle.look(self.found, input[..n].iter().copied());
        }
        self.content += n as u64;
        let found = wanted == u64::MAX
            && n > 0
            && check.body.as_ref().is_none_or(|needle| needle.is_found(self.found));
        if self.content == wanted || found { Progress::Answered(n) } else { Progress::More(n) }
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

    /// The same, to look at.
    pub(crate) fn seen(&self, at: u32) -> &Exchange {
        &self.all[at as usize]
    }

    pub(crate) fn end(&mut self, at: u32) {
        self.free.push(at);
    }

    #[cfg(test)]
    pub(crate) fn under_way(&self) -> u64 {
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
        // The first frame of a message in two: text, not final, three bytes.
        let begun = exchange.handle_bytes(b"\x01\x03abc", Awaited::Nothing);
        assert!(matches!(begun, Ok(Progress::More(5))));
        exchange.expected = 7;
        exchange.await_message();
        let pong = exchange.handle_bytes(b"\x8a\x08\0\0\0\0\0\0\0\x07", Awaited::Pong);
        assert!(matches!(pong, Ok(Progress::Answered(10))));
        assert_eq!((exchange.content(), exchange.wrong(Awaited::Pong)), (0, None));
    }
}

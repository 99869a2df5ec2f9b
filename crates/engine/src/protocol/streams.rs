//! A minimal protocol with several streams per connection, for tests of what concurrent requests need.
//!
//! A frame is its length, a stream number, and that many bytes. Stream 0 belongs to the connection: `?` is a keepalive and `!`
//! its reply, in either direction. A client sends each request as one frame on a new odd stream. The response comes on the same
//! stream, in any number of frames, the last of which is followed by an empty one; an empty frame from the client cancels the
//! stream. Even streams carry unsolicited messages.

use std::cell::RefCell;

use net::Io;
use samples::Kind;
use units::Nanos;

use super::{Awaited, Progress, Properties, Speaks};
use crate::{
    exchange::Exchange, failure::Failure, out::Out, pool::NOTHING, pushes::Listens, request::Message,
    watch::Watch,
};

/// Maximum number of concurrent streams.
pub(crate) const PLACES: usize = 4;
/// Size of a frame header: length and stream, two bytes each.
pub(crate) const HEADER: usize = 4;
/// Interval of keepalives to a silent server; it is lost if it has not replied by the next one.
pub(crate) const KEEPALIVE: Nanos = Nanos::from_secs(2);

/// Leaked, so that a session of a test can be copied like those of other protocols.
pub(crate) type Session = &'static RefCell<State>;

#[derive(Debug)]
pub(crate) struct State {
    /// Open streams, each with its number on the wire.
    under_way: Vec<(u32, u16)>,
    next: u16,
    /// The stream of the incomplete frame, and how many bytes are missing.
    frame: Option<(u16, usize)>,
    asks_at: Nanos,
    is_asked: bool,
}

#[derive(Debug)]
pub(crate) struct Reply;

pub(crate) fn new() -> Session {
    let state = State {
        under_way: Vec::with_capacity(PLACES),
        next: 1,
        frame: None,
        asks_at: Nanos::NEVER,
        is_asked: false,
    };
    Box::leak(Box::new(RefCell::new(state)))
}

/// The session is open at once.
pub(super) fn open<I: Io>(session: &mut Session, out: &mut Out<'_, I>) -> bool {
    session.borrow_mut().asks_at = out.to.now() + KEEPALIVE;
    false
}

impl State {
    pub(super) fn reads(&self) -> u32 {
        let number = self.frame.map(|(number, _)| number);
        self.under_way.iter().find(|(_, its)| Some(*its) == number).map_or(NOTHING, |(stream, _)| *stream)
    }

    pub(crate) fn has_place(&self) -> bool {
        self.under_way.len() < PLACES
    }

    pub(super) fn poll_timeout(&self) -> Nanos {
        self.asks_at
    }

    /// Opens a stream; returns its number on the wire.
    pub(crate) fn begin(&mut self, stream: u32) -> u16 {
        let number = self.next;
        self.next = self.next.wrapping_add(2);
        self.under_way.push((stream, number));
        number
    }

    /// Ends a stream; returns its number on the wire.
    pub(crate) fn end(&mut self, stream: u32) -> u16 {
        let at = self.under_way.iter().position(|(its, _)| *its == stream).expect("it is under way");
        self.under_way.swap_remove(at).1
    }
}

pub(super) const PROPERTIES: Properties =
    Properties { server_may_speak: true, has_timeouts: true, ..Properties::PLAIN };

impl Speaks for Session {
    fn read<'a, L: Listens>(
        &mut self,
        input: &'a [u8],
        awaiting: Option<(&mut Exchange, Awaited)>,
        _: Option<&mut Watch>,
        _: &mut L,
    ) -> Result<Progress<'a>, Failure> {
        handle_bytes(self, input, awaiting)
    }

    fn reads(&self, _: u32) -> u32 {
        self.borrow().reads()
    }

    fn has_place(&self) -> bool {
        self.borrow().has_place()
    }

    fn cancel<I: Io>(&mut self, stream: u32, out: &mut Out<'_, I>) -> bool {
        cancel(self, stream, out)
    }

    fn poll_timeout(&self) -> Nanos {
        self.borrow().poll_timeout()
    }

    fn handle_timeout<I: Io>(&mut self, out: &mut Out<'_, I>) -> Result<(), Kind> {
        handle_timeout(self, out)
    }

    fn is_between_messages(&self) -> bool {
        false
    }
}

pub(super) fn send<I: Io>(
    message: &Message,
    session: &mut Session,
    (stream, exchange): (u32, &mut Exchange),
    out: &mut Out<'_, I>,
) {
    let number = session.borrow_mut().begin(stream);
    let Out { to, source } = out;
    let (text, nth, expected) = message.write(to.index(), source);
    (exchange.nth, exchange.expected, exchange.content) = (nth, expected, 0);
    to.send(HEADER + text.len(), |out| write(number, text, out));
}

/// Writes a frame; returns its length.
pub(crate) fn write(number: u16, text: &[u8], out: &mut [u8]) -> usize {
    out[..2].copy_from_slice(&(text.len() as u16).to_be_bytes());
    out[2..HEADER].copy_from_slice(&number.to_be_bytes());
    out[HEADER..HEADER + text.len()].copy_from_slice(text);
    HEADER + text.len()
}

/// The length and stream of a frame, once its header is complete.
pub(crate) fn read_header(input: &[u8]) -> Option<(usize, u16)> {
    let [a, b, c, d] = *input.first_chunk()?;
    Some((usize::from(u16::from_be_bytes([a, b])), u16::from_be_bytes([c, d])))
}

fn cancel<I: Io>(session: &mut Session, stream: u32, out: &mut Out<'_, I>) -> bool {
    let number = session.borrow_mut().end(stream);
    out.to.send(HEADER, |out| write(number, b"", out));
    true
}

fn handle_timeout<I: Io>(session: &mut Session, out: &mut Out<'_, I>) -> Result<(), Kind> {
    let mut state = session.borrow_mut();
    if state.is_asked {
        return Err(Kind::Timeout);
    }
    (state.is_asked, state.asks_at) = (true, out.to.now() + KEEPALIVE);
    out.to.send(HEADER + 1, |out| write(0, b"?", out));
    Ok(())
}

impl Reply {
    pub(super) fn send<I: Io>(self, out: &mut Out<'_, I>) {
        out.to.send(HEADER + 1, |out| write(0, b"!", out));
    }
}

fn handle_bytes<'a>(
    session: &mut Session,
    input: &'a [u8],
    awaiting: Option<(&mut Exchange, Awaited)>,
) -> Result<Progress<'a>, Failure> {
    let state = &mut *session.borrow_mut();
    let Some((number, left)) = &mut state.frame else {
        let Some((length, number)) = read_header(input) else { return Ok(Progress::More(0)) };
        state.frame = Some((number, length));
        return Ok(Progress::Turned(HEADER));
    };
    let n = (*left).min(input.len());
    let (number, is_last) = (*number, *left == 0);
    if n == 0 && !is_last {
        return Ok(Progress::More(0));
    }
    *left -= n;
    let is_complete = *left == 0;
    if is_complete {
        state.frame = None;
    }
    if let Some((exchange, Awaited::Message(check, sent))) = awaiting {
        let rest = sent.get(exchange.content as usize..).unwrap_or_default();
        exchange.differs |= check.expected.echo && rest.get(..n) != Some(&input[..n]);
        exchange.content += n as u64;
        if is_last {
            exchange.differs |= check.expected.echo && exchange.content != sent.len() as u64;
            state.under_way.retain(|(_, its)| *its != number);
            return Ok(Progress::Responded(n));
        }
    }
    match (number, is_complete) {
        (0, true) if input[..n] == *b"?" => Ok(Progress::Reply(n, super::Reply::Streams(Reply))),
        (0, true) if input[..n] == *b"!" => {
            state.is_asked = false;
            Ok(Progress::Turned(n))
        }
        (0, true) => Err(Kind::BadAnswer.into()),
        (number, true) if number % 2 == 0 => Ok(Progress::Pushed(n)),
        // A part of a frame, or late input for a cancelled stream.
        _ => Ok(Progress::Turned(n)),
    }
}

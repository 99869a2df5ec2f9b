//! Reads the peer's frames after the handshake (RFC 6455, sections 5 and 7).

use super::header::{self, Header};
use super::payload::turned;
use super::utf8::Utf8;
use super::{Opcode, Payload, Role};
use crate::Breach;

/// The reading side of a connection after the handshake.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// Payload bytes of the current frame that are still expected.
    left: u64,
    /// Length of the current message: the sum of the lengths in its frame headers so far.
    message_bytes: u64,
    /// The mask of the current frame, rotated to the next byte.
    mask: [u8; 4],
    text: Utf8,
    role: Role,
    message: Message,
    stage: Stage,
}

const _: () = assert!(size_of::<Frames>() <= 24, "a reader's state is kept per connection");

/// The type of the incomplete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    None,
    Text,
    Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A frame header is expected.
    Header,
    /// `left` bytes, at least one, of a data frame are expected.
    Frame,
    /// Like `Frame`, and the message ends with this frame.
    LastFrame,
    /// A close has arrived; everything after it is ignored.
    Closed,
}

/// An input event.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A part of a message.
    Data(Data<'a>),
    /// A ping: reply with a pong that has the same payload (section 5.5.2).
    Ping(Payload<'a>),
    /// A pong: the reply to a ping, or unsolicited (section 5.5.3).
    Pong(Payload<'a>),
    /// A close: the peer sends no more. Reply with a close, unless one was sent before (section 5.5.1). No event follows.
    Closing(Closing<'a>),
}

/// A part of a message as it arrives, cut at arbitrary positions by frames and reads. It is empty only if it begins or ends the message.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// The bytes.
    pub payload: Payload<'a>,
    /// Whether the message is text. If so, it is valid UTF-8 so far, and at its end completely. A character may be split between parts.
    pub text: bool,
    /// Whether it is the first part.
    pub begins: bool,
    /// Whether it is the last part.
    pub ends: bool,
}

/// The contents of a close.
#[derive(Clone, Copy, Debug)]
pub struct Closing<'a> {
    /// The status code (section 7.4), one that a peer may send; `None` if the close has no payload.
    pub code: Option<u16>,
    /// The reason: UTF-8, at most 123 bytes, often empty.
    pub reason: Payload<'a>,
}

impl Frames {
    /// A reader for a connection whose handshake is complete: [`Role::Server`] accepts only masked frames, [`Role::Client`] only unmasked
    /// ones.
    pub const fn new(role: Role) -> Self {
        Self {
            left: 0,
            message_bytes: 0,
            mask: [0; 4],
            text: Utf8::Between,
            role,
            message: Message::None,
            stage: Stage::Header,
        }
    }

    /// Reads `input`: returns the number of bytes consumed, and an event. Call until `(0, None)`, see [the module](super). `most`: the
    /// maximum length of a message in bytes.
    ///
    /// # Errors
    /// The [`Breach`] of the peer: close with its [`close_code`](Breach::close_code). An incomplete message is void.
    pub fn handle_bytes<'a>(
        &mut self,
        input: &'a [u8],
        most: u64,
    ) -> Result<(usize, Option<Event<'a>>), Breach> {
        match self.stage {
            Stage::Header => self.handle_frame(input, most),
            Stage::Frame | Stage::LastFrame => {
                let (n, piece) = self.take(input, false)?;
                Ok((n, piece.map(Event::Data)))
            }
            Stage::Closed => Ok((input.len(), None)),
        }
    }

    /// Whether no message is incomplete. (Half a header is left unconsumed, so the caller can see it.)
    pub fn is_between_messages(&self) -> bool {
        self.message == Message::None
    }

    fn handle_frame<'a>(&mut self, input: &'a [u8], most: u64) -> Result<(usize, Option<Event<'a>>), Breach> {
        let Some((at, header)) = header::read(input, self.role, !self.is_between_messages())? else {
            return Ok((0, None));
        };
        if header.opcode.is_control() {
            return self.handle_control(input, at, header);
        }
        // Saturating, so that lengths of up to 63 bits cannot overflow the sum.
        self.message_bytes = self.message_bytes.saturating_add(header.len);
        if self.message_bytes > most {
            return Err(Breach::MessageTooLong);
        }
        match header.opcode {
            Opcode::Text => self.message = Message::Text,
            Opcode::Binary => self.message = Message::Binary,
            _ => {}
        }
        self.left = header.len;
        self.mask = header.mask.unwrap_or_default();
        self.stage = if header.ends { Stage::LastFrame } else { Stage::Frame };
        let (n, piece) = self.take(&input[at..], header.opcode != Opcode::Continuation)?;
        Ok((at + n, piece.map(Event::Data)))
    }

    /// Handles the available part of the current data frame.
    fn take<'a>(&mut self, input: &'a [u8], begins: bool) -> Result<(usize, Option<Data<'a>>), Breach> {
        let n = usize::try_from(self.left).map_or(input.len(), |left| left.min(input.len()));
        let payload = Payload::new(&input[..n], self.mask);
        self.left -= n as u64;
        self.mask = turned(self.mask, n);
        let ends = self.left == 0 && self.stage == Stage::LastFrame;
        let text = self.message == Message::Text;
        if text && !(self.text.read(payload) && (!ends || self.text.is_between())) {
            return Err(Breach::BadUtf8);
        }
        if self.left == 0 {
            self.stage = Stage::Header;
        }
        if ends {
            self.message = Message::None;
            self.message_bytes = 0;
        }
        let says = begins || ends || n > 0;
        Ok((n, says.then_some(Data { payload, text, begins, ends })))
    }

    /// Handles a control frame once it is complete, so that it is one event.
    fn handle_control<'a>(
        &mut self,
        input: &'a [u8],
        at: usize,
        header: Header,
    ) -> Result<(usize, Option<Event<'a>>), Breach> {
        let len = usize::try_from(header.len).expect("a control frame is short");
        let Some(bytes) = input[at..].get(..len) else { return Ok((0, None)) };
        let payload = Payload::new(bytes, header.mask.unwrap_or_default());
        let event = match header.opcode {
            Opcode::Ping => Event::Ping(payload),
            Opcode::Pong => Event::Pong(payload),
            _ => {
                self.stage = Stage::Closed;
                self.message = Message::None;
                Event::Closing(closing(payload)?)
            }
        };
        Ok((at + len, Some(event)))
    }
}

/// The payload of a close: nothing, or a code and a reason (section 5.5.1).
fn closing(payload: Payload<'_>) -> Result<Closing<'_>, Breach> {
    if payload.is_empty() {
        return Ok(Closing { code: None, reason: payload });
    }
    if payload.len() < 2 {
        return Err(Breach::BadClose);
    }
    let (front, reason) = payload.split_at(2);
    let mut code = [0; 2];
    front.copy_to(&mut code);
    let code = u16::from_be_bytes(code);
    if !may_be_sent(code) {
        return Err(Breach::BadClose);
    }
    let mut text = Utf8::Between;
    if text.read(reason) && text.is_between() {
        Ok(Closing { code: Some(code), reason })
    } else {
        Err(Breach::BadUtf8)
    }
}

/// Whether a peer may send this code: the codes of section 7.4.1 and those that IANA registered later (1012 to 1014), except those that are
/// only reported locally (1005, 1006, 1015), and the registered and private codes of section 7.4.2.
fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

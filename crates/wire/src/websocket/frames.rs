//! What the peer sends once the handshake is done (RFC 6455 sections 5 and 7).

use super::header::{self, Header};
use super::payload::turned;
use super::utf8::Utf8;
use super::{Opcode, Payload, Role};
use crate::Breach;

/// The reading side of a connection after the handshake.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// Bytes of the current frame's payload that are to come.
    left: u64,
    /// Bytes of the current message in the frames whose headers have come.
    message_bytes: u64,
    /// The current frame's, turned to the next byte.
    mask: [u8; 4],
    text: Utf8,
    role: Role,
    message: Message,
    stage: Stage,
}

const _: () = assert!(size_of::<Frames>() <= 24, "a reader's state is kept per connection");

/// The incomplete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    None,
    Text,
    Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A frame's header is to come.
    Header,
    /// `left` bytes, never none, of a data frame are to come.
    Frame,
    /// The same, and the message ends with them.
    LastFrame,
    /// A close has arrived: everything after it is ignored.
    Closed,
}

/// What came in.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A piece of a message.
    Data(Data<'a>),
    /// The reply is a pong with the same payload (section 5.5.2).
    Ping(Payload<'a>),
    /// The reply to a ping, or unsolicited (section 5.5.3).
    Pong(Payload<'a>),
    /// The peer sends no more; the reply is a close, unless ours was sent first (section 5.5.1). Nothing follows it.
    Closing(Closing<'a>),
}

/// A piece of a message as it comes, wherever frames and reads have cut it. It is empty only where it begins
/// or ends.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// These bytes of the message.
    pub payload: Payload<'a>,
    /// The message is text, so far (and at its end: altogether) UTF-8. A character may be cut in two.
    pub text: bool,
    /// The message's first piece.
    pub begins: bool,
    /// The message's last piece.
    pub ends: bool,
}

/// The contents of a close.
#[derive(Clone, Copy, Debug)]
pub struct Closing<'a> {
    /// The status code (section 7.4), one that a peer may send; `None` where the close has no payload.
    pub code: Option<u16>,
    /// The reason: UTF-8, at most 123 bytes, often none.
    pub reason: Payload<'a>,
}

impl Frames {
    /// The reader of a connection whose handshake is done: [`Role::Server`] takes masked frames only,
    /// [`Role::Client`] unmasked ones.
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

    /// Reads on: how many bytes of `input` are consumed, and the event. To be called until `(0, None)`,
    /// see [the module](super). `most`: the largest message in bytes that is taken.
    ///
    /// # Errors
    /// The [`Breach`] of the peer: close with its [`close_code`](Breach::close_code). A message that was
    /// begun is void.
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

    /// Whether no message is incomplete. (Half a header is left unconsumed, so the caller can tell.)
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
        // Neither sum nor limit can be passed by a length of 63 bits.
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

    /// Takes the available part of the current data frame.
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

    /// A control frame is taken whole, so that it is one event.
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

/// Whether a peer may send this code: section 7.4.1 and what IANA registered since (1012 to 1014), without
/// those that only report locally (1005, 1006, 1015); then the registered and the private ones of section
/// 7.4.2.
fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

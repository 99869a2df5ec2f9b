//! The state machine of a connection: frames in, events out (RFC 9113, sections 5 and 6).
//!
//! The submodules handle the kinds of frames: field blocks, DATA, control frames, and sending. Every count and buffer is bounded, so that a
//! peer cannot make the state grow.

mod block;
mod budget;
mod control;
mod data;
mod send;

use super::frame::{self, HEADER, Header};
use super::preface::MAGIC;
use super::settings::{INITIAL_WINDOW, Peer};
use super::stream::{LOCAL_ENDED, REMOTE_ENDED};
use super::{
    CLIENT_STREAM_WINDOW, CLIENT_WINDOW, Code, Event, MAX_BLOCK, MAX_FRAME, MAX_LIST, Role,
    SERVER_STREAM_WINDOW, SERVER_WINDOW, Stream, Table, TakesFields,
};
use budget::Budget;
pub use send::Method;

/// A connection, in either role. The caller keeps its streams.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Client: the number of the next stream that it opens. Server: the lowest number that the client may use next.
    next: u32,
    /// Number of open streams.
    open: u32,
    /// The peer's receive window for the connection, in bytes.
    send_window: i32,
    /// Bytes received since the last WINDOW_UPDATE for the connection was due.
    received: u32,
    /// The last stream of the peer's GOAWAY; [`NO_GOAWAY`] if there was none.
    last: u32,
    peer: Peer,
    /// The stream (`reads`) of the DATA frame that is being received, and how many bytes of it without padding (`left`) are expected; when
    /// skipping, `left` is the number of bytes to skip.
    reads: u32,
    left: u32,
    budget: Budget,
    padding: u8,
    stage: Stage,
    role: Role,
    flags: u8,
}

const _: () = assert!(size_of::<Connection>() <= 56, "an idle connection has one");

/// Not a valid stream number: no GOAWAY was received.
const NO_GOAWAY: u32 = u32::MAX;

/// The highest stream number.
const LAST_STREAM: u32 = (1 << 31) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Server: the client's magic text is expected.
    Magic,
    /// The peer's SETTINGS are expected.
    Settings,
    /// A frame header is expected.
    Frame,
    /// `left` bytes of a DATA frame are expected, then its padding.
    Data,
    /// `left` bytes are expected that are ignored.
    Skip,
}

/// Flag: the peer has acknowledged the SETTINGS of this end.
const ACKED: u8 = 1;
/// Flag: this end has sent a GOAWAY, so that no streams are opened any more.
const LEAVING: u8 = 2;
/// Flag: this end has reset a stream, so that frames for closed streams may still be in transit.
const HAS_RESET: u8 = 4;
/// Flag: the DATA frame that is being received ends its stream.
const DATA_ENDS: u8 = 8;
/// Flag: the peer's encoder has no dynamic table.
const NO_TABLE: u8 = 16;

/// Memory for a field block and its decoded text. One serves all connections of a thread: an event borrows it until the next call.
#[derive(Clone, Debug)]
pub struct Scratch {
    /// A block that is joined from several frames.
    block: [u8; MAX_BLOCK],
    text: [u8; MAX_LIST],
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Allocates 64 KiB, which need no preparation between calls.
    pub const fn new() -> Self {
        Self { block: [0; MAX_BLOCK], text: [0; MAX_LIST] }
    }
}

/// What a call needs in addition to the state of the connection.
#[derive(Debug)]
pub struct Context<'a, 't> {
    /// Memory that the event borrows.
    pub scratch: &'a mut Scratch,
    /// The dynamic table of the connection, if it has one: see [`Event::TableNeeded`].
    pub table: Option<&'t mut Table>,
    /// Server: the current second, from an arbitrary start: [`MAX_RESETS`](super::MAX_RESETS) and [`MAX_CONTROLS`](super::MAX_CONTROLS) are
    /// limits per second.
    pub second: u32,
    /// Client: fields to look for in the head of a final response, each by its name and a text that its value contains; at most
    /// [`MAX_EXPECTED`](super::MAX_EXPECTED).
    pub expected: &'t [(String, String)],
    /// Client: receives fields from the head of a final response.
    pub fields: Option<&'t mut dyn TakesFields>,
}

type Came<'a> = Result<(usize, Option<Event<'a>>), Code>;

impl Connection {
    /// A new connection; the caller sends the preface of this role.
    pub const fn new(role: Role) -> Self {
        Self {
            next: 1,
            open: 0,
            send_window: INITIAL_WINDOW as i32,
            received: 0,
            last: NO_GOAWAY,
            peer: Peer::new(),
            reads: 0,
            left: 0,
            budget: Budget::new(),
            padding: 0,
            stage: match role {
                Role::Client => Stage::Settings,
                Role::Server => Stage::Magic,
            },
            role,
            flags: 0,
        }
    }

    /// The number of the stream that the input is for; 0 if it is for the connection, or too short to decide.
    pub fn reads(&self, input: &[u8]) -> u32 {
        match self.stage {
            Stage::Data => self.reads,
            Stage::Frame => Header::read(input).map_or(0, |header| header.stream),
            Stage::Magic | Stage::Settings | Stage::Skip => 0,
        }
    }

    /// Reads `input`: returns the number of bytes consumed, and an event. `stream`: the stream that [`reads`](Self::reads) returned, if it
    /// is open. Call until `(0, None)`, see [the module](super).
    ///
    /// # Errors
    /// A connection error of the peer: send a GOAWAY with this code, and close.
    ///
    /// # Panics
    /// If more than [`MAX_EXPECTED`](super::MAX_EXPECTED) fields are expected.
    pub fn handle_bytes<'a>(
        &mut self,
        input: &'a [u8],
        stream: Option<&mut Stream>,
        context: Context<'a, '_>,
    ) -> Came<'a> {
        match self.stage {
            Stage::Magic => self.handle_magic(input),
            Stage::Settings | Stage::Frame => self.handle_frame(input, stream, context),
            Stage::Data => Ok(self.handle_data(input, stream)),
            Stage::Skip => Ok((self.skip(input), None)),
        }
    }

    /// Number of open streams.
    pub fn open_streams(&self) -> u32 {
        self.open
    }

    /// Whether the peer's SETTINGS have arrived.
    pub fn is_open(&self) -> bool {
        !matches!(self.stage, Stage::Magic | Stage::Settings)
    }

    /// Whether no frame is partly consumed. (An incomplete frame other than DATA is left unconsumed, so the caller can see it.)
    pub fn is_between_frames(&self) -> bool {
        matches!(self.stage, Stage::Frame)
    }

    /// Client: whether another stream may be opened.
    pub fn has_place(&self) -> bool {
        self.open < self.peer.max_streams && !self.is_leaving() && self.next <= LAST_STREAM
    }

    /// Client: how many simultaneous streams the server allows; `None` before its SETTINGS, or if they set no limit.
    pub fn allowed_streams(&self) -> Option<u32> {
        Some(self.peer.max_streams).filter(|most| self.is_open() && *most < u32::MAX)
    }

    /// Whether no further stream is possible, because of a GOAWAY or because stream numbers are exhausted: the connection must be replaced.
    pub fn is_leaving(&self) -> bool {
        self.last != NO_GOAWAY || self.is(LEAVING) || self.next > LAST_STREAM
    }

    /// Whether the peer has sent a GOAWAY.
    pub const fn has_goaway(&self) -> bool {
        self.last != NO_GOAWAY
    }

    /// The highest stream that the peer may process, from its GOAWAY; [`u32::MAX`] if there was none.
    pub fn last_stream(&self) -> u32 {
        self.last
    }

    /// Client: whether the server supports extended CONNECT (RFC 8441). Valid once the connection is open.
    pub fn takes_connect(&self) -> bool {
        self.peer.takes_connect
    }

    /// Whether the peer's encoder may have a dynamic table. While it may, a [`Table`] must be kept once it was needed.
    pub fn has_table(&self) -> bool {
        !self.is(NO_TABLE)
    }

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The receive windows of this end: for the connection, and for each stream.
    fn windows(&self) -> (u32, u32) {
        match self.role {
            Role::Client => (CLIENT_WINDOW, CLIENT_STREAM_WINDOW),
            Role::Server => (SERVER_WINDOW, SERVER_STREAM_WINDOW),
        }
    }

    fn handle_magic<'a>(&mut self, input: &'a [u8]) -> Came<'a> {
        match super::starts(input) {
            None => Ok((0, None)),
            Some(false) => Err(Code::PROTOCOL_ERROR),
            Some(true) => {
                self.stage = Stage::Settings;
                Ok((MAGIC.len(), None))
            }
        }
    }

    fn handle_frame<'a>(
        &mut self,
        input: &'a [u8],
        stream: Option<&mut Stream>,
        context: Context<'a, '_>,
    ) -> Came<'a> {
        let Some(header) = Header::read(input) else { return Ok((0, None)) };
        let is_settings = header.kind == frame::SETTINGS && !header.has(frame::ACK);
        // Nothing may precede the peer's SETTINGS (section 3.4).
        if self.stage == Stage::Settings && !is_settings {
            return Err(Code::PROTOCOL_ERROR);
        }
        if header.len as usize > MAX_FRAME {
            return Err(Code::FRAME_SIZE_ERROR);
        }
        match header.kind {
            frame::DATA => self.begin_data(header, input, stream, context.second),
            frame::HEADERS => self.handle_block(header, input, stream, context),
            // Pushes are disabled (section 8.4); CONTINUATIONs are read together with their HEADERS (section 6.10).
            frame::PUSH_PROMISE | frame::CONTINUATION => Err(Code::PROTOCOL_ERROR),
            frame::PRIORITY..=frame::WINDOW_UPDATE => {
                self.handle_control(header, input, stream, context.second)
            }
            _ => {
                self.control(context.second)?;
                self.begin_skip(header.len);
                Ok((HEADER, None))
            }
        }
    }

    /// Counts one of [`MAX_CONTROLS`](super::MAX_CONTROLS); for a server only. A client's caller limits the replies that wait.
    fn control(&mut self, second: u32) -> Result<(), Code> {
        match self.role {
            Role::Server => self.budget.control(second),
            Role::Client => Ok(()),
        }
    }

    fn begin_skip(&mut self, bytes: u32) {
        self.left = bytes;
        self.stage = if bytes == 0 { Stage::Frame } else { Stage::Skip };
    }

    fn skip(&mut self, input: &[u8]) -> usize {
        let n = input.len().min(self.left as usize);
        self.begin_skip(self.left - n as u32);
        n
    }

    /// Whether a stream was never used. A number that the peer must not use at all is a connection error (sections 5.1.1 and 8.4).
    fn is_idle(&self, stream: u32) -> Result<bool, Code> {
        if stream.is_multiple_of(2) { Err(Code::PROTOCOL_ERROR) } else { Ok(stream >= self.next) }
    }

    /// Handles a frame for a stream that the caller does not know, so that it has ended. This is an error, unless the frame may have been
    /// in transit when this end reset the stream (section 5.1, "closed").
    fn closed<'a>(&mut self, stream: u32) -> Option<Event<'a>> {
        let is_late = self.is(HAS_RESET);
        self.flags |= HAS_RESET;
        (!is_late).then_some(Event::StreamError(stream, Code::STREAM_CLOSED))
    }

    /// Fails a stream because the peer has violated a rule (section 5.4.2). Counts as a reset by the client, which may otherwise make the
    /// server reset streams without limit.
    fn fail<'a>(&mut self, stream: &mut Stream, code: Code, second: u32) -> Result<Option<Event<'a>>, Code> {
        if self.role == Role::Server {
            self.budget.reset(second)?;
        }
        self.flags |= HAS_RESET;
        self.close(stream);
        Ok(Some(Event::StreamError(stream.id, code)))
    }

    fn end_remote(&mut self, stream: &mut Stream) {
        stream.flags |= REMOTE_ENDED;
        self.open -= u32::from(stream.is(LOCAL_ENDED));
    }

    fn end_local(&mut self, stream: &mut Stream) {
        stream.flags |= LOCAL_ENDED;
        self.open -= u32::from(stream.is(REMOTE_ENDED));
    }

    fn close(&mut self, stream: &mut Stream) {
        self.open -= u32::from(!stream.is_closed());
        stream.flags |= LOCAL_ENDED | REMOTE_ENDED;
    }
}

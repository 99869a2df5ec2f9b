//! The machine: frames in, events out (RFC 9113 sections 5 and 6).

mod block;
mod budget;
mod control;
mod data;
mod send;

use super::frame::{self, HEADER, Header};
use super::preface::{INITIAL_WINDOW, MAGIC};
use super::settings::Peer;
use super::stream::{LOCAL_ENDED, REMOTE_ENDED};
use super::{
    CLIENT_STREAM_WINDOW, CLIENT_WINDOW, Code, Event, MAX_BLOCK, MAX_FRAME, MAX_LIST, Role,
    SERVER_STREAM_WINDOW, SERVER_WINDOW, Stream, Table,
};
use budget::Budget;
pub use send::Method;

/// One connection, in either role. Its streams are kept by the caller.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Client: the stream that it opens next. Server: the lowest that the client may open next.
    next: u32,
    /// Streams that are open.
    open: u32,
    /// How much the peer takes on all streams together.
    send_window: i32,
    /// Bytes that came since the last WINDOW_UPDATE of ours.
    received: u32,
    /// The last stream of the peer's GOAWAY; [`NO_GOAWAY`] before there was one.
    last: u32,
    peer: Peer,
    /// The DATA frame whose payload is to come: its stream, and its bytes without padding. Or bytes to skip.
    reads: u32,
    left: u32,
    budget: Budget,
    padding: u8,
    stage: Stage,
    role: Role,
    flags: u8,
}

const _: () = assert!(size_of::<Connection>() <= 56, "an idle connection has one");

/// No stream has this number.
const NO_GOAWAY: u32 = u32::MAX;

/// Highest number of a stream.
const LAST_STREAM: u32 = (1 << 31) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Server: the client's magic text is to come.
    Magic,
    /// The peer's SETTINGS are to come.
    Settings,
    /// A frame's header is to come.
    Frame,
    /// `left` bytes of a DATA frame are to come, and then its padding.
    Data,
    /// `left` bytes are to come that say nothing.
    Skip,
}

/// The peer has acknowledged our SETTINGS.
const ACKED: u8 = 1;
/// We have sent a GOAWAY: no new streams.
const LEAVING: u8 = 2;
/// We have reset a stream: frames for closed ones may come that were on their way.
const HAS_RESET: u8 = 4;
/// The DATA frame whose payload is to come ends its stream.
const DATA_ENDS: u8 = 8;
/// The peer's encoder has no dynamic table.
const NO_TABLE: u8 = 16;

/// Memory for a block of fields and its text. One serves all connections of a thread: events borrow it until the next call.
#[derive(Clone, Debug)]
pub struct Scratch {
    /// A block whose frames are joined.
    block: [u8; MAX_BLOCK],
    text: [u8; MAX_LIST],
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// 64 KiB, which need no preparation between calls.
    pub const fn new() -> Self {
        Self { block: [0; MAX_BLOCK], text: [0; MAX_LIST] }
    }
}

/// What a call needs besides the connection's own state.
#[derive(Debug)]
pub struct Context<'a, 't> {
    /// Memory for the event.
    pub scratch: &'a mut Scratch,
    /// The connection's own table, where it has one: see [`Event::TableNeeded`].
    pub table: Option<&'t mut Table>,
    /// Server: the current second, counted from anywhere: [`MAX_RESETS`](super::MAX_RESETS) and
    /// [`MAX_CONTROLS`](super::MAX_CONTROLS) are per second.
    pub second: u32,
    /// Client: fields to search for in the head of a final response, each by its name and a text that its value contains;
    /// [`MAX_EXPECTED`](super::MAX_EXPECTED) at most.
    pub expected: &'t [(String, String)],
    /// Client: takes fields from the head of a final response.
    pub fields: Option<&'t mut dyn TakesFields>,
}

/// Takes fields from a head.
pub trait TakesFields: std::fmt::Debug {
    /// Whether a field of this name is taken.
    fn wants(&self, name: &[u8]) -> bool;
    /// Such a field has come.
    fn take(&mut self, name: &[u8], value: &[u8]);
}

type Came<'a> = Result<(usize, Option<Event<'a>>), Code>;

impl Connection {
    /// A fresh connection; the preface of this role is sent by the caller.
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

    /// The number of the stream that the input is for: 0 where it is for the connection, or too short to tell.
    pub fn reads(&self, input: &[u8]) -> u32 {
        match self.stage {
            Stage::Data => self.reads,
            Stage::Frame => Header::read(input).map_or(0, |header| header.stream),
            Stage::Magic | Stage::Settings | Stage::Skip => 0,
        }
    }

    /// Reads `input`: how many bytes are consumed, and the event. `stream`: the one that [`reads`](Self::reads) gave, if it is
    /// open. Call until `(0, None)`, see [the module](super).
    ///
    /// # Errors
    /// The connection error of the peer: send a GOAWAY with this code, and close.
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

    /// Streams that are open.
    pub fn open_streams(&self) -> u32 {
        self.open
    }

    /// Whether the peer's SETTINGS have come.
    pub fn is_open(&self) -> bool {
        !matches!(self.stage, Stage::Magic | Stage::Settings)
    }

    /// Whether nothing has come in part. (Half a frame without a body is left unconsumed, so the caller can tell.)
    pub fn is_between_frames(&self) -> bool {
        matches!(self.stage, Stage::Frame)
    }

    /// Client: whether a further stream may be opened beside the open ones.
    pub fn has_place(&self) -> bool {
        self.open < self.peer.max_streams && !self.is_leaving() && self.next <= LAST_STREAM
    }

    /// Client: how many streams the server allows at once; none before its SETTINGS, or where they set no limit.
    pub fn allowed_streams(&self) -> Option<u32> {
        Some(self.peer.max_streams).filter(|most| self.is_open() && *most < u32::MAX)
    }

    /// Whether the peer or the numbers of streams allow no further stream, so that the connection is to end.
    pub fn is_leaving(&self) -> bool {
        self.last != NO_GOAWAY || self.is(LEAVING) || self.next > LAST_STREAM
    }

    /// Whether the peer has sent a GOAWAY.
    pub const fn has_goaway(&self) -> bool {
        self.last != NO_GOAWAY
    }

    /// The highest stream that the peer may act on: that of its GOAWAY; [`u32::MAX`] before there was one.
    pub fn last_stream(&self) -> u32 {
        self.last
    }

    /// Client: whether the server takes an extended CONNECT (RFC 8441). Means something once it is open.
    pub fn takes_connect(&self) -> bool {
        self.peer.takes_connect
    }

    /// Whether the peer's encoder may have a dynamic table: a [`Table`] that it needed once is needed on.
    pub fn has_table(&self) -> bool {
        !self.is(NO_TABLE)
    }

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Our window: of all streams, and of each.
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
        // Section 3.4: nothing comes before them.
        if self.stage == Stage::Settings && !is_settings {
            return Err(Code::PROTOCOL_ERROR);
        }
        if header.len as usize > MAX_FRAME {
            return Err(Code::FRAME_SIZE_ERROR);
        }
        match header.kind {
            frame::DATA => self.begin_data(header, input, stream, context.second),
            frame::HEADERS => self.handle_block(header, input, stream, context),
            // Pushes are switched off (section 8.4); a block's continuations are read with it (section 6.10).
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

    /// One of [`MAX_CONTROLS`](super::MAX_CONTROLS). A client has asked for what comes: its caller bounds the replies that wait.
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

    /// Whether nothing was ever sent on this stream. A number that the peer may not use at all is a connection error
    /// (sections 5.1.1 and 8.4).
    fn is_idle(&self, stream: u32) -> Result<bool, Code> {
        if stream.is_multiple_of(2) { Err(Code::PROTOCOL_ERROR) } else { Ok(stream >= self.next) }
    }

    /// A stream that the caller does not know has ended: what still comes for it is an error, unless it may have been on its
    /// way when we reset the stream (section 5.1, "closed").
    fn closed<'a>(&mut self, stream: u32) -> Option<Event<'a>> {
        let is_late = self.is(HAS_RESET);
        self.flags |= HAS_RESET;
        (!is_late).then_some(Event::StreamError(stream, Code::STREAM_CLOSED))
    }

    /// The peer broke a rule of this stream (section 5.4.2). Against a client that makes the server reset its streams, this
    /// counts as if it had reset them itself.
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

//! A request that is not done with.

use units::Nanos;
use wire::{
    http2::Stream,
    websocket::{Frames, Role},
};

use crate::{
    routes::Body,
    websocket::{self, Echoed},
};

use super::grpc::Call;

/// No exchange has this index.
pub(super) const NONE: u32 = u32::MAX;

/// A request whose end, or whose response's end, is to come.
pub(crate) struct Exchange {
    pub(super) stream: Stream,
    /// The next one of the same connection.
    pub(super) next: u32,
    pub(super) body: Body,
    pub(super) delay_ms: u32,
    pub(super) is_head: bool,
    /// All of the request has come.
    pub(super) is_complete: bool,
    /// The head of the response has been sent, or none ever will be.
    pub(super) begun: bool,
    /// When the response is due; never, where no time is waited for.
    pub(super) due: Nanos,
    /// What the windows did not allow yet: bounded by the longest body.
    pub(super) pending: Vec<u8>,
    pub(super) echo: Option<Box<Echo>>,
    pub(super) call: Option<Box<Call>>,
}

impl Exchange {
    pub(super) fn new(stream: Stream, body: Body, delay_ms: u32, is_head: bool) -> Exchange {
        Exchange {
            stream,
            next: NONE,
            body,
            delay_ms,
            is_head,
            is_complete: false,
            begun: false,
            due: Nanos::NEVER,
            pending: Vec::new(),
            echo: None,
            call: None,
        }
    }

    /// The last of the request has come.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
        if let Some(echo) = &mut self.echo {
            echo.ends = true;
        }
    }
}

/// The WebSocket echo on a stream. Both buffers are bounded by the stream's window, which is not raised before the echo has left.
pub(crate) struct Echo {
    frames: Frames,
    /// Part of a frame's header, or of a control frame.
    rest: Vec<u8>,
    /// What is to be sent.
    pub(super) out: Vec<u8>,
    /// Nothing is to come after that.
    pub(super) ends: bool,
}

impl Echo {
    pub(super) fn new() -> Echo {
        Echo { frames: Frames::new(Role::Server), rest: Vec::new(), out: Vec::new(), ends: false }
    }

    /// Adds the echo of these bytes.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Echoed {
        if self.ends {
            return Echoed::default();
        }
        self.rest.extend_from_slice(bytes);
        let begun = self.out.len();
        self.out.resize(begun + self.rest.len() + websocket::ROOM, 0);
        let echoed = websocket::echo(&mut self.frames, &self.rest, &mut self.out[begun..]);
        self.out.truncate(begun + echoed.written);
        self.rest.drain(..echoed.used);
        self.ends = echoed.ends;
        echoed
    }
}

//! The state of requests that are not complete, or whose response is not.

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

/// Stands for no exchange, in place of an index.
pub(super) const NONE: u32 = u32::MAX;

/// A request that is incomplete, or whose response is.
pub(crate) struct Exchange {
    pub(super) stream: Stream,
    /// Index of the next exchange of the same connection.
    pub(super) next: u32,
    pub(super) body: Body,
    pub(super) delay_ms: u32,
    pub(super) is_head: bool,
    /// Whether the whole request has come.
    pub(super) is_complete: bool,
    /// Whether the head of the response has been sent, or never will be.
    pub(super) begun: bool,
    /// When the response is due; never, if it does not wait for a time.
    pub(super) due: Nanos,
    /// Part of the body that the windows did not allow yet; bounded by the longest body.
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

    /// The request is complete.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
        if let Some(echo) = &mut self.echo {
            echo.ends = true;
        }
    }
}

/// The WebSocket echo on a stream. Both buffers are bounded by the stream's window, which is raised only after the echo has left.
pub(crate) struct Echo {
    frames: Frames,
    /// An incomplete frame header or control frame.
    rest: Vec<u8>,
    /// Output waiting to be sent.
    pub(super) out: Vec<u8>,
    /// Whether the stream ends after that.
    pub(super) ends: bool,
}

impl Echo {
    pub(super) fn new() -> Echo {
        Echo { frames: Frames::new(Role::Server), rest: Vec::new(), out: Vec::new(), ends: false }
    }

    /// Reads these bytes and adds their echo to the output.
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

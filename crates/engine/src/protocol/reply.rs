//! Output that a protocol itself produces.

use net::Io;
use samples::Detail;

#[cfg(test)]
use super::streams;
use super::{Session, websocket};
use crate::out::Out;

/// The output of a protocol in reply to input.
#[derive(Debug)]
pub(crate) enum Reply<'a> {
    /// HTTP/2: what the session has queued ([`Session::send_more`](super::Session::send_more)).
    Queued,
    WebSocket(websocket::Reply<'a>),
    #[cfg(test)]
    Streams(streams::Reply),
}

impl Session {
    /// Whether the session has new output, or output that could not be sent before.
    pub(crate) fn has_output(&self) -> bool {
        match self {
            Session::Http2(state) => state.has_output(),
            Session::Tunnels(state) => state.has_output(),
            _ => false,
        }
    }

    /// Sends waiting output, as far as the server reads.
    pub(crate) fn send_more<I: Io>(&mut self, out: &mut Out<'_, I>) {
        match self {
            Session::Http2(state) => state.send_more(&mut out.to),
            Session::Tunnels(state) => state.send_more(&mut out.to),
            _ => {}
        }
    }
}

impl Reply<'_> {
    /// The error code that a close replies to.
    pub(crate) fn error(&self) -> Option<Detail> {
        matches!(self, Reply::WebSocket(websocket::Reply::Close(_)))
            .then(|| Detail::of_close(self.close_code()))
    }

    /// The code of a close that has one.
    pub(super) fn close_code(&self) -> Option<u16> {
        if let Reply::WebSocket(websocket::Reply::Close(code)) = self { *code } else { None }
    }

    pub(crate) fn send<I: Io>(self, out: &mut Out<'_, I>) {
        match self {
            Reply::Queued => {}
            Reply::WebSocket(reply) => reply.send(out),
            #[cfg(test)]
            Reply::Streams(reply) => reply.send(out),
        }
    }
}

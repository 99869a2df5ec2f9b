//! What a protocol sends by itself.

use net::Io;
use samples::Detail;

#[cfg(test)]
use super::streams;
use super::{http2, websocket};
use crate::out::Out;

/// A protocol's own output.
#[derive(Debug)]
pub(crate) enum Reply<'a> {
    Http2(http2::Reply),
    WebSocket(websocket::Reply<'a>),
    #[cfg(test)]
    Streams(streams::Reply),
}

impl Reply<'_> {
    /// The error that it replies to.
    pub(crate) fn error(&self) -> Option<Detail> {
        match self {
            Reply::WebSocket(websocket::Reply::Close(code)) => Some(Detail::of_close(*code)),
            _ => None,
        }
    }

    pub(crate) fn send<I: Io>(self, out: &mut Out<'_, I>) {
        match self {
            Reply::Http2(reply) => reply.send(out),
            Reply::WebSocket(reply) => reply.send(out),
            #[cfg(test)]
            Reply::Streams(reply) => reply.send(out),
        }
    }
}

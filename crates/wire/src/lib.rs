//! Protocols without sockets, clock or allocation: HTTP/1, HTTP/2, WebSocket and gRPC, client and server side. Bytes go in; bytes and at
//! most one event come out.
//!
//! Every machine here is `Copy` and a few bytes long. It stores no input: input that it cannot use yet (half a head, half a frame header)
//! is left unconsumed, and the caller passes it again with the bytes that follow.

pub mod grpc;
pub mod http1;
pub mod http2;
mod offer;
mod out;
pub mod websocket;

use std::fmt;

/// A protocol violation of the peer. Afterwards the machine must not be used any more: close the connection and drop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    /// A head or a trailer section is longer than [`http1::MAX_HEAD`], or has more than [`http1::MAX_FIELDS`] fields.
    HeadTooLong,
    /// A head is not HTTP, or violates a rule (RFC 9112, section 3.2: no `Host`, or several).
    BadHead,
    /// The version is not HTTP/1.0 or HTTP/1.1 (RFC 9112, section 2.3).
    BadVersion,
    /// A body length is not a number, is contradictory, or allows request smuggling (RFC 9112, sections 6.1 to 6.3).
    BadLength,
    /// Chunked framing or a trailer line violates RFC 9112, section 7.1.
    BadChunk,
    /// The peer closed the connection in the middle of a message (RFC 9112, section 8).
    Truncated,
    /// The server sent bytes although no request is outstanding (RFC 9112, section 9.2).
    UnexpectedBytes,
    /// A 101 response does not upgrade to the requested protocol (RFC 6455, section 4.1).
    BadHandshake,
    /// A 101 response chooses a sub-protocol or an extension that was not offered (RFC 6455, section 4.1, items 5 and 6).
    NotOffered,
    /// A frame is invalid, or not allowed at this point (RFC 6455, sections 5.2 to 5.5).
    BadFrame,
    /// A text message or the reason of a close is not UTF-8 (RFC 6455, section 8.1).
    BadUtf8,
    /// A message is longer than the caller's limit (RFC 6455, section 10.4).
    MessageTooLong,
    /// A close has half a code, or a reserved one (RFC 6455, sections 5.5.1 and 7.4).
    BadClose,
    /// The first byte of a gRPC message is neither 0 nor 1, or is 1 (compressed) although no encoding was named.
    BadPrefix,
}

impl Breach {
    /// All breaches, for tables of counters.
    pub const ALL: [Self; 14] = [
        Self::HeadTooLong,
        Self::BadHead,
        Self::BadVersion,
        Self::BadLength,
        Self::BadChunk,
        Self::Truncated,
        Self::UnexpectedBytes,
        Self::BadHandshake,
        Self::NotOffered,
        Self::BadFrame,
        Self::BadUtf8,
        Self::MessageTooLong,
        Self::BadClose,
        Self::BadPrefix,
    ];

    /// The status code of the close to send on a WebSocket (RFC 6455, section 7.4.1).
    pub const fn close_code(self) -> u16 {
        match self {
            Self::BadUtf8 => 1007,
            Self::MessageTooLong => 1009,
            _ => 1002,
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HeadTooLong => "head-too-long",
            Self::BadHead => "bad-head",
            Self::BadVersion => "bad-version",
            Self::BadLength => "bad-length",
            Self::BadChunk => "bad-chunk",
            Self::Truncated => "truncated",
            Self::UnexpectedBytes => "unexpected-bytes",
            Self::BadHandshake => "bad-handshake",
            Self::NotOffered => "not-offered",
            Self::BadFrame => "bad-frame",
            Self::BadUtf8 => "bad-utf8",
            Self::MessageTooLong => "message-too-long",
            Self::BadClose => "bad-close",
            Self::BadPrefix => "bad-prefix",
        })
    }
}

impl std::error::Error for Breach {}

#[cfg(test)]
mod tests {
    use super::Breach;
    use std::collections::HashSet;

    #[test]
    fn breaches_have_distinct_names() {
        let names: HashSet<_> = Breach::ALL.iter().map(Breach::to_string).collect();
        assert_eq!(names.len(), Breach::ALL.len());
        // Fieldless variants are numbered from 0, so this finds one that is missing from ALL or out of order.
        for (i, b) in Breach::ALL.iter().enumerate() {
            assert_eq!(*b as usize, i, "{b}");
        }
        assert_eq!(Breach::ALL.len(), Breach::BadPrefix as usize + 1);
    }
}

//! Protocols without sockets, clock or allocation: bytes in, bytes and at most one event out.
//!
//! Every machine here is `Copy` and a few bytes long. It stores no input: it leaves what it cannot use yet (half a head,
//! half a frame header) unconsumed, and the caller passes it again with the bytes that follow.

pub mod grpc;
pub mod http1;
pub mod http2;
mod offer;
mod out;
pub mod websocket;

use std::fmt;

/// What the peer broke. After a breach the machine is of no more use: close the connection and drop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    /// A head or a trailer section is longer than [`http1::MAX_HEAD`], or has more than [`http1::MAX_FIELDS`]
    /// fields.
    HeadTooLong,
    /// A head that is not HTTP, or one that a rule forbids (RFC 9112 section 3.2: no `Host`, or several).
    BadHead,
    /// Not HTTP/1.0 or HTTP/1.1 (RFC 9112 section 2.3).
    BadVersion,
    /// A body length that is not a number, contradicts itself or invites smuggling (RFC 9112 sections 6.1 to
    /// 6.3).
    BadLength,
    /// Chunked framing or a trailer line that does not follow RFC 9112 section 7.1.
    BadChunk,
    /// The peer closed in the middle of a message (RFC 9112 section 8).
    Truncated,
    /// Bytes without a request (RFC 9112 section 9.2).
    UnexpectedBytes,
    /// A 101 that does not upgrade to the requested protocol (RFC 6455 section 4.1).
    BadHandshake,
    /// A 101 that chooses a sub-protocol or an extension which was not offered (RFC 6455 section 4.1, items 5 and 6).
    NotOffered,
    /// An invalid frame, or one that is not allowed at this point (RFC 6455 sections 5.2 to 5.5).
    BadFrame,
    /// A text message or the reason of a close that is not UTF-8 (RFC 6455 section 8.1).
    BadUtf8,
    /// A message longer than the caller takes (RFC 6455 section 10.4).
    MessageTooLong,
    /// A close with half a code, or with a reserved one (RFC 6455 sections 5.5.1 and 7.4).
    BadClose,
    /// A message of gRPC whose first byte is neither 0 nor 1, or that is compressed where no encoding was named.
    BadPrefix,
}

impl Breach {
    /// Every breach, for tables of counters.
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

    /// The status code of the close sent in response on a WebSocket (RFC 6455 section 7.4.1).
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
        // Fieldless variants count from 0: one that is missing from ALL, or out of its order, shows here.
        for (i, b) in Breach::ALL.iter().enumerate() {
            assert_eq!(*b as usize, i, "{b}");
        }
        assert_eq!(Breach::ALL.len(), Breach::BadPrefix as usize + 1);
    }
}

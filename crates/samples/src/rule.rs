//! The rule that a response broke, by name.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What is wrong with bytes that are no response ([`Kind::BadAnswer`](crate::Kind::BadAnswer)): a rule of the protocol, or a limit of
    /// throng's own.
    Rule {
        /// Of throng, for HTTP/1.1.
        HeadTooLong = "head of over 16 KiB or 256 fields, the most that throng reads",
        /// Of throng, for HTTP/2; ENHANCE_YOUR_CALM.
        FieldsTooLong = "fields of over 32 KiB or 16 CONTINUATION frames, the most that throng reads",
        /// Of throng: replies that wait.
        Unread = "over 4,096 replies to control frames that the server does not read, the most that throng keeps",
        /// Of throng.
        MessageTooLong = "message of over 1 GiB, the most that throng reads",
        /// RFC 9112, section 2.
        Head = "malformed head",
        /// RFC 9112, section 2.3.
        Version = "neither HTTP/1.0 nor HTTP/1.1",
        /// RFC 9112, section 6.3.
        Length = "Content-Length or Transfer-Encoding malformed, or contradictory",
        /// RFC 9112, section 7.1.
        Chunk = "malformed chunk",
        /// RFC 9112, section 9.2.
        Unrequested = "data that no request asked for",
        /// RFC 9112, section 9.2: more than a request asked for.
        Surplus = "more data after the response",
        /// Of an echo without framing.
        LongerThanSent = "more data than was sent",
        /// RFC 6455, section 4.1.
        Handshake = "101 without the right Sec-WebSocket-Accept, Upgrade and Connection",
        /// RFC 6455, section 4.1.
        SubProtocol = "sub-protocol or extension that was not offered",
        /// RFC 6455, sections 5.2 to 5.5.
        WebSocketFrame = "malformed frame of WebSocket",
        /// RFC 6455, section 8.1.
        Utf8 = "text that is not UTF-8",
        /// RFC 6455, section 7.4.
        Close = "close with a malformed or reserved code",
        /// RFC 9113; PROTOCOL_ERROR, and what has no name here.
        Http2Frame = "frame that HTTP/2 does not allow there",
        /// RFC 9113, section 8.1.1, and others that are of one stream.
        Http2Response = "response that is malformed for HTTP/2",
        /// RFC 9113, section 6.9.1.
        FlowControl = "window of HTTP/2 exceeded, or raised beyond its maximum",
        /// RFC 9113, section 5.1.
        StreamClosed = "frame of a stream that is closed",
        /// RFC 9113, section 4.2.
        FrameSize = "frame of HTTP/2 with a wrong size",
        /// RFC 9113, section 4.3.
        Compression = "malformed HPACK, or a table that throng does not offer",
        /// gRPC over HTTP/2.
        GrpcType = "content that is not application/grpc",
        /// gRPC over HTTP/2, Length-Prefixed-Message.
        GrpcPrefix = "malformed message of gRPC",
        /// gRPC over HTTP/2, Trailers.
        GrpcStatus = "no grpc-status",
        /// A unary call has one message.
        GrpcNoMessage = "response of gRPC without a message",
        /// The same.
        GrpcMessages = "more than one message of gRPC",
        /// RFC 8446, section 5.1.
        RecordTooLong = "record of TLS that is too long",
        /// RFC 8446, section 5.2.
        RecordMac = "record of TLS that cannot be decrypted",
        /// RFC 8446, section 6.2, unexpected_message.
        TlsUnexpected = "message of TLS that is not allowed there",
        /// RFC 8446, section 6.2, decode_error.
        TlsMalformed = "malformed message of TLS",
        /// RFC 8446, section 6.2, illegal_parameter.
        TlsIllegal = "value that TLS does not allow",
        /// Of throng: records without data.
        TlsFlood = "over 32 records of TLS without data in a row",
    }
}

impl Rule {
    /// Whether this is throng's limit on a length, not a rule of a protocol.
    pub const fn is_own(self) -> bool {
        matches!(self, Rule::HeadTooLong | Rule::FieldsTooLong | Rule::MessageTooLong)
    }
}

//! Error codes (RFC 9113, section 7).

use std::fmt;

/// The error code of a stream or a connection, as a number on the wire. Numbers without a name here are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

impl Code {
    /// No error: a graceful end.
    pub const NO_ERROR: Self = Self(0x0);
    /// A protocol rule was violated, and no other code is more specific.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// The endpoint failed internally.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// The peer sent more than its window allows.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// SETTINGS were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// A frame arrived for a stream that its sender had ended.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame has an invalid size.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The stream was refused before it was processed: the request may be repeated.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream is not needed any more.
    pub const CANCEL: Self = Self(0x8);
    /// The HPACK state is invalid.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The connection of a CONNECT request failed.
    pub const CONNECT_ERROR: Self = Self(0xA);
    /// The peer generates excessive load.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xB);
    /// The transport does not meet the security requirements.
    pub const INADEQUATE_SECURITY: Self = Self(0xC);
    /// HTTP/1.1 is required.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xD);
}

/// Names, indexed by code.
const NAMES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl std::error::Error for Code {}

//! [`Offer`], the upgrade to WebSocket that the HTTP/1.1 head parser reads and the WebSocket handshake accepts.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The protocol version of RFC 6455.
const VERSION: u16 = 13;

/// A client's offer to upgrade to WebSocket in an HTTP request; may be invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    /// `Sec-WebSocket-Key` as sent; empty if it occurs twice.
    pub key: &'a [u8],
    /// `Sec-WebSocket-Version`; 0 if it is missing, occurs twice or is not a number.
    pub version: u16,
}

impl Offer<'_> {
    /// Whether a server may accept: the version is 13, and the key is base64 of 16 bytes (RFC 6455, section 4.2.1). Otherwise the response
    /// is 400, or 426 with the supported version.
    pub fn is_valid(&self) -> bool {
        // The decoder needs space in multiples of three, and accepts only the canonical encoding.
        let mut nonce = [0; 18];
        self.version == VERSION && STANDARD.decode_slice(self.key, &mut nonce) == Ok(16)
    }
}

//! What an HTTP/1.1 head and WebSocket's handshake have in common.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The version of the protocol that RFC 6455 describes.
const VERSION: u16 = 13;

/// A client's offer of an upgrade to WebSocket in an HTTP request; may be invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    /// `Sec-WebSocket-Key` as sent; empty where it came twice.
    pub key: &'a [u8],
    /// `Sec-WebSocket-Version`; 0 where it is missing, came twice or is no number.
    pub version: u16,
}

impl Offer<'_> {
    /// Whether a server may accept: the version is 13, the key base64 of 16 bytes (RFC 6455 section 4.2.1). Else 400,
    /// or 426 with the version that would do.
    pub fn is_valid(&self) -> bool {
        // The decoder needs space in multiples of three, and accepts only the canonical encoding.
        let mut nonce = [0; 18];
        self.version == VERSION && STANDARD.decode_slice(self.key, &mut nonce) == Ok(16)
    }
}

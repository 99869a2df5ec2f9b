//! Input events, the same for both roles.

/// An input event. `H` is a parsed head: [`Head`](super::Head) for a client, [`Request`](super::Request) for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a, H> {
    /// Client: an interim response, status 100 to 199 except 101; the final one is still expected (RFC 9110, section 15.2).
    Interim(u16),
    /// The head of a request, or of a final response.
    Head(H),
    /// Bytes of the body, at least one, without framing.
    Data(&'a [u8]),
    /// The message is complete. A server does not consume bytes after a request that does not keep the connection alive.
    End,
}

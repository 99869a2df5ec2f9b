//! Input events, with the same names for both roles.

/// An input event. `H` is a parsed head: [`Head`](super::Head) for a client, [`Request`](super::Request) for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a, H> {
    /// For a client: an interim response, status 100 to 199 but 101; the final one is still to come (RFC 9110 section
    /// 15.2).
    Interim(u16),
    /// The head of a request, or of a final response.
    Head(H),
    /// Bytes of the body, never none, without their framing.
    Data(&'a [u8]),
    /// The message is complete. A server leaves unconsumed what follows a request that does not keep the connection.
    End,
}

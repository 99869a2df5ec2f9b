//! What a server of HTTP/2 allows: streams, and windows for what is sent.

use super::Session;

impl Session {
    /// Concurrent streams that the server allows on this connection; none if it has set no limit, or not yet.
    pub(crate) fn allowed_streams(&self) -> Option<u32> {
        match self {
            Session::Http2(state) => state.connection.allowed_streams(),
            Session::Tunnels(state) => state.connection.allowed_streams(),
            _ => None,
        }
    }

    /// Whether what was ordered last on this stream is not sent as a whole, because the server's windows are used up (RFC 9113,
    /// section 5.2).
    pub(crate) fn waits_for_window(&self, stream: u32) -> bool {
        match self {
            Session::Http2(state) => state.waits_for_window(stream),
            Session::Tunnels(state) => state.is_blocked(),
            _ => false,
        }
    }
}

//! Limits of an HTTP/2 server: concurrent streams, and flow-control windows.

use super::Session;

impl Session {
    /// Concurrent streams that the server allows on this connection; `None` if it has set no limit (yet).
    pub(crate) fn allowed_streams(&self) -> Option<u32> {
        match self {
            Session::Http2(state) => state.connection.allowed_streams(),
            Session::Tunnels(state) => state.connection.allowed_streams(),
            _ => None,
        }
    }

    /// Whether the last output on this stream is not completely sent because the server's windows are used up (RFC 9113, section
    /// 5.2).
    pub(crate) fn waits_for_window(&self, stream: u32) -> bool {
        match self {
            Session::Http2(state) => state.waits_for_window(stream),
            Session::Tunnels(state) => state.is_blocked(),
            _ => false,
        }
    }
}

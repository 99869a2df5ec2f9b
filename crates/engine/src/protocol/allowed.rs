//! How many streams a server allows.

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
}

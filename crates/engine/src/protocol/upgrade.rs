//! The upgrade of a connection that has sent HTTP requests: from then on it is a WebSocket.
//!
//! Over HTTP/1.1 no state of the requests remains. Over HTTP/2 the connection goes on, with its windows and stream numbers: it
//! moves from the state for requests to the state for WebSockets.

use net::Io;

use super::{Protocol, Session, http1, websocket};
use crate::out::Out;

impl Protocol {
    /// The session of a connection that sends HTTP requests, even if it is upgraded later.
    pub(crate) fn session_of_requests(&self) -> Session {
        match self {
            Protocol::Http2(http2) => Session::Http2(http2.session()),
            Protocol::Tunnels(connect) => Session::Http2(connect.session_of_requests()),
            _ => Session::Http1(http1::State::new()),
        }
    }

    /// Upgrades a connection with this session; `exchange` awaits the result.
    pub(super) fn upgrade<I: Io>(
        &self,
        session: &mut Session,
        exchange: u32,
        destination: usize,
        out: &mut Out<'_, I>,
    ) {
        *session = match (self, std::mem::replace(session, Session::none())) {
            (Protocol::WebSocket(upgrade), _) => {
                let state = websocket::State::of_dial(upgrade, &mut out.source.random);
                upgrade.send(&state, destination, out);
                Session::WebSocket(state)
            }
            (Protocol::Tunnels(connect), Session::Http2(state)) => {
                Session::Tunnels(connect.upgrade(*state, exchange, destination, out))
            }
            (_, session) => unreachable!("an upgrade is of ws://, after requests: {session:?}"),
        };
    }
}

//! The upgrade of a connection that has sent requests: from then on it is a WebSocket.
//!
//! Over HTTP/1.1 nothing of the requests remains. Over HTTP/2 the connection goes on, with its windows and the numbers of its streams:
//! it moves from the state of requests to that of WebSockets.

use net::Io;
use plan::{Act, Activity, Population, Text};

use super::{Protocol, Session, http1, websocket};
use crate::out::Out;

impl Protocol {
    /// The session of a connection that sends requests, also where it is upgraded after them.
    pub(crate) fn session_of_requests(&self) -> Session {
        match self {
            Protocol::Http2(http2) => Session::Http2(http2.session()),
            Protocol::Tunnels(connect) => Session::Http2(connect.session_of_requests()),
            _ => Session::Http1(http1::State::new()),
        }
    }

    /// Upgrades a connection in this session; `exchange` awaits that.
    pub(super) fn upgrade<I: Io>(
        &self,
        session: &mut Session,
        exchange: u32,
        destination: usize,
        out: &mut Out<'_, I>,
    ) {
        *session = match (self, std::mem::replace(session, Session::Tcp)) {
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

/// Where the WebSockets of a population are opened, and the further fields: at the target's path, or as its own step says.
pub(super) fn request_of(population: &Population) -> (&Text, &[(String, Text)]) {
    let Population { target, activity, headers, .. } = population;
    let steps = if let Activity::Steps { steps, .. } = activity { &steps[..] } else { &[] };
    let own = steps.iter().find_map(|step| match &step.act {
        Act::Upgrade { path, headers, .. } => Some((path, &headers[..])),
        _ => None,
    });
    own.unwrap_or((&target.path, headers))
}

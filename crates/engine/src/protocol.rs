//! The protocols: the one place that knows which of them a connection speaks. Each is a file that answers the same
//! questions; here is one arm for each.
//!
//! ```text
//!  the transport is open ─► open ─► handle_bytes = Opened ─► send ─► handle_bytes = Responded ─► send ─► … ─► close
//! ```

use net::{Cx, Io, Key};
use plan::{Random, Scheme, Target};
use samples::Kind;
use wire::websocket::Payload;

use crate::{
    check::Check,
    exchange::Exchange,
    op::Op,
    request::{Ink, Message},
};

mod http1;
mod tcp;
mod websocket;

/// What the connections of a population speak, with what is the same for all of them.
#[derive(Clone, Debug)]
pub(crate) enum Protocol {
    Http1,
    WebSocket(websocket::Upgrade),
    Tcp,
}

/// The state of one connection's protocol: there is one from the dial on, and while a request is under way or something has
/// come in part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Session {
    Http1(http1::State),
    WebSocket(websocket::State),
    Tcp,
}

const _: () = assert!(size_of::<Session>() <= 32, "each connection of a closed loop has one");

/// What is awaited.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaited<'a> {
    /// The response to an HTTP request.
    Response(&'a Check),
    /// A message; with what was sent, where that is to come back.
    Message(&'a Check, &'a [u8]),
    /// The pong that answers a control ping.
    Pong,
}

/// What input brought, each with the bytes that were used for it.
#[derive(Debug)]
pub(crate) enum Progress<'a> {
    /// Nothing further: come again with more.
    More(usize),
    /// The session is open.
    Opened(usize),
    /// What was awaited is complete.
    Responded(usize),
    /// The server wants to know whether the connection is alive: [`pong`] says so.
    Ping(usize, Payload<'a>),
    /// The server begins the closing handshake, with this code: [`close_back`] ends it.
    Closing(Option<u16>),
}

/// What a protocol says of a whole response beside its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// HTTP.
    pub(crate) head: Option<Head>,
    /// Whether the connection may be used again.
    pub(crate) keeps_alive: bool,
}

/// What stands in the head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Its length; 64 KiB at most.
    pub(crate) bytes: u16,
    /// `Keep-Alive: timeout=N`: for how long the server keeps an idle connection.
    pub(crate) keep_alive_s: Option<u32>,
}

/// Where something goes out: a connection, and what its variables are filled from.
pub(crate) struct Out<'a, I: Io> {
    pub(crate) cx: &'a mut Cx<I>,
    pub(crate) k: Key,
    pub(crate) ink: &'a mut Ink,
}

impl Protocol {
    pub(crate) fn new(target: &Target) -> Protocol {
        match target.scheme {
            Scheme::Http => Protocol::Http1,
            Scheme::Ws => Protocol::WebSocket(websocket::Upgrade::new(target)),
            Scheme::Tcp => Protocol::Tcp,
        }
    }

    /// Whether the server may speak without being asked, so that what comes first need not belong to a response.
    pub(crate) fn server_may_speak(&self) -> bool {
        matches!(self, Protocol::WebSocket(_))
    }

    /// Whether nothing that follows a dial tells more of how fast the target takes connections; `asks`: a request follows.
    pub(crate) fn is_known_by_dial(&self, asks: bool) -> bool {
        match self {
            Protocol::Http1 => !asks,
            Protocol::WebSocket(_) => false,
            Protocol::Tcp => true,
        }
    }

    /// Whether a request that met the close of an idle connection is sent again on another one.
    pub(crate) fn may_send_again(&self) -> bool {
        matches!(self, Protocol::Http1)
    }

    /// Of a connection that is dialled.
    pub(crate) fn session_of_dial(&self, random: &mut Random) -> Session {
        match self {
            Protocol::WebSocket(_) => Session::WebSocket(websocket::State::of_dial(random)),
            _ => self.session(),
        }
    }

    /// Of a connection that is open and has nothing under way.
    pub(crate) fn session(&self) -> Session {
        match self {
            Protocol::Http1 => Session::Http1(http1::State::new()),
            Protocol::WebSocket(_) => Session::WebSocket(websocket::State::open()),
            Protocol::Tcp => Session::Tcp,
        }
    }

    /// The transport is open: sends what opens the session, and returns its bytes; none where it is open without.
    pub(crate) fn open<I: Io>(
        &self,
        session: &Session,
        destination: usize,
        out: &mut Out<'_, I>,
    ) -> Option<u64> {
        match (self, session) {
            (Protocol::WebSocket(upgrade), Session::WebSocket(state)) => {
                Some(upgrade.send(state, destination, out))
            }
            _ => None,
        }
    }

    /// Begins what `op` awaits in `exchange`, and sends what it sends; returns its bytes.
    pub(crate) fn send<I: Io>(
        &self,
        op: &Op,
        session: &mut Session,
        exchange: &mut Exchange,
        destination: usize,
        out: &mut Out<'_, I>,
    ) -> u64 {
        (exchange.started, exchange.begun) = (out.cx.now(), false);
        match (op, session) {
            (Op::Request(request), Session::Http1(state)) => {
                http1::send(request, state, exchange, destination, out)
            }
            (Op::Ask(message) | Op::Ping(message, _), session) => {
                exchange.await_message(session.is_at_rest());
                self.send_message(message, Some(exchange), out)
            }
            (Op::Listen(check), session) => {
                exchange.await_message(session.is_at_rest());
                exchange.expected = check.expected(&[]);
                0
            }
            (Op::Request(_), _) => unreachable!("requests are of http://"),
            (Op::Tell(_) | Op::Wait(_) | Op::Close | Op::Goto(_) | Op::Stay, _) => {
                unreachable!("it awaits nothing")
            }
        }
    }

    /// Sends a message; `exchange` awaits its answer. Returns its bytes, with its framing.
    pub(crate) fn send_message<I: Io>(
        &self,
        message: &Message,
        exchange: Option<&mut Exchange>,
        out: &mut Out<'_, I>,
    ) -> u64 {
        match self {
            Protocol::Http1 => unreachable!("messages are of ws:// and tcp://"),
            Protocol::WebSocket(_) => websocket::send(message, exchange, out),
            Protocol::Tcp => tcp::send(message, exchange, out),
        }
    }

    /// Takes leave of the server; returns the bytes sent.
    pub(crate) fn close<I: Io>(&self, out: &mut Out<'_, I>) -> u64 {
        match self {
            Protocol::WebSocket(_) => websocket::close(out),
            Protocol::Http1 | Protocol::Tcp => 0,
        }
    }
}

impl Session {
    /// Reads on; with what is awaited, and for which exchange, where anything is.
    pub(crate) fn handle_bytes<'a>(
        &mut self,
        input: &'a [u8],
        asked: Option<(&mut Exchange, Awaited)>,
    ) -> Result<Progress<'a>, Kind> {
        match self {
            Session::Http1(state) => http1::handle_bytes(state, input, asked),
            Session::WebSocket(state) => websocket::handle_bytes(state, input, asked),
            Session::Tcp => tcp::handle_bytes(input, asked),
        }
    }

    /// The server has ended the connection while a response was awaited: whether that is where the response ends.
    pub(crate) fn handle_end(&mut self) -> Result<bool, Kind> {
        match self {
            Session::Http1(state) => state.handle_end(),
            Session::WebSocket(_) | Session::Tcp => Ok(false),
        }
    }

    /// Whether nothing has begun to come in that is not complete: an idle connection needs no session then.
    pub(crate) fn is_at_rest(&self) -> bool {
        match self {
            Session::WebSocket(state) => state.is_at_rest(),
            Session::Http1(_) | Session::Tcp => true,
        }
    }

    /// Of the response that is coming or has come.
    pub(crate) fn response(&self) -> Response {
        match self {
            Session::Http1(state) => state.response(),
            Session::WebSocket(_) | Session::Tcp => Response { head: None, keeps_alive: true },
        }
    }
}

pub(crate) use websocket::{close_back, pong};

#[cfg(test)]
pub(crate) mod tests;

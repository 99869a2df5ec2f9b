//! The protocols: the one place that depends on which protocol a connection uses. Each protocol is a file with the same
//! functions; this module dispatches to them.
//!
//! ```text
//!  the transport is open ─► open ─► handle_bytes = Opened ─► send ─► handle_bytes = Responded ─► send ─► … ─► close
//! ```
//!
//! A request under way is an [`Exchange`]; its index is the *stream* that protocol and client use for it. HTTP/1.1, WebSocket and
//! TCP have one at a time. A protocol with several determines which one the next input belongs to ([`Speaks::reads`]), whether
//! another may begin ([`Speaks::has_place`]), and cancels one while the others continue ([`Speaks::cancel`]).

use enum_dispatch::enum_dispatch;
use net::Io;
use plan::{Population, Scheme};
use samples::{Detail, Kind};
use units::{Nanos, Random};

use crate::{
    exchange::{Begun, Exchange},
    failure::Failure,
    op::Op,
    out::{Out, Writer},
    pushes::Listens,
    request::{Message, ValueSource},
    watch::Watch,
};

mod awaited;
mod http1;
pub(crate) mod http2;
mod progress;
mod sessions;
#[cfg(test)]
pub(crate) mod streams;
mod tcp;
mod tunnels;
mod upgrade;
mod websocket;

pub(crate) use awaited::Awaited;
pub(crate) use progress::Progress;
pub use sessions::{Came, SessionState, Sessions, TargetProtocol};
#[cfg(test)]
pub(crate) use websocket::LARGEST_MESSAGE;

/// The protocol of a population, with what its connections share.
#[derive(Clone, Debug)]
pub(crate) enum Protocol {
    Http1,
    Http2(http2::Http2),
    WebSocket(websocket::Upgrade),
    /// WebSocket over HTTP/2.
    Tunnels(tunnels::Connect),
    Tcp,
    #[cfg(test)]
    Streams,
}

/// What the client does with the protocol state of a connection. The defaults are those of a protocol that has one exchange at a time, and
/// no output, limits or timers of its own; it only reads.
#[enum_dispatch]
pub(crate) trait Speaks {
    /// Reads input, with the exchange that awaits it; `watch` takes values from the response, `listener` reads unsolicited
    /// messages.
    fn read<'a, L: Listens>(
        &mut self,
        input: &'a [u8],
        awaiting: Option<(&mut Exchange, Awaited)>,
        watch: Option<&mut Watch>,
        listener: &mut L,
    ) -> Result<Progress<'a>, Failure>;

    /// Which stream the next input belongs to; `latest` is the one that began last. [`NOTHING`] if none.
    ///
    /// [`NOTHING`]: crate::pool::NOTHING
    fn reads(&self, latest: u32) -> u32 {
        latest
    }

    /// Whether another stream may begin beside those under way.
    fn has_place(&self) -> bool {
        false
    }

    /// Whether earlier output waits for the server's windows (not only for the socket).
    fn is_blocked(&self) -> bool {
        false
    }

    /// Whether the last output on this stream is not completely sent because the server's windows are used up (RFC 9113, section
    /// 5.2).
    fn waits_for_window(&self, _stream: u32) -> bool {
        self.is_blocked()
    }

    /// Concurrent streams that the server allows on this connection; `None` if it has set no limit (yet).
    fn allowed_streams(&self) -> Option<u32> {
        None
    }

    /// Cancels the exchange on `stream` with a message to the server; false if that requires closing the connection.
    fn cancel<I: Io>(&mut self, _stream: u32, _out: &mut Out<'_, I>) -> bool {
        false
    }

    /// The error code with which the server announced the end of the session; `NONE` if none.
    fn error(&self) -> Detail {
        Detail::NONE
    }

    /// Whether the server has announced the end of the session.
    fn is_going_away(&self) -> bool {
        false
    }

    /// The server's text about the end of the session.
    fn farewell(&self) -> &[u8] {
        &[]
    }

    /// The server's error text about the last complete response; empty if the response's bytes show it.
    fn said(&self) -> &[u8] {
        &[]
    }

    /// When the protocol's timer is due; never, if it has none.
    fn poll_timeout(&self) -> Nanos {
        Nanos::NEVER
    }

    /// The protocol's timer is due.
    ///
    /// # Errors
    /// The server no longer responds.
    fn handle_timeout<I: Io>(&mut self, _out: &mut Out<'_, I>) -> Result<(), Kind> {
        Ok(())
    }

    /// The server ended the connection while a response was awaited: returns whether that ends the response.
    fn handle_end(&mut self) -> Result<bool, Kind> {
        Ok(false)
    }

    /// Whether no input is incomplete and no other state is kept, so that an idle connection needs no session.
    fn is_between_messages(&self) -> bool {
        true
    }

    /// The connection is idle and keeps its session: frees what it can.
    fn rest(&mut self) {}

    /// The response that is arriving or has arrived.
    fn response(&self) -> Response {
        Response { head: None, keeps_alive: true }
    }

    /// Whether the session has new output, or output that could not be sent before.
    fn has_output(&self) -> bool {
        false
    }

    /// Sends waiting output, as far as the server reads.
    fn send_more<I: Io>(&mut self, _to: &mut Writer<'_, I>) {}
}

/// The protocol state of one connection. It exists from the dial on, and later while a request is under way or input is
/// incomplete.
#[enum_dispatch(Speaks)]
#[derive(Debug)]
pub(crate) enum Session {
    Http1(http1::State),
    Http2(Box<http2::State>),
    WebSocket(websocket::State),
    Tunnels(Box<tunnels::State>),
    Tcp(tcp::State),
    #[cfg(test)]
    Streams(streams::Session),
}

const _: () = assert!(size_of::<Session>() <= 32, "each connection of a closed loop has one");

/// The output of a protocol in reply to input.
#[derive(Debug)]
pub(crate) enum Reply<'a> {
    /// HTTP/2: what the session has queued ([`Speaks::send_more`](Speaks::send_more)).
    Queued,
    WebSocket(websocket::Reply<'a>),
    #[cfg(test)]
    Streams(streams::Reply),
}

impl Reply<'_> {
    /// The error code that a close replies to.
    pub(crate) fn error(&self) -> Option<Detail> {
        matches!(self, Reply::WebSocket(websocket::Reply::Close(_)))
            .then(|| Detail::of_close(self.close_code()))
    }

    /// The code of a close that has one.
    fn close_code(&self) -> Option<u16> {
        if let Reply::WebSocket(websocket::Reply::Close(code)) = self { *code } else { None }
    }

    pub(crate) fn send<I: Io>(self, out: &mut Out<'_, I>) {
        match self {
            Reply::Queued => {}
            Reply::WebSocket(reply) => reply.send(out),
            #[cfg(test)]
            Reply::Streams(reply) => reply.send(out),
        }
    }
}

/// The properties of a complete response besides its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// HTTP: its head.
    pub(crate) head: Option<Head>,
    /// Whether the connection can be used again.
    pub(crate) keeps_alive: bool,
}

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The HTTP status; for gRPC its status, if the response has one.
    pub(crate) status: u16,
    /// Length of the head, at most 64 KiB.
    pub(crate) bytes: u16,
    /// `Keep-Alive: timeout=N`: seconds for which the server keeps an idle connection.
    pub(crate) keep_alive_s: Option<u32>,
}

/// What is true of all connections of a protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    /// Whether it is HTTP/2.
    pub(crate) is_http2: bool,
    /// Whether a session is opened by what the server sends unrequested.
    pub(crate) is_opened_by_server: bool,
    /// Whether the server may send unsolicited data, so that the first input need not belong to a response.
    pub(crate) server_may_speak: bool,
    /// Whether the server sends messages: framed, even when unsolicited.
    pub(crate) has_messages: bool,
    /// Whether sessions have timers: [`Speaks::poll_timeout`].
    pub(crate) has_timeouts: bool,
    /// Whether a request that met the close of an idle connection is sent again on another one.
    pub(crate) may_send_again: bool,
    /// Whether the dial alone shows how fast the target accepts connections: without a request after it, and with one.
    pub(crate) is_known_by_dial: [bool; 2],
}

impl Properties {
    /// Those of a protocol with requests that each have a response, and nothing else.
    pub(crate) const PLAIN: Properties = Properties {
        is_http2: false,
        is_opened_by_server: false,
        server_may_speak: false,
        has_messages: false,
        has_timeouts: false,
        may_send_again: false,
        is_known_by_dial: [true, true],
    };
}

impl Protocol {
    pub(crate) fn new(population: &Population) -> Protocol {
        let target = &population.target;
        match target.scheme {
            Scheme::Http | Scheme::Grpc => match population.streams {
                None => Protocol::Http1,
                Some(streams) => Protocol::Http2(http2::Http2::new(streams)),
            },
            Scheme::Ws => match population.streams {
                None => Protocol::WebSocket(websocket::Upgrade::new(population)),
                Some(streams) => Protocol::Tunnels(tunnels::Connect::new(population, streams)),
            },
            Scheme::Tcp => Protocol::Tcp,
        }
    }

    /// What is true of all its connections.
    pub(crate) fn properties(&self) -> Properties {
        match self {
            Protocol::Http1 => http1::PROPERTIES,
            Protocol::Http2(_) => http2::PROPERTIES,
            Protocol::WebSocket(_) => websocket::PROPERTIES,
            Protocol::Tunnels(_) => tunnels::PROPERTIES,
            Protocol::Tcp => tcp::PROPERTIES,
            #[cfg(test)]
            Protocol::Streams => streams::PROPERTIES,
        }
    }

    /// Whether a connection has several WebSockets.
    pub(crate) fn has_tunnels(&self) -> bool {
        matches!(self, Protocol::Tunnels(connect) if connect.streams() > 1)
    }

    /// The session of a connection that is dialled.
    pub(crate) fn session_of_dial(&self, random: &mut Random) -> Session {
        match self {
            Protocol::WebSocket(upgrade) => Session::WebSocket(websocket::State::of_dial(upgrade, random)),
            Protocol::Tunnels(connect) => Session::Tunnels(connect.session(random)),
            _ => self.session(),
        }
    }

    /// The session of an open connection with nothing under way.
    pub(crate) fn session(&self) -> Session {
        match self {
            Protocol::Http1 | Protocol::Http2(_) => self.session_of_requests(),
            Protocol::WebSocket(_) => Session::WebSocket(websocket::State::open()),
            Protocol::Tunnels(_) => unreachable!("it has a session from the dial on"),
            Protocol::Tcp => Session::none(),
            #[cfg(test)]
            Protocol::Streams => Session::Streams(streams::new()),
        }
    }

    /// The transport is open: begins to open the session. Returns false if it is open at once.
    pub(crate) fn open<I: Io>(
        &self,
        session: &mut Session,
        destination: usize,
        out: &mut Out<'_, I>,
    ) -> bool {
        match (self, session) {
            (_, Session::Http2(_)) => {
                http2::Http2::open(out);
                true
            }
            (Protocol::WebSocket(upgrade), Session::WebSocket(state)) => {
                upgrade.send(state, destination, out);
                true
            }
            (Protocol::Tunnels(connect), Session::Tunnels(state)) => {
                connect.open(state, destination, out);
                true
            }
            #[cfg(test)]
            (_, Session::Streams(session)) => streams::open(session, out),
            _ => false,
        }
    }

    /// Begins the exchange with index `stream`: sends what `op` sends, and sets up what it awaits.
    pub(crate) fn send<I: Io>(
        &self,
        op: &Op,
        session: &mut Session,
        (stream, exchange): (u32, &mut Exchange),
        destination: usize,
        out: &mut Out<'_, I>,
    ) {
        (exchange.started, exchange.begun) = (out.to.now(), Begun::NOT);
        let is_between_messages = session.is_between_messages();
        match (op, session) {
            (Op::Request(request), Session::Http2(state)) => {
                http2::send(request, state, (stream, exchange), destination, out);
            }
            (Op::Request(request), Session::Http1(state)) => {
                http1::send(request, state, exchange, destination, out);
            }
            #[cfg(test)]
            (Op::Exchange(message), Session::Streams(session)) => {
                streams::send(message, session, (stream, exchange), out);
            }
            (Op::Ping(..), Session::Http2(state)) => http2::ping(state, (stream, exchange), out),
            (Op::Exchange(message) | Op::Ping(message, _), Session::Tunnels(state)) => {
                tunnels::send(message, state, Some((stream, exchange)), out);
            }
            (Op::Expect(check), Session::Tunnels(state)) => {
                out.source.watch(out.to.index(), check, b"");
                tunnels::expect(state, (stream, exchange));
                exchange.expected = check.expected(&[]);
            }
            (Op::Exchange(message) | Op::Ping(message, _), _) => {
                exchange.await_message(is_between_messages);
                self.send_message(message, None, Some(exchange), out);
            }
            (Op::Expect(check), _) => {
                out.source.watch(out.to.index(), check, b"");
                exchange.await_message(is_between_messages);
                exchange.expected = check.expected(&[]);
            }
            (Op::Upgrade, session) => self.upgrade(session, stream, destination, out),
            (Op::Request(_), _) => unreachable!("requests are of http://"),
            (
                Op::Send(_)
                | Op::Wait(_)
                | Op::Close
                | Op::Goto(_)
                | Op::Jump { .. }
                | Op::Choose(_)
                | Op::Stay,
                _,
            ) => {
                unreachable!("it awaits nothing: {stream}")
            }
        }
    }

    /// Sends a message on a connection with this session, if it has one; `exchange` awaits the reply.
    pub(crate) fn send_message<I: Io>(
        &self,
        message: &Message,
        session: Option<&mut Session>,
        exchange: Option<&mut Exchange>,
        out: &mut Out<'_, I>,
    ) {
        match (self, session) {
            (Protocol::WebSocket(_), _) => websocket::send(message, exchange, out),
            (Protocol::Tcp, _) => tcp::send(message, exchange, out),
            (Protocol::Tunnels(_), Some(Session::Tunnels(state))) => tunnels::send(message, state, None, out),
            _ => unreachable!("messages are of ws:// and tcp://"),
        }
    }

    /// Sends a message on the WebSocket with this number on its connection; no reply is awaited.
    pub(crate) fn send_on<I: Io>(
        &self,
        message: &Message,
        (session, stream): (Option<&mut Session>, usize),
        out: &mut Out<'_, I>,
    ) {
        match session {
            Some(Session::Tunnels(state)) => tunnels::send_on(message, state, stream, out),
            session => self.send_message(message, session, None, out),
        }
    }

    /// Sends the protocol's closing message, on a connection with this session, if it has one.
    pub(crate) fn close<I: Io>(&self, session: Option<&mut Session>, out: &mut Out<'_, I>) {
        match (self, session) {
            (Protocol::WebSocket(_), _) => websocket::close(out),
            (_, Some(Session::Http2(state))) => http2::close(state, out),
            (_, Some(Session::Tunnels(state))) => tunnels::close(state, out),
            _ => {}
        }
    }
}

impl Session {
    /// No state; the session of a connection that has none.
    pub(crate) const fn none() -> Session {
        Session::Tcp(tcp::State)
    }

    /// Why the server ended the session: its error code, or that it announced the end.
    pub(crate) fn reason(&self) -> Detail {
        if self.is_going_away() { self.error().announced() } else { self.error() }
    }

    /// Reads without a watch or a listener.
    #[cfg(test)]
    pub(crate) fn handle_bytes<'a>(
        &mut self,
        input: &'a [u8],
        awaiting: Option<(&mut Exchange, Awaited)>,
    ) -> Result<Progress<'a>, Failure> {
        self.read(input, awaiting, None, &mut crate::pushes::Pushed::default().of(0))
    }
}

#[cfg(test)]
pub(crate) mod tests;

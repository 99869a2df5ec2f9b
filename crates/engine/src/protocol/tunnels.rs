//! WebSocket over HTTP/2 (RFC 8441): one WebSocket on each of several streams, opened together by extended CONNECT.
//!
//! A connection counts as open while all of its WebSockets are. If the server ends one of them, or the connection by a GOAWAY,
//! all of them end.

use net::Io;
use plan::{Population, Text};
use samples::Detail;
use units::Random;
use wire::{
    http2::{
        CLIENT_PREFACE, Connection, RequestFields, Role, Stream, Table, write_field, write_request_fields,
    },
    websocket::{self as ws, Frames, MAX_HEADER, Opcode},
};

use super::{
    Awaited, Progress, Properties, Speaks,
    http2::{self as requests, Farewell, Http2, Queue, room},
    websocket::{self, Offered},
};
use crate::{
    exchange::Exchange,
    failure::Failure,
    out::{Out, Writer},
    pool::NOTHING,
    pushes::Listens,
    request::{Message, ValueSource, http2_name},
    watch::Watch,
};

mod output;
mod read;

/// What all connections share.
#[derive(Clone, Debug)]
pub(crate) struct Connect {
    path: Text,
    /// For each destination, the value of `:authority`.
    hosts: Vec<String>,
    scheme: &'static str,
    /// Further header fields, as lines, with HTTP/2 names.
    fields: Text,
    /// Whether these contain cookies: then those of the connection are not sent.
    has_cookies: bool,
    offered: Offered,
    /// Number of WebSockets on a connection.
    streams: u16,
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) connection: Connection,
    tunnels: Vec<Tunnel>,
    /// Random masks for control frames.
    random: Random,
    /// The exchange that the input belongs to.
    reads: u32,
    /// Number of bytes at the start of the input that are DATA for the WebSocket at `place`, still to be read.
    undigested: u32,
    place: u16,
    /// The next message is sent on this WebSocket, or the next free one after it.
    next: u16,
    /// Number of open WebSockets.
    open: u16,
    /// All of them are open, which is still to be reported as [`Progress::Opened`](super::Progress::Opened).
    opens: bool,
    /// The server ends one of them, or the connection.
    ends: bool,
    rare: Option<Box<Rare>>,
}

const _: () = assert!(size_of::<State>() <= 112, "an idle connection has one");

/// Temporary state of a connection.
#[derive(Debug, Default)]
struct Rare {
    queue: Queue,
    /// The encoded requests that open the WebSockets, until the server's SETTINGS allow them.
    requests: Vec<Vec<u8>>,
    /// The exchange that awaits the upgrade, on a connection that has sent requests before.
    awaits: Option<u32>,
    /// The HPACK table, if the server uses one.
    table: Option<Box<Table>>,
    /// The offered sub-protocols, until all WebSockets are open.
    offered: Option<Offered>,
    /// The server's GOAWAY, or its close of a WebSocket.
    farewell: Farewell,
}

/// One WebSocket.
#[derive(Debug)]
struct Tunnel {
    stream: Stream,
    frames: Frames,
    /// The exchange that awaits a message on it; [`NOTHING`] if none.
    exchange: u32,
    is_open: bool,
    /// The server has ended the stream.
    is_ended: bool,
    partial: Option<Box<Partial>>,
}

const _: () = assert!(size_of::<Tunnel>() <= 64, "each idle WebSocket has one");

/// Temporary state that few WebSockets have.
#[derive(Debug, Default)]
struct Partial {
    /// An incomplete frame header or control frame.
    input: Vec<u8>,
    /// Output that waits for the server's windows: at most one message, since later ones wait for it.
    output: Vec<u8>,
}

impl Connect {
    pub(super) fn new(population: &Population, streams: u16) -> Connect {
        let target = &population.target;
        let (path, fields) = websocket::request_of(population);
        let hosts = (0..target.destinations.len()).map(|at| target.host_header(at)).collect();
        let scheme = if target.secure { "https" } else { "http" };
        let offered = Offered::by(fields);
        let named = fields.iter().map(|(name, value)| (http2_name(name), value.clone()));
        let named: Vec<_> = named.filter(|(name, _)| !name.is_empty()).collect();
        Connect {
            path: path.clone(),
            hosts,
            scheme,
            fields: Text::of_fields(&named),
            has_cookies: named.iter().any(|(name, _)| name == "cookie"),
            offered,
            streams,
        }
    }

    pub(super) fn streams(&self) -> u16 {
        self.streams
    }

    pub(super) fn session(&self, random: &mut Random) -> Box<State> {
        self.session_on(Connection::new(Role::Client), random)
    }

    /// The session of a connection that sends HTTP requests first.
    pub(super) fn session_of_requests(&self) -> Box<requests::State> {
        let mut state = Http2::new(self.streams).session();
        state.is_upgraded = true;
        state
    }

    fn session_on(&self, connection: Connection, random: &mut Random) -> Box<State> {
        Box::new(State {
            connection,
            tunnels: Vec::with_capacity(self.streams.into()),
            random: Random::new(random.bits()),
            reads: NOTHING,
            undigested: 0,
            place: 0,
            next: 0,
            open: 0,
            opens: false,
            ends: false,
            rare: None,
        })
    }

    /// Sends the preface; the CONNECT requests follow once the server's SETTINGS allow them (RFC 8441 section 3).
    pub(super) fn open<I: Io>(&self, state: &mut State, destination: usize, out: &mut Out<'_, I>) {
        let Out { to, source } = out;
        to.send_static(CLIENT_PREFACE);
        let requests =
            (0..self.streams).map(|_| self.next_request(destination, to.index(), source)).collect();
        state.rare = Some(Box::new(Rare { requests, offered: self.offered(), ..Rare::default() }));
    }

    /// Opens a WebSocket on a connection that has sent requests; `state` is its session so far, `exchange` awaits the upgrade.
    pub(super) fn upgrade<I: Io>(
        &self,
        state: requests::State,
        exchange: u32,
        destination: usize,
        out: &mut Out<'_, I>,
    ) -> Box<State> {
        let Out { to, source } = out;
        let (connection, queue, table) = state.into_connection();
        let mut state = self.session_on(connection, &mut source.random);
        let requests = vec![self.next_request(destination, to.index(), source)];
        let (offered, awaits) = (self.offered(), Some(exchange));
        state.rare = Some(Box::new(Rare { queue, requests, awaits, table, offered, ..Rare::default() }));
        state.connect();
        state.send_more(to);
        state
    }

    fn offered(&self) -> Option<Offered> {
        self.offered.is_any().then_some(self.offered)
    }

    /// The encoded CONNECT request for a WebSocket of the connection at `index`.
    fn next_request(&self, destination: usize, index: u32, source: &mut ValueSource) -> Vec<u8> {
        let (path, lines) = source.texts(&self.path, &self.fields, index);
        let (path, lines) = (path.to_owned(), lines.to_owned());
        let cookies = if self.has_cookies { Vec::new() } else { source.cookies(index, path.as_bytes()) };
        self.request(destination, &path, &lines, &cookies)
    }

    /// Encodes a CONNECT request; `lines`: further fields.
    fn request(&self, destination: usize, path: &str, lines: &str, cookies: &[u8]) -> Vec<u8> {
        let authority = &self.hosts[destination];
        let fields =
            RequestFields { method: "CONNECT", scheme: self.scheme, authority, path, protocol: "websocket" };
        let texts = path.len() + authority.len() + lines.len() + cookies.len();
        let mut block = vec![0; REQUEST_ROOM + 2 * texts];
        let mut length = write_request_fields(&mut block, &fields).expect(ROOM);
        length += write_field(&mut block[length..], "sec-websocket-version", b"13").expect(ROOM);
        if !cookies.is_empty() {
            length += write_field(&mut block[length..], "cookie", cookies).expect(ROOM);
        }
        for (name, value) in lines.split("\r\n").filter_map(|line| line.split_once(": ")) {
            length += write_field(&mut block[length..], name, value.as_bytes()).expect(ROOM);
        }
        block.truncate(length);
        block
    }
}

/// Octets of the fields besides path and host, rounded up.
const REQUEST_ROOM: usize = 128;
const ROOM: &str = "there is room for each field";

impl Tunnel {
    fn is_blocked(&self) -> bool {
        self.partial.as_ref().is_some_and(|partial| !partial.output.is_empty())
    }

    /// Writes as many of these bytes as the windows allow; the rest waits.
    fn write(&mut self, connection: &mut Connection, out: &mut [u8], bytes: &[u8], ends: bool) -> usize {
        let (written, taken) = if self.is_blocked() {
            (0, 0)
        } else {
            connection.write_data(out, &mut self.stream, bytes, ends)
        };
        if taken < bytes.len() {
            self.partial.get_or_insert_default().output.extend_from_slice(&bytes[taken..]);
        }
        written
    }

    /// Keeps unread bytes until more arrive; usually there are none.
    fn keep(&mut self, input: Vec<u8>) {
        match &mut self.partial {
            Some(partial) => partial.input = input,
            None if input.is_empty() => {}
            None => self.partial.get_or_insert_default().input = input,
        }
        self.partial.take_if(|partial| partial.input.is_empty() && partial.output.is_empty());
    }
}

impl State {
    fn error_code(&self) -> Detail {
        self.rare.as_ref().map_or(Detail::NONE, |rare| rare.farewell.error)
    }

    /// Whether output waits for the server's windows.
    fn has_blocked(&self) -> bool {
        self.tunnels.iter().any(Tunnel::is_blocked)
    }

    /// The WebSocket for the next message.
    fn free(&self) -> Option<usize> {
        let places = (usize::from(self.next)..self.tunnels.len()).chain(0..usize::from(self.next));
        let is_free =
            |place: &usize| self.tunnels.get(*place).is_some_and(|it| it.exchange == NOTHING && it.is_open);
        places.into_iter().find(is_free)
    }

    /// Whether the server has ended a WebSocket without a closing handshake.
    fn is_left(&self) -> bool {
        self.undigested == 0 && self.tunnels.get(usize::from(self.place)).is_some_and(|it| it.is_ended)
    }

    fn place(&self, number: u32) -> Option<usize> {
        // The streams are opened in this order: their numbers increase by two, after those of any earlier requests.
        let first = self.tunnels.first()?.stream.id();
        let place = (number.checked_sub(first)? / 2) as usize;
        (number % 2 == 1 && place < self.tunnels.len()).then_some(place)
    }

    /// Whether the server may choose this sub-protocol.
    fn offers(&self, chosen: &[u8]) -> bool {
        self.rare.as_ref().and_then(|rare| rare.offered).is_some_and(|offered| offered.has(chosen))
    }

    /// All WebSockets are open.
    fn complete(&mut self) {
        self.opens = true;
        self.rare.iter_mut().for_each(|rare| rare.offered = None);
        self.drop_rare();
    }
}

/// Sends a message or a control ping on a free WebSocket; `exchange`, with its index, awaits the reply.
pub(super) const PROPERTIES: Properties = Properties {
    is_http2: true,
    server_may_speak: true,
    has_messages: true,
    is_known_by_dial: [false, false],
    ..Properties::PLAIN
};

impl Speaks for Box<State> {
    fn read<'a, L: Listens>(
        &mut self,
        input: &'a [u8],
        awaiting: Option<(&mut Exchange, Awaited)>,
        watch: Option<&mut Watch>,
        listener: &mut L,
    ) -> Result<Progress<'a>, Failure> {
        read::handle_bytes(self, input, awaiting, watch, listener)
    }

    fn reads(&self, _: u32) -> u32 {
        self.reads
    }

    fn is_going_away(&self) -> bool {
        self.connection.has_goaway()
    }

    fn error(&self) -> Detail {
        self.error_code()
    }

    fn farewell(&self) -> &[u8] {
        self.rare.as_ref().map_or(&[], |rare| rare.farewell.words())
    }

    fn has_place(&self) -> bool {
        !self.ends && self.free().is_some()
    }

    fn is_blocked(&self) -> bool {
        self.has_blocked()
    }

    fn allowed_streams(&self) -> Option<u32> {
        self.connection.allowed_streams()
    }

    fn is_between_messages(&self) -> bool {
        false
    }

    fn has_output(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.queue.is_due())
    }

    fn send_more<I: Io>(&mut self, to: &mut Writer<'_, I>) {
        self.send_waiting(to);
    }
}

pub(super) fn send<I: Io>(
    message: &Message,
    state: &mut State,
    exchange: Option<(u32, &mut Exchange)>,
    out: &mut Out<'_, I>,
) {
    let place = state.free().unwrap_or_default();
    state.next = ((place + 1) % state.tunnels.len().max(1)) as u16;
    let State { connection, tunnels, .. } = state;
    let it = &mut tunnels[place];
    let Out { to, source } = out;
    let mask = websocket::mask(source);
    if message.is_ping() {
        // Random, so that no earlier pong matches.
        let number = source.random.bits();
        if let Some((index, exchange)) = exchange {
            (exchange.expected, it.exchange) = (number, index);
        }
        return write(connection, it, (Opcode::Ping, mask), &number.to_be_bytes(), to);
    }
    if exchange.is_some() {
        source.watch(to.index(), &message.check, b"");
    }
    let (text, nth, expected) = message.write(to.index(), source);
    if let Some((index, exchange)) = exchange {
        exchange.await_message(it.frames.is_between_messages());
        (exchange.nth, exchange.expected, it.exchange) = (nth, expected, index);
    }
    let opcode = if message.is_binary() { Opcode::Binary } else { Opcode::Text };
    write(connection, it, (opcode, mask), text, to);
}

/// Sends a message on this WebSocket, without awaiting a reply; does nothing if earlier output waits for the server's windows.
pub(super) fn send_on<I: Io>(message: &Message, state: &mut State, place: usize, out: &mut Out<'_, I>) {
    let State { connection, tunnels, .. } = state;
    let Some(it) = tunnels.get_mut(place).filter(|it| it.is_open && !it.is_blocked()) else { return };
    let Out { to, source } = out;
    let mask = websocket::mask(source);
    if message.is_ping() {
        let number = source.random.bits();
        return write(connection, it, (Opcode::Ping, mask), &number.to_be_bytes(), to);
    }
    let (text, ..) = message.write(to.index(), source);
    write(connection, it, (Opcode::Text, mask), text, to);
}

/// Awaits a message without sending anything.
pub(super) fn expect(state: &mut State, (index, exchange): (u32, &mut Exchange)) {
    let place = state.free().unwrap_or_default();
    let it = &mut state.tunnels[place];
    exchange.await_message(it.frames.is_between_messages());
    it.exchange = index;
}

fn write<I: Io>(
    connection: &mut Connection,
    tunnel: &mut Tunnel,
    (opcode, mask): (Opcode, [u8; 4]),
    payload: &[u8],
    to: &mut Writer<'_, I>,
) {
    let length = MAX_HEADER + payload.len();
    // The second part of the buffer holds the WebSocket frame, which is then written as DATA frames to the first part.
    to.send(room(length) + length, |out| {
        let (out, frame) = out.split_at_mut(room(length));
        let written = ws::write_frame(frame, opcode, true, Some(mask), payload);
        let written = written.expect("there is room for a frame of ours");
        tunnel.write(connection, out, &frame[..written], false)
    });
}

/// Closes each WebSocket and announces the end of the connection.
pub(super) fn close<I: Io>(state: &mut State, out: &mut Out<'_, I>) {
    if out.to.is_write_blocked() {
        return;
    }
    for place in 0..state.tunnels.len() {
        let it = &state.tunnels[place];
        if it.is_open && !it.is_blocked() && !it.stream.is_sent() {
            let close = state.frame(place, true, |out, mask| {
                ws::write_close(out, Some(websocket::NORMAL_CLOSURE), Some(mask))
            });
            state.queue().push(&close);
        }
    }
    state.say_goodbye();
    state.send_waiting(&mut out.to);
}

#[cfg(test)]
mod tests;

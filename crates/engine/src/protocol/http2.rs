//! HTTP/2: requests on concurrent streams of a connection, each with its response.

use std::{borrow::Cow, cell::RefCell};

use net::Io;
use samples::{Detail, Kind, Rule};
use wire::http2::{
    self, CLIENT_PREFACE, Code, Connection, Context, Data, Event, Method, Role, SETTINGS_ACK, Scratch,
    Stream, Table, TakesFields,
};

use super::{Awaited, Head, Progress, Properties, Response, Speaks};
use crate::{
    check::Check,
    exchange::Exchange,
    failure::Failure,
    out::{Out, Writer},
    pool::NOTHING,
    pushes::Listens,
    request::{Call, Request},
    watch::Watch,
};

mod fields;
mod grpc;
mod leave;
mod output;
mod ping;
mod said;

use fields::Fields;
use grpc::Calling;
use leave::{leave, was_reset};
pub(super) use output::{Queue, frame, room};
use output::{SHORT, Waiting};
pub(crate) use ping::{keep_alive, ping};
pub(super) use said::Farewell;
use said::Said;

thread_local! {
    /// Buffer for the fields of heads: one for all connections of a shard, which has a thread.
    pub(super) static SCRATCH: RefCell<Box<Scratch>> = RefCell::default();

    /// Emptied lists of idle connections, for reuse: at most as many as were busy at the same time.
    static SPARE: RefCell<Vec<Vec<UnderWay>>> = const { RefCell::new(Vec::new()) };
}

/// What all connections share.
#[derive(Clone, Debug)]
pub(crate) struct Http2 {
    /// Maximum number of concurrent requests on a connection.
    streams: u16,
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) connection: Connection,
    /// Requests under way, in the order in which they began. Without allocation while there are none.
    pub(super) under_way: Vec<UnderWay>,
    /// The exchange that the input belongs to.
    reads: u32,
    /// Status and head length of the last complete response; [`NO_STATUS`] if it had none.
    last: (u16, u16),
    most: u16,
    /// The exchange that awaits the acknowledgement of a PING; [`NOTHING`] if none.
    pinged: u32,
    /// The server has sent its SETTINGS, which is still to be reported as [`Progress::Opened`].
    opens: bool,
    /// A WebSocket will be opened after the requests; the server must support that (RFC 8441 section 3).
    pub(super) is_upgraded: bool,
    rare: Option<Box<Rare>>,
}

/// The status of a response without one, such as the acknowledgement of a PING. Not 0, which is a gRPC status.
const NO_STATUS: (u16, u16) = (u16::MAX, 0);

/// State that few connections have.
#[derive(Debug, Default)]
struct Rare {
    queue: Queue,
    /// Incomplete bodies, in the order in which the requests began.
    waiting: Vec<Waiting>,
    /// The HPACK table, if the server uses one.
    table: Option<Box<Table>>,
    /// The server's GOAWAY.
    farewell: Farewell,
    said: Said,
}

const _: () = assert!(size_of::<State>() <= 104, "an idle connection has one");

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnderWay {
    pub(super) exchange: u32,
    pub(super) stream: Stream,
    /// 0 before the head has come.
    pub(super) status: u16,
    head_bytes: u16,
    call: Calling,
}

const _: () = assert!(size_of::<UnderWay>() <= 40, "each request under way has one");

impl UnderWay {
    pub(super) fn of(exchange: u32, stream: Stream, call: Option<Call>) -> UnderWay {
        UnderWay { exchange, stream, status: 0, head_bytes: 0, call: Calling::new(call) }
    }
}

impl Http2 {
    pub(super) fn new(streams: u16) -> Http2 {
        Http2 { streams }
    }

    pub(super) fn session(&self) -> Box<State> {
        Box::new(State {
            connection: Connection::new(Role::Client),
            under_way: Vec::new(),
            reads: NOTHING,
            last: NO_STATUS,
            most: self.streams,
            pinged: NOTHING,
            opens: false,
            is_upgraded: false,
            rare: None,
        })
    }

    pub(super) fn open<I: Io>(out: &mut Out<'_, I>) {
        out.to.send_static(CLIENT_PREFACE);
    }
}

impl State {
    /// Whether the server takes no new streams: after a GOAWAY, or because it allows none, which is an end too (RFC 9113 section
    /// 6.5.2).
    fn is_ending(&self) -> bool {
        let allows_none = || self.under_way.is_empty() && self.pinged == NOTHING && !self.opens;
        let is_open = self.connection.is_open();
        self.connection.is_leaving() || is_open && allows_none() && !self.connection.has_place()
    }

    /// Frees what an idle connection does not need; spare memory is reused.
    fn release(&mut self) {
        if self.under_way.is_empty() && self.under_way.capacity() > 0 {
            SPARE.with_borrow_mut(|spare| spare.push(std::mem::take(&mut self.under_way)));
        }
        self.drop_rare();
    }

    /// The underlying connection, for WebSockets, with output that is still queued. No request is under way.
    pub(super) fn into_connection(mut self) -> (Connection, Queue, Option<Box<Table>>) {
        let Rare { queue, table, .. } = self.rare.take().map(|rare| *rare).unwrap_or_default();
        self.release();
        (self.connection, queue, table)
    }

    fn queue(&mut self) -> &mut Queue {
        &mut self.rare.get_or_insert_default().queue
    }

    fn place(&self, number: u32) -> Option<usize> {
        // Stream numbers increase.
        self.under_way.binary_search_by_key(&number, |it| it.stream.id()).ok()
    }

    /// Ends a request, with or without a response. A stream that is not closed is reset: the response may have come before the
    /// whole body was sent, and then neither side counts the stream any longer.
    pub(super) fn end(&mut self, place: usize, code: Code) -> UnderWay {
        self.reads = NOTHING;
        let mut ended = self.under_way.remove(place);
        if let Some(rare) = &mut self.rare {
            rare.said.end(ended.exchange);
            rare.waiting.retain(|it| it.stream != ended.stream.id());
        }
        if !ended.stream.is_closed() {
            let reset = frame(|out| self.connection.cancel(out, &mut ended.stream, code));
            self.queue().push(&reset);
        }
        ended
    }

    fn is_call(&self, place: Option<usize>) -> bool {
        place.is_some_and(|place| self.under_way[place].call.is_one())
    }
}

pub(super) const PROPERTIES: Properties = Properties {
    is_http2: true,
    is_opened_by_server: true,
    may_send_again: true,
    is_known_by_dial: [false, false],
    ..Properties::PLAIN
};

impl Speaks for Box<State> {
    fn read<'a, L: Listens>(
        &mut self,
        input: &'a [u8],
        awaiting: Option<(&mut Exchange, Awaited)>,
        watch: Option<&mut Watch>,
        _: &mut L,
    ) -> Result<Progress<'a>, Failure> {
        handle_bytes(self, input, awaiting, watch)
    }

    fn reads(&self, _: u32) -> u32 {
        self.reads
    }

    fn is_going_away(&self) -> bool {
        self.connection.has_goaway()
    }

    fn error(&self) -> Detail {
        self.rare.as_ref().map_or(Detail::NONE, |rare| rare.farewell.error)
    }

    fn has_place(&self) -> bool {
        self.pinged == NOTHING
            && self.under_way.len() < usize::from(self.most)
            && self.connection.is_open()
            && self.connection.has_place()
    }

    fn rest(&mut self) {
        self.release();
    }

    fn response(&self) -> Response {
        let (status, bytes) = self.last;
        let head = (self.last != NO_STATUS).then_some(Head { status, bytes, keep_alive_s: None });
        // The connection ends with the last response that the server owes.
        let keeps_alive = !self.is_ending() || !self.under_way.is_empty();
        Response { head, keeps_alive }
    }

    fn allowed_streams(&self) -> Option<u32> {
        self.connection.allowed_streams()
    }

    fn waits_for_window(&self, exchange: u32) -> bool {
        self.waits(exchange)
    }

    fn cancel<I: Io>(&mut self, exchange: u32, out: &mut Out<'_, I>) -> bool {
        let Some(place) = self.under_way.iter().position(|it| it.exchange == exchange) else { return false };
        self.end(place, Code::CANCEL);
        self.send_waiting(&mut out.to);
        true
    }

    fn is_between_messages(&self) -> bool {
        false
    }

    fn said(&self) -> &[u8] {
        self.rare.as_ref().map_or(&[], |rare| rare.said.field())
    }

    fn farewell(&self) -> &[u8] {
        self.rare.as_ref().map_or(&[], |rare| rare.farewell.words())
    }

    fn has_output(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.queue.is_due())
    }

    fn send_more<I: Io>(&mut self, to: &mut Writer<'_, I>) {
        self.send_waiting(to);
    }
}

pub(super) fn send<I: Io>(
    request: &Request,
    state: &mut State,
    (index, exchange): (u32, &mut Exchange),
    destination: usize,
    out: &mut Out<'_, I>,
) {
    let State { connection, under_way, rare, .. } = state;
    if under_way.capacity() == 0 {
        *under_way = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
    }
    let Out { to, source } = out;
    rare.iter_mut().for_each(|rare| rare.queue.flush(to));
    let (block, drawn, expected) = request.fields(destination, to.index(), source);
    exchange.expected = expected;
    let body = if drawn.is_empty() { request.content() } else { drawn };
    let method = if request.is_head { Method::Head } else { Method::Other };
    // Earlier bodies are sent first.
    let waits = rare.as_ref().is_some_and(|rare| !rare.waiting.is_empty());
    let most = if waits || body.is_empty() { 0 } else { to.writable_len().min(body.len()) };
    to.send(room(block.len()) + room(most) + 2 * SHORT, |out| {
        let begun = connection.write_request(out, block, body.is_empty(), method);
        let (mut written, stream) = begun.expect("there is room, and a place");
        let mut it = UnderWay::of(index, stream, request.call);
        let (n, sent) = it.write_body(connection, &mut out[written..], body, most);
        written += n;
        if sent < body.len() {
            let (body, sent) = match drawn.is_empty() {
                true => (Cow::Borrowed(request.content()), sent),
                false => (Cow::Owned(drawn[sent..].to_vec()), 0),
            };
            rare.get_or_insert_default().waiting.push(Waiting { stream: it.stream.id(), body, sent });
        }
        under_way.push(it);
        written
    });
    if state.may_send() {
        to.call_when_writable();
    }
}

/// Announces the end of the connection, if the server reads.
pub(super) fn close<I: Io>(state: &mut State, out: &mut Out<'_, I>) {
    if !out.to.is_write_blocked() {
        out.to.send(SHORT, |out| {
            state.connection.goaway(out, Code::NO_ERROR).expect("there is room for a short frame")
        });
    }
}

fn handle_bytes<'a>(
    state: &mut State,
    input: &'a [u8],
    awaiting: Option<(&mut Exchange, Awaited)>,
    watch: Option<&mut Watch>,
) -> Result<Progress<'a>, Failure> {
    if state.opens && (state.connection.has_place() || state.connection.is_leaving()) {
        state.opens = false;
        return Ok(Progress::Opened(0));
    }
    if state.is_ending()
        && let Some(progress) = leave(state)
    {
        return Ok(progress);
    }
    if !state.connection.is_open() && input.starts_with(b"HTTP/1.") {
        return Err(Kind::NothingInCommon.into());
    }
    let place = state.place(state.connection.reads(input));
    // Input for no request may be the acknowledgement of a PING.
    let exchange = place.map_or(state.pinged, |place| state.under_way[place].exchange);
    if exchange != state.reads {
        state.reads = exchange;
        return Ok(Progress::Turned(0));
    }
    SCRATCH.with_borrow_mut(|scratch| read(state, input, place, (awaiting, watch), scratch))
}

fn read<'a>(
    state: &mut State,
    input: &[u8],
    place: Option<usize>,
    (awaiting, mut watch): (Option<(&mut Exchange, Awaited)>, Option<&mut Watch>),
    scratch: &mut Scratch,
) -> Result<Progress<'a>, Failure> {
    let none = Check::default();
    let (exchange, check, number) = match awaiting {
        Some((exchange, Awaited::Response(check))) => (Some(exchange), check, None),
        Some((exchange, Awaited::Pong)) => (None, &none, Some(exchange.expected)),
        _ => (None, &none, None),
    };
    let looks_at_type = state.is_call(place) && check.expected.headers.is_empty();
    let State { connection, under_way, rare, .. } = state;
    let stream = place.map(|place| &mut under_way[place].stream);
    let table = rare.as_mut().and_then(|rare| rare.table.as_deref_mut());
    let mut fields =
        check.wanted.as_ref().zip(watch.as_deref_mut()).map(|(wanted, watch)| Fields { wanted, watch });
    let fields = fields.as_mut().map(|fields| fields as &mut dyn TakesFields);
    let expected = if looks_at_type { &grpc::TYPE[..] } else { &check.expected.headers[..] };
    let context = Context { scratch, table, second: 0, expected, fields };
    let came = connection.handle_bytes(input, stream, context);
    let (n, event) = came.map_err(Failure::of_http2)?;
    let Some(event) = event else {
        return Ok(if n == 0 { Progress::More(0) } else { Progress::Turned(n) });
    };
    match (event, place, exchange) {
        (Event::Pong(payload), ..) => Ok(ping::acknowledge(state, u64::from_be_bytes(payload), number, n)),
        (Event::Head(head), Some(place), Some(exchange)) => {
            exchange.differs = !head.has_expected && !looks_at_type;
            if state.begin(place, &head) {
                let is_typed = head.grpc.is_typed || !looks_at_type;
                return Ok(grpc::head(state, place, &head, is_typed, n));
            }
            Ok(if head.ends { respond(state, place, n) } else { Progress::Began(n) })
        }
        (Event::Data(data), Some(place), Some(exchange)) => {
            take(state, place, &data, (exchange, check), watch, n)
        }
        (Event::Trailers(trailers), Some(place), Some(exchange)) if state.under_way[place].call.is_one() => {
            Ok(grpc::finish(state, place, &trailers.grpc, exchange, n))
        }
        (Event::Trailers(_), Some(place), Some(_)) => Ok(respond(state, place, n)),
        (Event::Reset(code), Some(place), _) => {
            state.end(place, code);
            Ok(was_reset(code, n))
        }
        (Event::StreamError(number, code), place, _) => {
            state.queue().reply(&frame(|out| http2::write_reset(out, number, code)))?;
            let Some(place) = place else { return Ok(Progress::Turned(n)) };
            state.end(place, code);
            Ok(Progress::Failed(n, Rule::Http2Response.into()))
        }
        (Event::Interim(_), ..) => {
            // The fields of an interim response do not belong to the response.
            check.wanted.iter().zip(watch).for_each(|(wanted, watch)| watch.begin_message(wanted));
            Ok(Progress::Turned(n))
        }
        (event, ..) => {
            control(state, &event)?;
            Ok(Progress::Turned(n))
        }
    }
}

/// Handles a frame that is not part of a response; replies are queued.
fn control(state: &mut State, event: &Event<'_>) -> Result<(), Failure> {
    match *event {
        Event::Opened if state.is_upgraded && !state.connection.takes_connect() => {
            return Err(Kind::NothingInCommon.into());
        }
        Event::Opened => {
            state.opens = true;
            state.queue().reply(SETTINGS_ACK)?;
        }
        Event::Settings => state.queue().reply(SETTINGS_ACK)?,
        Event::Ping(payload) => state.queue().reply(&frame(|out| http2::write_pong(out, payload)))?,
        Event::Window(_) => state.rare.iter_mut().for_each(|rare| rare.queue.touch()),
        Event::Goaway { code, debug, .. } if code != Code::NO_ERROR || !debug.is_empty() => {
            state.rare.get_or_insert_default().farewell = Farewell::new(Detail::of_goaway(code.0), debug);
        }
        Event::TableNeeded => state.rare.get_or_insert_default().table = Some(Box::default()),
        _ => {}
    }
    Ok(())
}

/// Reads a piece of a response's body.
fn take<'a>(
    state: &mut State,
    place: usize,
    data: &Data<'_>,
    (exchange, check): (&mut Exchange, &Check),
    mut watch: Option<&mut Watch>,
    used: usize,
) -> Result<Progress<'a>, Failure> {
    credit(state, place)?;
    if state.under_way[place].call.is_one() {
        return Ok(grpc::data(state, place, data, (exchange, check), watch, used));
    }
    exchange.content += data.bytes.len() as u64;
    exchange.found = check.content(exchange.found, &mut watch, data.bytes.iter().copied());
    Ok(if data.ends { respond(state, place, used) } else { Progress::Turned(used) })
}

/// The response on a stream is complete.
pub(super) fn respond<'a>(state: &mut State, place: usize, used: usize) -> Progress<'a> {
    let ended = state.end(place, Code::NO_ERROR);
    state.last = (ended.status, ended.head_bytes);
    Progress::Responded(used)
}

/// Sends WINDOW_UPDATE frames when they are due.
fn credit(state: &mut State, place: usize) -> Result<(), Failure> {
    let State { connection, under_way, .. } = state;
    let stream = &mut under_way[place].stream;
    let (all, own) = (connection.take_credit(), connection.take_stream_credit(stream));
    let updates = [(0, all), (stream.id(), own)];
    for (number, by) in updates {
        if let Some(by) = by {
            state.queue().reply(&frame(|out| http2::write_window_update(out, number, by)))?;
        }
    }
    Ok(())
}

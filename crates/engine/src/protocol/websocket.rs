//! WebSocket: the upgrade, messages and their echoes, and unsolicited messages.

use net::Io;
use plan::{Act, Activity, Population, Text};
use samples::Kind;
use units::Random;
use wire::websocket::{
    self, Data, Event, Frames, Key, MAX_CONTROL, MAX_HEADER, Opcode, Payload, Response, Role,
};

use super::{Awaited, Progress, Properties, Speaks};
use crate::{
    check::Check,
    exchange::{Exchange, NOT_OURS},
    expects_tls,
    failure::Failure,
    out::{Out, Writer},
    pushes::Listens,
    request::{Message, ValueSource},
    watch::Watch,
};

/// Size in bytes of the largest message accepted from a server (1 GiB). Messages are not stored, so this costs no memory.
pub(crate) const LARGEST_MESSAGE: u64 = 1 << 30;
/// Close code "normal closure" (RFC 6455, section 7.4.1).
pub(super) const NORMAL_CLOSURE: u16 = 1000;

/// The state of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    /// The response to the upgrade is awaited; the nonce of its key, and the offered sub-protocols.
    Upgrading(u64, Offered),
    Open(Frames),
}

/// The sub-protocols that an upgrade offers, separated by commas. One per population, kept for the life of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered(&'static String);

impl Offered {
    /// The sub-protocols offered in these fields.
    pub(super) fn by(fields: &[(String, Text)]) -> Offered {
        let own = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"));
        let text = own.and_then(|(_, value)| value.fixed_text()).unwrap_or_default();
        static NONE: String = String::new();
        Offered(if text.is_empty() { &NONE } else { Box::leak(Box::new(text.to_owned())) })
    }

    /// Whether any are offered.
    pub(super) fn is_any(self) -> bool {
        !self.0.is_empty()
    }

    /// Whether the server may choose this one.
    pub(super) fn has(self, chosen: &[u8]) -> bool {
        websocket::is_offered(self.0, chosen)
    }
}

impl State {
    pub(super) fn of_dial(upgrade: &Upgrade, random: &mut Random) -> State {
        State::Upgrading(random.bits(), upgrade.offered)
    }

    pub(super) fn open() -> State {
        State::Open(Frames::new(Role::Client))
    }
}

pub(super) const PROPERTIES: Properties = Properties {
    server_may_speak: true,
    has_messages: true,
    is_known_by_dial: [false, false],
    ..Properties::PLAIN
};

impl Speaks for State {
    fn read<'a, L: Listens>(
        &mut self,
        input: &'a [u8],
        awaiting: Option<(&mut Exchange, Awaited)>,
        watch: Option<&mut Watch>,
        listener: &mut L,
    ) -> Result<Progress<'a>, Failure> {
        handle_bytes(self, input, awaiting, watch, listener)
    }

    fn is_between_messages(&self) -> bool {
        match self {
            State::Upgrading(..) => true,
            State::Open(frames) => frames.is_between_messages(),
        }
    }
}

/// Sends a message or a control ping; `exchange` awaits the reply.
pub(super) fn send<I: Io>(message: &Message, exchange: Option<&mut Exchange>, out: &mut Out<'_, I>) {
    let mask = Some(mask(out.source));
    if message.is_ping() {
        // Random, so that no earlier pong matches.
        let number = out.source.random.bits();
        exchange.into_iter().for_each(|exchange| exchange.expected = number);
        return send_frame(Opcode::Ping, mask, &number.to_be_bytes(), &mut out.to);
    }
    let index = out.to.index();
    if exchange.is_some() {
        out.source.watch(index, &message.check, b"");
    }
    let (text, nth, expected) = message.write(index, out.source);
    exchange.into_iter().for_each(|exchange| (exchange.nth, exchange.expected) = (nth, expected));
    let opcode = if message.is_binary() { Opcode::Binary } else { Opcode::Text };
    send_frame(opcode, mask, text, &mut out.to);
}

/// Control frames that a client sends in reply: pongs and closes.
#[derive(Debug)]
pub(crate) enum Reply<'a> {
    /// Reply to a ping, with its payload (RFC 6455 section 5.5.3).
    Pong(Payload<'a>),
    /// Reply to the server's close, with its code (RFC 6455 section 5.5.1).
    Close(Option<u16>),
}

impl Reply<'_> {
    pub(super) fn send<I: Io>(self, out: &mut Out<'_, I>) {
        let mask = Some(mask(out.source));
        match self {
            // Not while the server reads nothing: output must not pile up, and a later pong may serve for this ping too.
            Reply::Pong(_) if out.to.is_write_blocked() => {}
            Reply::Pong(ping) => {
                let mut echo = [0; MAX_CONTROL];
                let echo = &mut echo[..ping.len()];
                ping.copy_to(echo);
                send_frame(Opcode::Pong, mask, echo, &mut out.to);
            }
            Reply::Close(code) => out.to.send(MAX_HEADER + MAX_CONTROL, |out| {
                websocket::write_close(out, code, mask).expect("there is room for a control frame")
            }),
        }
    }
}

/// Begins the closing handshake, if the server reads.
pub(super) fn close<I: Io>(out: &mut Out<'_, I>) {
    if !out.to.is_write_blocked() {
        Reply::Close(Some(NORMAL_CLOSURE)).send(out);
    }
}

/// Sends a text that is not the plan's.
pub(super) fn send_text<I: Io>(text: &str, out: &mut Out<'_, I>) {
    let mask = Some(mask(out.source));
    send_frame(Opcode::Text, mask, text.as_bytes(), &mut out.to);
}

fn send_frame<I: Io>(opcode: Opcode, mask: Option<[u8; 4]>, payload: &[u8], to: &mut Writer<'_, I>) {
    to.send(MAX_HEADER + payload.len(), |out| {
        websocket::write_frame(out, opcode, true, mask, payload).expect("there is room for a frame of ours")
    });
}

/// A new random mask for a frame (RFC 6455 section 5.3).
pub(super) fn mask(source: &mut ValueSource) -> [u8; 4] {
    (source.random.bits() as u32).to_be_bytes()
}

fn handle_bytes<'a>(
    state: &mut State,
    input: &'a [u8],
    awaiting: Option<(&mut Exchange, Awaited)>,
    watch: Option<&mut Watch>,
    listener: &mut impl Listens,
) -> Result<Progress<'a>, Failure> {
    match state {
        State::Open(frames) => read(frames, input, awaiting, watch, listener),
        State::Upgrading(..) if expects_tls::is_alert(input) => Err(Kind::TlsExpected.into()),
        State::Upgrading(nonce, offered) => {
            let response = websocket::read_response(input, &key(*nonce), offered.0);
            let is_tls = !matches!(response, Ok(None | Some((_, Response::Accepted)))) && is_tls_page(input);
            match response {
                _ if is_tls => Err(Kind::TlsExpected.into()),
                Ok(None) => Ok(Progress::More(0)),
                Ok(Some((n, Response::Accepted))) => {
                    *state = State::open();
                    Ok(Progress::Opened(n))
                }
                Ok(Some((_, Response::Refused(status)))) => Ok(Progress::Refused(status)),
                Err(breach) => Err(breach.into()),
            }
        }
    }
}

/// Whether the refusal of an upgrade shows that the target expects TLS.
fn is_tls_page(input: &[u8]) -> bool {
    let is_refusal = input.starts_with(b"HTTP/1.") && input.get(9..12) == Some(b"400");
    is_refusal && expects_tls::is_page(400, input)
}

pub(super) fn read<'a>(
    frames: &mut Frames,
    input: &'a [u8],
    mut awaiting: Option<(&mut Exchange, Awaited)>,
    mut watch: Option<&mut Watch>,
    listener: &mut impl Listens,
) -> Result<Progress<'a>, Failure> {
    let mut used = 0;
    loop {
        let (n, event) = frames.handle_bytes(&input[used..], LARGEST_MESSAGE)?;
        used += n;
        match (event, &mut awaiting) {
            (None, _) if n == 0 => return Ok(Progress::More(used)),
            (Some(Event::Ping(ping)), _) => {
                return Ok(Progress::Reply(used, super::Reply::WebSocket(Reply::Pong(ping))));
            }
            (Some(Event::Closing(closing)), _) => {
                let reply = super::Reply::WebSocket(Reply::Close(closing.code));
                return Ok(Progress::Ending(reply, closing.reason.plain().unwrap_or_default()));
            }
            // A piece of the awaited message.
            (Some(Event::Data(data)), Some((exchange, Awaited::Message(check, sent))))
                if data.begins || exchange.content != NOT_OURS =>
            {
                if listener.reads() {
                    listener.feed(&data);
                }
                if !take(exchange, &data, (check, sent), &mut watch) {
                    continue;
                }
                if !listener.reads() {
                    listener.ended(exchange.content);
                }
                let awaited = Awaited::Message(check, sent);
                let may_be_another = check.expected.skip || listener.is_marked();
                if listener.is_ruled() || may_be_another && is_wrong(exchange, awaited, check, &mut watch) {
                    // The awaited message comes later.
                    exchange.await_message(true);
                    return Ok(Progress::Pushed(used));
                }
                return Ok(Progress::Responded(used));
            }
            // An unsolicited message, or one that began before the request.
            (Some(Event::Data(data)), _) => {
                listener.feed(&data);
                if data.ends {
                    return Ok(Progress::Pushed(used));
                }
            }
            (Some(Event::Pong(echo)), Some((exchange, Awaited::Pong)))
                if echo.matches(&exchange.expected.to_be_bytes()) =>
            {
                return Ok(Progress::Responded(used));
            }
            // An old pong, or framing only.
            _ => {}
        }
    }
}

/// Whether a complete message is not the awaited one.
fn is_wrong(exchange: &Exchange, awaited: Awaited, check: &Check, watch: &mut Option<&mut Watch>) -> bool {
    let watched = check.wanted.as_ref().zip(watch.as_deref_mut());
    awaited.wrong(exchange, None).is_some() || watched.is_some_and(|(wanted, watch)| watch.differs(wanted))
}

/// Checks a piece of a message; returns whether the message is complete, right or wrong.
fn take(
    exchange: &mut Exchange,
    data: &Data<'_>,
    (check, sent): (&Check, &[u8]),
    watch: &mut Option<&mut Watch>,
) -> bool {
    if data.begins {
        exchange.content = 0;
        if let (Some(wanted), Some(watch)) = (&check.wanted, &mut *watch) {
            watch.begin_message(wanted);
        }
    }
    if check.expected.echo {
        let rest = sent.get(exchange.content as usize..).unwrap_or_default();
        let part = rest.get(..data.payload.len());
        exchange.differs |= !part.is_some_and(|part| data.payload.matches(part));
    }
    exchange.found = check.content(exchange.found, watch, data.payload.bytes());
    exchange.content += data.payload.len() as u64;
    exchange.differs |= check.expected.echo && data.ends && exchange.content != sent.len() as u64;
    data.ends
}

/// The key of an upgrade. Its nonce only needs to be different for each connection (RFC 6455 section 4.1).
fn key(nonce: u64) -> Key {
    Key::new(u128::from(nonce) << 64 | u128::from(!nonce))
}

/// The upgrade request of a population; each one sent has a new key.
#[derive(Clone, Debug)]
pub(crate) struct Upgrade {
    path: Text,
    /// For each destination, the value of the Host field.
    hosts: Vec<String>,
    /// Further header fields, as lines.
    fields: Text,
    /// Whether these contain cookies: then those of the connection are not sent.
    has_cookies: bool,
    offered: Offered,
}

/// Octets of an upgrade request besides path, host and further fields, rounded up.
const UPGRADE_ROOM: usize = 256;

impl Upgrade {
    pub(super) fn new(population: &Population) -> Upgrade {
        let target = &population.target;
        let hosts = (0..target.destinations.len()).map(|at| target.host_header(at)).collect();
        let (path, headers) = request_of(population);
        let (offered, fields) = (Offered::by(headers), Text::of_fields(headers));
        let has_cookies = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        Upgrade { path: path.clone(), hosts, fields, has_cookies, offered }
    }

    /// Sends the request on a connection in this state.
    pub(super) fn send<I: Io>(&self, state: &State, destination: usize, out: &mut Out<'_, I>) {
        let State::Upgrading(nonce, _) = *state else { unreachable!("dialled with a nonce") };
        let Out { to, source } = out;
        let (index, host) = (to.index(), &self.hosts[destination]);
        let (path, fields) = source.texts(&self.path, &self.fields, index);
        let (path, fields) = (path.to_owned(), fields.to_owned());
        let room = UPGRADE_ROOM + path.len() + host.len() + fields.len() + source.cookie_room();
        to.send(room, |out| {
            let written = websocket::write_upgrade(out, &path, host, &fields, &key(nonce));
            let end = written.expect("there is room for the request");
            if self.has_cookies { end } else { source.add_cookies(index, path.as_bytes(), end, out) }
        });
    }
}

/// Path and further fields of the request that opens a WebSocket: those of the upgrade step, or else the target's.
pub(super) fn request_of(population: &Population) -> (&Text, &[(String, Text)]) {
    let Population { target, activity, headers, .. } = population;
    let steps = if let Activity::Steps { steps, .. } = activity { &steps[..] } else { &[] };
    let own = steps.iter().find_map(|step| match &step.act {
        Act::Upgrade { path, headers, .. } => Some((path, &headers[..])),
        _ => None,
    });
    own.unwrap_or((&target.path, headers))
}

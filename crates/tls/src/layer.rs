//! [`Tls`], the layer: the TLS state of a shard's connections, and the processing of their bytes.
//!
//! During the handshake a connection has a [`Handshake`] in a separate table; afterwards only a [`Held`]. Everything else (output that was
//! not taken, partial messages, tickets to come) is in maps that contain only the connections that need it.

use std::{collections::HashMap, sync::Arc};

use net::{Layer, Opening, Unsealed};
use rustls::{
    ClientConfig, ServerConfig, client::ClientConnectionData, kernel::KernelConnection, pki_types::ServerName,
};

use crate::{
    error::Error,
    handshake::{Captured, Handshake, Outcome},
    keys::{RECORDS_PER_KEY, Secret, Suite, Version},
    messages::{self, Message},
    record::{self, Content, MAX_CONTENT},
    tickets::Tickets,
    warm::{Direction, Warm},
};

pub mod trial;

/// Maximum consecutive records without data: tickets, KeyUpdates, empty records. Servers send a few tickets; OpenSSL has the same limit.
const MAX_WITHOUT_DATA: u8 = 32;
/// Maximum number of connections that wait for tickets at once: rustls's state for reading tickets is kept for these.
const MAX_AWAITING_TICKETS: usize = 256;
/// Peak number of simultaneous handshakes from which their memory is returned when most are complete: some megabytes.
const PEAK: usize = 1024;
/// Levels and descriptions of alerts (RFC 8446, section 6).
const WARNING: u8 = 1;
const FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;
const USER_CANCELED: u8 = 90;
const NO_RENEGOTIATION: u8 = 100;

/// Which side of the connections this is.
pub(crate) enum Side {
    Client { config: Arc<ClientConfig>, names: Vec<ServerName<'static>>, tickets: Option<Arc<Tickets>> },
    Server(Arc<ServerConfig>),
}

/// The TLS layer of one shard.
pub struct Tls {
    side: Side,
    captured: Arc<Captured>,
    held: Vec<Held>,
    handshakes: HashMap<u32, Box<Handshake>>,
    /// Peak number of simultaneous handshakes since [`Layer::shrink`] last freed memory.
    peak: usize,
    /// The layer's own output, such as handshake records, that was not taken yet.
    output: HashMap<u32, Vec<u8>>,
    /// The start of a handshake message that spans several records.
    partial: HashMap<u32, Vec<u8>>,
    awaiting_tickets: HashMap<u32, KernelConnection<ClientConnectionData>>,
    warm: Warm,
    /// Output buffer of a handshake step, copied to `output` at its final length.
    scratch: Vec<u8>,
}

/// The state of an open connection.
#[derive(Clone, Copy)]
struct Held {
    tx: Half,
    rx: Half,
    /// `None` until the handshake is complete.
    suite: Option<Suite>,
    /// Number of consecutive records without data.
    without_data: u8,
    /// Whether the peer has requested a KeyUpdate. It is sent with the next data, which is early enough (RFC 8446, section 4.6.3), and one
    /// answers all requests: a peer that sends endless requests and does not read cannot make a queue grow.
    owes_key_update: bool,
    /// Whether the peer has sent close_notify.
    closed: bool,
    /// Whether close_notify was sent to the peer.
    said_close: bool,
    /// TLS 1.2: whether a renegotiation was refused.
    refused: bool,
}

const _: () = assert!(size_of::<Held>() <= 120, "what a million idle connections cost");

/// One direction of a connection.
#[derive(Clone, Copy)]
struct Half {
    secret: Secret,
    /// The number of the next record.
    number: u64,
}

const NEW: Held = {
    let half = Half { secret: Secret::NONE, number: 0 };
    Held {
        tx: half,
        rx: half,
        suite: None,
        without_data: 0,
        owes_key_update: false,
        closed: false,
        said_close: false,
        refused: false,
    }
};

impl Tls {
    pub(crate) fn new(side: Side, captured: Arc<Captured>) -> Tls {
        Tls {
            side,
            captured,
            held: Vec::new(),
            handshakes: HashMap::new(),
            peak: 0,
            output: HashMap::new(),
            partial: HashMap::new(),
            awaiting_tickets: HashMap::new(),
            warm: Warm::default(),
            scratch: Vec::new(),
        }
    }

    /// Reserves memory for this many connections; it is touched only as they open.
    #[must_use]
    pub fn with_capacity(mut self, connections: u32) -> Tls {
        self.held.reserve_exact(connections as usize);
        self
    }

    fn shake_hands(&mut self, index: u32, input: &mut [u8]) -> Result<Unsealed, Error> {
        let Tls { handshakes, scratch, captured, .. } = self;
        let Some(handshake) = handshakes.get_mut(&index) else { return Err(Error::Unexpected) };
        if !record::is_plausible(input) {
            return Err(Error::NotTls);
        }
        scratch.clear();
        let outcome = handshake.handle_bytes(input, scratch, captured);
        if !scratch.is_empty() {
            self.output.entry(index).or_default().extend_from_slice(scratch);
        }
        let (used, is_over) = outcome?;
        if !is_over {
            return Ok(Unsealed::More(used));
        }
        let handshake = self.handshakes.remove(&index).expect("it was there just now");
        Ok(Unsealed::Opened(used, self.opened(index, handshake.finish()?)))
    }

    fn opened(&mut self, index: u32, outcome: Outcome) -> Opening {
        let Outcome { suite, tx, rx, resumed, alpn, rest } = outcome;
        let half = |(secret, number)| Half { secret, number };
        self.held[index as usize] = Held { tx: half(tx), rx: half(rx), suite: Some(suite), ..NEW };
        self.warm.forget(index, Direction::Out);
        self.warm.forget(index, Direction::In);
        if let (Side::Client { tickets: Some(tickets), names, .. }, Some(rest)) = (&self.side, rest) {
            let is_wanted = names.len() > 1 || names.first().is_some_and(|name| tickets.wants_more(name));
            if suite.version == Version::Tls13
                && is_wanted
                && self.awaiting_tickets.len() < MAX_AWAITING_TICKETS
            {
                self.awaiting_tickets.insert(index, rest);
            }
        }
        Opening { resumed, http2: alpn.as_deref() == Some(b"h2") }
    }

    /// Opens records up to the first that contains data.
    fn read_records(&mut self, index: u32, suite: Suite, input: &mut [u8]) -> Result<Unsealed, Error> {
        if self.held[index as usize].closed {
            // Whatever follows a close_notify is ignored (RFC 8446, section 6.1).
            return Ok(Unsealed::More(input.len()));
        }
        let mut used = 0;
        while let Some(length) = record::length(&input[used..])? {
            let held = &mut self.held[index as usize];
            let Half { secret, number } = held.rx;
            let keys = self.warm.get(index, Direction::In, || secret.keys(suite));
            let (content, range) = record::open(keys, number, &mut input[used..used + length])?;
            held.rx.number += 1;
            let range = used + range.start..used + range.end;
            used += length;
            if content == Content::Data && !range.is_empty() {
                held.without_data = 0;
                if self.partial.contains_key(&index) {
                    // A handshake message may not be interrupted by other records (RFC 8446, section 5.1).
                    return Err(Error::Unexpected);
                }
                if !self.awaiting_tickets.is_empty() {
                    self.awaiting_tickets.remove(&index);
                }
                return Ok(Unsealed::Bytes(used, range));
            }
            held.without_data += 1;
            if held.without_data > MAX_WITHOUT_DATA {
                return Err(Error::Flood);
            }
            match content {
                Content::Data => {}
                Content::Alert => {
                    if is_close(&input[range], suite.version)? {
                        self.held[index as usize].closed = true;
                        return Ok(Unsealed::Closed(used));
                    }
                }
                Content::Handshake => self.read_messages(index, suite, &input[range])?,
            }
        }
        Ok(Unsealed::More(used))
    }

    fn read_messages(&mut self, index: u32, suite: Suite, bytes: &[u8]) -> Result<(), Error> {
        if suite.version == Version::Tls12 {
            return self.refuse_renegotiation(index, bytes);
        }
        if bytes.is_empty() {
            // A handshake record may not be empty (RFC 8446, section 5.1).
            return Err(Error::Unexpected);
        }
        let mut whole = self.partial.remove(&index).unwrap_or_default();
        whole.extend_from_slice(bytes);
        let mut rest = &whole[..];
        while let Some((length, message)) = messages::read(rest)? {
            rest = &rest[length..];
            match message {
                Message::Ticket(body) => self.take_ticket(index, body)?,
                // Later records use another key, so nothing may follow in this one (RFC 8446, section 5.1).
                Message::KeyUpdate { .. } if !rest.is_empty() => return Err(Error::Unexpected),
                Message::KeyUpdate { asks } => {
                    let held = &mut self.held[index as usize];
                    held.rx = Half { secret: held.rx.secret.next(suite), number: 0 };
                    held.owes_key_update |= asks;
                    self.warm.forget(index, Direction::In);
                }
            }
        }
        if !rest.is_empty() {
            let rest = rest.to_vec();
            self.partial.insert(index, rest);
        }
        Ok(())
    }

    /// TLS 1.2: refuses the first renegotiation by a warning, after which the peer may continue without one (RFC 5246, section 7.2.2). A
    /// further attempt is an error.
    fn refuse_renegotiation(&mut self, index: u32, bytes: &[u8]) -> Result<(), Error> {
        let asks = match self.side {
            Side::Client { .. } => messages::HELLO_REQUEST,
            Side::Server(_) => messages::CLIENT_HELLO,
        };
        let held = &mut self.held[index as usize];
        if bytes.first() != Some(&asks) || std::mem::replace(&mut held.refused, true) {
            return Err(Error::Unexpected);
        }
        self.send_alert(index, WARNING, NO_RENEGOTIATION);
        Ok(())
    }

    fn take_ticket(&mut self, index: u32, body: &[u8]) -> Result<(), Error> {
        if matches!(self.side, Side::Server(_)) {
            return Err(Error::Unexpected);
        }
        match self.awaiting_tickets.get_mut(&index) {
            None => Ok(()),
            Some(rest) => rest.handle_new_session_ticket(body).map_err(Error::from),
        }
    }

    /// Seals one record. The last record that a key may seal is always a close_notify, in place of what was passed; none follows.
    fn seal_record(&mut self, index: u32, content: Content, bytes: &[u8], out: &mut [u8]) -> usize {
        let held = &mut self.held[index as usize];
        let Some(suite) = held.suite else { return 0 };
        let (content, bytes) = match suite.max_records() {
            Some(most) if held.tx.number >= most => return 0,
            Some(most) if held.tx.number + 1 == most => (Content::Alert, &[WARNING, CLOSE_NOTIFY][..]),
            _ => (content, bytes),
        };
        let Half { secret, number } = held.tx;
        held.tx.number += 1;
        let keys = self.warm.get(index, Direction::Out, || secret.keys(suite));
        record::seal(keys, number, content, bytes, out)
    }

    /// Writes a KeyUpdate if one is owed or the key has sealed enough records; returns its length.
    fn update_key(&mut self, index: u32, out: &mut [u8]) -> usize {
        let held = &self.held[index as usize];
        let Some(suite @ Suite { version: Version::Tls13, .. }) = held.suite else { return 0 };
        if !held.owes_key_update && held.tx.number < RECORDS_PER_KEY {
            return 0;
        }
        let length = self.seal_record(index, Content::Handshake, &messages::KEY_UPDATED, out);
        self.held[index as usize].owes_key_update = false;
        self.change_key(index, suite);
        length
    }

    fn change_key(&mut self, index: u32, suite: Suite) {
        let held = &mut self.held[index as usize];
        held.tx = Half { secret: held.tx.secret.next(suite), number: 0 };
        self.warm.forget(index, Direction::Out);
    }

    fn send_alert(&mut self, index: u32, level: u8, alert: u8) {
        let mut out = [0; 2 + record::MAX_OVERHEAD];
        let length = self.seal_record(index, Content::Alert, &[level, alert], &mut out);
        if length > 0 {
            self.output.entry(index).or_default().extend_from_slice(&out[..length]);
        }
    }
}

/// Whether an alert announces the end of the peer's data. Other warnings are ignored; TLS 1.3 has none (RFC 8446, section 6).
fn is_close(alert: &[u8], version: Version) -> Result<bool, Error> {
    match alert {
        [_, CLOSE_NOTIFY] => Ok(true),
        [_, USER_CANCELED] => Ok(false),
        [WARNING, _] if version == Version::Tls12 => Ok(false),
        [_, other] => match Error::of_alert((*other).into()) {
            // The handshake is complete, so the peer refuses another one here (RFC 5246, section 7.4.1.1).
            Error::NothingInCommon => Err(Error::Alert(*other)),
            error => Err(error),
        },
        // An empty alert: RFC 8446, section 5.4.
        [] if version == Version::Tls13 => Err(Error::Unexpected),
        _ => Err(Error::Malformed),
    }
}

impl Layer for Tls {
    type Error = Error;

    fn open(&mut self, index: u32, destination: u16) -> Result<(), Error> {
        let at = index as usize;
        if at >= self.held.len() {
            self.held.resize(at + 1, NEW);
        }
        self.held[at] = NEW;
        let handshake = match &self.side {
            Side::Client { config, names, .. } => {
                let name = names.get(usize::from(destination)).unwrap_or(&names[0]);
                Handshake::client(config, name.clone())?
            }
            Side::Server(config) => Handshake::server(config)?,
        };
        self.handshakes.insert(index, Box::new(handshake));
        self.peak = self.peak.max(self.handshakes.len());
        self.shake_hands(index, &mut []).map(|_| ())
    }

    fn handle_bytes(&mut self, index: u32, input: &mut [u8]) -> Result<Unsealed, Error> {
        let Some(suite) = self.held[index as usize].suite else { return self.shake_hands(index, input) };
        let outcome = self.read_records(index, suite, input);
        if let Err(alert) = outcome.as_ref().map_err(|e| e.alert())
            && let Some(alert) = alert
        {
            self.send_alert(index, FATAL, alert);
        }
        outcome
    }

    fn poll_output(&mut self, index: u32) -> Vec<u8> {
        if self.output.is_empty() {
            return Vec::new();
        }
        self.output.remove(&index).unwrap_or_default()
    }

    fn sealed_len(&self, length: usize) -> usize {
        record::sealed_len(length) + messages::KEY_UPDATED.len() + record::MAX_OVERHEAD
    }

    fn seal(&mut self, index: u32, bytes: &[u8], out: &mut [u8]) -> usize {
        let mut length = 0;
        for part in bytes.chunks(MAX_CONTENT) {
            length += self.update_key(index, &mut out[length..]);
            length += self.seal_record(index, Content::Data, part, &mut out[length..]);
        }
        length
    }

    fn is_used_up(&self, index: u32) -> bool {
        let held = self.held.get(index as usize);
        let suite = held.and_then(|held| held.suite);
        suite.is_some_and(|suite| suite.max_records().is_some())
            && held.is_some_and(|held| held.tx.number >= RECORDS_PER_KEY)
    }

    fn close(&mut self, index: u32) {
        if !std::mem::replace(&mut self.held[index as usize].said_close, true) {
            self.send_alert(index, WARNING, CLOSE_NOTIFY);
        }
    }

    fn is_closed(&self, index: u32) -> bool {
        self.held.get(index as usize).is_some_and(|held| held.closed)
    }

    fn end(&mut self, index: u32) {
        if let Some(held) = self.held.get_mut(index as usize) {
            *held = NEW;
        }
        self.handshakes.remove(&index);
        self.output.remove(&index);
        self.partial.remove(&index);
        self.awaiting_tickets.remove(&index);
    }

    fn shrink(&mut self) -> bool {
        let under_way = self.handshakes.len();
        if self.peak < PEAK || under_way > self.peak / 8 {
            return false;
        }
        self.peak = under_way;
        self.handshakes.shrink_to_fit();
        self.output.shrink_to_fit();
        true
    }
}

//! What is spoken: what goes out, and which machine of `wire` reads the answer. A further protocol is a further arm.

use plan::{Expect, Plan, Random, Scheme};
use wire::{
    http1,
    websocket::{self, Frames, Opcode, Role},
};

use crate::exchange::{self, Exchange, Wire};

use self::request::{PLACEHOLDER, Request};

mod request;

/// What is spoken.
#[derive(Clone, Debug)]
pub(crate) enum Protocol {
    /// HTTP/1.1: a request, an answer, a pause, again.
    Http(Request),
    /// WebSocket: an upgrade, then messages and their echoes.
    WebSocket(Upgrade, Message),
    /// Raw TCP: messages and their echoes; without a message, open and hold.
    Tcp(Option<Message>),
}

/// A message whose echo is awaited.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) bytes: &'static [u8],
}

/// The request that begins a WebSocket, with a key of its own each time.
#[derive(Clone, Debug)]
pub(crate) struct Upgrade {
    request: Request,
    /// Where the key begins, from the end of the request.
    key_from_end: usize,
}

impl Message {
    /// A control ping: there is nothing to send but a number.
    pub(crate) fn is_ping(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl Protocol {
    /// Compiles what a plan says of it.
    pub(crate) fn new(plan: &Plan) -> Protocol {
        let target = &plan.target;
        let head = |write: &dyn Fn(&mut [u8], &str) -> Option<usize>, i: usize| {
            let host = target.host_header(i);
            let mut head = vec![0; host.len() + 256];
            let len = write(&mut head, &host).expect("256 bytes hold all but the host");
            head.truncate(len);
            head
        };
        let heads = |write| (0..target.destinations.len()).map(move |i| head(write, i));
        // Kept for the life of the process, as what is sent without a copy must be.
        let message = plan.message.as_ref().map(|m| Message { bytes: m.text.clone().into_bytes().leak() });
        match target.scheme {
            Scheme::Tcp => Protocol::Tcp(message),
            Scheme::Http => {
                let write: &dyn Fn(&mut [u8], &str) -> Option<usize> =
                    &|out, host| http1::write_request(out, "GET", PLACEHOLDER, host);
                Protocol::Http(Request::new(target.path.clone(), heads(write)).fixed_where_it_can_be())
            }
            Scheme::Ws => {
                let key = exchange::key(0);
                let write: &dyn Fn(&mut [u8], &str) -> Option<usize> =
                    &|out, host| websocket::write_upgrade(out, PLACEHOLDER, host, &key);
                let request = Request::new(target.path.clone(), heads(write));
                let behind = request.behind(0);
                let at = behind.windows(key.as_bytes().len()).position(|part| part == key.as_bytes());
                let key_from_end = behind.len() - at.expect("the upgrade carries its key");
                let message = message.expect("a plan for WebSocket has a message");
                Protocol::WebSocket(Upgrade { request, key_from_end }, message)
            }
        }
    }

    /// What is sent again and again, where that is a message.
    pub(crate) fn message(&self) -> Option<&Message> {
        match self {
            Protocol::Http(_) => None,
            Protocol::WebSocket(_, message) => Some(message),
            Protocol::Tcp(message) => message.as_ref(),
        }
    }

    /// The machine for a connection that is dialled.
    pub(crate) fn wire_of_dial(&self, random: &mut Random) -> Wire {
        match self {
            Protocol::WebSocket(..) => Wire::Upgrade(random.bits()),
            _ => self.wire(),
        }
    }

    /// The machine for a connection that stands.
    pub(crate) fn wire(&self) -> Wire {
        match self {
            Protocol::Http(_) => Wire::Http(http1::Client::new()),
            Protocol::WebSocket(..) => Wire::WebSocket(Frames::new(Role::Client)),
            Protocol::Tcp(_) => Wire::Tcp,
        }
    }

    /// What is sent to this destination, where it is the same each time.
    pub(crate) fn fixed(&self, destination: usize) -> Option<&'static [u8]> {
        match self {
            Protocol::Http(request) => request.fixed(destination),
            // Each frame has a mask of its own (RFC 6455 section 5.3).
            Protocol::WebSocket(..) => None,
            Protocol::Tcp(message) => message.as_ref().map(|message| message.bytes),
        }
    }

    /// Bytes that a request may take.
    pub(crate) fn max_len(&self, destination: usize) -> usize {
        match self {
            Protocol::Http(request) => request.max_len(destination),
            Protocol::WebSocket(_, message) => message.bytes.len() + websocket::MAX_HEADER + PING,
            Protocol::Tcp(_) => 0,
        }
    }

    /// Begins a request in `exchange` and writes it; returns its length. What is [fixed](Protocol::fixed) is not
    /// written: 0.
    pub(crate) fn write(
        &self,
        destination: usize,
        exchange: &mut Exchange,
        random: &mut Random,
        out: &mut [u8],
        expect: Expect,
    ) -> usize {
        match self {
            Protocol::Http(request) => {
                let (len, expected) = request.write(destination, random, out, expect);
                exchange.expected = expected.unwrap_or(u64::MAX);
                len
            }
            Protocol::WebSocket(_, message) => {
                let mask = Some((random.bits() as u32).to_be_bytes());
                let len = if message.is_ping() {
                    exchange.expected = random.bits();
                    let ping = exchange.expected.to_be_bytes();
                    websocket::write_frame(out, Opcode::Ping, true, mask, &ping)
                } else {
                    websocket::write_frame(out, Opcode::Text, true, mask, message.bytes)
                };
                len.expect("there is room for a frame of ours")
            }
            Protocol::Tcp(_) => 0,
        }
    }
}

/// Bytes of a control ping: a number, so that no earlier pong passes for its own.
const PING: usize = 8;

impl Upgrade {
    /// Bytes that it may take.
    pub(crate) fn max_len(&self, destination: usize) -> usize {
        self.request.max_len(destination)
    }

    /// Writes it with the key of `nonce`; returns its length.
    pub(crate) fn write(&self, destination: usize, nonce: u64, random: &mut Random, out: &mut [u8]) -> usize {
        let (len, _) = self.request.write(destination, random, out, Expect::default());
        let key = exchange::key(nonce);
        let at = len - self.key_from_end;
        out[at..at + key.as_bytes().len()].copy_from_slice(key.as_bytes());
        len
    }
}

//! The connection of a client, from the upgrade to the close.

use std::sync::Arc;

use engine::{Failure, LARGEST_MESSAGE};
use net::{Cx, Io, Key};
use samples::{Kind, Stage};
use units::Nanos;
use wire::websocket::{self, Data, Event, Frames, MAX_CONTROL, MAX_HEADER, Opcode, Payload, Response, Role};

use super::ClientShard;
use crate::{
    client::{Lost, PING, State},
    history::Partial,
};

/// Octets of an upgrade request besides path and host, rounded up.
const UPGRADE_ROOM: usize = 256;
/// Close code "normal closure" (RFC 6455, section 7.4.1).
const NORMAL_CLOSURE: u16 = 1000;

/// The key of an upgrade. Its nonce only needs to be different for each connection (RFC 6455 section 4.1).
fn key(nonce: u64) -> websocket::Key {
    websocket::Key::new(u128::from(nonce) << 64 | u128::from(!nonce))
}

/// The result of reading a piece of input.
enum Came {
    /// This many bytes were read; there may be more.
    Read(usize),
    /// The rest is incomplete.
    Rest,
    /// The client is lost.
    Over(Lost),
}

impl ClientShard {
    /// The transport is open: requests the WebSocket.
    pub(super) fn upgrade<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32) {
        let (now, nonce) = (cx.now(), self.random.bits());
        let ClientShard { clients, random, .. } = self;
        let client = clients.get_mut(&number).expect("a connection belongs to a client");
        (client.since, client.state) = (now, State::Upgrading(nonce));
        let target = client.target.clone();
        let (path, fields, host) = target.request(number, client.destination, random);
        self.send(cx, k, UPGRADE_ROOM + path.len() + fields.len() + host.len(), |out| {
            let written = websocket::write_upgrade(out, &path, host, &fields, &key(nonce));
            written.expect("there is room for the request")
        });
    }

    /// Reads all input that has arrived; returns the number of bytes used.
    pub(super) fn read<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let came = match self.client(number).state {
                State::Upgrading(nonce) => self.read_response(cx, k, number, nonce, &input[used..]),
                State::Open(frames) => self.read_frame(cx, k, number, frames, &input[used..]),
                _ => Came::Read(input.len() - used),
            };
            match came {
                Came::Read(0) | Came::Rest => return used,
                Came::Read(n) => used += n,
                Came::Over(why) => {
                    self.lose(cx, number, why);
                    return input.len();
                }
            }
        }
    }

    fn read_response<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        number: u32,
        nonce: u64,
        input: &[u8],
    ) -> Came {
        let wrong = |failure: Failure| Came::Over(Lost::Fault(failure.at(Stage::Handshake)));
        match websocket::read_response(input, &key(nonce), "") {
            Ok(None) => Came::Rest,
            Ok(Some((n, Response::Accepted))) => {
                self.connected(cx, k, number);
                Came::Read(n)
            }
            Ok(Some((_, Response::Refused(_)))) => wrong(Kind::WrongStatus.into()),
            Err(breach) => wrong(breach.into()),
        }
    }

    fn connected<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32) {
        let now = cx.now();
        let ClientShard { clients, random, tick, .. } = self;
        let client = clients.get_mut(&number).expect("a connection belongs to a client");
        tick.handshake.record(now.since(client.since));
        tick.counts.opened += 1;
        tick.open += 1;
        client.state = State::Open(Frames::new(Role::Client));
        client.ping_due = now + Nanos(random.between(0, client.ping.0));
        for text in std::mem::take(&mut client.unsent) {
            self.tell(cx, k, number, text);
        }
        self.set_timer(cx, k, number);
    }

    /// Sets the timer for the next ping, or for the time limit on silence.
    pub(super) fn set_timer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32) {
        let client = self.client(number);
        let at = if client.is_open() { client.ping_due.min(client.silent_at()) } else { client.silent_at() };
        cx.wake_at(k, at);
    }

    fn read_frame<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        number: u32,
        mut frames: Frames,
        input: &[u8],
    ) -> Came {
        let (n, event) = match frames.handle_bytes(input, LARGEST_MESSAGE) {
            Ok(came) => came,
            Err(breach) => return Came::Over(Lost::Fault(Failure::from(breach).at(Stage::Exchange))),
        };
        self.client(number).state = State::Open(frames);
        match event {
            None if n == 0 => return Came::Rest,
            Some(Event::Data(data)) => self.take(cx.now(), number, &data),
            Some(Event::Ping(ping)) => self.pong(cx, k, ping),
            Some(Event::Closing(closing)) => {
                self.close(cx, k, closing.code);
                return Came::Over(Lost::Closed(closing.code));
            }
            Some(Event::Pong(_)) | None => {}
        }
        Came::Read(n)
    }

    /// Reads a piece of a message.
    fn take(&mut self, now: Nanos, number: u32, data: &Data<'_>) {
        let ClientShard { clients, tick, ping, .. } = self;
        let client = clients.get_mut(&number).expect("a connection belongs to a client");
        let mut partial =
            if data.begins { Box::<Partial>::default() } else { client.partial.take().unwrap_or_default() };
        partial.add(data.payload.len(), data.payload.bytes());
        if !data.ends {
            client.partial = Some(partial);
            return;
        }
        if !(data.text && partial.is(PING)) {
            tick.counts.pushed += 1;
            client.received.add(partial.text(data.text).into());
            return;
        }
        client.received.add(Arc::clone(ping));
        if let Some(due) = client.pinged.take() {
            tick.latency.record(now.since(due));
            tick.counts.answered += 1;
            tick.counts.body_bytes_in += PING.len() as u64;
            tick.waiting -= 1;
        }
    }

    fn pong<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, ping: Payload<'_>) {
        // Not while the server reads nothing: output must not pile up, and a later pong may serve for this ping too.
        if !cx.is_write_blocked(k) {
            let mut echo = [0; MAX_CONTROL];
            let echo = &mut echo[..ping.len()];
            ping.copy_to(echo);
            self.send_frame(cx, k, Opcode::Pong, echo);
        }
    }

    /// Begins the closing handshake, if the client is connected and the server reads.
    pub(super) fn say_goodbye<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32) {
        if self.client(number).is_open() && !cx.is_write_blocked(k) {
            self.close(cx, k, Some(NORMAL_CLOSURE));
        }
    }

    fn close<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, code: Option<u16>) {
        let mask = Some(self.mask());
        self.send(cx, k, MAX_HEADER + MAX_CONTROL, |out| {
            websocket::write_close(out, code, mask).expect("there is room for a control frame")
        });
    }

    pub(super) fn send_frame<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, opcode: Opcode, payload: &[u8]) {
        let mask = Some(self.mask());
        self.send(cx, k, MAX_HEADER + payload.len(), |out| {
            websocket::write_frame(out, opcode, true, mask, payload)
                .expect("there is room for a frame of ours")
        });
    }

    /// A new random mask for a frame (RFC 6455 section 5.3).
    fn mask(&mut self) -> [u8; 4] {
        (self.random.bits() as u32).to_be_bytes()
    }
}

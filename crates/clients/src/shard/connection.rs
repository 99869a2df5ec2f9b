//! The connection of a client, from the upgrade to the close.

use std::sync::Arc;

use engine::{Came, Writer};
use net::{Cx, Io, Key};
use samples::Stage;
use units::Nanos;

use super::ClientShard;
use crate::client::{Lost, PING, State};

impl ClientShard {
    /// The transport is open: requests the WebSocket.
    pub(super) fn upgrade<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32) {
        let now = cx.now();
        let ClientShard { clients, sessions, layers, tick, .. } = self;
        let client = clients.get_mut(&number).expect("a connection belongs to a client");
        (client.since, client.state) = (now, State::Upgrading);
        let to = Writer::new(cx, k, layers.of(&client.target), &mut tick.counts.bytes_out);
        client.session = Some(sessions.open(&client.target.protocol, (number, client.destination), to));
    }

    /// Reads all input that has arrived; returns the number of bytes used.
    pub(super) fn read<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let ClientShard { clients, sessions, layers, tick, .. } = self;
            let client = clients.get_mut(&number).expect("a connection belongs to a client");
            let stage = if client.is_open() { Stage::Exchange } else { Stage::Handshake };
            let Some(session) = &mut client.session else { return input.len() };
            let to = Writer::new(cx, k, layers.of(&client.target), &mut tick.counts.bytes_out);
            let (partial, mut is_text) = (&mut client.partial, false);
            let came = sessions.read(session, &input[used..], to, |data| {
                is_text = data.text;
                partial.get_or_insert_default().add(data.payload.len(), data.payload.bytes());
            });
            let why = match came {
                Ok((n, Came::Rest)) => return used + n,
                Ok((_, Came::Closed(code))) => Lost::Closed(code),
                Err(failure) => Lost::Fault(failure.at(stage)),
                Ok((n, came)) => {
                    used += n;
                    match came {
                        Came::Opened => self.connected(cx, k, number),
                        Came::Message => self.take(cx.now(), number, is_text),
                        _ => {}
                    }
                    continue;
                }
            };
            self.lose(cx, number, why);
            return input.len();
        }
    }

    fn connected<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32) {
        let now = cx.now();
        let ClientShard { clients, random, tick, .. } = self;
        let client = clients.get_mut(&number).expect("a connection belongs to a client");
        tick.handshake.record(now.since(client.since));
        tick.counts.opened += 1;
        tick.open += 1;
        client.state = State::Open;
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

    /// Takes a complete message.
    fn take(&mut self, now: Nanos, number: u32, is_text: bool) {
        let ClientShard { clients, tick, ping, .. } = self;
        let client = clients.get_mut(&number).expect("a connection belongs to a client");
        let partial = client.partial.take().unwrap_or_default();
        if !(is_text && partial.is(PING)) {
            tick.counts.pushed += 1;
            client.received.add(partial.text(is_text).into());
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

    /// Sends a text on an open connection.
    pub(super) fn send<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32, text: &str) {
        let ClientShard { clients, sessions, layers, tick, .. } = self;
        let layer = layers.of(&clients[&number].target);
        sessions.send(text, Writer::new(cx, k, layer, &mut tick.counts.bytes_out));
    }

    /// Begins the closing handshake, if the client is connected and the server reads.
    pub(super) fn say_goodbye<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32) {
        let ClientShard { clients, sessions, layers, tick, .. } = self;
        let client = &clients[&number];
        if client.is_open() {
            let layer = layers.of(&client.target);
            sessions.close(Writer::new(cx, k, layer, &mut tick.counts.bytes_out));
        }
    }
}

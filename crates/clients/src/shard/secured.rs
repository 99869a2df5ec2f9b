//! Clients of `wss://`: TLS between the socket and the WebSocket.

use std::collections::{HashMap, HashSet};

use net::{Cx, Io, Key, Layered, Unsealed};
use samples::{Fault, Kind, Stage};

use super::ClientShard;
use crate::{
    client::{Lost, State},
    target::Target,
};

/// The TLS layers of a shard: one for all connections that expect the same names and trust alike, as long as there are any.
#[derive(Default)]
pub(super) struct Layers(HashMap<String, Shared>);

struct Shared {
    layered: Layered<tls::Error>,
    /// Its connections, by the indices of their keys.
    open: HashSet<u32>,
}

impl Layers {
    /// The layer of a connection to this target, once begun; `None` without TLS.
    pub(super) fn of(&mut self, target: &Target) -> Option<&mut Layered<tls::Error>> {
        let (name, _) = target.secured.as_ref()?;
        self.0.get_mut(name).map(|shared| &mut shared.layered)
    }

    fn begin(&mut self, target: &Target, k: Key, destination: u16) -> Result<(), tls::Error> {
        let Some((name, tls)) = &target.secured else { return Ok(()) };
        let new = || {
            let layer = tls.layer().expect("it was checked when it was asked for");
            Shared { layered: Layered::new(Box::new(layer)), open: HashSet::new() }
        };
        let shared = self.0.entry(name.clone()).or_insert_with(new);
        shared.open.insert(k.index);
        shared.layered.layer.open(k.index, destination)
    }

    /// A connection has ended: removes it from its layer.
    pub(super) fn end(&mut self, target: &Target, k: Key) {
        let Some((name, _)) = &target.secured else { return };
        let Some(shared) = self.0.get_mut(name) else { return };
        if shared.open.remove(&k.index) {
            shared.layered.end(k.index);
        }
        if shared.open.is_empty() {
            self.0.remove(name);
        }
    }

    /// Sends close_notify; returns the number of bytes sent.
    pub(super) fn close<I: Io>(&mut self, cx: &mut Cx<I>, target: &Target, k: Key) -> usize {
        let Some(layered) = self.of(target) else { return 0 };
        layered.layer.close(k.index);
        layered.send_output(cx, k)
    }
}

impl ClientShard {
    /// The transport is open: begins the TLS handshake.
    pub(super) fn secure<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32) {
        let client = self.client(number);
        client.state = State::Securing;
        let (target, destination) = (client.target.clone(), client.destination);
        match self.layers.begin(&target, k, destination) {
            Ok(()) => self.send_output(cx, k, &target),
            Err(error) => self.lose(cx, number, Lost::Fault(engine::tls_fault(error, Stage::Tls))),
        }
    }

    fn send_output<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, target: &Target) {
        let sent = self.layers.of(target).map_or(0, |layered| layered.send_output(cx, k));
        self.tick.counts.bytes_out += sent as u64;
    }

    /// Reads all input that has arrived over TLS; returns the number of bytes used.
    pub(super) fn read_secured<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        number: u32,
        input: &mut [u8],
    ) -> usize {
        let (target, mut used) = (self.client(number).target.clone(), 0);
        while self.is_on(number, k) {
            let Some(layered) = self.layers.of(&target) else { break };
            match layered.layer.handle_bytes(k.index, &mut input[used..]) {
                Ok(Unsealed::More(n)) => {
                    self.send_output(cx, k, &target);
                    return used + n;
                }
                Ok(Unsealed::Opened(n, opening)) => {
                    used += n;
                    self.send_output(cx, k, &target);
                    self.secured(cx, k, number, opening.resumed);
                }
                Ok(Unsealed::Closed(_)) => {
                    let stage = if self.client(number).is_open() { Stage::Hold } else { Stage::Handshake };
                    self.lose(cx, number, Lost::Fault(Fault::target(stage, Kind::Closed)));
                }
                Ok(Unsealed::Bytes(n, range)) => {
                    self.read_unsealed(cx, k, number, &input[used..][range]);
                    used += n;
                }
                Err(error) => {
                    self.send_output(cx, k, &target);
                    self.lose(cx, number, Lost::Fault(engine::tls_fault(error, Stage::Tls)));
                }
            }
        }
        input.len()
    }

    /// Whether this connection still belongs to the client.
    fn is_on(&self, number: u32, k: Key) -> bool {
        self.clients.get(&number).is_some_and(|client| client.key == Some(k))
    }

    /// The TLS handshake is complete: requests the WebSocket.
    fn secured<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32, resumed: bool) {
        let now = cx.now();
        let took = now.since(self.client(number).since);
        self.client(number).since = now;
        let times = if resumed { &mut self.tick.tls_resumed } else { &mut self.tick.tls };
        times.record(took);
        self.upgrade(cx, k, number);
    }

    /// Reads unsealed bytes; unused ones are kept until more arrive.
    fn read_unsealed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32, bytes: &[u8]) {
        let target = self.client(number).target.clone();
        let leftover = self.layers.of(&target).and_then(|layered| layered.take_leftover(k.index, bytes));
        let bytes = leftover.as_deref().unwrap_or(bytes);
        let used = self.read(cx, k, number, bytes);
        let is_there = self.is_on(number, k);
        if let Some(layered) = self.layers.of(&target).filter(|_| is_there) {
            layered.leave(k.index, &bytes[used..]);
        }
    }

    /// Sends what `fill` writes into `room` bytes, through TLS if there is any.
    pub(super) fn send<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let target = self.client(self.number(k)).target.clone();
        let sent = net::send(self.layers.of(&target), cx, k, room, fill);
        self.tick.counts.bytes_out += sent as u64;
    }
}

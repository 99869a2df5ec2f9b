//! Clients of `wss://`: TLS between the socket and the WebSocket.

use std::collections::{HashMap, HashSet};

use net::{Cx, Inner, Io, Key, Layered, Opening};
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
}

impl ClientShard {
    /// The transport is open: begins the TLS handshake.
    pub(super) fn secure<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32) {
        let client = self.client(number);
        client.state = State::Securing;
        let (target, destination) = (client.target.clone(), client.destination);
        match self.layers.begin(&target, k, destination) {
            Ok(()) => self.send_layer_output(cx, k),
            Err(error) => self.layer_failed(cx, k, error, &[]),
        }
    }
}

impl Inner<tls::Error> for ClientShard {
    fn layered(&mut self, k: Key) -> (Option<&mut Layered<tls::Error>>, &mut u64) {
        let ClientShard { clients, numbers, layers, tick, .. } = self;
        let client = clients.get(&numbers[k.index as usize]);
        (client.and_then(|client| layers.of(&client.target)), &mut tick.counts.bytes_out)
    }

    /// Requests the WebSocket.
    fn layer_opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, opening: Opening) {
        let (number, now) = (self.number(k), cx.now());
        let took = now.since(self.client(number).since);
        let times = if opening.resumed { &mut self.tick.tls_resumed } else { &mut self.tick.tls };
        times.record(took);
        self.upgrade(cx, k, number);
    }

    fn unsealed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &[u8]) -> usize {
        self.read(cx, k, self.number(k), bytes)
    }

    fn layer_closed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let number = self.number(k);
        let stage = if self.client(number).is_open() { Stage::Hold } else { Stage::Handshake };
        self.lose(cx, number, Lost::Fault(Fault::target(stage, Kind::Closed)));
    }

    fn layer_failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, error: tls::Error, _: &[u8]) {
        self.lose(cx, self.number(k), Lost::Fault(engine::tls_fault(error, Stage::Tls)));
    }
}

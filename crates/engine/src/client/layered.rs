//! Connections with a layer between the socket and the protocol.

use net::{Cx, Io, Key};

use super::Client;
use crate::{
    connections::State,
    layer::{Layered, Unsealed},
};

impl Client {
    fn layered(&mut self) -> &mut Layered {
        self.layer.as_mut().expect("asked of connections with a layer only")
    }

    /// The transport is open: the layer is opened next.
    pub(super) fn open_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.conns.transition(k.index, State::Securing);
        self.exchange(k).started = cx.now();
        self.layered().layer.open(k.index);
        self.say_of_layer(cx, k);
        self.wake_at(cx, k, cx.now() + self.job.timeout);
    }

    /// Reads all that has come; returns the bytes used.
    pub(super) fn read_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let mut used = 0;
        loop {
            match self.layered().layer.handle_bytes(k.index, &mut input[used..]) {
                Ok(Unsealed::More(n)) => {
                    self.say_of_layer(cx, k);
                    return used + n;
                }
                Ok(Unsealed::Opened(n)) => {
                    used += n;
                    self.say_of_layer(cx, k);
                    self.open(cx, k);
                }
                Ok(Unsealed::Bytes(n, range)) => {
                    self.read_unsealed(cx, k, &input[used..][range]);
                    used += n;
                }
                Err(kind) => self.misread(cx, k, kind),
            }
            if !cx.is_open(k) {
                return input.len();
            }
        }
    }

    /// What the protocol does not use is kept for it.
    fn read_unsealed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &[u8]) {
        let mut rest = self.layered().leftovers.remove(&k.index).unwrap_or_default();
        rest.extend_from_slice(bytes);
        let used = self.read_all(cx, k, &rest);
        if used < rest.len() && cx.is_open(k) {
            rest.drain(..used);
            self.layered().leftovers.insert(k.index, rest);
        }
    }

    fn say_of_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let sent = self.layered().send_output(cx, k);
        self.tick.counts.bytes_out += sent as u64;
    }
}

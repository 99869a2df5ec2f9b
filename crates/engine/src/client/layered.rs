//! Connections with a layer (TLS) between the socket and the protocol: the layer's handshake, unsealed input, sealed output.

use net::{Cx, Gone, Io, Key, Layered, Opening, Program, Unsealed};
use samples::{Fault, Kind, Stage};
use units::Nanos;

use super::Client;
use crate::{connections::State, secured::tls_fault};

impl Client {
    fn layered(&mut self) -> &mut Layered<tls::Error> {
        self.layer.as_mut().expect("asked of connections with a layer only")
    }

    /// The transport is open: opens the layer.
    pub(super) fn open_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.conns.transition(k.index, State::Securing);
        self.exchange(k).started = cx.now();
        let destination = self.conn(k).destination;
        if self.layered().layer.open(k.index, destination).is_err() {
            return self.fail(cx, k, Fault::host(Stage::Tls, Kind::Other));
        }
        self.say_of_layer(cx, k);
        cx.hand_over();
        self.wake_at(cx, k, cx.now() + self.job.timeout);
    }

    /// Reads all input through the layer; returns the number of bytes used.
    pub(super) fn read_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let mut used = 0;
        loop {
            match self.layered().layer.handle_bytes(k.index, &mut input[used..]) {
                Ok(Unsealed::More(n)) => {
                    self.say_of_layer(cx, k);
                    return used + n;
                }
                Ok(Unsealed::Opened(n, opening)) => {
                    used += n;
                    self.say_of_layer(cx, k);
                    self.layer_opened(cx, k, opening);
                    cx.hand_over();
                }
                Ok(Unsealed::Closed(_)) => {
                    self.gone(cx, k, Gone::Ended);
                    return input.len();
                }
                Ok(Unsealed::Bytes(n, range)) => {
                    self.read_unsealed(cx, k, &input[used..][range]);
                    used += n;
                }
                Err(error) => {
                    self.say_of_layer(cx, k);
                    let fault = tls_fault(error, self.conn(k).state().stage());
                    // Bytes that are not a TLS record have not been changed by decryption.
                    if fault.kind == Kind::NotTls {
                        self.sample_words(k, fault, cx.now(), &input[used..]);
                    }
                    self.fail(cx, k, fault);
                }
            }
            if !cx.is_open(k) {
                return input.len();
            }
        }
    }

    /// The layer is open: opens the session.
    fn layer_opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, opening: Opening) {
        if self.job.is_http2() && !opening.http2 {
            return self.fail(cx, k, Fault::target(Stage::Tls, Kind::NoProtocol));
        }
        let (now, exchange) = (cx.now(), *self.exchange(k));
        let took = self.took(exchange.started, exchange.started, now);
        let times = if opening.resumed { &mut self.tick.tls_resumed } else { &mut self.tick.tls };
        times.record_seen(took);
        if exchange.first {
            let waited = self.pacer.learn_handshake(now.since(exchange.started), opening.resumed);
            if self.job.protocol.is_known_by_dial(exchange.has_request()) {
                // The open connection is all that is awaited. The pacer has already learnt from the TCP dial.
                self.pacer.learn(waited, true, now);
            }
        }
        // Later phases are measured without the handshake.
        self.exchange(k).started = now;
        self.open(cx, k);
    }

    /// Passes unsealed bytes to the protocol; unused ones are kept for it.
    fn read_unsealed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &[u8]) {
        let leftover = self.layered().take_leftover(k.index, bytes);
        let bytes = leftover.as_deref().unwrap_or(bytes);
        let used = self.read_all(cx, k, bytes);
        if cx.is_open(k) {
            self.layered().leave(k.index, &bytes[used..]);
        }
    }

    /// Whether a connection's keys have sealed their maximum and cannot be renewed (TLS 1.2).
    pub(super) fn is_used_up(&self, k: Key) -> bool {
        self.layer.as_ref().is_some_and(|layered| layered.layer.is_used_up(k.index))
    }

    /// Closes a connection whose keys are used up, as an announced close: it is dialled again for what is due next.
    pub(super) fn close_used_up<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        self.close_layer(cx, k);
        self.closed_as_announced(cx, k, due);
    }

    /// Closes the sending side of the layer: nothing more is sent.
    pub(super) fn close_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if let Some(layered) = &mut self.layer {
            layered.layer.close(k.index);
            self.say_of_layer(cx, k);
        }
    }

    fn say_of_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let sent = self.layered().send_output(cx, k);
        self.tick.counts.bytes_out += sent as u64;
    }
}

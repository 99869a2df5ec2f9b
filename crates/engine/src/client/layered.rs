//! Connections with a layer (TLS) between the socket and the protocol: the layer's handshake and its end. [`Inner`] reads them.

use net::{Cx, Gone, Inner, Io, Key, Layered, Opening, Program};
use samples::{Fault, Kind, Stage, transcript::Event};
use units::Nanos;

use super::Client;
use crate::{connections::State, secured::tls_fault};

impl Inner<tls::Error> for Client {
    fn layered(&mut self, _: Key) -> (Option<&mut Layered<tls::Error>>, &mut u64) {
        (self.transport.layer.as_deref_mut(), &mut self.tick.counts.bytes_out)
    }

    fn layer_opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, opening: Opening) {
        self.secured(cx, k, opening);
        cx.hand_over();
    }

    fn unsealed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &[u8]) -> usize {
        self.read_all(cx, k, bytes)
    }

    fn layer_closed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.gone(cx, k, Gone::Ended);
    }

    fn layer_failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, error: tls::Error, input: &[u8]) {
        let fault = tls_fault(error, self.conn(k).state().stage());
        // Bytes that are not a TLS record have not been changed by decryption.
        if fault.kind == Kind::NotTls {
            self.sample_words(k, fault, cx.now(), input);
        }
        self.fail(cx, k, fault);
    }
}

impl Client {
    /// The transport is open: opens the layer.
    pub(super) fn open_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.conns.transition(k.index, State::Securing);
        self.exchange(k).started = cx.now();
        let destination = self.conn(k).destination;
        let layered = self.transport.layer.as_mut().expect("asked of connections with a layer only");
        if layered.layer.open(k.index, destination).is_err() {
            return self.fail(cx, k, Fault::host(Stage::Tls, Kind::Other));
        }
        self.send_layer_output(cx, k);
        cx.hand_over();
        self.wake_at(cx, k, cx.now() + self.job.timeout);
    }

    /// The layer is open: opens the session.
    fn secured<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, opening: Opening) {
        if self.job.is_http2() && !opening.http2 {
            return self.fail(cx, k, Fault::target(Stage::Tls, Kind::NoProtocol));
        }
        let (now, exchange) = (cx.now(), *self.exchange(k));
        let took = self.took(exchange.started, exchange.started, now);
        let times = if opening.resumed { &mut self.tick.tls_resumed } else { &mut self.tick.tls };
        times.record_seen(took);
        let Opening { resumed, http2 } = opening;
        self.transcribe(k, now, || Event::Secure { took: took.time, resumed, http2 });
        if exchange.first {
            let waited = self.pacer.learn_handshake(now.since(exchange.started), opening.resumed);
            if self.job.protocol.properties().is_known_by_dial[usize::from(exchange.has_request())] {
                // The open connection is all that is awaited. The pacer has already learnt from the TCP dial.
                self.pacer.learn(waited, true, now);
            }
        }
        // Later phases are measured without the handshake.
        self.exchange(k).started = now;
        self.open(cx, k);
    }

    /// Whether a connection's keys have sealed their maximum and cannot be renewed (TLS 1.2).
    pub(super) fn is_used_up(&self, k: Key) -> bool {
        self.transport.layer.as_ref().is_some_and(|layered| layered.layer.is_used_up(k.index))
    }

    /// Closes a connection whose keys are used up, as an announced close: it is dialled again for what is due next.
    pub(super) fn close_used_up<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        self.close_layer(cx, k);
        self.closed_as_announced(cx, k, due);
    }
}

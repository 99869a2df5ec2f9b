//! Connections with a layer (TLS) between the socket and the service.

use net::{Close, Cx, Inner, Io, Key, Layered, Opening};

use crate::shard::{Handler, ServerShard};

/// Maximum bytes that a call sends. The remaining input waits for the next turn, because only then is it known whether the output
/// has left. It is far less than the output buffer of a megabyte, so that the output of a call leaves as one send.
const MOST_A_CALL: u64 = 64 * 1024;

impl<H: Handler> Inner<tls::Error> for ServerShard<H> {
    fn layered(&mut self, _: Key) -> (Option<&mut Layered<tls::Error>>, &mut u64) {
        (self.out.layer.as_deref_mut(), &mut self.out.sent)
    }

    /// Whether to unseal more input now. If not, the rest stays sealed; it is read in a later turn, when the connection is writable
    /// again or its delayed response has been sent.
    fn reads<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> bool {
        let is_enough = self.out.sent >= MOST_A_CALL;
        let is_held = H::is_held(self.conn(k)) || cx.is_write_blocked(k);
        if is_enough || is_held {
            cx.call_when_drained(k, self.layered(k).0.map_or(0, |layered| layered.leftover(k.index).len()));
        }
        if is_enough {
            cx.call_again(k);
        }
        !(is_enough || is_held)
    }

    fn layer_opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, _: Opening) {
        self.watch.secured(cx, k);
    }

    /// Passes these bytes to the service until it uses no more; returns the number of bytes used.
    fn unsealed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &[u8]) -> usize {
        let mut used = 0;
        while used < bytes.len() && cx.is_open(k) && self.out.sent < MOST_A_CALL {
            match H::handle_bytes(self, cx, k, &bytes[used..]) {
                0 => break,
                n => used += n,
            }
        }
        used
    }

    /// The peer has sent close_notify, and may wait for the server's. Delayed responses are sent before it.
    fn layer_closed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if !H::is_waiting(self.conn(k)) {
            self.out.finish(cx, k);
        }
    }

    fn layer_failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, _: tls::Error, _: &[u8]) {
        self.stats.errors += 1;
        self.leave(k);
        cx.close(k, Close::Graceful);
    }
}

//! Connections with a layer (TLS) between the socket and the service.

use net::{Close, Cx, Io, Key, Layered, Unsealed};

use crate::shard::{Handler, ServerShard};

/// Bytes that a call sends before the rest of its input waits for the next turn, when it is known whether they have left. The
/// output of a call leaves as one, as long as it fits into the output buffer of a megabyte.
const MOST_A_CALL: u64 = 64 * 1024;

impl<H: Handler> ServerShard<H> {
    fn layered(&mut self) -> &mut Layered<tls::Error> {
        self.out.layer.as_mut().expect("asked of connections with a layer only")
    }

    /// The transport is open: opens the layer, if there is one.
    pub(crate) fn open_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if self.out.layer.is_some() && self.layered().layer.open(k.index, 0).is_err() {
            self.breach(cx, k);
        }
    }

    /// Reads until the service takes no more; returns the number of bytes used.
    pub(crate) fn read_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        self.offer(cx, k, &[]);
        let mut used = 0;
        while cx.is_open(k) {
            let is_enough = self.out.sent >= MOST_A_CALL;
            if is_enough || self.is_held(cx, k) {
                // The rest stays sealed, and is read when the connection is writable again, or its response has left.
                let own = self.layered().leftover(k.index).len();
                cx.call_when_drained(k, own);
                if is_enough {
                    cx.call_again(k);
                }
                return used;
            }
            match self.layered().layer.handle_bytes(k.index, &mut input[used..]) {
                Ok(Unsealed::More(n)) => {
                    self.say_of_layer(cx, k);
                    return used + n;
                }
                Ok(Unsealed::Opened(n, _)) => {
                    used += n;
                    self.watch.secured(cx, k);
                    self.say_of_layer(cx, k);
                }
                Ok(Unsealed::Bytes(n, range)) => {
                    self.offer(cx, k, &input[used..][range]);
                    used += n;
                }
                Ok(Unsealed::Closed(n)) => {
                    // The peer sends no more, and may wait for close_notify. Delayed responses leave first; the peer's FIN
                    // follows.
                    used += n;
                    if !H::is_waiting(self.conn(k)) {
                        self.out.finish(cx, k);
                    }
                }
                Err(_) => self.breach(cx, k),
            }
        }
        input.len()
    }

    fn is_held<I: Io>(&mut self, cx: &Cx<I>, k: Key) -> bool {
        H::is_held(self.conn(k)) || cx.is_write_blocked(k)
    }

    /// Offers the service its leftover bytes and then these, until it takes no more.
    fn offer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &[u8]) {
        let leftover = self.layered().take_leftover(k.index, bytes);
        let bytes = leftover.as_deref().unwrap_or(bytes);
        let mut used = 0;
        while used < bytes.len() && cx.is_open(k) && self.out.sent < MOST_A_CALL {
            match H::handle_bytes(self, cx, k, &bytes[used..]) {
                0 => break,
                n => used += n,
            }
        }
        if cx.is_open(k) {
            self.layered().leave(k.index, &bytes[used..]);
        }
    }

    fn say_of_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let sent = self.layered().send_output(cx, k);
        self.out.sent += sent as u64;
    }

    /// The peer broke the protocol: sends the layer's alert and closes.
    fn breach<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.stats.errors += 1;
        self.say_of_layer(cx, k);
        self.leave(k);
        cx.close(k, Close::Graceful);
    }
}

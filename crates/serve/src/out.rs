//! Output of a server: passed through the layer of its connections, if any, and counted.

use net::{Cx, Io, Key, Layered};

/// Sends for a shard, and counts the bytes.
#[derive(Default)]
pub(crate) struct Out {
    pub(crate) layer: Option<Box<Layered<tls::Error>>>,
    /// Bytes sent since last taken.
    pub(crate) sent: u64,
}

impl Out {
    /// Sends what `fill` writes into `room` bytes; `fill` returns the number.
    pub(crate) fn send<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) {
        self.sent += net::send(self.layer.as_deref_mut(), cx, k, room, fill) as u64;
    }

    /// Sends bytes that live as long as the program; without a copy if there is no layer.
    pub(crate) fn send_static<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &'static [u8]) {
        self.sent += net::send_static(self.layer.as_deref_mut(), cx, k, bytes) as u64;
    }

    /// Closes a connection once its output has left.
    pub(crate) fn finish<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if let Some(layer) = &mut self.layer {
            layer.layer.close(k.index);
            self.sent += layer.send_output(cx, k) as u64;
        }
        cx.finish(k);
    }
}

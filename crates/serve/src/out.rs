//! What a server sends: through the layer of its connections, where they have one.

use net::{Cx, Io, Key, Layered};

/// Sends for a shard; knows how many bytes leave.
#[derive(Default)]
pub(crate) struct Out {
    pub(crate) layer: Option<Box<Layered<tls::Error>>>,
    /// Bytes sent since this was last taken.
    pub(crate) sent: u64,
}

impl Out {
    /// Sends what `fill` writes into `room` bytes; `fill` returns how many.
    pub(crate) fn send<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let sent = match &mut self.layer {
            Some(layer) => layer.send(cx, k, room, fill),
            None => {
                let mut sent = 0;
                cx.send(k, room, |out| {
                    sent = fill(out);
                    sent
                });
                sent
            }
        };
        self.sent += sent as u64;
    }

    /// Sends bytes that live as long as the program; without a copy if there is no layer.
    pub(crate) fn send_static<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &'static [u8]) {
        if self.layer.is_some() {
            return self.send(cx, k, bytes.len(), |out| {
                out.copy_from_slice(bytes);
                bytes.len()
            });
        }
        cx.send_static(k, bytes);
        self.sent += bytes.len() as u64;
    }

    /// Closes a connection once what was sent has left.
    pub(crate) fn finish<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if let Some(layer) = &mut self.layer {
            layer.layer.close(k.index);
            self.sent += layer.send_output(cx, k) as u64;
        }
        cx.finish(k);
    }
}

//! A layer between a socket and its protocol: the place for TLS. Without a layer bytes pass as they are, and nothing
//! is kept of them.
//!
//! ```text
//!  the transport is open ─► open ─► handle_bytes = Opened ─► the protocol opens its session ─► … ─► end
//! ```

use std::{collections::HashMap, ops::Range};

use net::{Cx, Io, Key};
use samples::Kind;

/// A layer, with what it keeps of each connection of a shard; a connection is known by its index.
pub(crate) trait Layer {
    /// The transport is open.
    fn open(&mut self, index: u32);

    /// Reads on, and unseals in place. What it does not use is left as it was, and is passed again with more bytes after it.
    ///
    /// # Errors
    /// What came is not right.
    fn handle_bytes(&mut self, index: u32, input: &mut [u8]) -> Result<Unsealed, Kind>;

    /// Writes the layer's own output, such as a handshake record, at most [`MAX_OUTPUT`] bytes; returns how many.
    fn poll_bytes(&mut self, index: u32, out: &mut [u8]) -> usize;

    /// The maximum length of this many bytes once sealed.
    fn sealed_len(&self, length: usize) -> usize;

    /// Writes what `bytes` become on their way out; returns how many.
    fn seal(&mut self, index: u32, bytes: &[u8], out: &mut [u8]) -> usize;

    /// The connection is no more.
    fn end(&mut self, index: u32);
}

/// What a layer made of input, with the bytes that were used for it.
#[cfg_attr(not(test), expect(dead_code, reason = "TLS is to come"))]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unsealed {
    /// Nothing further: come again with more.
    More(usize),
    /// The layer is open: the protocol is next.
    Opened(usize),
    /// These bytes are the protocol's.
    Bytes(usize, Range<usize>),
}

/// A flight of a TLS handshake without client certificates.
const MAX_OUTPUT: usize = 4 * 1024;

/// A layer, and what is kept beside it.
pub(crate) struct Layered {
    pub(crate) layer: Box<dyn Layer>,
    /// Unsealed bytes that the protocol has not used yet, by index: a partial head.
    pub(crate) leftovers: HashMap<u32, Vec<u8>>,
    /// What goes out, before it is sealed.
    scratch: Vec<u8>,
}

impl Layered {
    #[cfg(test)]
    pub(crate) fn new(layer: Box<dyn Layer>) -> Layered {
        Layered { layer, leftovers: HashMap::new(), scratch: Vec::new() }
    }

    /// Sends what `fill` writes into `room` bytes, sealed; `fill` returns how many, and this how many they have become.
    pub(crate) fn send<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> usize {
        let Layered { layer, scratch, .. } = self;
        scratch.resize(scratch.len().max(room), 0);
        let length = fill(&mut scratch[..room]);
        let mut sealed = 0;
        cx.send(k, layer.sealed_len(length), |out| {
            sealed = layer.seal(k.index, &scratch[..length], out);
            sealed
        });
        sealed
    }

    /// Sends the layer's own output; returns how many bytes.
    pub(crate) fn send_output<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> usize {
        let mut sent = 0;
        cx.send(k, MAX_OUTPUT, |out| {
            sent = self.layer.poll_bytes(k.index, out);
            sent
        });
        sent
    }

    /// Bytes that the protocol of a connection has left over.
    pub(crate) fn leftover_len(&self, index: u32) -> usize {
        self.leftovers.get(&index).map_or(0, Vec::len)
    }

    /// The connection is no more.
    pub(crate) fn end(&mut self, index: u32) {
        self.leftovers.remove(&index);
        self.layer.end(index);
    }
}

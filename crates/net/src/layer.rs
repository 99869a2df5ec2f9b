//! A layer between a socket and the program: the place for TLS. Without a layer bytes pass as they are, and nothing is kept of
//! them.
//!
//! ```text
//!  the transport is open ─► open ─► handle_bytes = Opened ─► the program begins ─► … ─► close ─► end
//! ```

use std::{borrow::Cow, collections::HashMap, ops::Range};

use crate::{Cx, Io, Key, PIECE, machine::return_freed_memory};

/// A layer, with what it keeps of each connection of a shard; a connection is known by its index.
pub trait Layer {
    /// What may be wrong with a connection.
    type Error;

    /// The transport to a destination, by its number, is open.
    ///
    /// # Errors
    /// The layer cannot be opened.
    fn open(&mut self, index: u32, destination: u16) -> Result<(), Self::Error>;

    /// Reads on, and unseals in place. What it does not use is left as it was, and is passed again with more bytes after it.
    ///
    /// # Errors
    /// What came is not right.
    fn handle_bytes(&mut self, index: u32, input: &mut [u8]) -> Result<Unsealed, Self::Error>;

    /// The layer's own output, such as a handshake record; empty if there is none.
    fn poll_output(&mut self, index: u32) -> Vec<u8>;

    /// The maximum length of this many bytes once sealed.
    fn sealed_len(&self, length: usize) -> usize;

    /// Writes what `bytes` become on their way out; returns how many.
    fn seal(&mut self, index: u32, bytes: &[u8], out: &mut [u8]) -> usize;

    /// Whether as much has been sent under a key as may be, and there can be no other: the connection is to be closed soon.
    fn is_used_up(&self, index: u32) -> bool;

    /// Nothing more is sent on the connection: the peer is notified by the next output.
    fn close(&mut self, index: u32);

    /// Whether the peer has said that it sends nothing more. An end without that may be anyone's, and what it ends may be cut
    /// short.
    fn is_closed(&self, index: u32) -> bool;

    /// The connection is no more.
    fn end(&mut self, index: u32);

    /// Frees what it has kept for more connections than are being opened now. Returns whether that was much.
    fn shrink(&mut self) -> bool;
}

/// What a layer made of input, with the bytes that were used for it.
#[derive(Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// Nothing further: come again with more.
    More(usize),
    /// The layer is open: the program is next.
    Opened(usize, Opening),
    /// These bytes are the program's.
    Bytes(usize, Range<usize>),
    /// The peer has said that it sends nothing more.
    Closed(usize),
}

/// How a layer was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// An earlier session was resumed.
    pub resumed: bool,
    /// HTTP/2 was agreed on.
    pub http2: bool,
}

/// A layer, and what is kept beside it.
pub struct Layered<E> {
    /// The layer.
    pub layer: Box<dyn Layer<Error = E>>,
    /// Unsealed bytes that the program has not used yet, by index: a partial head.
    leftovers: HashMap<u32, Vec<u8>>,
    /// What goes out, before it is sealed.
    scratch: Vec<u8>,
}

/// Sends what `fill` writes into `room` bytes, through the layer where there is one, after what was sent before; `fill` returns how many,
/// and this how many bytes leave now.
pub fn send<E, I: Io>(
    layer: Option<&mut Layered<E>>,
    cx: &mut Cx<I>,
    k: Key,
    room: usize,
    fill: impl FnOnce(&mut [u8]) -> usize,
) -> usize {
    if cx.has_backlog(k) {
        let mut bytes = vec![0; room];
        let length = fill(&mut bytes);
        bytes.truncate(length);
        cx.defer(k, Cow::Owned(bytes));
        return 0;
    }
    if let Some(layer) = layer {
        return layer.send(cx, k, room, fill);
    }
    let mut sent = 0;
    cx.send(k, room, |out| {
        sent = fill(out);
        sent
    });
    sent
}

/// Sends bytes that live as long as the program, after what was sent before; without a copy if there is no layer. What is longer than
/// [`PIECE`] goes out in pieces, each when the one before has left. Returns how many bytes leave now.
pub fn send_static<E, I: Io>(
    layer: Option<&mut Layered<E>>,
    cx: &mut Cx<I>,
    k: Key,
    bytes: &'static [u8],
) -> usize {
    if bytes.is_empty() {
        return 0;
    }
    let now = if cx.has_backlog(k) { 0 } else { bytes.len().min(PIECE) };
    let (piece, rest) = bytes.split_at(now);
    if !rest.is_empty() {
        cx.defer(k, Cow::Borrowed(rest));
    }
    if piece.is_empty() { 0 } else { send_part(layer, cx, k, Cow::Borrowed(piece)) }
}

/// Sends the next piece of what waits on a connection, in [`Program::writable`](crate::Program::writable). Returns how many bytes leave
/// now.
pub fn send_deferred<E, I: Io>(mut layer: Option<&mut Layered<E>>, cx: &mut Cx<I>, k: Key) -> usize {
    let mut sent = 0;
    cx.send_deferred(k, |cx, part| sent += send_part(layer.as_deref_mut(), cx, k, part));
    sent
}

/// Sends bytes as they are, or sealed; returns how many leave.
fn send_part<E, I: Io>(
    layer: Option<&mut Layered<E>>,
    cx: &mut Cx<I>,
    k: Key,
    part: Cow<'static, [u8]>,
) -> usize {
    let Some(Layered { layer, .. }) = layer else {
        let length = part.len();
        cx.send_part(k, part);
        return length;
    };
    let mut sealed = 0;
    cx.send(k, layer.sealed_len(part.len()), |out| {
        sealed = layer.seal(k.index, &part, out);
        sealed
    });
    sealed
}

impl<E> Layered<E> {
    /// Nothing is kept yet.
    pub fn new(layer: Box<dyn Layer<Error = E>>) -> Layered<E> {
        Layered { layer, leftovers: HashMap::new(), scratch: Vec::new() }
    }

    /// Sends what `fill` writes into `room` bytes, sealed; `fill` returns how many, and this how many they have become.
    pub fn send<I: Io>(
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
    pub fn send_output<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> usize {
        let output = self.layer.poll_output(k.index);
        if !output.is_empty() {
            cx.send(k, output.len(), |out| {
                out.copy_from_slice(&output);
                output.len()
            });
        }
        output.len()
    }

    /// Unsealed bytes that the program left over, and these after them; none where nothing was left over.
    pub fn take_leftover(&mut self, index: u32, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut leftover = self.leftovers.remove(&index)?;
        leftover.extend_from_slice(bytes);
        Some(leftover)
    }

    /// The program has not used these bytes yet.
    pub fn leave(&mut self, index: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.leftovers.insert(index, bytes.to_vec());
        }
    }

    /// What the program has left over.
    pub fn leftover(&self, index: u32) -> &[u8] {
        self.leftovers.get(&index).map_or(&[], Vec::as_slice)
    }

    /// Returns the memory of openings to the system, after a peak of them.
    pub fn shrink(&mut self) {
        if self.layer.shrink() {
            return_freed_memory();
        }
    }

    /// The connection is no more.
    pub fn end(&mut self, index: u32) {
        self.leftovers.remove(&index);
        self.layer.end(index);
    }
}

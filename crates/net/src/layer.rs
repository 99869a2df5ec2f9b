//! [`Layer`]: a protocol between the socket and the program, which is TLS. Without a layer, bytes pass unchanged and no state is kept.
//!
//! ```text
//!  the transport is open ─► open ─► handle_bytes = Opened ─► the program begins ─► … ─► close ─► end
//! ```

use std::{borrow::Cow, collections::HashMap, ops::Range};

use crate::{Cx, Io, Key, PIECE, machine::return_freed_memory};

/// A layer, with its state for each connection of a shard; a connection is identified by its index.
pub trait Layer {
    /// An error of one connection.
    type Error;

    /// The transport to the destination with this number is open: begins the layer's handshake.
    ///
    /// # Errors
    /// The layer cannot be opened.
    fn open(&mut self, index: u32, destination: u16) -> Result<(), Self::Error>;

    /// Reads input and unseals it in place. Bytes that it does not use are left unchanged, and are passed again with more bytes after them.
    ///
    /// # Errors
    /// The input is invalid.
    fn handle_bytes(&mut self, index: u32, input: &mut [u8]) -> Result<Unsealed, Self::Error>;

    /// The layer's own output, such as a handshake record; empty if there is none.
    fn poll_output(&mut self, index: u32) -> Vec<u8>;

    /// The maximum length of `length` bytes once they are sealed.
    fn sealed_len(&self, length: usize) -> usize;

    /// Seals `bytes` into `out`; returns the number of bytes written.
    fn seal(&mut self, index: u32, bytes: &[u8], out: &mut [u8]) -> usize;

    /// Whether the key has reached its usage limit and cannot be replaced: the connection should be closed soon.
    fn is_used_up(&self, index: u32) -> bool;

    /// Closes the sending side; the next output notifies the peer.
    fn close(&mut self, index: u32);

    /// Whether the peer has signalled the end of its data. An end of the connection without that signal may be forged, and the data may be
    /// truncated.
    fn is_closed(&self, index: u32) -> bool;

    /// The connection is gone: drops its state.
    fn end(&mut self, index: u32);

    /// Frees memory that was needed for more simultaneous openings than there are now. Returns whether that was much.
    fn shrink(&mut self) -> bool;
}

/// The result of unsealing input; the first field is the number of input bytes that were used.
#[derive(Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// No data yet: more input is needed.
    More(usize),
    /// The layer is open: the program begins.
    Opened(usize, Opening),
    /// The bytes in this range of the input are data for the program.
    Bytes(usize, Range<usize>),
    /// The peer has signalled that it sends nothing more.
    Closed(usize),
}

/// How a layer was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// An earlier session was resumed.
    pub resumed: bool,
    /// The two sides agreed on HTTP/2.
    pub http2: bool,
}

/// A program whose connections may have a layer, and the loop that reads them: [`Program::bytes`](crate::Program::bytes) calls
/// [`Inner::read_layer`].
pub trait Inner<E> {
    /// The layer of a connection, if it has one, and the counter of bytes sent.
    fn layered(&mut self, k: Key) -> (Option<&mut Layered<E>>, &mut u64);
    /// The layer is open.
    fn layer_opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, opening: Opening);
    /// Reads data; returns the number of bytes used. The rest is kept, and passed again with more bytes after it.
    fn unsealed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &[u8]) -> usize;
    /// The peer has signalled that it sends nothing more.
    fn layer_closed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key);
    /// The input from here on is invalid: ends the connection.
    fn layer_failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, error: E, input: &[u8]);

    /// Whether to unseal more input now. If not, the program has to arrange that the rest is offered again.
    fn reads<I: Io>(&mut self, _: &mut Cx<I>, _: Key) -> bool {
        true
    }

    /// Reads all input through the layer, if there is one, as long as the program [`reads`](Inner::reads); returns the number of
    /// bytes used.
    fn read_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let mut used = 0;
        while cx.is_open(k) {
            if !self.reads(cx, k) {
                return used;
            }
            let (Some(layered), _) = self.layered(k) else { return self.unsealed(cx, k, input) };
            match layered.layer.handle_bytes(k.index, &mut input[used..]) {
                Ok(Unsealed::More(n)) => {
                    self.send_layer_output(cx, k);
                    return used + n;
                }
                Ok(Unsealed::Opened(n, opening)) => {
                    used += n;
                    self.send_layer_output(cx, k);
                    self.layer_opened(cx, k, opening);
                }
                Ok(Unsealed::Closed(n)) => {
                    used += n;
                    self.layer_closed(cx, k);
                }
                Ok(Unsealed::Bytes(n, range)) => {
                    self.read_unsealed(cx, k, &input[used..][range]);
                    used += n;
                }
                Err(error) => {
                    self.send_layer_output(cx, k);
                    self.layer_failed(cx, k, error, &input[used..]);
                }
            }
        }
        input.len()
    }

    /// Passes data to the program, after what it has left over.
    fn read_unsealed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &[u8]) {
        let leftover = self.layered(k).0.and_then(|layered| layered.take_leftover(k.index, bytes));
        let bytes = leftover.as_deref().unwrap_or(bytes);
        let used = self.unsealed(cx, k, bytes);
        if cx.is_open(k) {
            self.layered(k).0.into_iter().for_each(|layered| layered.leave(k.index, &bytes[used..]));
        }
    }

    /// Closes the sending side of the layer, if there is one: nothing more is sent.
    fn close_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.layered(k).0.into_iter().for_each(|layered| layered.layer.close(k.index));
        self.send_layer_output(cx, k);
    }

    /// Sends the layer's own output.
    fn send_layer_output<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let (layered, sent) = self.layered(k);
        *sent += layered.map_or(0, |layered| layered.send_output(cx, k)) as u64;
    }
}

/// A layer and the buffers that it needs in a shard.
pub struct Layered<E> {
    /// The layer.
    pub layer: Box<dyn Layer<Error = E>>,
    /// Unsealed bytes that the program has not used yet, such as a partial head, by connection index.
    leftovers: HashMap<u32, Vec<u8>>,
    /// Output before it is sealed.
    scratch: Vec<u8>,
}

/// Sends what `fill` writes into `room` bytes, after all earlier output, and through the layer if there is one. `fill` returns the number
/// of bytes written. Returns how many bytes leave now, 0 if they went to the backlog.
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

/// Sends static bytes after all earlier output; without a copy if there is no layer. More than [`PIECE`] bytes go out in pieces, each
/// when the previous one has left. Returns how many bytes leave now.
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

/// Sends the next piece of the connection's backlog; to be called in [`Program::writable`](crate::Program::writable). Returns how many
/// bytes leave now.
pub fn send_deferred<E, I: Io>(mut layer: Option<&mut Layered<E>>, cx: &mut Cx<I>, k: Key) -> usize {
    let mut sent = 0;
    cx.send_deferred(k, |cx, part| sent += send_part(layer.as_deref_mut(), cx, k, part));
    sent
}

/// Sends bytes unchanged, or sealed if there is a layer; returns how many leave.
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
    /// Wraps a layer; no state is kept yet.
    pub fn new(layer: Box<dyn Layer<Error = E>>) -> Layered<E> {
        Layered { layer, leftovers: HashMap::new(), scratch: Vec::new() }
    }

    /// Sends what `fill` writes into `room` bytes, sealed. `fill` returns the number of bytes written; returns their sealed length.
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

    /// Sends the layer's own output; returns its length.
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

    /// The unsealed bytes that the program left over, followed by `bytes`; `None` if nothing was left over.
    pub fn take_leftover(&mut self, index: u32, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut leftover = self.leftovers.remove(&index)?;
        leftover.extend_from_slice(bytes);
        Some(leftover)
    }

    /// Keeps bytes that the program has not used yet.
    pub fn leave(&mut self, index: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.leftovers.insert(index, bytes.to_vec());
        }
    }

    /// The bytes that the program has left over.
    pub fn leftover(&self, index: u32) -> &[u8] {
        self.leftovers.get(&index).map_or(&[], Vec::as_slice)
    }

    /// Returns memory to the system after a peak of openings.
    pub fn shrink(&mut self) {
        if self.layer.shrink() {
            return_freed_memory();
        }
    }

    /// The connection is gone: drops its state.
    pub fn end(&mut self, index: u32) {
        self.leftovers.remove(&index);
        self.layer.end(index);
    }
}

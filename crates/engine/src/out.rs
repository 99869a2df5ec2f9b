//! Output on a connection: passed through its layer, if any, and counted.

use net::{Cx, Io, Key, Layered};

use crate::{request::ValueSource, transcriber::Transcriber};

/// What lies between the protocol of connections and their sockets.
#[derive(Default)]
pub(crate) struct Transport {
    /// The layer, if any.
    pub(crate) layer: Option<Box<Layered<tls::Error>>>,
    /// Who writes down what passes, if anyone.
    pub(crate) transcriber: Option<Box<Transcriber>>,
}

impl Transport {
    /// The transcriber, if it is about the connection at this index.
    pub(crate) fn transcriber_of(&mut self, index: u32) -> Option<&mut Transcriber> {
        self.transcriber.as_deref_mut().filter(|transcriber| transcriber.is_of(index))
    }
}

/// The output of a connection, with the source of the values of its variables.
pub(crate) struct Out<'a, I: Io> {
    pub(crate) to: Writer<'a, I>,
    pub(crate) source: &'a mut ValueSource,
}

/// Sends on a connection. Pieces sent in one call of the program leave together.
pub struct Writer<'a, I: Io> {
    cx: &'a mut Cx<I>,
    k: Key,
    layer: Option<&'a mut Layered<tls::Error>>,
    /// Counter of bytes sent, as on the wire.
    sent: &'a mut u64,
    transcriber: Option<&'a mut Transcriber>,
}

impl<'a, I: Io> Out<'a, I> {
    pub(crate) fn new(
        cx: &'a mut Cx<I>,
        k: Key,
        Transport { layer, transcriber }: &'a mut Transport,
        sent: &'a mut u64,
        source: &'a mut ValueSource,
    ) -> Out<'a, I> {
        source.now = cx.now();
        let transcriber = transcriber.as_deref_mut().filter(|transcriber| transcriber.is_of(k.index));
        let layer = layer.as_deref_mut();
        Out { to: Writer { cx, k, layer, sent, transcriber }, source }
    }
}

impl<'a, I: Io> Writer<'a, I> {
    /// Sends on this connection, through its layer if it has one, and adds the bytes as on the wire to `sent`.
    pub fn new(
        cx: &'a mut Cx<I>,
        k: Key,
        layer: Option<&'a mut Layered<tls::Error>>,
        sent: &'a mut u64,
    ) -> Writer<'a, I> {
        Writer { cx, k, layer, sent, transcriber: None }
    }

    /// The time at which the turn began.
    pub(crate) fn now(&self) -> units::Nanos {
        self.cx.now()
    }

    /// Index of the connection.
    pub(crate) fn index(&self) -> u32 {
        self.k.index
    }

    /// Whether an earlier send has not left yet because the peer does not read.
    pub(crate) fn is_write_blocked(&self) -> bool {
        self.cx.is_write_blocked(self.k)
    }

    /// How many bytes of a body may be sent now; see [`Cx::writable_len`].
    pub(crate) fn writable_len(&self) -> usize {
        self.cx.writable_len(self.k)
    }

    /// Requests a call of [`Session::send_more`](crate::protocol::Session::send_more) once earlier output has left.
    pub(crate) fn call_when_writable(&mut self) {
        self.cx.call_when_writable(self.k);
    }

    /// Sends the next piece of a body given to [`Writer::send_static`].
    pub(crate) fn send_deferred(&mut self) {
        let Writer { cx, k, layer, sent, .. } = self;
        **sent += net::send_deferred(layer.as_deref_mut(), cx, *k) as u64;
    }

    /// Sends what `fill` writes into `room` bytes; `fill` returns the number.
    pub(crate) fn send(&mut self, room: usize, fill: impl FnOnce(&mut [u8]) -> usize) {
        let Writer { cx, k, layer, sent, transcriber } = self;
        let now = cx.now();
        let fill = |out: &mut [u8]| {
            let length = fill(out);
            if let Some(transcriber) = transcriber {
                transcriber.sent(now, &out[..length]);
            }
            length
        };
        **sent += net::send(layer.as_deref_mut(), cx, *k, room, fill) as u64;
    }

    /// Sends bytes that live as long as the program, without a copy if there is no layer. More than [`net::PIECE`] is sent in
    /// several pieces.
    pub(crate) fn send_static(&mut self, bytes: &'static [u8]) {
        let Writer { cx, k, layer, sent, transcriber } = self;
        if let Some(transcriber) = transcriber {
            transcriber.sent(cx.now(), bytes);
        }
        **sent += net::send_static(layer.as_deref_mut(), cx, *k, bytes) as u64;
    }
}

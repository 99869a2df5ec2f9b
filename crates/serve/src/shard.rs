//! A shard of a server: what every service needs. It accepts, keeps a record per connection, delays responses, misbehaves as
//! configured, and counts.

use std::sync::Arc;

use net::{Cx, Gone, Inner, Io, Key, Layered, Program};
use units::Nanos;

use crate::{
    acceptor::Acceptor,
    counters::{Counters, Stats},
    knobs::{Due, Knobs, Stalls, Watch},
    out::Out,
};

/// A service: handles the input of connections.
pub trait Handler: Sized {
    /// The record of an idle connection.
    type Conn: Copy;
    /// The record of a newly accepted connection.
    const NEW: Self::Conn;

    /// Whether the connection has a delayed response.
    fn is_waiting(conn: &Self::Conn) -> bool;

    /// Whether input is left unread until that response has been sent.
    fn is_held(conn: &Self::Conn) -> bool {
        Self::is_waiting(conn)
    }

    /// Handles input. Returns the number of bytes used; see [`Program::bytes`].
    fn handle_bytes<I: Io>(shard: &mut ServerShard<Self>, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize;

    /// A delayed response is due.
    fn respond<I: Io>(shard: &mut ServerShard<Self>, cx: &mut Cx<I>, k: Key);

    /// A connection has gone, or is about to be closed.
    fn left(_shard: &mut ServerShard<Self>, _k: Key) {}

    /// The server stops: notifies peers, a limited number per turn; returns whether all have been notified.
    fn say_goodbye<I: Io>(_shard: &mut ServerShard<Self>, _cx: &mut Cx<I>) -> bool {
        true
    }
}

/// One shard of a server.
pub struct ServerShard<H: Handler> {
    pub(crate) handler: H,
    pub(crate) conns: Vec<H::Conn>,
    pub(crate) stats: Stats,
    pub(crate) stalls: Stalls,
    pub(crate) out: Out,
    acceptor: Acceptor,
    pub(crate) watch: Watch,
    /// Number of delayed responses.
    waiting: u64,
    /// Whether the server is stopping and every peer has been notified.
    has_said_goodbye: bool,
}

impl<H: Handler> ServerShard<H> {
    pub(crate) fn new(handler: H, counters: Arc<Counters>, shard: u32, knobs: &Knobs) -> ServerShard<H> {
        ServerShard {
            handler,
            conns: Vec::new(),
            stats: Stats::default(),
            stalls: Stalls::new(knobs.stalls_of_million),
            out: Out::default(),
            acceptor: Acceptor::new(counters, shard, knobs),
            watch: Watch::new(knobs),
            waiting: 0,
            has_said_goodbye: false,
        }
    }

    /// Whether the shard is stopping and owes no response.
    pub(crate) fn is_finished<I: Io>(&self, cx: &Cx<I>) -> bool {
        self.has_said_goodbye && self.waiting == 0 && cx.blocked() == 0
    }

    pub(crate) fn conn(&mut self, k: Key) -> &mut H::Conn {
        &mut self.conns[k.index as usize]
    }

    /// Calls [`Handler::respond`] after `time`. Until then [`Handler::is_waiting`] must hold.
    pub(crate) fn respond_after<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, time: Nanos) {
        self.waiting += 1;
        self.watch.owes(cx, k, cx.now() + time);
    }

    /// Moves the delayed response of a connection forward, to `at`.
    pub(crate) fn respond_at<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, at: Nanos) {
        self.watch.owes(cx, k, at);
    }

    /// Whether the server has been ordered to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.acceptor.is_stopping()
    }

    /// The counts of all shards; those of this shard are up to date.
    pub(crate) fn read_counters(&self) -> Stats {
        self.acceptor.read(&self.stats)
    }

    /// Adds this layer to all connections.
    #[must_use]
    pub fn with_layer(mut self, layer: tls::Tls) -> ServerShard<H> {
        self.out.layer = Some(Box::new(Layered::new(Box::new(layer))));
        self.watch.limit_handshakes();
        self
    }

    fn count_sent(&mut self) {
        self.stats.bytes_out += std::mem::take(&mut self.out.sent);
    }

    /// A connection has gone, or is about to be closed.
    pub(crate) fn leave(&mut self, k: Key) {
        self.out.layer.iter_mut().for_each(|layer| layer.end(k.index));
        H::left(self, k);
        self.waiting -= u64::from(H::is_waiting(self.conn(k)));
        self.acceptor.left(&mut self.stats);
    }
}

impl<H: Handler> Program for ServerShard<H> {
    const ANSWERS: bool = true;

    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if !self.acceptor.opened(cx, k, &mut self.stats) {
            return;
        }
        if k.index as usize >= self.conns.len() {
            self.conns.resize(k.index as usize + 1, H::NEW);
        }
        *self.conn(k) = H::NEW;
        self.watch.opened(cx, k);
        let opened = self.out.layer.as_mut().map_or(Ok(()), |layered| layered.layer.open(k.index, 0));
        opened.unwrap_or_else(|error| self.layer_failed(cx, k, error, &[]));
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let is_owed = H::is_waiting(self.conn(k));
        match self.watch.due(cx, k, is_owed) {
            Due::Nothing => {}
            Due::Response => {
                self.waiting -= 1;
                H::respond(self, cx, k);
                self.count_sent();
            }
            Due::Close(how) => {
                self.leave(k);
                cx.close(k, how);
            }
        }
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        self.watch.received(cx, k);
        let used = match self.out.layer {
            Some(_) => {
                // Input left over from earlier calls comes first.
                self.read_unsealed(cx, k, &[]);
                self.read_layer(cx, k, input)
            }
            None => H::handle_bytes(self, cx, k, input),
        };
        self.stats.bytes_in += used as u64;
        self.count_sent();
        used
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        if cx.is_open(k) {
            return self.leave(k);
        }
        self.acceptor.failed(cx, k, why, &mut self.stats);
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let next = self.acceptor.pace(cx, &self.stats);
        self.out.layer.iter_mut().for_each(|layer| layer.shrink());
        if !self.acceptor.is_stopping() {
            return next;
        }
        self.has_said_goodbye = H::say_goodbye(self, cx);
        self.count_sent();
        if self.has_said_goodbye { next } else { cx.now() }
    }
}

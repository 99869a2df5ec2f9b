//! What the server says: responses, messages of its own, and the end of a session.

use net::{Cx, Io, Key};
use samples::{Fault, Kind, Stage};
use wire::websocket::Payload;

use super::Client;
use crate::{
    connections::State,
    protocol::{self, Out, Progress},
};

impl Client {
    /// The transport is open: the session is opened next.
    pub(super) fn open<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Client { job, conns, ink, .. } = self;
        let (conn, session, _) = conns.parts(k.index);
        let out = &mut Out { cx, k, ink };
        match job.protocol.open(session, conn.destination.into(), out) {
            None => self.connected(cx, k),
            Some(bytes) => {
                self.tick.counts.bytes_out += bytes;
                self.conns.transition(k.index, State::Upgrading);
                self.exchange(k).started = cx.now();
                cx.wake_at(k, cx.now() + self.job.timeout);
            }
        }
    }

    /// Reads all that has come; returns the bytes used.
    pub(super) fn read_all<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            match self.read(k, &input[used..]) {
                Ok(Progress::More(n)) => {
                    self.rest_if_quiet(k);
                    return used + n;
                }
                Ok(Progress::Opened(n)) => {
                    used += n;
                    self.session_opened(cx, k);
                }
                Ok(Progress::Responded(n)) => {
                    used += n;
                    self.answered(cx, k);
                    if used < input.len() && cx.is_open(k) && self.conn(k).state() == State::Busy {
                        // What is awaited next came along with it.
                        self.begun(k, cx.now());
                    }
                }
                Ok(Progress::Ping(n, ping)) => {
                    used += n;
                    self.tick.counts.bytes_out += self.pong(cx, k, ping);
                }
                Ok(Progress::Closing(code)) => self.close_back(cx, k, code),
                Err(kind) => self.misread(cx, k, kind),
            }
            if !cx.is_open(k) {
                return input.len();
            }
            if used == input.len() && self.conns.is_at_rest(k.index) {
                self.rest_if_quiet(k);
                return used;
            }
        }
    }

    /// Reads on, up to the next thing that happens.
    fn read<'a>(&mut self, k: Key, input: &'a [u8]) -> Result<Progress<'a>, Kind> {
        let Client { job, conns, ink, .. } = self;
        conns.open_session(k.index, || job.protocol.session());
        let (conn, session, exchange) = conns.parts(k.index);
        let asked = exchange.filter(|_| conn.state() == State::Busy).map(|exchange| {
            let awaited = job.awaited(conn.at, exchange.nth, k.index, ink);
            (exchange, awaited)
        });
        session.handle_bytes(input, asked)
    }

    /// Something came that is not right.
    fn misread<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, kind: Kind) {
        match self.conn(k).state() {
            State::Upgrading => self.dial_failed(cx, k, Fault::target(Stage::Handshake, kind)),
            State::Busy => self.lost(cx, k, Fault::target(Stage::Exchange, kind)),
            _ => self.lost(cx, k, Fault::target(Stage::Hold, kind)),
        }
    }

    /// Gives an idle connection's session back once no message is under way.
    fn rest_if_quiet(&mut self, k: Key) {
        if self.conn(k).state() == State::Idle {
            self.conns.transition(k.index, State::Idle);
        }
    }

    fn session_opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.learn(k, cx.now(), true);
        let asked = self.exchange(k).started;
        self.tick.handshake.record_seen(self.took(asked, asked, cx.now()));
        self.connected(cx, k);
    }

    /// Answers the server's question whether the connection is alive; the bytes sent.
    pub(super) fn pong<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, ping: Payload<'_>) -> u64 {
        protocol::pong(ping, &mut Out { cx, k, ink: &mut self.ink })
    }

    /// The server begins the closing handshake: it is answered, and the connection rests until its next message is
    /// due.
    fn close_back<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, code: Option<u16>) {
        let out = &mut Out { cx, k, ink: &mut self.ink };
        self.tick.counts.bytes_out += protocol::close_back(code, out);
        let due = match self.conn(k).state() {
            // Its message crossed with the close: it is still owed.
            State::Busy => self.exchange(k).due,
            _ => self.idle_until(cx, k),
        };
        self.closed_as_announced(cx, k, due);
    }
}

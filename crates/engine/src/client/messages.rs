//! WebSocket and raw TCP with a message: the upgrade, echoes, and what the server says of itself.

use net::{Cx, Io, Key};
use samples::{Fault, Kind, Stage};
use wire::websocket::{self, MAX_CONTROL, MAX_HEADER, Opcode, Payload};

use super::Client;
use crate::{
    connections::State,
    exchange::{Exchange, Progress, Wire},
    op::Op,
    tls,
};

impl Client {
    /// Asks for the upgrade on a connection just opened.
    pub(super) fn upgrade<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Client { job, conns, ink, tick, .. } = self;
        let Some(upgrade) = job.upgrade() else { unreachable!("only a WebSocket is upgraded") };
        conns.transition(k.index, State::Upgrading);
        let (conn, exchange) = conns.with_exchange(k.index);
        let Wire::Upgrade(nonce) = exchange.wire else { unreachable!("dialled with a nonce") };
        let destination = usize::from(conn.destination);
        exchange.started = cx.now();
        cx.send(k, upgrade.max_len(destination), |out| {
            let len = upgrade.write(destination, nonce, k.index, ink, out);
            tick.counts.bytes_out += len as u64;
            len
        });
        cx.wake_at(k, cx.now() + job.timeout);
    }

    /// Reads all that has come.
    pub(super) fn messages<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            if !self.conns.has_exchange(k.index) {
                let now = cx.now();
                self.conns.begin(k.index, Exchange::new(now, now, self.job.wire()));
            }
            let read = match self.read(k, &input[used..]) {
                _ if self.is_tls_alert(k, &input[used..]) => Err(Kind::TlsExpected),
                Err(_) if self.is_tls_page(k, input) => Err(Kind::TlsExpected),
                read => read,
            };
            match read {
                Ok(Progress::More(n)) => {
                    self.rest_if_quiet(k);
                    return used + n;
                }
                Ok(Progress::Upgraded(n)) => {
                    used += n;
                    self.upgraded(cx, k);
                    if !cx.is_open(k) {
                        return input.len();
                    }
                }
                Ok(Progress::Answered(n)) => {
                    used += n;
                    if used < input.len() && self.job.is_tcp() && self.awaits_echo(k) {
                        // Without frames, more than what was asked for cannot be told from the next echo.
                        self.lost(cx, k, Fault::target(Stage::Exchange, Kind::BadAnswer));
                        return input.len();
                    }
                    self.answered(cx, k);
                    if !cx.is_open(k) {
                        return input.len();
                    }
                    if used < input.len() && self.conn(k).state() == State::Busy {
                        // What is awaited next came along with it.
                        self.begun(k, cx.now());
                    }
                }
                Ok(Progress::Ping(n, ping)) => {
                    used += n;
                    self.tick.counts.bytes_out += self.pong(cx, k, ping);
                }
                Ok(Progress::Closing(code)) => {
                    self.close_back(cx, k, code);
                    return input.len();
                }
                Err(kind) => {
                    match self.conn(k).state() {
                        State::Upgrading => self.dial_failed(cx, k, Fault::target(Stage::Handshake, kind)),
                        State::Busy => self.lost(cx, k, Fault::target(Stage::Exchange, kind)),
                        _ => self.lost(cx, k, Fault::target(Stage::Hold, kind)),
                    }
                    return input.len();
                }
            }
        }
    }

    /// Whether the first that a connection receives is an alert of TLS.
    fn is_tls_alert(&self, k: Key, input: &[u8]) -> bool {
        let state = self.conns[k.index].state();
        let may_be = state == State::Upgrading || state == State::Busy && self.job.is_tcp();
        may_be && tls::is_alert(input)
    }

    /// Whether the refusal of an upgrade says that the target speaks TLS.
    fn is_tls_page(&self, k: Key, input: &[u8]) -> bool {
        let is_refusal = input.starts_with(b"HTTP/1.") && input.get(9..12) == Some(b"400");
        self.conns[k.index].state() == State::Upgrading && is_refusal && tls::is_page(400, input)
    }

    fn awaits_echo(&self, k: Key) -> bool {
        match self.job.op(self.conns[k.index].at) {
            Op::Ask(message) | Op::Ping(message, _) => message.check.echo,
            _ => false,
        }
    }

    /// Gives an idle connection's exchange back once no message is under way.
    fn rest_if_quiet(&mut self, k: Key) {
        if self.conn(k).state() == State::Idle {
            self.conns.transition(k.index, State::Idle);
        }
    }

    fn upgraded<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.learn(k, cx.now(), true);
        let asked = self.exchange(k).started;
        self.tick.handshake.record_seen(self.took(asked, asked, cx.now()));
        self.exchange(k).wire = self.job.wire();
        self.connected(cx, k);
    }

    /// Answers a ping with its own words (RFC 6455 section 5.5.3). Not while the server reads nothing: it may be
    /// answered by a later pong, and what it does not take must not pile up here. Returns the bytes sent.
    pub(super) fn pong<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, ping: Payload<'_>) -> u64 {
        if cx.is_clogged(k) {
            return 0;
        }
        let mut echo = [0; MAX_CONTROL];
        let echo = &mut echo[..ping.len()];
        ping.copy_to(echo);
        let mask = Some(self.mask());
        let mut written = 0;
        cx.send(k, MAX_HEADER + echo.len(), |out| {
            let len = websocket::write_frame(out, Opcode::Pong, true, mask, echo);
            written = len.expect("there is room for a control frame");
            written
        });
        written as u64
    }

    /// The server begins the closing handshake: it is answered, and the connection rests until its next message is
    /// due (RFC 6455 section 5.5.1).
    fn close_back<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, code: Option<u16>) {
        let mask = Some(self.mask());
        let tick = &mut self.tick;
        cx.send(k, MAX_HEADER + MAX_CONTROL, |out| {
            let len = websocket::write_close(out, code, mask).expect("there is room for a control frame");
            tick.counts.bytes_out += len as u64;
            len
        });
        let due = match self.conn(k).state() {
            // Its message crossed with the close: it is still owed.
            State::Busy => self.exchange(k).due,
            _ => self.idle_until(cx, k),
        };
        self.closed_as_announced(cx, k, due);
    }

    pub(super) fn mask(&mut self) -> [u8; 4] {
        (self.ink.random.bits() as u32).to_be_bytes()
    }
}

//! What connections do next: requests and messages go out, pauses begin.

use net::{Cx, Io, Key};
use plan::Think;
use units::Nanos;
use wire::websocket::{self, MAX_HEADER, Opcode};

use super::Client;
use crate::{
    connections::State,
    exchange::{Exchange, Wire},
    job::Job,
    op::Op,
    pacer::Next,
    request::{Ink, Message},
};

/// While the shard rests, an idle connection is looked at no more often than this.
/// A message that nobody answers, and a close, wait so long at a time for a peer that does not read: what piled up would
/// grow with time.
const BLOCKED: Nanos = Nanos::from_millis(100);
const LEAST_REST: Nanos = Nanos::from_millis(500);
/// Bytes of a control ping: a number, so that no earlier pong passes for its own.
const PING: usize = 8;

/// Begins the operation at `at` in `exchange`, and sends what it sends; returns its bytes.
pub(super) fn send<I: Io>(
    job: &Job,
    at: u16,
    exchange: &mut Exchange,
    destination: usize,
    ink: &mut Ink,
    cx: &mut Cx<I>,
    k: Key,
) -> u64 {
    (exchange.started, exchange.begun) = (cx.now(), false);
    match job.op(at) {
        Op::Request(request) => {
            let Wire::Http(wire) = &mut exchange.wire else { unreachable!("requests are of http://") };
            wire.order(request.is_head);
            if let Some(bytes) = request.fixed(destination) {
                exchange.expected = request.check.expected(&[]);
                cx.send_static(k, bytes);
                return bytes.len() as u64;
            }
            let mut written = 0;
            cx.send(k, request.max_len(destination), |out| {
                (written, exchange.expected) = request.write(destination, k.index, ink, out);
                written
            });
            written as u64
        }
        Op::Ask(message) | Op::Ping(message, _) => {
            exchange.await_message();
            send_message(message, Some(exchange), job.is_tcp(), ink, cx, k)
        }
        Op::Listen(check) => {
            exchange.await_message();
            exchange.expected = check.expected(&[]);
            0
        }
        Op::Tell(_) | Op::Wait(_) | Op::Close | Op::Goto(_) | Op::Stay => unreachable!("it awaits nothing"),
    }
}

/// Sends a message; `exchange` awaits its answer. Returns its bytes, with its frame.
fn send_message<I: Io>(
    message: &Message,
    exchange: Option<&mut Exchange>,
    is_tcp: bool,
    ink: &mut Ink,
    cx: &mut Cx<I>,
    k: Key,
) -> u64 {
    let mask = (ink.random.bits() as u32).to_be_bytes();
    let mut written = 0;
    if message.is_ping() {
        let number = ink.random.bits();
        cx.send(k, MAX_HEADER + PING, |out| {
            let len = websocket::write_frame(out, Opcode::Ping, true, Some(mask), &number.to_be_bytes());
            written = len.expect("there is room for a frame of ours");
            written
        });
        exchange.into_iter().for_each(|exchange| exchange.expected = number);
        return written as u64;
    }
    let (text, nth, expected) = message.write(k.index, ink);
    exchange.into_iter().for_each(|exchange| (exchange.nth, exchange.expected) = (nth, expected));
    if let (true, Some(bytes)) = (is_tcp, message.fixed) {
        cx.send_static(k, bytes);
        return bytes.len() as u64;
    }
    cx.send(k, MAX_HEADER + text.len(), |out| {
        written = if is_tcp {
            out[..text.len()].copy_from_slice(text);
            text.len()
        } else {
            let len = websocket::write_frame(out, Opcode::Text, true, Some(mask), text);
            len.expect("there is room for a frame of ours")
        };
        written
    });
    written as u64
}

impl Client {
    /// The same for one whose time has come.
    pub(super) fn go_on_at<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        self.go_on(cx, k, due, due);
        // In closed loop timers are not set again with each request, and this one's is spent: it was put off.
        if self.pacer.is_closed_loop() && self.conn(k).state() == State::Busy {
            cx.wake_at(k, cx.now() + self.job.timeout);
        }
    }

    /// While the shard rests, what is due is due again after one more think time: when it goes on, requests come as
    /// they did before, and not all at once.
    pub(super) fn put_off<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Think { min, max } = self.job.longest_wait;
        cx.wake_at(k, cx.now() + Nanos(self.ink.random.between(min.0, max.0)).max(LEAST_REST));
    }

    /// What comes next for an idle connection, where the one before it ended at `due`, and could be begun from `ready` on.
    pub(super) fn go_on<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, mut due: Nanos, mut ready: Nanos) {
        let mut sent = false;
        loop {
            let at = self.conn(k).at;
            match self.job.op(at) {
                // What a call sends leaves as one: each of the plan's messages leaves by itself.
                op if sent && op.sends() => return cx.wake_at(k, cx.now()),
                op if self.pacer.puts_off() && (op.sends() || op.asks()) => return self.put_off(cx, k),
                // As for whoever writes to a blocking socket. What asks is due all the same: its answer is late.
                Op::Tell(_) | Op::Close if cx.is_clogged(k) => return cx.wake_at(k, cx.now() + BLOCKED),
                Op::Goto(to) => self.conns[k.index].at = *to,
                Op::Wait(think) => {
                    due = due + Nanos(self.ink.random.between(think.min.0, think.max.0));
                    self.conn(k).at = at + 1;
                    if due > cx.now() {
                        return cx.wake_at(k, due);
                    }
                    ready = due;
                }
                Op::Tell(message) => {
                    let bytes = send_message(message, None, self.job.is_tcp(), &mut self.ink, cx, k);
                    self.tick.counts.bytes_out += bytes;
                    self.tick.counts.told += 1;
                    self.conn(k).at = at + 1;
                    sent = true;
                }
                Op::Close => {
                    self.conn(k).at = at + 1;
                    return self.leave(cx, k);
                }
                Op::Stay => return cx.let_sleep(k),
                _ => {
                    return match self.pacer.next(due, cx.now()) {
                        Next::Slot => self.set_free(cx, k),
                        Next::AtOnce => self.ask(cx, k, due),
                        Next::Due => self.request_due(cx, k, due, ready),
                    };
                }
            }
        }
    }

    /// What was due at `due`, and could be sent from `ready` on, is sent on its idle connection.
    fn request_due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos, ready: Nanos) {
        if self.full_load.has(due) {
            self.lateness.leaves(ready);
        }
        self.ask(cx, k, due);
    }

    /// The same for one whose lag is known.
    pub(super) fn ask<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        let now = cx.now();
        if self.conns.has_exchange(k.index) {
            // Part of a message of the server's own has come: its machine stays.
            self.exchange(k).due = due;
        } else {
            self.conns.begin(k.index, Exchange::new(due, now, self.job.wire()));
        }
        self.request(cx, k);
        // In closed loop the timer of an earlier request is left to run: it looks when it comes.
        if !self.pacer.is_closed_loop() {
            cx.wake_at(k, now + self.job.timeout);
        }
    }

    /// Begins the operation of a connection that has an exchange for it.
    pub(super) fn request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Client { job, conns, ink, tick, .. } = self;
        conns.transition(k.index, State::Busy);
        let (conn, exchange) = conns.with_exchange(k.index);
        tick.counts.sent += 1;
        let own = job.row(conn.destination).map(|row| &mut tick.destinations[row]);
        own.into_iter().for_each(|own| own.sent += 1);
        tick.counts.bytes_out += send(job, conn.at, exchange, usize::from(conn.destination), ink, cx, k);
    }
}

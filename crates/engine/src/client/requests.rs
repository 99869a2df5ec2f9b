//! What connections do next: requests and messages go out, pauses begin.

use net::{Cx, Io, Key};
use plan::Think;
use units::Nanos;

use super::Client;
use crate::{connections::State, exchange::Exchange, op::Op, pacer::Next, protocol::Out};

/// A message that nobody answers, and a close, wait so long at a time for a peer that does not read: what piled up would
/// grow with time.
const BLOCKED: Nanos = Nanos::from_millis(100);
/// While the shard rests, an idle connection is looked at no more often than this.
const LEAST_REST: Nanos = Nanos::from_millis(500);

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
                    let out = &mut Out { cx, k, ink: &mut self.ink };
                    let bytes = self.job.protocol.send_message(message, None, out);
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
        self.conns.begin(k.index, Exchange::new(due, now), || self.job.protocol.session());
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
        let (conn, session, exchange) = conns.parts(k.index);
        let exchange = exchange.expect("it was begun for this");
        tick.counts.sent += 1;
        let own = job.row(conn.destination).map(|row| &mut tick.destinations[row]);
        own.into_iter().for_each(|own| own.sent += 1);
        let (op, destination) = (job.op(conn.at), conn.destination.into());
        let out = &mut Out { cx, k, ink };
        tick.counts.bytes_out += job.protocol.send(op, session, exchange, destination, out);
    }
}

//! Requests go out.

use net::{Cx, Io, Key};
use plan::Random;
use units::Nanos;

use super::Client;
use crate::{
    conn::{Conn, State},
    exchange::{Exchange, Wire},
    job::Job,
};

/// Sends the request that `exchange` begins; returns its bytes.
pub(super) fn send<I: Io>(
    job: &Job,
    random: &mut Random,
    exchange: &mut Exchange,
    destination: usize,
    cx: &mut Cx<I>,
    k: Key,
) -> u64 {
    match &mut exchange.wire {
        Wire::Http(wire) => wire.order(false),
        _ => exchange.await_echo(),
    }
    (exchange.started, exchange.begun) = (cx.now(), false);
    if let Some(bytes) = job.protocol.fixed(destination) {
        exchange.expected = job.fixed_length();
        cx.send_static(k, bytes);
        return bytes.len() as u64;
    }
    let mut written = 0;
    cx.send(k, job.protocol.max_len(destination), |out| {
        written = job.protocol.write(destination, exchange, random, out, job.expect);
        written
    });
    written as u64
}

impl Client {
    pub(super) fn request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Client { job, conns, exchanges, random, tick, .. } = self;
        let conn = &mut conns[k.index as usize];
        conn.state = State::Busy;
        let exchange = exchanges.at(conn.exchange);
        tick.counts.sent += 1;
        tick.counts.bytes_out += send(job, random, exchange, usize::from(conn.destination), cx, k);
    }

    /// A request that was due at `due`, and could be sent from `ready` on, is sent on its idle connection.
    pub(super) fn request_due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos, ready: Nanos) {
        if due >= self.hold_from {
            self.tick.lag.record(cx.now().since(ready));
        }
        self.ask(cx, k, due);
    }

    /// The same for a request whose lag is known.
    pub(super) fn ask<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        let now = cx.now();
        let begun = self.conn(k).exchange;
        if begun == Conn::NONE.exchange {
            self.conn(k).exchange = self.exchanges.begin(Exchange::new(due, now, self.job.protocol.wire()));
        } else {
            // Part of a message of the server's own has come: its machine stays.
            self.incoming -= 1;
            self.exchange(k).due = due;
        }
        self.request(cx, k);
        // In closed loop the timer of an earlier request is left to run: it looks when it comes.
        if !self.job.is_closed_loop() {
            cx.wake_at(k, now + self.job.timeout);
        }
    }
}

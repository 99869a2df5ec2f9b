//! The client shard: one state machine for all its connections.
//!
//! ```text
//!            ┌──────── address taken: next ────────┐
//!  None ─► Dialling ─► Upgrading ─► Busy ─► Idle ─► Busy ─► …  (think time, or at once)
//!            ▲        (WebSocket)           │
//!            └───────── Resting ◄───────────┘  the server closed by announcement; dialled again when the next
//!                                              request is due
//! ```

use net::{Close, Cx, Gone, Io, Key, Program};
use plan::{Part, Plan, Random, Reconnect, Tuples};
use samples::{Fault, Kind, Stage, Tick};
use units::Nanos;
use wire::Breach;

use crate::{
    conn::{Conn, State},
    exchange::{Exchange, Exchanges, Progress, Wire},
    job::{Job, Pause},
    link::Link,
    protocol::Protocol,
    ramp::Pacer,
};

mod dial;
mod messages;
mod ticks;

/// Local addresses tried for one dial before it counts as failed, and by our doing.
const MOST_TRIES: u8 = 16;
/// An idle shard still looks at its orders this often.
const LOOK_AT_ORDERS: Nanos = Nanos::from_millis(100);
/// In closed loop, wake-ups may be put off by this much to answer in larger batches.
const COALESCE: Nanos = Nanos::from_micros(50);

/// One shard of the load.
pub struct Client {
    job: Job,
    tuples: Tuples,
    random: Random,
    pacer: Pacer,
    link: Link,
    conns: Vec<Conn>,
    exchanges: Exchanges,
    /// Connections to dial in all, and dialled so far.
    wanted: u32,
    dialled: u32,
    /// First dials and first requests whose outcome is not known.
    outstanding: u32,
    /// Dials and handshakes under way, redials included.
    dialling: u64,
    /// Exchanges of idle connections: a message of the server's own has come in part.
    incoming: u64,
    open: u64,
    resolved: u64,
    started: Nanos,
    hold_from: Nanos,
    ramped_at: Nanos,
    draining: bool,
    told_drained: bool,
    finished: bool,
    tick: Box<Tick>,
    tick_ends: Nanos,
    unconfigured: bool,
    /// When the next turn was wanted at the latest.
    wanted_by: Nanos,
}

impl Client {
    /// The shard that takes `part` of `plan`, dialling from `tuples`. `start` is when the first dial is due.
    pub fn new(plan: &Plan, part: &Part, job: Job, tuples: Tuples, link: Link, start: Nanos) -> Client {
        let period = job.period;
        Client {
            pacer: Pacer::new(plan, part),
            tuples,
            random: Random::new(part.seed),
            link,
            conns: Vec::with_capacity(part.connections as usize),
            exchanges: Exchanges::new(part.connections),
            wanted: part.connections,
            dialled: 0,
            outstanding: 0,
            dialling: 0,
            incoming: 0,
            open: 0,
            resolved: 0,
            started: start,
            hold_from: Nanos::NEVER,
            ramped_at: Nanos::NEVER,
            draining: false,
            told_drained: false,
            finished: false,
            tick: Box::new(Tick { from: start, ..Tick::default() }),
            tick_ends: Nanos((start.0 / period.0 + 1) * period.0),
            unconfigured: true,
            wanted_by: Nanos::NEVER,
            job,
        }
    }

    /// Whether the shard was told to stop and has handed over its last tick.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    fn conn(&mut self, k: Key) -> &mut Conn {
        &mut self.conns[k.index as usize]
    }

    fn exchange(&mut self, k: Key) -> &mut Exchange {
        let at = self.conns[k.index as usize].exchange;
        self.exchanges.at(at)
    }

    /// Puts a connection's record at a key just taken.
    fn place(&mut self, k: Key, conn: Conn) {
        if k.index as usize >= self.conns.len() {
            self.conns.resize(k.index as usize + 1, Conn::NONE);
        }
        self.conns[k.index as usize] = conn;
    }

    fn forget(&mut self, k: Key) {
        let conn = std::mem::replace(self.conn(k), Conn::NONE);
        if conn.exchange != Conn::NONE.exchange {
            let exchange = self.exchanges.end(conn.exchange);
            self.outstanding -= u32::from(exchange.first);
            self.incoming -= u64::from(conn.state == State::Idle);
        }
    }

    fn request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Client { job, conns, exchanges, random, tick, .. } = self;
        let conn = &mut conns[k.index as usize];
        let exchange = exchanges.at(conn.exchange);
        let destination = usize::from(conn.destination);
        conn.state = State::Busy;
        match &mut exchange.wire {
            Wire::Http(wire) => wire.order(false),
            _ => exchange.await_echo(),
        }
        exchange.started = cx.now();
        tick.counts.sent += 1;
        if let Some(bytes) = job.protocol.fixed(destination) {
            exchange.expected = job.fixed_length();
            tick.counts.bytes_out += bytes.len() as u64;
            cx.send_static(k, bytes);
        } else {
            cx.send(k, job.protocol.max_len(destination), |out| {
                let len = job.protocol.write(destination, exchange, random, out, job.expect);
                tick.counts.bytes_out += len as u64;
                len
            });
        }
    }

    /// A request that was due at `due`, and could be sent from `ready` on, is sent on its idle connection.
    fn request_due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos, ready: Nanos) {
        let now = cx.now();
        if due >= self.hold_from {
            self.tick.lag.record(now.since(ready));
        }
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

    fn answered<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        self.learn(k, now, true);
        let exchange = self.idle(k);
        self.measure(&exchange, now);
        self.conn(k).hear(now, exchange.keep_alive_timeout_s);
        let keeps_alive = match &exchange.wire {
            Wire::Http(wire) => wire.keeps_alive(),
            _ => true,
        };
        // In closed loop the next request is due now.
        let due = match self.job.pause {
            Pause::Think(think) => now + Nanos(self.random.between(think.min.0, think.max.0)),
            Pause::Every(Nanos::ZERO) | Pause::Never => now,
            Pause::Every(every) => exchange.due + every,
        };
        if !keeps_alive {
            self.closed_as_announced(cx, k, due);
        } else if self.draining {
            cx.let_sleep(k);
        } else if due <= now {
            // A message that fell due while its forerunner's echo was awaited is late by the target's doing.
            self.request_due(cx, k, due, now);
        } else {
            cx.wake_at(k, due);
        }
    }

    /// Nothing is asked any more on this connection; returns what was.
    fn idle(&mut self, k: Key) -> Exchange {
        let at = self.conn(k).exchange;
        let exchange = *self.exchanges.at(at);
        self.outstanding -= u32::from(exchange.first);
        self.conn(k).state = State::Idle;
        if exchange.is_between_messages() {
            self.exchanges.end(at);
            self.conn(k).exchange = Conn::NONE.exchange;
        } else {
            let kept = self.exchanges.at(at);
            (kept.awaits, kept.first) = (false, false);
            self.incoming += 1;
        }
        exchange
    }

    fn measure(&mut self, exchange: &Exchange, now: Nanos) {
        let tick = &mut self.tick;
        tick.counts.answered += 1;
        tick.counts.body_bytes_in += exchange.content;
        let took = now.since(exchange.due);
        if exchange.due >= self.hold_from {
            tick.latency.record(took)
        } else {
            tick.ramp_latency.record(took)
        }
        if now >= self.hold_from && !self.draining {
            tick.counts.answered_at_load += 1;
        }
        if !matches!(exchange.wire, Wire::Http(_)) {
            if exchange.differs {
                tick.faults.count(Fault::target(Stage::Exchange, Kind::WrongEcho));
            }
            return;
        }
        tick.count_status(exchange.status);
        let right = match self.job.expect.status {
            Some(status) => exchange.status == status,
            None => (200..300).contains(&exchange.status),
        };
        if !right {
            tick.faults.count(Fault::target(Stage::Exchange, Kind::WrongStatus));
        } else if exchange.expected != u64::MAX && exchange.expected != exchange.content {
            tick.faults.count(Fault::target(Stage::Exchange, Kind::WrongLength));
        }
    }

    /// The server said that it would close: not a loss. `due`: when the connection's next request is.
    fn closed_as_announced<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        let conn = *self.conn(k);
        self.forget(k);
        self.open -= 1;
        self.tick.counts.closed += 1;
        cx.close(k, Close::Graceful);
        if self.job.reconnect == Reconnect::Never || self.draining {
            return;
        }
        let k = cx.take().expect("a place was given back just now");
        // What was announced ends with the connection.
        self.place(k, Conn { destination: conn.destination, state: State::Resting, ..Conn::NONE });
        if due <= cx.now() { self.redial(cx, k, due) } else { cx.wake_at(k, due) }
    }

    fn lost<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, fault: Fault) {
        if self.conn(k).state == State::Busy {
            self.learn(k, cx.now(), false);
        }
        if matches!(fault.kind, Kind::Closed | Kind::Reset) {
            let silence = self.silence(k, cx.now());
            self.tick.silence.record(silence);
        }
        self.open -= 1;
        self.tick.counts.dropped += 1;
        self.tick.faults.count(fault);
        self.forget(k);
        cx.close(k, Close::Reset);
    }

    /// How long neither end has said anything.
    fn silence(&mut self, k: Key, now: Nanos) -> Nanos {
        let conn = *self.conn(k);
        match conn.state {
            State::Busy => conn.silent_for(now).min(now.since(self.exchange(k).started)),
            _ => conn.silent_for(now),
        }
    }

    fn gone_busy<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        let now = cx.now();
        let exchange = self.exchange(k);
        let due = exchange.due;
        let ended = match &mut exchange.wire {
            Wire::Http(wire) if why == Gone::Ended => wire.handle_end(),
            _ => Ok(None),
        };
        if let Ok(Some(_)) = ended {
            // The end of the connection is the end of the answer, and wire says that it is not kept.
            return self.answered(cx, k);
        }
        let untouched = exchange.status == 0;
        if untouched && self.conn(k).is_announced(now) {
            // It crossed with the announced close: the request is still owed, on a new connection.
            return self.closed_as_announced(cx, k, due);
        }
        let fault = match (ended, why) {
            (Err(Breach::Truncated), _) if !untouched => Fault::target(Stage::Exchange, Kind::Truncated),
            _ => fault_of(Stage::Exchange, why),
        };
        self.lost(cx, k, fault);
    }

    /// The connection stands, ready for its first request, or for the one it was dialled again for.
    fn connected<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        let first = self.exchange(k).first;
        self.dialling -= 1;
        self.open += 1;
        self.resolved += u64::from(first);
        let count = if first { &mut self.tick.counts.opened } else { &mut self.tick.counts.redialled };
        *count += 1;
        self.conn(k).hear(now, None);
        match self.job.pause {
            Pause::Every(every) if first && !self.draining => {
                self.idle(k);
                let due = now + Nanos(self.random.between(0, every.0));
                if due <= now { self.request_due(cx, k, now, now) } else { cx.wake_at(k, due) }
            }
            pause if matches!(pause, Pause::Never) || self.draining => {
                self.idle(k);
                cx.let_sleep(k);
            }
            _ => {
                if first {
                    // The first request is due as soon as the connection is open.
                    self.exchange(k).due = now;
                }
                self.request(cx, k);
                cx.wake_at(k, now + self.job.timeout);
            }
        }
    }

    /// Reads on in the answer to an HTTP request.
    fn reply<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        match self.exchange(k).handle_bytes(input, None) {
            Ok(Progress::More(used)) => return used,
            Ok(Progress::Answered(used)) if used == input.len() => self.answered(cx, k),
            // No answer, or more than what was asked for.
            _ => self.lost(cx, k, Fault::target(Stage::Exchange, Kind::BadAnswer)),
        }
        input.len()
    }

    fn timed_out<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let deadline = self.exchange(k).started + self.job.timeout;
        if deadline > cx.now() {
            return cx.wake_at(k, deadline);
        }
        match self.conn(k).state {
            State::Dialling => self.dial_failed(cx, k, Fault::target(Stage::Dial, Kind::Timeout)),
            State::Upgrading => self.dial_failed(cx, k, Fault::target(Stage::Handshake, Kind::Timeout)),
            _ => self.lost(cx, k, Fault::target(Stage::Exchange, Kind::Timeout)),
        }
    }
}

fn fault_of(stage: Stage, why: Gone) -> Fault {
    match why {
        Gone::Ended => Fault::target(stage, Kind::Closed),
        Gone::Reset => Fault::target(stage, Kind::Reset),
        Gone::Refused => Fault::target(stage, Kind::Refused),
        Gone::TimedOut => Fault::target(stage, Kind::Timeout),
        Gone::Unreachable => Fault { side: samples::Side::Path, stage, kind: Kind::Unreachable },
        Gone::AddressInUse => Fault::host(stage, Kind::AddressInUse),
        Gone::NoMemory => Fault::host(stage, Kind::NoMemory),
        Gone::OpenFiles => Fault::host(stage, Kind::OpenFiles),
        Gone::Denied => Fault::host(stage, Kind::Denied),
        Gone::Other(_) => Fault { side: samples::Side::Unknown, stage, kind: Kind::Other },
    }
}

impl Program for Client {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        let Exchange { started, first, .. } = *self.exchange(k);
        self.tick.connect.record(now.since(started));
        match (&self.job.protocol, &mut self.pacer) {
            (Protocol::Tcp(_), _) => self.learn(k, now, true),
            (_, Pacer::Adaptive(window)) if first => window.learn_dial(now.since(started), now),
            _ => {}
        }
        match self.job.protocol {
            Protocol::WebSocket(..) => self.upgrade(cx, k),
            _ => self.connected(cx, k),
        }
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let due = cx.timer(k);
        let state = self.conn(k).state;
        match state {
            State::Dialling | State::Upgrading | State::Busy => self.timed_out(cx, k),
            State::Idle | State::Resting if self.draining => {}
            State::Idle => self.request_due(cx, k, due, due),
            State::Resting => self.redial(cx, k, due),
            State::None => unreachable!("a timer without a connection"),
        }
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let state = self.conn(k).state;
        let used = match (&self.job.protocol, state) {
            (Protocol::Tcp(None), _) => input.len(),
            (Protocol::Http(_), State::Busy) => self.reply(cx, k, input),
            (Protocol::Http(_), _) => {
                self.lost(cx, k, Fault::target(Stage::Hold, Kind::BadAnswer));
                input.len()
            }
            _ => self.messages(cx, k, input),
        };
        self.tick.counts.bytes_in += used as u64;
        used
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        let conn = *self.conn(k);
        match conn.state {
            State::Dialling if why == Gone::AddressInUse && conn.tries < MOST_TRIES => {
                self.dial_again(cx, k);
            }
            State::Dialling => self.dial_failed(cx, k, fault_of(Stage::Dial, why)),
            State::Upgrading => self.dial_failed(cx, k, fault_of(Stage::Handshake, why)),
            State::Busy => self.gone_busy(cx, k, why),
            State::Idle if conn.is_announced(cx.now()) => {
                let due = cx.timer(k);
                self.closed_as_announced(cx, k, due);
            }
            State::Idle => self.lost(cx, k, fault_of(Stage::Hold, why)),
            State::Resting | State::None => unreachable!("no socket, no end of one"),
        }
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        if std::mem::take(&mut self.unconfigured) && self.job.is_closed_loop() {
            cx.coalesce(COALESCE);
        }
        self.tick.stalled = self.tick.stalled.max(cx.now().since(self.wanted_by));
        self.obey(cx.now());
        let next = if self.draining { Nanos::NEVER } else { self.dial_due(cx) };
        self.wanted_by = next.min(self.tick_ends).min(cx.now() + LOOK_AT_ORDERS);
        self.wanted_by
    }
}

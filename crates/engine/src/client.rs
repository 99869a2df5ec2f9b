//! The client shard: one state machine for all its connections.
//!
//! ```text
//!            ┌──────── address taken: next ────────┐
//!  None ─► Dialling ─► Busy ─► Idle ─► Busy ─► …  (think time, or at once)
//!            ▲                  │
//!            └───── Resting ◄───┘  the server closed by announcement; dialled again when the next request is due
//! ```

use net::{Close, Cx, Gone, Io, Key, Program};
use plan::{Part, Plan, Random, Reconnect, Tuples};
use samples::{Fault, Kind, Stage, Tick};
use units::Nanos;
use wire::Breach;

use crate::{
    conn::{Conn, State},
    exchange::{Exchange, Exchanges, Progress},
    job::{Job, Protocol},
    link::Link,
    ramp::Pacer,
};

mod dial;
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
    /// Dials under way, redials included.
    dialling: u64,
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
        }
    }

    fn request<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Client { job, conns, exchanges, random, tick, .. } = self;
        let Protocol::Http(request) = &job.protocol else { return };
        let conn = &mut conns[k.index as usize];
        let exchange = exchanges.at(conn.exchange);
        let destination = usize::from(conn.destination);
        conn.state = State::Busy;
        exchange.wire.order(false);
        exchange.started = cx.now();
        tick.counts.sent += 1;
        if let Some(bytes) = request.fixed(destination) {
            exchange.expected = job.expect.length.map_or(u64::MAX, |l| l.of(&[]));
            tick.counts.bytes_out += bytes.len() as u64;
            cx.send_static(k, bytes);
        } else {
            cx.send(k, request.max_len(destination), |out| {
                let (len, expected) = request.write(destination, random, out, job.expect);
                exchange.expected = expected.unwrap_or(u64::MAX);
                tick.counts.bytes_out += len as u64;
                len
            });
        }
    }

    /// A request whose time has come is sent on its idle connection.
    fn request_due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        if due >= self.hold_from {
            self.tick.lag.record(cx.now().since(due));
        }
        self.conn(k).exchange = self.exchanges.begin(Exchange::new(due, cx.now(), false));
        self.request(cx, k);
        // In closed loop the timer of an earlier request is left to run: it looks when it comes.
        if !self.job.is_closed_loop() {
            cx.wake_at(k, cx.now() + self.job.timeout);
        }
    }

    fn answered<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        self.learn(k, now, true);
        let at = self.conn(k).exchange;
        let exchange = self.exchanges.end(at);
        self.outstanding -= u32::from(exchange.first);
        let conn = self.conn(k);
        (conn.exchange, conn.state) = (Conn::NONE.exchange, State::Idle);
        conn.announce(now, exchange.keep_alive_timeout_s);
        self.measure(&exchange, now);
        // In closed loop the next request is due now.
        let due = now + self.think();
        if !exchange.wire.keeps_alive() {
            self.closed_as_announced(cx, k, due);
        } else if self.draining {
            cx.let_sleep(k);
        } else if self.job.is_closed_loop() {
            self.request_due(cx, k, due);
        } else {
            cx.wake_at(k, due);
        }
    }

    fn measure(&mut self, exchange: &Exchange, now: Nanos) {
        let tick = &mut self.tick;
        tick.counts.answered += 1;
        tick.counts.body_bytes_in += exchange.content;
        tick.count_status(exchange.status);
        let took = now.since(exchange.due);
        if exchange.due >= self.hold_from {
            tick.latency.record(took)
        } else {
            tick.ramp_latency.record(took)
        }
        if now >= self.hold_from && !self.draining {
            tick.counts.answered_at_load += 1;
        }
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

    fn think(&mut self) -> Nanos {
        Nanos(self.random.between(self.job.think.min.0, self.job.think.max.0))
    }

    /// The server said that it would close: not a loss. `due`: when the connection's next request is.
    fn closed_as_announced<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        let conn = std::mem::replace(self.conn(k), Conn::NONE);
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
        self.open -= 1;
        self.tick.counts.dropped += 1;
        self.tick.faults.count(fault);
        self.forget(k);
        cx.close(k, Close::Reset);
    }

    fn gone_busy<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        let now = cx.now();
        let exchange = self.exchange(k);
        let due = exchange.due;
        let ended = if why == Gone::Ended { exchange.wire.handle_end() } else { Ok(None) };
        if let Ok(Some(_)) = ended {
            // The end of the connection is the end of the answer, and wire says that it is not kept.
            return self.answered(cx, k);
        }
        let untouched = exchange.status == 0;
        if untouched && self.conn(k).is_announced(now) {
            // It crossed with the announced close: the request is still owed, on a new connection.
            let at = std::mem::replace(&mut self.conn(k).exchange, Conn::NONE.exchange);
            self.exchanges.end(at);
            return self.closed_as_announced(cx, k, due);
        }
        let fault = match (ended, why) {
            (Err(Breach::Truncated), _) if !untouched => Fault::target(Stage::Exchange, Kind::Truncated),
            _ => fault_of(Stage::Exchange, why),
        };
        self.lost(cx, k, fault);
    }

    fn timed_out<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let deadline = self.exchange(k).started + self.job.timeout;
        if deadline > cx.now() {
            return cx.wake_at(k, deadline);
        }
        match self.conn(k).state {
            State::Dialling => self.dial_failed(cx, k, Fault::target(Stage::Dial, Kind::Timeout)),
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
            (Protocol::Tcp, _) => self.learn(k, now, true),
            (_, Pacer::Adaptive(window)) if first => window.learn_dial(now.since(started), now),
            _ => {}
        }
        self.dialling -= 1;
        self.open += 1;
        self.resolved += u64::from(first);
        let count = if first { &mut self.tick.counts.opened } else { &mut self.tick.counts.redialled };
        *count += 1;
        if matches!(self.job.protocol, Protocol::Tcp) || self.draining {
            let destination = self.conn(k).destination;
            self.forget(k);
            *self.conn(k) = Conn { destination, state: State::Idle, ..Conn::NONE };
            return cx.let_sleep(k);
        }
        if first {
            // The first request is due as soon as the connection is open.
            self.exchange(k).due = now;
        }
        self.request(cx, k);
        cx.wake_at(k, now + self.job.timeout);
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let due = cx.timer(k);
        let state = self.conn(k).state;
        match state {
            State::Dialling | State::Busy => self.timed_out(cx, k),
            State::Idle | State::Resting if self.draining => {}
            State::Idle => self.request_due(cx, k, due),
            State::Resting => self.redial(cx, k, due),
            State::None => unreachable!("a timer without a connection"),
        }
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        self.tick.counts.bytes_in += input.len() as u64;
        if matches!(self.job.protocol, Protocol::Tcp) {
            return input.len();
        }
        if self.conn(k).state != State::Busy {
            self.lost(cx, k, Fault::target(Stage::Hold, Kind::BadAnswer));
            return input.len();
        }
        match self.exchange(k).handle_bytes(input) {
            Ok(Progress::More(used)) => {
                self.tick.counts.bytes_in -= (input.len() - used) as u64;
                used
            }
            Ok(Progress::Answered(used)) if used < input.len() => {
                // More than what was asked for.
                self.lost(cx, k, Fault::target(Stage::Exchange, Kind::BadAnswer));
                input.len()
            }
            Ok(Progress::Answered(used)) => {
                self.answered(cx, k);
                used
            }
            Err(_) => {
                self.lost(cx, k, Fault::target(Stage::Exchange, Kind::BadAnswer));
                input.len()
            }
        }
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        let conn = *self.conn(k);
        match conn.state {
            State::Dialling if why == Gone::AddressInUse && conn.tries < MOST_TRIES => {
                self.dial_again(cx, k);
            }
            State::Dialling => self.dial_failed(cx, k, fault_of(Stage::Dial, why)),
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
        self.obey(cx.now());
        let next = if self.draining { Nanos::NEVER } else { self.dial_due(cx) };
        next.min(self.tick_ends).min(cx.now() + LOOK_AT_ORDERS)
    }
}

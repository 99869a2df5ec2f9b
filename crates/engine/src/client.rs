//! The client shard: one state machine for all its connections.
//!
//! ```text
//!            ┌──────── address in use: next ───────┐
//!  None ─► Dialling ─► Securing ─► Upgrading ─► Busy ─► Idle ─► Busy ─► …  (after a think time, at a slot of an open loop, or at once)
//!            ▲         (a layer)  (WebSocket)            │
//!            └──────────────── Disconnected ◄────────────┘  an announced close, or a loss that is replaced; dialled again when the next
//!                                                           request is due or the back-off is over
//! ```
//!
//! [`Client`] implements [`net::Program`]; the submodules hold one aspect each. Requests, dials and connections change accounts
//! only in `books`, connection states only in [`Connections::transition`].

use net::{Cx, Gone, Inner, Io, Key, Layered, Program};
use plan::{Dials, Part};
use samples::{Tick, books::End};
use units::Nanos;

pub use self::ends::fault_of;
use crate::{
    connections::{Conn, Connections, State},
    exchange::Exchange,
    full_load::FullLoad,
    job::Job,
    lateness::Lateness,
    link::Link,
    out::Transport,
    pacer::Pacer,
    pushes::Pushed,
    request::ValueSource,
    transcriber::Transcriber,
};

use self::{
    breakdown::Sampled, columns::Columns, course::Course, errors::ErrorSampler, figures::Extremes,
    handover::Handover, lives::Lives, magnifier::Magnifier, quota::Quota, release::Closing,
    withdrawn::Withdrawn,
};

mod books;
mod breakdown;
mod columns;
mod course;
mod dial;
mod ends;
mod errors;
mod figures;
mod handover;
mod input;
mod keep_alive;
mod layered;
mod level;
mod lives;
mod magnifier;
mod messages;
mod open_loop;
mod pings;
mod pushes;
mod quota;
mod release;
mod requests;
mod responses;
mod taken;
mod ticks;
mod timers;
mod transcript;
mod withdrawn;

/// Local addresses tried for one dial before it counts as failed, attributed to throng's machine.
const MAX_TRIES: u8 = 16;
/// How often an idle shard checks for commands.
const ORDERS_INTERVAL: Nanos = Nanos::from_millis(100);
/// While responses are outstanding, the shard wakes this often, to notice its stalls.
const WAITING_INTERVAL: Nanos = Nanos::from_millis(10);
/// In closed loop, wake-ups may be delayed by this much, for larger batches.
const COALESCE: Nanos = Nanos::from_micros(50);

/// One shard of the load.
pub struct Client {
    job: Job,
    tuples: Dials,
    source: ValueSource,
    conns: Connections,
    transport: Transport,
    pacer: Pacer,
    /// The remaining number of requests, if the load has one.
    quota: Quota,
    withdrawn: Withdrawn,
    /// What only some loads keep for each connection.
    columns: Columns,
    /// Messages that servers send unsolicited.
    pushed: Pushed,
    lives: Lives,
    sampled: Sampled,
    errors: ErrorSampler,
    magnifier: Magnifier,
    course: Course,
    closing: Closing,
    full_load: FullLoad,
    /// Requests that are due and wait for a connection being dialled for them.
    due_dials: u64,
    lateness: Lateness,
    extremes: Extremes,
    tick: Box<Tick>,
    handover: Handover,
}

impl Client {
    /// The shard that runs `part` of a plan, for a population or the probe, dialling from `tuples`. It does nothing until it gets
    /// an order; its first tick begins at `start`.
    pub fn new(part: &Part, job: Job, tuples: impl Into<Dials>, link: Link, start: Nanos) -> Client {
        let layer = job.tls.as_ref().map(|tls| {
            let layer = tls.layer().expect("it was checked before the run");
            Box::new(Layered::new(Box::new(layer.with_capacity(part.places))))
        });
        let captures = job.captures(part.places);
        let (handover, tick) = Handover::new(&job, link, start);
        Client {
            tuples: tuples.into(),
            source: ValueSource::new(part, job.date, captures),
            conns: Connections::new(part.places),
            transport: Transport { layer, transcriber: None },
            pacer: Pacer::new(job.load, job.waits, part),
            quota: Quota::new(part.requests, &job),
            withdrawn: Withdrawn::default(),
            columns: Columns::new(&job),
            pushed: Pushed::new(job.watch.clone(), job.tunnels),
            lives: Lives::new(part.places),
            sampled: Sampled::new(part, !job.only_right),
            errors: ErrorSampler::new(),
            magnifier: Magnifier::new(),
            course: Course::new(),
            closing: Closing::none(),
            full_load: FullLoad::NEVER,
            due_dials: 0,
            lateness: Lateness::none(),
            extremes: Extremes::new(),
            tick,
            handover,
            job,
        }
    }

    /// Has everything that its connection does written down; for a part with one connection.
    #[must_use]
    pub fn with_transcript(mut self, transcriber: Transcriber) -> Client {
        self.transport.transcriber = Some(Box::new(transcriber));
        self
    }

    /// Whether the shard has been stopped and has handed over its last tick.
    pub fn is_finished(&self) -> bool {
        self.handover.is_finished()
    }

    fn conn(&mut self, k: Key) -> &mut Conn {
        &mut self.conns[k.index]
    }

    /// The exchange that began last: the only one, in protocols that allow one at a time.
    fn exchange(&mut self, k: Key) -> &mut Exchange {
        self.conns.exchange_mut(k.index)
    }

    fn forget(&mut self, k: Key) {
        self.conns.transition(k.index, State::None);
        self.pacer.forget(k.index);
    }
}

impl Program for Client {
    fn woke(&mut self, now: Nanos, left: Nanos) {
        self.lateness.left(left, &mut self.tick.lag);
        let late = self.lateness.begin_turn(now);
        self.tick.stalled = self.tick.stalled.max(late);
    }

    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        let exchange = *self.exchange(k);
        self.transcribe_opened(k, now);
        self.dial_took(exchange.started, self.dialled_at(cx, k), now);
        if exchange.first {
            self.pacer.learn_dial(now.since(exchange.started), true, now);
        }
        if self.transport.layer.is_none() && self.job.is_known_by_dial(exchange.has_request()) {
            self.learn(&exchange, now, true);
        }
        if self.transport.layer.is_some() { self.open_layer(cx, k) } else { self.open(cx, k) }
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Some(due) = self.handle_timer(cx, k) else { return };
        let now = cx.now();
        match self.conn(k).state() {
            State::Busy if self.has_pings() => self.ping_or_time_out(cx, k),
            State::Dialling | State::Securing | State::Upgrading | State::Busy => self.timed_out(cx, k),
            State::Idle | State::Disconnected if self.begins_nothing() => self.wake_at(cx, k, Nanos::NEVER),
            State::Idle | State::Disconnected if now < self.quota.starts() => self.wait_for_start(cx, k),
            State::Idle | State::Disconnected if self.pacer.is_paused() => self.put_off(cx, k),
            // A request that waited for full load is due now, when its turn comes, like a connection's first request.
            State::Idle if self.quota.is_start(due) => self.go_on_at(cx, k, now),
            State::Idle => self.go_on_at(cx, k, due),
            State::Disconnected => self.redial_due(cx, k, due),
            State::None => unreachable!("a timer without a connection"),
        }
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        self.note_input(k, cx.now());
        let used = if self.transport.layer.is_some() {
            self.read_layer(cx, k, input)
        } else {
            self.read_all(cx, k, input)
        };
        self.tick.counts.bytes_in += used as u64;
        if self.job.is_http2() && cx.is_open(k) {
            self.send_output(cx, k);
        }
        used
    }

    fn writable<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.send_more(cx, k);
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        let conn = *self.conn(k);
        if conn.state().is_open() {
            self.end_tick_before_losses(cx.now());
        }
        match conn.state() {
            State::Dialling if matches!(why, Gone::AddressInUse(_)) && conn.tries < MAX_TRIES => {
                self.dial_again(cx, k);
            }
            State::Dialling => self.dial_failed(cx, k, self.fault_of_dial(k, why)),
            State::Busy => self.gone_busy(cx, k, why),
            State::Idle if conn.is_announced(cx.now()) => {
                let due = self.idle_until(cx, k);
                self.closed_as_announced(cx, k, due);
            }
            // The connection reached its planned end.
            State::Idle if self.course.is_draining() => self.end(cx, k, End::EndedAfter),
            state @ (State::Securing | State::Upgrading | State::Idle) => {
                self.fail(cx, k, ends::fault_of(state.stage(), why));
            }
            State::Disconnected | State::None => unreachable!("no socket, no end of one"),
        }
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        if self.pacer.may_coalesce() {
            cx.coalesce(COALESCE);
        }
        // Requests due by now belong to the load, so they come before an order to end it.
        if !self.course.is_draining() {
            self.serve_slots(cx);
        }
        self.apply_commands(cx);
        let mut next = Nanos::NEVER;
        if !self.course.is_draining() {
            next = next.min(self.pacer.next_slot()).min(self.dial_due(cx));
            next = next.min(self.course.ends).min(self.full_load.until());
        }
        next = next.min(self.release_due(cx.now()));
        // Also after the end of the load: a shard without a conductor closes its connections gradually.
        next = next.min(self.close_surplus(cx));
        let interval = if self.waiting() > 0 { WAITING_INTERVAL } else { ORDERS_INTERVAL };
        let until = next.min(self.handover.ends()).min(cx.now() + interval);
        self.lateness.next_turn(until);
        until
    }
}

#[cfg(test)]
mod tests;

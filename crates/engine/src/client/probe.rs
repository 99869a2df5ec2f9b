//! The probe lane: requests on a clock of their own, half of them on a fresh connection each, half on a few kept ones,
//! while the population is held. What it measures is what a further user would see.

use net::{Close, Cx, Gone, Io, Key};
use plan::Part;
use samples::Probe;
use units::Nanos;

use super::{Client, MOST_TRIES};
use crate::{
    connections::{Conn, State},
    exchange::Exchange,
    full_load::FullLoad,
    job::Job,
    out::Out,
    pace::{Schedule, Tempo},
    pacer::Slots,
    pool::Pool,
    protocol::{Progress, Response, Session},
};

/// Where a connection of the lane stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Dialling,
    Upgrading,
    Busy,
    /// Kept, with nothing to do.
    Idle,
    /// The connection is no more.
    Over,
}

/// A connection of the lane.
#[derive(Clone, Copy, Debug)]
struct Record {
    session: Session,
    exchange: Exchange,
    step: Step,
    keeps: bool,
    /// It has answered before.
    proven: bool,
}

/// A request of the lane has ended without a right response.
fn censor(seen: &mut Probe, keeps: bool, at_load: bool) {
    if keeps { &mut seen.kept } else { &mut seen.fresh }.censor();
    if at_load {
        seen.held.censor();
    }
}

/// The lane.
pub(crate) struct Lane {
    /// The odd and the even requests of one schedule.
    fresh: Slots,
    kept: Slots,
    records: Pool<Record>,
    /// Kept connections with nothing to do, longest idle first.
    idle: Vec<Key>,
    /// When it was last looked what is due: what was due before then has waited for a connection since.
    looked_at: Nanos,
    /// Connections that there are of each sort, and may be.
    of_kept: u32,
    of_fresh: u32,
    most_fresh: u32,
}

impl Lane {
    /// The lane, where the shard works for one; `start` is when its first request is due.
    pub(super) fn new(job: &Job, part: &Part, start: Nanos) -> Option<Box<Lane>> {
        let tempo = Tempo::Steady(job.probe?);
        let half = |at| Slots::new(Schedule::share(tempo, u64::MAX, at, 2), start);
        let places = part.places;
        Some(Box::new(Lane {
            fresh: half(0),
            kept: half(1),
            records: Pool::new(places),
            idle: Vec::with_capacity(plan::PROBES_KEPT as usize),
            looked_at: start,
            of_kept: 0,
            of_fresh: 0,
            most_fresh: places - plan::PROBES_KEPT,
        }))
    }

    /// Requests that have begun and not ended.
    pub(super) fn waiting(&self) -> u64 {
        u64::from(self.of_kept + self.of_fresh) - self.idle.len() as u64
    }

    /// Those that were due at a full load that is over, begun or not.
    pub(super) fn owed(&self, full_load: &FullLoad) -> u64 {
        if !full_load.has_past() {
            return 0;
        }
        let slots = [&self.fresh, &self.kept].map(|slots| slots.count_waiting(|due| full_load.was(due)));
        let begun = self.under_way().filter(|record| full_load.was(record.exchange.due));
        slots.iter().sum::<u64>() + begun.count() as u64
    }

    /// There are few of them.
    fn under_way(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| !matches!(record.step, Step::Idle | Step::Over))
    }

    fn begin(&mut self, record: Record) -> u32 {
        *if record.keeps { &mut self.of_kept } else { &mut self.of_fresh } += 1;
        self.records.begin(record)
    }

    fn end(&mut self, k: Key, at: u32) {
        let record = self.records.at(at);
        record.step = Step::Over;
        let keeps = record.keeps;
        *if keeps { &mut self.of_kept } else { &mut self.of_fresh } -= 1;
        self.idle.retain(|idle| *idle != k);
        self.records.end(at);
    }
}

impl Client {
    fn lane(&mut self) -> &mut Lane {
        self.probe.as_mut().expect("only a lane has connections of its own")
    }

    fn record(&mut self, k: Key) -> &mut Record {
        let at = self.conn(k).probe_record();
        self.lane().records.at(at)
    }

    fn seen(&mut self) -> &mut Probe {
        self.tick.probe.get_or_insert_default()
    }

    /// Sends what is due; when to be called again.
    pub(super) fn probe_due<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let now = cx.now();
        let Client { probe: Some(lane), tick, full_load, job, lateness, .. } = self else {
            return Nanos::NEVER;
        };
        let mut late = |due| {
            if full_load.has(due) {
                lateness.leaves(due);
            }
        };
        lane.fresh.look(now, &mut late);
        lane.kept.look(now, &mut late);
        let limit = |due| job.timeout + lateness.since(due);
        let seen = &mut tick.probe;
        let mut fail = |due, keeps| {
            let seen = seen.get_or_insert_default();
            seen.failed += 1;
            censor(seen, keeps, full_load.has(due));
        };
        lane.fresh.give_up(now, limit, &mut |due| fail(due, false));
        lane.kept.give_up(now, limit, &mut |due| fail(due, true));
        let next = lane.fresh.next().min(lane.kept.next());
        let looked_at = std::mem::replace(&mut lane.looked_at, now);
        let dial_due = |due| if due < looked_at { now } else { due };
        while self.lane().of_fresh < self.lane().most_fresh && !cx.is_full() {
            let Some(due) = self.lane().fresh.take() else { break };
            self.seen().sent += 1;
            self.probe_dial(cx, dial_due(due), due, false);
        }
        while self.lane().kept.is_waiting() {
            let lane = self.lane();
            let idle = (!lane.idle.is_empty()).then(|| lane.idle.remove(0));
            // While all that are kept wait for responses, an independent user would come by a connection of its own.
            let keeps = lane.of_kept < plan::PROBES_KEPT;
            if idle.is_none() && (!keeps && lane.of_fresh >= lane.most_fresh || cx.is_full()) {
                break;
            }
            let due = lane.kept.take().expect("one waits");
            self.seen().sent += 1;
            match idle {
                Some(k) => self.probe_ask(cx, k, due),
                None => self.probe_dial(cx, dial_due(due), due, keeps),
            }
        }
        next
    }

    fn probe_dial<I: Io>(&mut self, cx: &mut Cx<I>, dial_due: Nanos, due: Nanos, keeps: bool) {
        let session = self.job.protocol.session_of_dial(&mut self.ink.random);
        let exchange = Exchange::new(due, dial_due);
        let record = Record { session, exchange, step: Step::Dialling, keeps, proven: false };
        let at = self.lane().begin(record);
        let tuple = self.tuples.next();
        let destination = tuple.destination as u16;
        self.probe_dial_from(cx, Conn::of_probe(destination, at), tuple.from);
    }

    fn probe_dial_from<I: Io>(&mut self, cx: &mut Cx<I>, conn: Conn, from: std::net::SocketAddr) {
        let k = cx.take().expect("there is a place");
        self.conns.insert(k.index, conn);
        cx.dial(k, from, self.job.destinations[usize::from(conn.destination)]);
        cx.wake_at(k, cx.now() + self.job.timeout);
    }

    pub(super) fn probe_opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let dial_due = self.record(k).exchange.started;
        let took = self.took(dial_due, self.dialled_at(cx, k), cx.now());
        self.seen().connect.record_seen(took);
        let at = self.conn(k).probe_record();
        let destination = usize::from(self.conn(k).destination);
        let Client { job, probe: Some(lane), ink, layer, .. } = self else { unreachable!("there is a lane") };
        let record = lane.records.at(at);
        if !job.protocol.open(&mut record.session, destination, &mut Out::new(cx, k, layer, &mut 0, ink)) {
            return self.probe_send(cx, k);
        }
        record.step = Step::Upgrading;
        cx.wake_at(k, cx.now() + self.job.timeout);
    }

    /// A further request on a kept connection.
    fn probe_ask<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        let now = cx.now();
        let fresh = self.job.protocol.session();
        let record = self.record(k);
        if record.session.is_at_rest() {
            record.session = fresh;
        }
        record.exchange = Exchange::new(due, now);
        self.probe_send(cx, k);
    }

    fn probe_send<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let (at, destination) = (self.conn(k).probe_record(), self.conn(k).destination);
        let Client { job, probe: Some(lane), ink, layer, .. } = self else { unreachable!("there is a lane") };
        let Record { session, exchange, step, .. } = lane.records.at(at);
        *step = Step::Busy;
        let mut sent = 0;
        let out = &mut Out::new(cx, k, layer, &mut sent, ink);
        job.protocol.send(job.op(0), session, (0, exchange), destination.into(), out);
        cx.wake_at(k, cx.now() + self.job.timeout);
    }

    pub(super) fn probe_bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let at = self.conn(k).probe_record();
            let Client { job, probe: Some(lane), ink, .. } = self else { unreachable!("there is a lane") };
            let record = lane.records.at(at);
            if record.step == Step::Idle && !job.protocol.server_may_speak() {
                // Nothing was asked: what the connection says next could not be told from an answer.
                self.probe_end(cx, k, Close::Reset);
                return input.len();
            }
            let Record { session, exchange, step, .. } = record;
            let asked = (*step == Step::Busy).then(|| {
                let awaited = job.awaited(0, exchange.nth, k.index, ink);
                (exchange, awaited)
            });
            match session.handle_bytes(&input[used..], asked) {
                Ok(Progress::More(n)) => return used + n,
                Ok(Progress::Opened(n)) => {
                    used += n;
                    self.probe_send(cx, k);
                }
                Ok(Progress::Responded(n)) => {
                    used += n;
                    self.probe_answered(cx, k);
                }
                Ok(Progress::Turned(n) | Progress::Pushed(n)) => used += n,
                Ok(Progress::Reply(n, reply)) => {
                    used += n;
                    self.reply(cx, k, reply);
                }
                Ok(Progress::Ending(_)) => self.probe_over(cx, k, Close::Graceful),
                Err(_) => self.probe_over(cx, k, Close::Reset),
            }
            if !cx.is_open(k) {
                return input.len();
            }
            if used == input.len() {
                return used;
            }
        }
    }

    fn probe_answered<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        let Record { session, exchange, keeps, .. } = *self.record(k);
        let Response { head, keeps_alive } = session.response();
        let awaited = self.job.awaited(0, exchange.nth, k.index, &mut self.ink);
        let wrong = awaited.wrong(&exchange, head).is_some();
        let at_load = self.full_load.has(exchange.due);
        let took = self.took(exchange.due, exchange.started, now);
        let seen = self.seen();
        if wrong {
            seen.failed += 1;
            censor(seen, keeps, at_load);
        } else {
            seen.answered += 1;
            let latency = if keeps { &mut seen.kept } else { &mut seen.fresh };
            latency.record_seen(took);
            if at_load {
                seen.held.record_seen(took);
            }
        }
        self.conn(k).hear(now, head.and_then(|head| head.keep_alive_s));
        if !keeps || !keeps_alive {
            return self.probe_end(cx, k, Close::Graceful);
        }
        let record = self.record(k);
        (record.step, record.proven) = (Step::Idle, true);
        self.lane().idle.push(k);
        cx.let_sleep(k);
    }

    pub(super) fn probe_gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        let mut conn = *self.conn(k);
        let record = self.record(k);
        match record.step {
            Step::Dialling if matches!(why, Gone::AddressInUse(_)) && conn.tries < MOST_TRIES => {
                conn.tries += 1;
                self.conns.transition(k.index, State::None);
                cx.close(k, Close::Reset);
                self.tick.counts.addresses_skipped += 1;
                let from = self.tuples.next_to(conn.destination.into());
                self.probe_dial_from(cx, conn, from);
            }
            Step::Busy => {
                let (due, proven) = (record.exchange.due, record.proven);
                let ended = why == Gone::Ended && record.session.handle_end() == Ok(true);
                let untouched = record.session.response().head.is_none() && cx.rest_len(k) == 0;
                // Before the first byte of a response, on a connection that had been idle: announced or not, a client
                // asks again on another one (RFC 9112, section 9.3.1).
                let crossed = self.job.protocol.may_send_again() && proven && untouched;
                if ended {
                    self.probe_answered(cx, k);
                } else if crossed && !self.draining {
                    // The request met a close: it is still owed, on a new connection.
                    self.probe_end(cx, k, Close::Graceful);
                    self.probe_dial(cx, cx.now(), due, true);
                } else {
                    self.probe_over(cx, k, Close::Reset);
                }
            }
            _ => self.probe_over(cx, k, Close::Reset),
        }
    }

    pub(super) fn probe_timed_out<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Record { exchange, step, .. } = *self.record(k);
        let deadline = exchange.started + self.job.timeout + self.lateness.since(exchange.started);
        if step != Step::Idle && deadline > cx.now() {
            return cx.wake_at(k, deadline);
        }
        self.probe_over(cx, k, Close::Reset);
    }

    /// The run ends: what has no response by now never gets one.
    pub(super) fn probe_give_up(&mut self) {
        let Client { probe: Some(lane), tick, full_load, .. } = self else { return };
        for record in lane.under_way() {
            let seen = tick.probe.get_or_insert_default();
            seen.unanswered += 1;
            censor(seen, record.keeps, full_load.has(record.exchange.due));
        }
    }

    /// The connection is over; a request that it had has failed.
    fn probe_over<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, how: Close) {
        let Record { exchange, step, keeps, .. } = *self.record(k);
        if step != Step::Idle {
            let at_load = self.full_load.has(exchange.due);
            let seen = self.seen();
            seen.failed += 1;
            censor(seen, keeps, at_load);
            if step == Step::Dialling {
                seen.connect.censor();
            }
        }
        self.probe_end(cx, k, how);
    }

    fn probe_end<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, how: Close) {
        let at = self.conn(k).probe_record();
        self.lane().end(k, at);
        self.conns.transition(k.index, State::None);
        cx.close(k, how);
    }
}

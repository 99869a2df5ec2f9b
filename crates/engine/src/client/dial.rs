//! Dialling: the first time by the pacer, again after a planned close or a back-off, and from the next address where one
//! is taken.

use net::{Close, Cx, Io, Key};
use plan::Part;
use samples::Fault;
use units::{Nanos, Rate};

use super::{Client, LOOK_AT_ORDERS, ends::End};
use crate::{
    connections::{Conn, State},
    exchange::Exchange,
    op::Op,
    pace::{Schedule, Tempo},
    progress::Progress,
    ramp::{Pacer, Window},
};

/// Dials in one turn, so that answers are not kept waiting.
const DIALS_A_TURN: u32 = 128;
/// Behind by more than this, a shard that ramps as fast as it can dials nobody.
const LATE: Nanos = Nanos::from_millis(2);

/// First dials: how many, and when.
pub(super) struct Ramp {
    pub(super) pacer: Pacer,
    /// When the first dial of the present schedule is due, and how many of it were made.
    from: Nanos,
    dialled: u64,
    to_dial: u32,
    /// The tempo that takes over at this time.
    next: Option<(Tempo, Nanos)>,
    /// First dials made and to be made, over all orders.
    pub(super) ordered: u64,
    progress: Progress,
    /// The window has got nowhere: what was left then is dialled all the same.
    gave_up: bool,
}

impl Ramp {
    /// Nothing, before an order comes.
    pub(super) fn new() -> Ramp {
        let pacer = Pacer::Adaptive(Window::default());
        let progress = Progress::new(Nanos::ZERO);
        let from = Nanos::NEVER;
        Ramp { pacer, from, dialled: 0, to_dial: 0, next: None, ordered: 0, progress, gave_up: false }
    }

    /// From now on, so many are to be dialled, the first at `from`; without a tempo as fast as the target takes them. A
    /// window keeps what it has learnt of the target.
    pub(super) fn order(&mut self, to_dial: u32, tempo: Option<Tempo>, part: &Part, from: Nanos) {
        self.ordered = self.ordered - u64::from(self.to_dial) + u64::from(to_dial);
        (self.from, self.to_dial, self.next) = (from, to_dial, None);
        (self.progress, self.gave_up) = (Progress::new(from), false);
        match (tempo, &self.pacer) {
            (Some(tempo), _) => self.begin(tempo, part, from),
            (None, Pacer::Adaptive(_)) => {}
            (None, _) => self.pacer = Pacer::Adaptive(Window::default()),
        }
    }

    /// What is still to be dialled then comes at this tempo, of all shards together; the present one goes on until then.
    pub(super) fn set_tempo(&mut self, tempo: Tempo, from: Nanos) {
        self.next = Some((tempo, from));
    }

    /// The next tempo takes over, once everything that was due before its time is dialled.
    fn change(&mut self, part: &Part, now: Nanos) {
        let Some((tempo, from)) = self.next.filter(|(_, from)| now >= *from) else { return };
        let is_behind = match &self.pacer {
            Pacer::Scheduled(schedule) => {
                schedule.within(from.since(self.from)).next_after(self.dialled) != Nanos::NEVER
            }
            Pacer::Adaptive(_) => false,
        };
        if !is_behind {
            self.next = None;
            self.begin(tempo, part, from);
        }
    }

    /// What is still to be dialled then comes at this tempo, and nothing before.
    pub(super) fn begin_again(&mut self, tempo: Tempo, part: &Part, from: Nanos) {
        self.next = None;
        self.begin(tempo, part, from);
    }

    fn begin(&mut self, tempo: Tempo, part: &Part, from: Nanos) {
        (self.from, self.dialled) = (from, 0);
        let schedule = Schedule::share(tempo, self.to_dial.into(), part.shard, part.shards);
        self.pacer = Pacer::Scheduled(schedule);
    }

    /// Whether an order has come.
    pub(super) fn is_ordered(&self) -> bool {
        self.from != Nanos::NEVER
    }

    pub(super) fn is_over(&self) -> bool {
        self.to_dial == 0
    }

    /// A first dial, or a first answer, is known; see [`Window::learn`].
    fn learn(&mut self, took: Nanos, ok: bool, is_dial: bool, now: Nanos) {
        self.progress.learn(ok, now);
        if let Pacer::Adaptive(window) = &mut self.pacer {
            window.learn(took, ok, is_dial, now);
        }
        if self.gave_up && self.progress.has_recovered() {
            self.gave_up = false;
            self.pacer = Pacer::Adaptive(Window::default());
        }
    }

    /// A window that gets nowhere is given up: what is left is dialled within the time of one timeout, so that the ramp
    /// has an end.
    fn look(&mut self, outstanding: u32, timeout: Nanos, now: Nanos) {
        let waits = self.to_dial > 0 && outstanding > 0 && now >= self.from;
        let Pacer::Adaptive(_) = &self.pacer else { return };
        if waits && self.progress.is_stuck(timeout, now) {
            let tempo = Tempo::Steady(Rate::from_per_s_f64(f64::from(self.to_dial) / timeout.secs_f64()));
            self.pacer = Pacer::Scheduled(Schedule::share(tempo, self.to_dial.into(), 0, 1));
            (self.from, self.dialled, self.gave_up) = (now, 0, true);
        }
    }

    /// How many dials are due now, and when to ask again. `behind`: how late the shard is with its requests.
    fn due(&mut self, now: Nanos, outstanding: u32, behind: Nanos) -> (u32, Nanos) {
        let changes = self.next.map_or(Nanos::NEVER, |(_, from)| from);
        match &mut self.pacer {
            _ if now < self.from => (0, self.from.min(changes)),
            // Requests that are late already come first: a ramp that runs ahead of them would hand its backlog to
            // the hold.
            Pacer::Adaptive(_) if self.to_dial > 0 && behind > LATE => (0, now),
            Pacer::Adaptive(window) => {
                let (room, next) = window.room(outstanding, now);
                (room.min(self.to_dial), if self.to_dial > 0 { next } else { Nanos::NEVER })
            }
            Pacer::Scheduled(schedule) => {
                let schedule = match changes {
                    Nanos::NEVER => *schedule,
                    changes => schedule.within(changes.since(self.from)),
                };
                let due = schedule.due(now.since(self.from)).saturating_sub(self.dialled);
                let due = due.min(self.to_dial.into());
                let next = schedule.next_after(self.dialled + due);
                (due as u32, (self.from + next).min(changes))
            }
        }
    }

    /// The next dial is made: when it was due.
    fn take(&mut self, now: Nanos) -> Nanos {
        let due = match &mut self.pacer {
            Pacer::Adaptive(window) => {
                window.begin(now);
                now
            }
            Pacer::Scheduled(schedule) => self.from + schedule.time_of(self.dialled),
        };
        self.dialled += 1;
        self.to_dial -= 1;
        due
    }
}

impl Client {
    pub(super) fn dial_due<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let now = cx.now();
        self.ramp.change(&self.part, now);
        self.ramp.look(self.conns.outstanding(), self.job.timeout, now);
        let (due, next) = self.ramp.due(now, self.conns.outstanding(), cx.behind());
        for _ in 0..due.min(DIALS_A_TURN) {
            if cx.is_full() {
                // Who comes and goes may come faster than the others go; a place that falls free is seen at once.
                return now + LOOK_AT_ORDERS;
            }
            let due = self.ramp.take(now);
            self.tick.counts.forced += u64::from(self.ramp.gave_up);
            self.dial_first(cx, due);
        }
        if due > DIALS_A_TURN { now } else { next }
    }

    fn dial_first<I: Io>(&mut self, cx: &mut Cx<I>, due: Nanos) {
        let k = cx.take().expect("there is a place");
        let tuple = self.tuples.next();
        let wire = self.job.wire_of_dial(&mut self.ink.random);
        let asks = self.job.asks_first();
        self.begin_at(k, Conn::new(tuple.destination as u16, 0, State::Dialling));
        self.conns.begin(k.index, Exchange { first: true, asks, ..Exchange::new(due, due, wire) });
        if self.job.comes_and_goes() {
            self.tick.lag.record(cx.now().since(due));
        }
        self.dial(cx, k, tuple.from);
    }

    fn dial<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, from: std::net::SocketAddr) {
        let destination = usize::from(self.conn(k).destination);
        let to = self.job.destinations[destination];
        cx.dial(k, from, to);
        cx.wake_at(k, cx.now() + self.job.timeout);
    }

    /// When a connection that is not open yet was dialled: its timeout counts from there.
    pub(super) fn dialled_at<I: Io>(&self, cx: &Cx<I>, k: Key) -> Nanos {
        Nanos(cx.timer(k).0.saturating_sub(self.job.timeout.0))
    }

    /// The same connection from the next local address, at a key of its own: the old one is spent.
    pub(super) fn dial_again<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        cx.close(k, Close::Reset);
        let index = k.index;
        let k = cx.take().expect("a place was given back just now");
        assert_eq!(k.index, index, "what was given back last is taken first");
        let conn = self.conn(k);
        conn.tries += 1;
        let destination = u32::from(conn.destination);
        let from = self.tuples.next_to(destination);
        self.tick.counts.addresses_skipped += 1;
        self.dial(cx, k, from);
    }

    /// The timer of a connection without a socket: it was to be dialled again at `due`, for a request that was due then.
    /// In an open loop it is a slot that asks, and none has yet.
    pub(super) fn redial_due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        if !self.job.has_slots() && self.full_load.has(due) {
            self.tick.lag.record(cx.now().since(due));
        }
        self.redial(cx, k, due, due, self.open_loop.is_none());
    }

    /// A connection without a socket is dialled again, which was due at `dial_due`; `asks`: for a request that was due at
    /// `due`.
    pub(super) fn redial<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, dial_due: Nanos, due: Nanos, asks: bool) {
        let wire = self.job.wire_of_dial(&mut self.ink.random);
        self.conns.transition(k.index, State::Dialling);
        self.conns.begin(k.index, Exchange { asks, ..Exchange::new(due, dial_due, wire) });
        let conn = self.conn(k);
        conn.tries = 0;
        let destination = u32::from(conn.destination);
        let from = self.tuples.next_to(destination);
        self.dial(cx, k, from);
    }

    /// The connection stands, ready for its first request, or for the one it was dialled again for.
    pub(super) fn connected<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        let Exchange { due, first, asks, .. } = *self.exchange(k);
        let destination = self.conn(k).destination;
        let count = if first { &mut self.tick.counts.opened } else { &mut self.tick.counts.redialled };
        *count += 1;
        if let Some(own) = self.at(destination) {
            *if first { &mut own.opened } else { &mut own.redialled } += 1;
        }
        self.conn(k).hear(now, None);
        self.lives.begin(k);
        let is_surplus = self.is_surplus();
        if self.rests && !self.draining && !is_surplus && !self.job.has_slots() {
            self.idle(k);
            return self.put_off(cx, k);
        }
        if self.draining || is_surplus {
            self.idle(k);
            self.missed_by_dial(asks, due);
            return if is_surplus { self.finish(cx, k) } else { cx.let_sleep(k) };
        }
        match self.job.op(self.conns[k.index].at) {
            Op::Ping(_, every) if first && !self.job.has_slots() => {
                let due = now + Nanos(self.ink.random.between(0, every.0));
                self.idle(k);
                if due <= now { self.go_on(cx, k, now, now) } else { cx.wake_at(k, due) }
            }
            op if asks && op.asks() => {
                if first {
                    // The first request is due as soon as the connection is open.
                    self.exchange(k).due = now;
                }
                self.request(cx, k);
                cx.wake_at(k, now + self.job.timeout);
            }
            op => {
                if matches!(op, Op::Stay) {
                    // Nothing will tell more of it than that it stands.
                    self.succeeded(k);
                }
                self.idle(k);
                self.go_on(cx, k, now, now);
            }
        }
    }

    pub(super) fn dial_failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, fault: Fault) {
        let exchange = *self.exchange(k);
        let destination = self.conn(k).destination;
        self.learn(k, cx.now(), false);
        self.censor_dial(k, &exchange);
        self.count_fault(destination, fault);
        self.end(cx, k, End::Failed);
        self.back_off(cx, k.index, destination);
    }

    /// A dial or a handshake has failed, and with it the request that it was for. Of a connection that is to be held the first
    /// request is due when it stands.
    fn censor_dial(&mut self, k: Key, exchange: &Exchange) {
        let conn = *self.conn(k);
        let times =
            if conn.state() == State::Dialling { &mut self.tick.connect } else { &mut self.tick.handshake };
        times.censor();
        self.missed_by_dial(exchange.asks, exchange.due);
        let was_due = !exchange.first || self.job.comes_and_goes();
        if exchange.asks && was_due && !self.job.has_slots() {
            self.censor(exchange, conn);
        }
    }

    /// Whether the ramp learns of a connection by its dial alone: nothing is awaited behind it that could tell more.
    pub(super) fn is_known_by_dial(&self, asks: bool) -> bool {
        self.job.is_tcp() || self.job.upgrade().is_none() && !asks
    }

    pub(super) fn learn(&mut self, k: Key, now: Nanos, ok: bool) {
        let Exchange { started, first, asks, .. } = *self.exchange(k);
        if first {
            let is_dial = self.is_known_by_dial(asks);
            self.ramp.learn(now.since(started), ok, is_dial, now);
        }
    }
}

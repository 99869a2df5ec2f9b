//! Simulated shards that hold the ordered connections, and count fictitious requests.

use std::{cell::Cell, collections::VecDeque, rc::Rc};

use engine::Control;
use plan::{Part, Plan, Rows};
use run::{Order, Update};
use samples::{Phase, Tick};
use units::{Nanos, Random};

use crate::{
    agent::Machine,
    error::Error,
    message::{Assign, Calibrated, Can, Offer, Ready},
    share,
};

/// The calibration of an agent; only in every other seed.
pub(super) fn calibrated(seed: u64, id: usize) -> Option<Calibrated> {
    let per_s = 1_000.0 * (1 + id % 7) as f64;
    seed.is_multiple_of(2).then_some(Calibrated { open_per_s: per_s, requests_per_s: per_s })
}

/// The capacity of an agent. With four or more agents, the second in four may take half of an equal share, and the machine of the third
/// has capacity for little more than that share. With fewer agents, each can carry out the whole plan.
pub(super) fn can(share: u64, id: usize, agents: u32) -> Can {
    let of_four = if agents < 4 { 0 } else { id % 4 };
    let cap = (of_four == 1).then_some(share / 2);
    let fits = if of_four == 2 { share + share / 10 } else { u64::MAX };
    Can { fits, limited_by: "memory".to_owned(), cap, per_s: None }
}

/// Length of a shard's tick, which may end earlier with its load.
const PERIOD: Nanos = Nanos::from_secs(1);

/// State shared by the world and a machine.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) now: Cell<Nanos>,
    /// Requests sent by all its shards.
    pub(super) sent: Cell<u64>,
    pub(super) is_under_load: Cell<bool>,
    /// It has no capacity beyond what it has, whatever it reported before.
    pub(super) is_full: Cell<bool>,
    /// The target keeps none of its connections.
    pub(super) is_reset: Cell<bool>,
}

/// The begin and end of the slice of a shard under load, and the index of the shard in it.
pub(super) type Held = (u32, u32, u32);

/// A simulated machine.
pub(super) struct SimMachine {
    seen: Rc<Seen>,
    plan: Plan,
    can: Can,
    random: Random,
    cores: u32,
    /// The part that was checked last.
    next: Assign,
    shards: Vec<Shard>,
    /// Number of shards that have begun.
    begun: usize,
    began: Option<Nanos>,
    ticks: VecDeque<(u32, Tick)>,
    read: Tick,
    is_stopped: bool,
}

struct Shard {
    part: Part,
    open: u64,
    /// Requests whose responses belong to its next tick.
    waiting: u64,
    /// Connections closed by orders since its last tick.
    finished: u64,
    /// When it reached its ordered connections; within the first second, the exact time does not matter.
    ramped_at: Nanos,
    phase: Phase,
    until: Nanos,
    /// When its load ends.
    drains_at: Nanos,
}

impl Shard {
    fn of(part: Part, until: Nanos) -> Shard {
        let (phase, drains_at) = (Phase::Ramp, Nanos::NEVER);
        Shard { part, open: 0, waiting: 0, finished: 0, ramped_at: PERIOD, phase, until, drains_at }
    }
}

impl SimMachine {
    pub(super) fn new(seen: Rc<Seen>, plan: &Plan, cores: u32, can: Can, seed: u64) -> SimMachine {
        SimMachine {
            seen,
            plan: plan.clone(),
            can,
            random: Random::new(seed),
            cores,
            next: Assign::default(),
            shards: Vec::new(),
            begun: 0,
            began: None,
            ticks: VecDeque::new(),
            read: Tick::default(),
            is_stopped: false,
        }
    }

    fn count(&mut self, nth: usize, until: Nanos) {
        let shard = &mut self.shards[nth];
        let dropped = if self.seen.is_reset.get() { std::mem::take(&mut shard.open) } else { 0 };
        let mut tick =
            Tick { from: shard.until, until, open: shard.open, phase: shard.phase, ..Tick::default() };
        let sent = if shard.phase == Phase::Drain { 0 } else { self.random.below(50) };
        let sent = sent.min(shard.part.requests.unwrap_or(u64::MAX));
        shard.part.requests.iter_mut().for_each(|left| *left -= sent);
        tick.waiting = if shard.phase == Phase::Drain { 0 } else { sent / 3 };
        let answered = std::mem::replace(&mut shard.waiting, tick.waiting) + sent - tick.waiting;
        (tick.counts.sent, tick.counts.answered, tick.resolved) = (sent, answered, shard.open);
        (tick.counts.due, tick.unsettled) = (sent, tick.waiting);
        (tick.counts.dropped, tick.counts.finished) = (dropped, std::mem::take(&mut shard.finished));
        tick.counts.answered_at_load = if shard.phase == Phase::Ramp { 0 } else { answered };
        (0..answered).for_each(|n| tick.latency.record(Nanos::from_micros(100 + n)));
        // All its requests are sent: its load ends on its own.
        if shard.phase == Phase::Hold && shard.part.requests == Some(0) {
            (tick.phase, shard.phase) = (Phase::Drain, Phase::Drain);
        }
        tick.ramped_at = if shard.phase == Phase::Ramp { Nanos::NEVER } else { shard.ramped_at };
        shard.until = until;
        self.seen.sent.set(self.seen.sent.get() + sent);
        self.ticks.push_back((nth as u32, tick));
    }
}

impl Machine for SimMachine {
    fn accept(&mut self, _: &Offer) -> Result<Can, Error> {
        Ok(self.can.clone())
    }

    fn rows(&mut self, assign: &Assign) -> Result<u64, Error> {
        share::check(assign, &self.plan)?;
        self.next = assign.clone();
        Ok(share::rows(&self.plan, assign).count())
    }

    fn set_up(&mut self, values: Vec<String>) -> Result<(Ready, Vec<u32>), Error> {
        let parts = share::parts(&self.plan, &self.next, |_| self.cores);
        let places = |part: &Part| u64::from(part.places);
        let all: u64 = parts.iter().chain(self.shards.iter().map(|shard| &shard.part)).map(places).sum();
        let is_over = all > self.can.cap.unwrap_or(u64::MAX).min(self.can.fits);
        assert!(self.began.is_some() || !is_over, "an agent is within its cap");
        if self.began.is_some() && (self.seen.is_full.get() || is_over) {
            return Err(Error::refused("it is more than is allowed here"));
        }
        // The values are exactly the rows that these parts use.
        let own: Vec<String> = Rows::of(&self.plan, &parts).values_from(0).map(str::to_owned).collect();
        assert_eq!(values, own, "an agent is sent the rows of its parts");
        let (ready, workers) = share::workers(&self.plan, &parts);
        let now = self.now();
        self.shards.extend(parts.into_iter().map(|part| Shard::of(part, now)));
        Ok((Ready { io: "uring".to_owned(), ..ready }, workers))
    }

    fn begin(&mut self, orders: &[Order]) {
        if self.began.is_none() {
            self.began = Some(self.seen.now.get());
            self.seen.is_under_load.set(true);
        }
        let first = std::mem::replace(&mut self.begun, self.shards.len());
        orders.iter().for_each(|order| self.order_from(first, *order));
    }

    fn order(&mut self, order: Order) {
        self.order_from(0, order);
    }

    fn next(&mut self) -> Update<'_> {
        let now = self.now();
        let shards = if self.is_stopped { 0 } else { self.shards.len() };
        for nth in 0..shards {
            self.end_load(nth, now);
            // Up to the end of a second, as threads do.
            let second = Nanos(now.0 / PERIOD.0 * PERIOD.0);
            if second > self.shards[nth].until {
                self.count(nth, second);
            }
        }
        match self.ticks.pop_front() {
            Some((shard, tick)) => {
                self.read = tick;
                Update::Tick(shard, &self.read)
            }
            None if self.is_stopped => Update::Ended,
            None => Update::Nothing,
        }
    }

    fn end(&mut self) {
        self.shards.clear();
        self.ticks.clear();
        (self.begun, self.began, self.is_stopped) = (0, None, false);
        self.seen.is_under_load.set(false);
    }
}

/// Two overlapping holdings, if two agents hold the same units of a plan, or one has a shard twice. `held`: what each
/// [holds](SimMachine::holds).
pub(super) fn held_twice(held: impl Iterator<Item = Vec<Held>>) -> Option<[Held; 2]> {
    let mut slices = Vec::new();
    for mut held in held {
        held.sort_unstable();
        if let Some(two) = held.windows(2).find(|two| two[0] == two[1]) {
            return Some([two[0], two[1]]);
        }
        held.dedup_by_key(|(from, end, _)| (*from, *end));
        slices.extend(held);
    }
    slices.sort_unstable();
    slices.windows(2).find(|two| two[0].1 > two[1].0).map(|two| [two[0], two[1]])
}

impl SimMachine {
    /// What its shards hold.
    pub(super) fn holds(&self) -> impl Iterator<Item = Held> {
        let is_loaded = |shard: &&Shard| shard.open > 0 && shard.phase != Phase::Drain;
        self.shards
            .iter()
            .filter(is_loaded)
            .map(|Shard { part, .. }| (part.slice.from, part.slice.from + part.slice.width, part.shard))
    }

    /// Ends the load of a shard at its time, with its counts until then.
    fn end_load(&mut self, nth: usize, now: Nanos) {
        let at = self.shards[nth].drains_at;
        if at > now || self.shards[nth].phase == Phase::Drain {
            return;
        }
        let second = Nanos(at.0 / PERIOD.0 * PERIOD.0);
        if second > self.shards[nth].until {
            self.count(nth, second);
        }
        self.shards[nth].phase = Phase::Drain;
        if at > self.shards[nth].until {
            self.count(nth, at);
        }
    }

    /// Elapsed time of the run.
    fn now(&self) -> Nanos {
        self.began.map_or(Nanos::ZERO, |began| self.seen.now.get().since(began))
    }

    fn order_from(&mut self, first: usize, order: Order) {
        let now = self.now();
        for nth in first..self.shards.len() {
            match order.to(&self.shards[nth].part) {
                Some(Control::Load { connections, .. }) => {
                    let shard = &mut self.shards[nth];
                    if shard.phase == Phase::Drain {
                        let left = shard.open.min(connections.into());
                        shard.finished += shard.open - left;
                        shard.open = left;
                        continue;
                    }
                    (shard.open, shard.phase, shard.ramped_at) =
                        (connections.into(), Phase::Hold, now.max(PERIOD));
                }
                Some(Control::Until(at)) => self.shards[nth].drains_at = at,
                Some(Control::Drain) => self.shards[nth].phase = Phase::Drain,
                Some(Control::Stop) if !self.is_stopped => {
                    self.shards[nth].phase = Phase::Drain;
                    self.count(nth, now);
                }
                _ => {}
            }
        }
        self.is_stopped |= order == Order::STOP;
        if order == Order::STOP || order == Order::DRAIN {
            self.seen.is_under_load.set(false);
        }
    }
}

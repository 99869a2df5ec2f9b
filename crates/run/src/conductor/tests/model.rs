//! Modelled workers that apply orders, each with its share of the load, and a target with configurable behaviour.

use super::*;
use plan::Part;

pub(super) struct Model {
    now: Nanos,
    notice: Nanos,
    period: Nanos,
    workers: Vec<Worker>,
    read: Option<Tick>,
    /// Orders with the time at which they were given.
    pub(super) orders: Vec<(Nanos, Order)>,
    target: Target,
    /// The workers run on agents.
    has_agents: bool,
    /// Until then, other workers may take over the load of a lost one.
    hands_over_until: Nanos,
    /// Until then, a lost worker may come back.
    comes_back_until: Nanos,
    /// Workers that end without an order are not reported as lost.
    is_silent: bool,
}

/// The behaviour of the target.
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// Time after an order until all connections are open.
    pub(super) takes: Nanos,
    /// When all connections are lost for good.
    pub(super) loses_at: Nanos,
    /// Requests per worker that never get a response.
    pub(super) waiting: u64,
}

impl Target {
    /// Accepts immediately, and responds to all requests.
    pub(super) const GOOD: Target = Target { takes: Nanos::ZERO, loses_at: Nanos::NEVER, waiting: 0 };
}

struct Worker {
    part: Part,
    tick: Tick,
    open: u64,
    wanted: u64,
    /// When all wanted connections will be open; [`Nanos::NEVER`] if they already are.
    there_at: Nanos,
    ramped_at: Nanos,
    hold_from: Nanos,
    until: Nanos,
    draining: bool,
    stopped: bool,
    /// Has something to report at once.
    news: bool,
    lost: bool,
    /// When it ends without an order.
    dies_at: Nanos,
}

impl Model {
    pub(super) fn new(plan: &Plan, workers: u32, notice: Nanos, period: Nanos) -> Model {
        let worker = |part| Worker {
            part,
            tick: Tick::default(),
            open: 0,
            wanted: 0,
            there_at: Nanos::NEVER,
            ramped_at: Nanos::NEVER,
            hold_from: Nanos::NEVER,
            until: Nanos::NEVER,
            draining: false,
            stopped: false,
            news: false,
            lost: false,
            dies_at: Nanos::NEVER,
        };
        Model {
            now: Nanos::ZERO,
            notice,
            period,
            workers: plan.parts(|_| workers).into_iter().map(worker).collect(),
            read: None,
            orders: Vec::new(),
            target: Target::GOOD,
            has_agents: false,
            hands_over_until: Nanos::ZERO,
            comes_back_until: Nanos::ZERO,
            is_silent: false,
        }
    }

    /// The same model on agents.
    pub(super) fn on_agents(self) -> Model {
        Model { has_agents: true, ..self }
    }

    /// Others may take over the load of a lost worker until this time.
    pub(super) fn handing_over(self, until: Nanos) -> Model {
        Model { hands_over_until: until, ..self }
    }

    /// A lost worker may come back until this time.
    pub(super) fn coming_back(self, until: Nanos) -> Model {
        Model { comes_back_until: until, ..self }
    }

    pub(super) fn facing(self, target: Target) -> Model {
        Model { target, ..self }
    }

    /// One worker ends without an order at this time.
    pub(super) fn losing(mut self, worker: u32, at: Nanos) -> Model {
        let nth = worker as usize % self.workers.len();
        self.workers[nth].dies_at = at;
        self
    }

    /// The same, but unnoticed.
    pub(super) fn silencing(self, worker: u32, at: Nanos) -> Model {
        Model { is_silent: true, ..self.losing(worker, at) }
    }

    /// The orders to all workers that end something.
    pub(super) fn of_all(&self) -> Vec<&'static str> {
        let of_all = self.orders.iter().filter_map(|(_, order)| match order {
            Order::All(Control::Until(at)) if *at < Nanos::NEVER => Some("Until"),
            Order::All(Control::Drain) => Some("Drain"),
            Order::All(Control::Release) => Some("Release"),
            Order::All(Control::Stop) => Some("Stop"),
            _ => None,
        });
        of_all.collect()
    }
}

impl Workers for Model {
    fn role(&self) -> Vec<Role> {
        self.workers.iter().map(|worker| worker.part.role).collect()
    }

    fn notice(&self) -> Nanos {
        self.notice
    }

    fn period(&self) -> Nanos {
        self.period
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn carries_on(&self) -> bool {
        self.has_agents
    }

    fn hands_over(&self) -> bool {
        self.now < self.hands_over_until
    }

    fn may_come_back(&self) -> bool {
        self.now < self.comes_back_until
    }

    fn order(&mut self, order: Order) {
        self.orders.push((self.now, order));
        for worker in &mut self.workers {
            if let Some(control) = order.to(&worker.part) {
                worker.apply(control, self.now, self.target.takes);
            }
        }
    }

    fn next(&mut self, until: Nanos) -> Update<'_> {
        if self.workers.iter().all(|worker| worker.stopped && !worker.news) {
            return Update::Ended;
        }
        let at = |worker: &Worker| worker.acts_at(self.now, self.period, self.target);
        let (at, nth) =
            (0..self.workers.len()).map(|nth| (at(&self.workers[nth]), nth)).min().expect("there is one");
        if at > until.max(self.now) {
            self.now = until.max(self.now);
            return Update::Nothing;
        }
        self.now = at.max(self.now);
        if self.now >= self.workers[nth].dies_at {
            let worker = &mut self.workers[nth];
            (worker.news, worker.stopped, worker.dies_at) = (false, true, Nanos::NEVER);
            return if self.is_silent { self.next(until) } else { Update::Lost(nth as u32) };
        }
        let tick = self.workers[nth].report(self.now, self.target);
        Update::Tick(nth as u32, self.read.insert(tick))
    }
}

impl Worker {
    fn apply(&mut self, control: Control, now: Nanos, takes: Nanos) {
        if self.stopped {
            return;
        }
        match control {
            Control::Load { connections, from, .. } => {
                (self.wanted, self.there_at) = (connections.into(), from.max(now) + takes);
                self.ramped_at = Nanos::NEVER;
            }
            Control::Hold(from) => self.hold_from = from,
            Control::Until(at) => self.until = at,
            Control::Drain => (self.news, self.draining) = (!self.draining, true),
            Control::Stop => (self.news, self.stopped) = (true, true),
            Control::HoldUntil(_)
            | Control::RateProfile(..)
            | Control::DialAtMost(_)
            | Control::Pause(_)
            | Control::Release => {}
        }
    }

    /// When it delivers its next tick.
    fn acts_at(&self, now: Nanos, period: Nanos, target: Target) -> Nanos {
        match (self.news, self.stopped) {
            (true, _) => now,
            (false, true) => Nanos::NEVER,
            _ => {
                let until = if self.draining { Nanos::NEVER } else { self.until };
                let lost_at = if self.lost { Nanos::NEVER } else { target.loses_at };
                let tick_ends = Nanos((self.tick.from.0 / period.0 + 1) * period.0);
                tick_ends.min(self.there_at).min(until).min(lost_at).min(self.dies_at).max(now)
            }
        }
    }

    fn report(&mut self, now: Nanos, target: Target) -> Tick {
        let counts = &mut self.tick.counts;
        if now >= self.there_at && !self.draining {
            // Lost connections do not come back.
            let wanted = if self.lost { self.open.min(self.wanted) } else { self.wanted };
            counts.opened += wanted.saturating_sub(self.open);
            counts.finished += self.open.saturating_sub(wanted);
            (self.open, self.ramped_at) = (wanted, now);
        }
        if now >= self.there_at {
            self.there_at = Nanos::NEVER;
        }
        if now >= target.loses_at && !std::mem::replace(&mut self.lost, true) {
            counts.dropped += std::mem::take(&mut self.open);
        }
        self.draining |= now >= self.until;
        self.news = false;
        let tick = &mut self.tick;
        (tick.open, tick.ramped_at, tick.until) = (self.open, self.ramped_at, now);
        tick.waiting = if self.hold_from < Nanos::NEVER { target.waiting } else { 0 };
        tick.phase = match (self.draining, now >= self.hold_from) {
            (true, _) => Phase::Drain,
            (false, true) => Phase::Hold,
            (false, false) => Phase::Ramp,
        };
        std::mem::replace(tick, Tick { from: now, ..Tick::default() })
    }
}

//! The schedule of the load: which orders the shards get, and when. It leads the populations through the stages: a stage first moves them
//! to their share of the load (by a ramp or by closing connections), then holds it. Pure: the shards' progress and the time are inputs,
//! orders are outputs.

mod manual;
mod moves;
mod slower;

use engine::{Control, RateProfile};
use plan::{Part, Plan, Population, Role, Share, split};
use record::Ended;
use units::{Nanos, Rate};

pub use slower::Paced;

use self::{
    manual::{ManualControl, Slope},
    moves::Descent,
};

/// An order and its recipients.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Order {
    /// For every shard.
    All(Control),
    /// For the shards of a population.
    Population(u16, Control),
    /// The shards of a population together hold this many connections; each gets its share.
    Load(u16, u32, Option<RateProfile>, Nanos),
    /// For the probe's shards.
    Probe(Control),
}

impl Order {
    /// Every shard starts nothing new, and waits for outstanding responses.
    pub const DRAIN: Order = Order::All(Control::Drain);
    /// Every shard hands over its last tick, and ends.
    pub const STOP: Order = Order::All(Control::Stop);

    /// The command for the shard of this part; `None` if the order does not concern it.
    pub fn to(self, part: &Part) -> Option<Control> {
        match (self, part.role) {
            (Order::All(control), _) | (Order::Probe(control), Role::Probe(_)) => Some(control),
            (Order::Population(to, control), Role::Population(nth)) if to == nth => Some(control),
            (Order::Load(to, n, profile, from), Role::Population(nth)) if to == nth => {
                let connections = split(part.slice.of(n), part.shards).nth(part.shard as usize)?;
                Some(Control::Load { connections, profile, from })
            }
            _ => None,
        }
    }

    /// Translates the times of this order to another clock: `to` converts a time of this clock.
    #[must_use]
    pub fn translated(self, to: impl Fn(Nanos) -> Nanos) -> Order {
        match self {
            Order::All(control) => Order::All(control.translated(to)),
            Order::Population(nth, control) => Order::Population(nth, control.translated(to)),
            Order::Load(nth, n, profile, from) => Order::Load(nth, n, profile, to(from)),
            Order::Probe(control) => Order::Probe(control.translated(to)),
        }
    }
}

/// The state of the current stage.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Populations have been moving since the first time; the move ends no earlier than the second.
    Moving(Nanos, Nanos),
    /// The load is constant until this time.
    Holding(Nanos),
}

/// The progress of a population.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// The ordered share of the load, and the corresponding number of connections.
    level: Share,
    connections: u32,
    /// The share planned by the stages, before manual control.
    planned: Share,
    /// The dial rate; `None`: as fast as the target accepts connections.
    dials: Option<Rate>,
    /// The change of the request rate in progress, if any.
    slope: Option<Slope>,
    /// Total time of completed ramps, that is, moves to more connections. Moves that close connections do not count.
    ramping: Nanos,
    /// Total time at full load, until the last move.
    pub holding: Nanos,
    /// When full load began or begins; [`Nanos::NEVER`] during a move and at zero load.
    pub hold_from: Nanos,
    /// When the population was last ordered to move.
    moved_at: Nanos,
    is_moving: bool,
    /// The current move closes connections: more are open than ordered.
    closes: bool,
    /// The population has reached a stage's level at least once.
    has_held: bool,
}

/// Leads the populations through the stages in order.
#[derive(Debug)]
pub struct Schedule<'a> {
    plan: &'a Plan,
    /// Delay between a decision and the start of full load or of another rate profile, so that every shard has received the order by
    /// then.
    notice: Nanos,
    stage: usize,
    /// Whether the load ends after the last stage. False for a step of a search.
    has_end: bool,
    /// When every shard has received the current stage.
    applied: Nanos,
    state: State,
    /// Remaining hold time of the current stage.
    left: Nanos,
    manual: ManualControl,
    progress: Vec<Progress>,
    /// Total time during which any population was in a completed ramp.
    ramped: Nanos,
    descents: Vec<Descent>,
    orders: Vec<Order>,
}

impl<'a> Schedule<'a> {
    /// A schedule that starts with the first stage at `start`, when every shard must have received it. Its orders wait to be
    /// [taken](Schedule::orders). Every shard applies a later order within `notice`.
    pub fn new(plan: &'a Plan, start: Nanos, notice: Nanos) -> Schedule<'a> {
        let mut schedule = Schedule::inactive(plan, start, notice);
        schedule.start_probe(start);
        schedule.begin(start, start);
        schedule
    }

    /// A schedule for a step of a search: `held` connections of each population exist already, and the load continues after the last
    /// stage.
    pub fn going_on(plan: &'a Plan, start: Nanos, held: &[u32], notice: Nanos) -> Schedule<'a> {
        let mut schedule = Schedule::inactive(plan, start, notice);
        schedule.has_end = false;
        schedule.orders.push(Order::All(Control::Hold(Nanos::NEVER)));
        for (progress, held) in schedule.progress.iter_mut().zip(held) {
            progress.connections = *held;
        }
        schedule.start_probe(start + notice);
        schedule.begin(start, start + notice);
        schedule
    }

    /// Starts the probe's requests, which do not depend on the stages.
    fn start_probe(&mut self, from: Nanos) {
        let profile = self.plan.probe.as_ref().map(|probe| RateProfile::Steady(probe.rate));
        self.orders.extend(profile.map(|profile| Order::Probe(Control::RateProfile(profile, from))));
    }

    fn inactive(plan: &'a Plan, start: Nanos, notice: Nanos) -> Schedule<'a> {
        let still = Progress { hold_from: Nanos::NEVER, moved_at: start, ..Progress::default() };
        Schedule {
            plan,
            notice,
            stage: 0,
            has_end: true,
            applied: start,
            state: State::Holding(Nanos::NEVER),
            left: Nanos::ZERO,
            manual: ManualControl::still(),
            progress: vec![still; plan.populations.len()],
            ramped: Nanos::ZERO,
            descents: Vec::new(),
            orders: Vec::new(),
        }
    }

    /// Returns the orders since the last call.
    pub fn orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// Maximum time until every shard applies an order.
    pub fn notice(&self) -> Nanos {
        self.notice
    }

    /// Whether the load ends after the last stage.
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    /// Index of the current stage.
    pub fn stage(&self) -> usize {
        self.stage
    }

    /// Whether the load is still moving to the stage's level.
    pub fn is_moving(&self) -> bool {
        matches!(self.state, State::Moving(..))
    }

    /// When the last stage ends; [`Nanos::NEVER`] before its hold.
    pub fn ends_at(&self) -> Nanos {
        match self.state {
            State::Holding(until) if self.is_last() && !self.is_paused() => until,
            _ => Nanos::NEVER,
        }
    }

    /// When the next step is due, even if no shard reports anything.
    pub fn acts_at(&self) -> Nanos {
        match self.state {
            _ if self.is_paused() => Nanos::NEVER,
            State::Holding(until) => until,
            State::Moving(_, earliest) if earliest > Nanos::ZERO => earliest,
            State::Moving(..) => Nanos::NEVER,
        }
    }

    /// The progress of a population.
    pub fn progress(&self, population: u16) -> &Progress {
        &self.progress[usize::from(population)]
    }

    fn progress_mut(&mut self, population: u16) -> &mut Progress {
        &mut self.progress[usize::from(population)]
    }

    fn of(&self, population: u16) -> &'a Population {
        &self.plan.populations[usize::from(population)]
    }

    /// Planned connections of a population in the current stage; 0 for unlimited arrivals.
    pub fn wanted(&self, population: u16) -> u64 {
        let all = self.of(population).load.wanted();
        self.progress(population).level.of(all.unwrap_or(0).into())
    }

    /// Total ramp time of a population until now, including a ramp in progress.
    pub fn ramping(&self, population: u16, now: Nanos) -> Nanos {
        let progress = self.progress(population);
        match self.state {
            State::Moving(since, _) if progress.ramps() => progress.ramping + now.since(since),
            _ => progress.ramping,
        }
    }

    /// How a population's load ended: `ramped_at` is when the outcome of its last first dial was known, `own` when its shards ended,
    /// `ended` the end of the run's load.
    pub fn ended(&self, population: u16, ramped_at: Nanos, own: Nanos, ended: Nanos) -> Ended {
        let Progress { holding, hold_from, .. } = *self.progress(population);
        Ended { ramped_at, own, holding, hold_from, ramping: self.ramping(population, ended) }
    }

    /// Total time until now during which any population was in a ramp.
    pub fn ramping_any(&self, now: Nanos) -> Nanos {
        match self.state {
            State::Moving(since, _) if self.progress.iter().any(Progress::ramps) => {
                self.ramped + now.since(since)
            }
            _ => self.ramped,
        }
    }

    /// Whether populations are moving, and all of them by closing connections.
    pub fn is_closing(&self) -> bool {
        self.progress.iter().any(|progress| progress.is_moving) && !self.progress.iter().any(Progress::ramps)
    }

    /// Whether a population has been ordered to its largest load in the plan.
    pub fn is_at_peak(&self, population: u16) -> bool {
        self.progress(population).level == self.plan.peak(population)
    }

    /// Whether a population has reached its ordered level.
    pub fn has_arrived(&self, population: u16) -> bool {
        let progress = self.progress(population);
        progress.has_held && !progress.is_moving
    }

    /// Whether this is the last stage.
    pub fn is_last(&self) -> bool {
        self.stage + 1 == self.plan.stages.len()
    }

    /// Advances the schedule if it is due. `ramped` returns when all shards of a population had reached their ordered level, or `None` if
    /// they have not. Returns whether a new stage has begun.
    pub fn step(&mut self, now: Nanos, ramped: impl Fn(u16) -> Option<Nanos>) -> bool {
        match self.state {
            _ if self.is_paused() => false,
            State::Moving(since, earliest) => {
                self.descend(now);
                let moving: Vec<u16> = self.moving().collect();
                let arrived: Option<Vec<Nanos>> =
                    moving.iter().map(|&p| ramped(p).filter(|at| *at >= self.progress(p).moved_at)).collect();
                let Some(arrived) = arrived.filter(|_| now >= earliest && self.descents.is_empty()) else {
                    return false;
                };
                let mut longest = Nanos::ZERO;
                for (&population, at) in moving.iter().zip(arrived) {
                    let took = at.max(earliest).since(since);
                    longest = longest.max(self.progress_mut(population).add_ramp(took));
                }
                self.ramped = self.ramped + longest;
                // Arrivals are at full load from the first one.
                let from = if moving.is_empty() { since.max(earliest) } else { now + self.notice };
                self.hold(from);
                false
            }
            State::Holding(until) if now >= until && !self.is_last() => {
                self.stage += 1;
                self.begin(until, now + self.notice);
                true
            }
            State::Holding(_) => false,
        }
    }

    fn moving(&self) -> impl Iterator<Item = u16> + '_ {
        (0..).zip(&self.progress).filter(|(_, progress)| progress.is_moving).map(|(population, _)| population)
    }

    /// Starts the hold of the current stage at `from`: its level has been reached.
    fn hold(&mut self, from: Nanos) {
        for population in self.moving().collect::<Vec<_>>() {
            let progress = self.progress_mut(population);
            let (level, is_first) = (progress.level, !std::mem::replace(&mut progress.has_held, true));
            progress.is_moving = false;
            // Zero load is not full load.
            if level > Share::NONE {
                progress.hold_from = from;
                self.orders.push(Order::Population(population, Control::Hold(from)));
            }
            // At first, the request rate begins only once the connections are open; in later stages it changes together with them.
            if is_first && let Some(rate) = self.of(population).load.rate() {
                let profile = RateProfile::Steady(level.of_rate(rate));
                self.orders.push(Order::Population(population, Control::RateProfile(profile, from)));
            }
        }
        let until = from + self.left;
        self.orders.push(Order::Probe(Control::Hold(from)));
        self.state = State::Holding(until);
        self.end_with(until);
    }

    /// Orders the end of the last stage at `until`.
    fn end_with(&mut self, until: Nanos) {
        if !self.is_last() || until == Nanos::NEVER {
            return;
        }
        if self.has_end {
            return self.orders.push(Order::All(Control::Until(until)));
        }
        self.orders.push(Order::All(Control::HoldUntil(until)));
        // Stops the request rate, so that no backlog reaches the next load.
        for population in 0..self.progress.len() as u16 {
            if self.plan.populations[usize::from(population)].load.is_paced() {
                self.order_profile(population, RateProfile::Steady(Rate::default()), until);
            }
        }
    }

    /// Starts the current stage, which every shard will have received at `applied`.
    fn begin(&mut self, now: Nanos, applied: Nanos) {
        self.applied = applied;
        let stage = &self.plan.stages[self.stage];
        self.left = stage.hold.time();
        let all: u64 = stage.of.iter().map(|p| self.missing(*p)).sum();
        let mut earliest = Nanos::ZERO;
        for &population in &stage.of {
            self.progress_mut(population).planned = stage.to;
            if self.progress(population).level == self.manual.of(stage.to) {
                continue;
            }
            earliest = earliest.max(self.start_moving(population, all, now));
        }
        self.state = State::Moving(now, earliest);
    }
}

impl Progress {
    /// Whether the population is moving to more connections.
    fn ramps(&self) -> bool {
        self.is_moving && !self.closes
    }

    /// Adds the time of a finished move; returns the part that was a ramp (all or nothing).
    fn add_ramp(&mut self, time: Nanos) -> Nanos {
        let own = if self.ramps() { time } else { Nanos::ZERO };
        self.ramping = self.ramping + own;
        own
    }
}

#[cfg(test)]
mod tests;

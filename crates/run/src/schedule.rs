//! The schedule of the load: which orders the shards get, and when. Pure: the progress of the shards and the time are
//! inputs, orders are outputs.

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
    /// Every shard.
    All(Control),
    /// The shards of a population.
    Population(u16, Control),
    /// The shards of a population hold this many connections together, each its share.
    Load(u16, u32, Option<RateProfile>, Nanos),
    /// The probe's shards.
    Probe(Control),
}

impl Order {
    /// Every shard begins nothing new, and waits for responses.
    pub const DRAIN: Order = Order::All(Control::Drain);
    /// Every shard hands over what it counted, and ends.
    pub const STOP: Order = Order::All(Control::Stop);

    /// The command for the shard of this part, if any.
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

    /// The same by another clock: `to` is what that shows at a time of ours.
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
    /// The stage's populations are moving since the first time, and do not arrive before the second.
    Moving(Nanos, Nanos),
    /// The stage lasts until then.
    Holding(Nanos),
}

/// The progress of a population.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// The ordered share of its load, and the connections that this means.
    level: Share,
    connections: u32,
    /// The share of its load according to the stages: the same without manual control.
    planned: Share,
    /// How fast it dials; none is as fast as the target accepts connections.
    dials: Option<Rate>,
    /// Its rate, while that is changing.
    slope: Option<Slope>,
    /// The total time of its completed ramps: on its way to more connections. Closing them is none.
    ramping: Nanos,
    /// The time at full load until it was last moved.
    pub holding: Nanos,
    /// When its full load began or begins; never while it moves, or if it is zero.
    pub hold_from: Nanos,
    /// When it was last ordered to move.
    moved_at: Nanos,
    is_moving: bool,
    /// It has more connections than it is to have: it moves by closing them.
    closes: bool,
    /// It has reached the level of a stage.
    has_held: bool,
}

/// The stages in order.
#[derive(Debug)]
pub struct Schedule<'a> {
    plan: &'a Plan,
    /// Full load, or another rate profile, begins this long after the decision, so that every shard has the order by then.
    notice: Nanos,
    stage: usize,
    /// The load ends with the last stage.
    has_end: bool,
    /// When every shard has received the current stage.
    applied: Nanos,
    state: State,
    /// Left of the current stage's hold.
    left: Nanos,
    manual: ManualControl,
    progress: Vec<Progress>,
    /// Time in which any population was in a completed ramp.
    ramped: Nanos,
    descents: Vec<Descent>,
    orders: Vec<Order>,
}

impl<'a> Schedule<'a> {
    /// Starts with the first stage at `start`, by when every shard must have received it; its orders wait to be
    /// [taken](Schedule::orders). Every shard applies a later one within `notice`.
    pub fn new(plan: &'a Plan, start: Nanos, notice: Nanos) -> Schedule<'a> {
        let mut schedule = Schedule::inactive(plan, start, notice);
        schedule.start_probe(start);
        schedule.begin(start, start);
        schedule
    }

    /// The same if `held` connections of each population exist already; after the last stage they stay open and continue.
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

    /// Its requests are due from then on, whatever the stages do.
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

    /// The orders that have been given since the last time.
    pub fn orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// Every shard applies an order within this time.
    pub fn notice(&self) -> Nanos {
        self.notice
    }

    /// Whether the load ends with the last stage.
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    /// Which stage it is.
    pub fn stage(&self) -> usize {
        self.stage
    }

    /// Whether the stage's load is still on its way.
    pub fn is_moving(&self) -> bool {
        matches!(self.state, State::Moving(..))
    }

    /// When the run's last stage ends; never, before it holds.
    pub fn ends_at(&self) -> Nanos {
        match self.state {
            State::Holding(until) if self.is_last() && !self.is_paused() => until,
            _ => Nanos::NEVER,
        }
    }

    /// When an order is due even if no shard reports anything.
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

    /// Connections of a population in the current stage; none if arrivals are unlimited.
    pub fn wanted(&self, population: u16) -> u64 {
        let all = self.of(population).load.wanted();
        self.progress(population).level.of(all.unwrap_or(0).into())
    }

    /// How long a population's ramps took until now, the present one included.
    pub fn ramping(&self, population: u16, now: Nanos) -> Nanos {
        let progress = self.progress(population);
        match self.state {
            State::Moving(since, _) if progress.ramps() => progress.ramping + now.since(since),
            _ => progress.ramping,
        }
    }

    /// How a population's load `ended`, its last first dial decided at `ramped_at`, and in its shards at `own`.
    pub fn ended(&self, population: u16, ramped_at: Nanos, own: Nanos, ended: Nanos) -> Ended {
        let Progress { holding, hold_from, .. } = *self.progress(population);
        Ended { ramped_at, own, holding, hold_from, ramping: self.ramping(population, ended) }
    }

    /// How long any population was in its ramp until now.
    pub fn ramping_any(&self, now: Nanos) -> Nanos {
        match self.state {
            State::Moving(since, _) if self.progress.iter().any(Progress::ramps) => {
                self.ramped + now.since(since)
            }
            _ => self.ramped,
        }
    }

    /// Whether populations are on their way, and none of them opens connections.
    pub fn is_closing(&self) -> bool {
        self.progress.iter().any(|progress| progress.is_moving) && !self.progress.iter().any(Progress::ramps)
    }

    /// Whether a population is, by its orders, at the largest load that the plan has for it.
    pub fn is_at_peak(&self, population: u16) -> bool {
        self.progress(population).level == self.plan.peak(population)
    }

    /// Whether a population is where it is wanted.
    pub fn has_arrived(&self, population: u16) -> bool {
        let progress = self.progress(population);
        progress.has_held && !progress.is_moving
    }

    /// Whether this is the last stage.
    pub fn is_last(&self) -> bool {
        self.stage + 1 == self.plan.stages.len()
    }

    /// Continues if it is time to. `ramped` is when a population reached its ordered level: when its last shard did, after
    /// the order. Returns whether a stage has ended and the next has begun.
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
                // Connections that come and go are full load from the first one on.
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

    /// The stage's load has been reached.
    fn hold(&mut self, from: Nanos) {
        for population in self.moving().collect::<Vec<_>>() {
            let progress = self.progress_mut(population);
            let (level, is_first) = (progress.level, !std::mem::replace(&mut progress.has_held, true));
            progress.is_moving = false;
            // Nothing at all is no full load.
            if level > Share::NONE {
                progress.hold_from = from;
                self.orders.push(Order::Population(population, Control::Hold(from)));
            }
            // The first time the rate begins when the connections are there; later it came with them.
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

    /// The last stage ends then.
    fn end_with(&mut self, until: Nanos) {
        if !self.is_last() || until == Nanos::NEVER {
            return;
        }
        if self.has_end {
            return self.orders.push(Order::All(Control::Until(until)));
        }
        self.orders.push(Order::All(Control::HoldUntil(until)));
        // No backlog reaches the next load.
        for population in 0..self.progress.len() as u16 {
            if self.plan.populations[usize::from(population)].load.is_paced() {
                self.order_profile(population, RateProfile::Steady(Rate::default()), until);
            }
        }
    }

    /// Starts the current stage, which every shard has received at `applied`.
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
    /// Whether it is on its way to more connections.
    fn ramps(&self) -> bool {
        self.is_moving && !self.closes
    }

    /// It was on its way for this time; returns how much of it was a ramp.
    fn add_ramp(&mut self, time: Nanos) -> Nanos {
        let own = if self.ramps() { time } else { Nanos::ZERO };
        self.ramping = self.ramping + own;
        own
    }
}

#[cfg(test)]
mod tests;

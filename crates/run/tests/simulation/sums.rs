//! The conductor of a simulated run: takes the ticks, gives the orders which `run` gives to threads, and holds each tick
//! against the laws of counting.

use engine::{Arrivals, Control, Remote, Tempo};
use plan::{Part, Plan, Ramp, Whose};
use run::{Course, Ended, Order, Played, Seen};
use samples::{Destination, Phase, Tick};
use units::Nanos;

use super::{
    Direction, Level, Story,
    laws::{obey_the_laws, obey_the_laws_of_steps},
};

/// A new rate begins this long after its order.
const NOTICE: Nanos = Nanos::from_millis(120);
/// An order has been obeyed after this time: a shard looks for one several times a second.
const OBEYED: Nanos = Nanos::from_millis(250);

/// What one shard said last.
#[derive(Clone, Copy)]
struct State {
    open: u64,
    resolved: u64,
    waiting: u64,
    owed: u64,
    ramped_at: Nanos,
    until: Nanos,
    /// When its load had ended; never, before it has.
    drained_at: Nanos,
    phase: Phase,
}

pub(super) struct Conductor<'a, F> {
    plan: &'a Plan,
    parts: &'a [Part],
    course: Course<'a>,
    /// Those not ordered yet.
    levels: &'a [(Nanos, Level)],
    arrivals: Arrivals,
    remotes: Vec<Remote>,
    states: Vec<State>,
    pub(super) story: Story,
    direction: Direction<'a>,
    /// Since when the load has been ending; never, before that.
    draining: Nanos,
    /// The judge has been shown the end of the load.
    is_told: bool,
    /// Every shard has handed over its last tick by then.
    pub(super) ends_at: Nanos,
    see: F,
}

impl<'a, F: FnMut(u32, &Tick)> Conductor<'a, F> {
    pub(super) fn new(
        plan: &'a Plan,
        parts: &'a [Part],
        direction: Direction<'a>,
        arrivals: Arrivals,
        remotes: Vec<Remote>,
        see: F,
    ) -> Self {
        let never = Nanos::NEVER;
        let silent = State {
            open: 0,
            resolved: 0,
            waiting: 0,
            owed: 0,
            ramped_at: never,
            until: Nanos::ZERO,
            drained_at: never,
            phase: Phase::Ramp,
        };
        let story = Story {
            played: Played::new(plan, parts),
            cut: 0,
            whole: Tick::default(),
            populations: vec![Tick::default(); plan.populations.len()],
            ticks: 0,
            held: 0,
            peak: 0,
            ramped_at: never,
            hold_from: never,
            hold_until: never,
            stages: vec![(Nanos::ZERO, never)],
            at_load: vec![Nanos::ZERO; plan.populations.len()],
        };
        let states = vec![silent; remotes.len()];
        let course = match direction.goes_on {
            true => Course::going_on(plan, Nanos::ZERO, &vec![0; plan.populations.len()]),
            false => Course::new(plan, Nanos::ZERO),
        };
        Conductor {
            plan,
            parts,
            course,
            levels: direction.levels,
            arrivals,
            remotes,
            states,
            story,
            direction,
            draining: never,
            is_told: false,
            ends_at: never,
            see,
        }
    }

    fn order(&self, order: Order) {
        for (part, remote) in self.parts.iter().zip(&self.remotes) {
            if let Some(control) = order.to(part) {
                remote.control.try_send(control).expect("a shard obeys within a few ticks");
            }
        }
    }

    pub(super) fn give_orders(&mut self) {
        self.course.orders().into_iter().for_each(|order| self.order(order));
    }

    /// What the shards of a population said last.
    fn of(&self, population: u16) -> impl Iterator<Item = &State> {
        let whose = Whose::Population(population);
        self.parts
            .iter()
            .zip(&self.states)
            .filter(move |(part, _)| part.whose == whose)
            .map(|(_, state)| state)
    }

    /// What the shards said last, but for the probe lane's.
    fn of_load(&self) -> impl Iterator<Item = &State> {
        self.parts
            .iter()
            .zip(&self.states)
            .filter(|(part, _)| part.whose != Whose::Probe)
            .map(|(_, state)| state)
    }

    /// After each turn: takes the ticks that are there, gives the orders that are due. True at the end.
    pub(super) fn step(&mut self, now: Nanos) -> bool {
        while let Ok((shard, tick)) = self.arrivals.try_recv() {
            self.take(shard, &tick);
            self.remotes[shard as usize].used.try_send(tick).expect("two ticks go back and forth");
        }
        self.order_level(now);
        if !self.is_draining() {
            let ramped: Vec<Option<Nanos>> = (0..self.plan.populations.len() as u16)
                .map(|nth| self.of(nth).map(|s| s.ramped_at).max().filter(|at| *at != Nanos::NEVER))
                .collect();
            self.go_on(now, |nth| ramped[usize::from(nth)]);
            self.give_orders();
        }
        self.story.hold_from = self.story.hold_from.min(self.course.progress(0).hold_from);
        let goes_on = self.direction.goes_on;
        let ended = !goes_on && self.has_ended();
        if !self.is_draining() && (ended || now >= self.course.ends_at()) {
            self.draining = now;
            self.order(Order::All(if goes_on { Control::Hold(Nanos::NEVER) } else { Control::Drain }));
        }
        let told = if goes_on {
            self.is_draining() && self.states.iter().all(|s| s.until >= self.draining + NOTICE)
        } else {
            ended
        };
        if told && !std::mem::replace(&mut self.is_told, true) {
            self.tell_the_end();
        }
        let open_requests = |s: &State| if goes_on { s.owed } else { s.waiting };
        // The probe's shard too, which hears of an end by itself from the order only: what it last said may be older.
        let all_know = goes_on || self.states.iter().all(|s| s.phase == Phase::Drain);
        let drained = told && all_know && self.states.iter().map(open_requests).sum::<u64>() == 0;
        let is_cut = self.is_draining() && now.since(self.draining) >= self.direction.patience;
        if self.is_draining() && (drained || is_cut) && self.ends_at == Nanos::NEVER {
            self.story.cut = self.states.iter().map(open_requests).sum();
            self.ends_at = now + OBEYED;
            self.order(Order::All(Control::Stop));
        }
        now >= self.ends_at
    }

    fn is_draining(&self) -> bool {
        self.draining != Nanos::NEVER
    }

    fn has_ended(&self) -> bool {
        self.of_load().all(|s| s.phase == Phase::Drain)
    }

    /// The judge learns how the load ended.
    fn tell_the_end(&mut self) {
        let last =
            if self.direction.goes_on { self.course.ends_at().min(self.draining) } else { Nanos::NEVER };
        let end = |nth| Ended {
            open: self.of(nth).map(|s| s.open).sum(),
            ramped_at: self.of(nth).map(|s| s.ramped_at).max().unwrap_or_default(),
            at: self.of(nth).map(|s| s.drained_at).max().unwrap_or_default().min(last),
        };
        let ends: Vec<Ended> = (0..self.plan.populations.len() as u16).map(end).collect();
        self.story.played.end(self.plan, &self.course, &ends);
    }

    /// From stage to stage.
    fn go_on(&mut self, now: Nanos, ramped: impl Fn(u16) -> Option<Nanos>) {
        let (stages, ends) = (&mut self.story.stages, self.course.acts_at());
        if self.course.step(now, ramped) {
            stages.push((ends, Nanos::NEVER));
        } else if let (false, Some((_, from @ Nanos::NEVER))) = (self.course.is_moving(), stages.last_mut()) {
            let stays = self.plan.stages[self.course.stage()].hold.time();
            *from = if stays == Nanos::NEVER { now } else { self.course.acts_at().since(stays) };
        }
    }

    /// Orders the next level when its time has come: each shard has its share of it.
    fn order_level(&mut self, now: Nanos) {
        let Some((&(at, level), rest)) = self.levels.split_first() else { return };
        if now < at {
            return;
        }
        self.levels = rest;
        let tempo = match self.plan.stages[0].ramp {
            Ramp::Rate(rate) => Some(Tempo::Steady(rate)),
            _ => None,
        };
        self.order(match level {
            Level::Asked(ask) => {
                assert!(self.course.heed(ask, now).is_some(), "{ask:?} changes nothing");
                return self.give_orders();
            }
            Level::Connections(n) => Order::Load(0, n, tempo, now),
            Level::Rate(rate) => Order::Population(0, Control::Tempo(Tempo::Steady(rate), at + NOTICE)),
        });
    }

    fn take(&mut self, shard: u32, tick: &Tick) {
        (self.see)(shard, tick);
        let &Tick { open, resolved, owed, ramped_at, until, phase, .. } = tick;
        // What it has given up waits no longer.
        let waiting = tick.waiting - tick.counts.unanswered;
        let state = &mut self.states[shard as usize];
        let is_load = state.drained_at == Nanos::NEVER;
        let drained_at = if is_load && phase == Phase::Drain { until } else { state.drained_at };
        *state = State { open, resolved, waiting, owed, ramped_at, until, drained_at, phase };
        self.show_the_judge(shard, tick, is_load);
        let sum = |field: fn(&State) -> u64| self.states.iter().map(field).sum::<u64>();
        let (open, resolved, waiting) = (sum(|s| s.open), sum(|s| s.resolved), sum(|s| s.waiting));
        let story = &mut self.story;
        story.whole.extend(tick);
        if let Whose::Population(nth) = self.parts[shard as usize].whose {
            story.populations[usize::from(nth)].extend(tick);
        }
        (story.whole.open, story.whole.resolved, story.whole.waiting) = (open, resolved, waiting);
        story.ticks += 1;
        story.peak = story.peak.max(open);
        let ramped_at = self.of_load().map(|s| s.ramped_at).max().expect("there is a shard");
        let ended = self.has_ended();
        let story = &mut self.story;
        story.ramped_at = ramped_at;
        if story.hold_until == Nanos::NEVER && ended {
            story.hold_until = until;
            story.held = open;
            for (nth, at_load) in (0..).zip(&mut story.at_load) {
                let progress = self.course.progress(nth);
                *at_load = progress.holding + until.since(progress.hold_from);
            }
        }
        // Of each population, for they may speak different protocols.
        for (nth, population) in (0..).zip(&self.plan.populations) {
            let own =
                self.parts.iter().zip(&self.states).filter(|(part, _)| part.whose == Whose::Population(nth));
            let (open, resolved, waiting) =
                own.fold((0, 0, 0), |(o, r, w), (_, s)| (o + s.open, r + s.resolved, w + s.waiting));
            let whole = &mut story.populations[usize::from(nth)];
            (whole.open, whole.resolved, whole.waiting) = (open, resolved, waiting);
            obey_the_laws(self.plan, population, whole);
            obey_the_laws_of_steps(self.plan, nth, whole);
        }
        self.obey_the_law_of_the_whole();
        self.obey_the_law_of_destinations();
    }

    /// A step of a search is judged without what comes after it.
    fn show_the_judge(&mut self, shard: u32, tick: &Tick, is_load: bool) {
        if self.direction.goes_on && self.ends_at != Nanos::NEVER {
            return;
        }
        let whose = self.parts[shard as usize].whose;
        let own = self.parts.iter().zip(&self.states).filter(|(part, _)| part.whose == whose);
        let own: Vec<&State> = own.map(|(_, state)| state).collect();
        let seen = Seen {
            open: self.states.iter().map(|s| s.open).sum(),
            own: own.iter().map(|s| s.open).sum(),
            complete: own.iter().map(|s| s.until).min().unwrap_or_default(),
            is_load,
        };
        self.story.played.take(&self.course, whose, tick, seen);
    }

    /// The destinations together are the whole, where they are counted each by itself.
    fn obey_the_law_of_destinations(&self) {
        let t = &self.story.whole;
        if t.destinations.is_empty() {
            return;
        }
        let mut sum = Destination::default();
        t.destinations.iter().for_each(|own| sum.merge(own));
        let c = &t.counts;
        let of_sum = [sum.opened, sum.failed, sum.dropped, sum.closed, sum.redialled, sum.finished];
        assert_eq!(of_sum, [c.opened, c.failed, c.dropped, c.closed, c.redialled, c.finished]);
        assert_eq!((sum.sent, sum.answered, &sum.faults), (c.sent, c.answered, &t.faults));
        assert_eq!((sum.latency.count(), sum.open()), (t.latency.count(), t.open));
    }

    /// The populations together are the whole: the probe lane's figures are its own.
    fn obey_the_law_of_the_whole(&self) {
        let Story { whole, populations, .. } = &self.story;
        if populations.len() < 2 {
            return;
        }
        let mut sum = Tick::default();
        populations.iter().for_each(|population| sum.merge(population));
        let essence = |t: &Tick| {
            let latencies =
                [&t.latency, &t.ramp_latency, &t.connect].map(|latency| (latency.count(), latency.max()));
            let counts = samples::Counts { addresses_skipped: 0, ..t.counts.clone() };
            (counts, t.faults.clone(), t.status.clone(), latencies)
        };
        assert_eq!(essence(&sum), essence(whole), "the sum, seed {}", self.plan.seed);
    }
}
